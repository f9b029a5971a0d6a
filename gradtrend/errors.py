"""The exception tree. Everything that a user can cause is a `GradtrendError`; anything else is a bug."""


class GradtrendError(Exception):
    """An error with a message for the user and, where one is known, a hint what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(GradtrendError):
    """A wrong option, rule file or setting (exit code 2)."""


class InputError(GradtrendError):
    """A path that cannot be read or holds nothing to judge (exit code 3)."""


class EmptyLogError(InputError):
    """A sound log into which nothing was logged (yet): no damage beside other logs of the run (exit code 3)."""


class MissingPackageError(InputError):
    """An optional package is needed to read this input (exit code 3)."""


class ReplayError(GradtrendError):
    """A capture that cannot be replayed, and why (exit code 3)."""


class UnguardedScriptError(GradtrendError):
    """A script without `__main__` guard was begun again by a process that it had started, and must not go on there."""
