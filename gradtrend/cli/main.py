"""The command line as a whole: the commands, and what becomes of errors."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn

import click

from gradtrend.cli.apart import clean_up_when_terminated, run_apart, without_memory
from gradtrend.cli.exit_codes import Exit
from gradtrend.cli.output import complain, let_go, tell
from gradtrend.cli.stream import with_buffers
from gradtrend.errors import ConfigError, GradtrendError, UnguardedScriptError
from gradtrend.loading import done
from gradtrend.pipeline.memory import lacks_memory
from gradtrend.report import escape
from gradtrend.version import __version__


def _analyze() -> click.Command:
    from gradtrend.cli.analyze import analyze

    return analyze


def _scan() -> click.Command:
    from gradtrend.cli.scan import scan

    return scan


def _replay() -> click.Command:
    from gradtrend.cli.replay import replay

    return replay


def _rule() -> click.Command:
    from gradtrend.cli.rule import rule

    return rule


def _series() -> click.Command:
    from gradtrend.cli.series import series

    return series


def _config() -> click.Command:
    from gradtrend.cli.config import config

    return config


# In the order of the help. A command is loaded when it is called or listed; its own heavy imports (polars and what
# reads with it) happen inside its function.
COMMANDS: Mapping[str, Callable[[], click.Command]] = {
    "analyze": _analyze,
    "scan": _scan,
    "replay": _replay,
    "rule": _rule,
    "series": _series,
    "config": _config,
}


# Full, over a quota or a limit, closed, broken, not waiting: what `click.echo` meets on its way out.
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO, errno.EAGAIN})


class _Program(click.Group):
    """The group of commands, with gradtrend's exit codes in place of click's."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in their own order, not the alphabet's."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, loaded. For a name that is none all are, for the message that says what is near."""
        if cmd_name in COMMANDS:
            return COMMANDS[cmd_name]()
        self.commands = {name: load() for name, load in COMMANDS.items()}
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with; a path in its place gets a hint."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if _looks_like_a_path(args[0]):
                hint = f"No such command {args[0]!r}. Did you mean 'gradtrend analyze {args[0]}'?"
                raise click.UsageError(hint, ctx) from None
            raise

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        """Run a command line and exit with one of the codes of `Exit`."""
        words = list(sys.argv[1:] if args is None else args)
        extra.setdefault("prog_name", "gradtrend")
        with_buffers()
        clean_up_when_terminated()
        code = run_apart(lambda: self._run(words, **(extra | {"standalone_mode": False})))
        done()
        sys.exit(code)

    def _run(self, words: list[str], **extra: Any) -> int:
        try:
            return int(super().main(words, **extra) or Exit.OK)
        except (click.Abort, KeyboardInterrupt):
            return Exit.INTERRUPTED
        except click.ClickException as error:
            return _usage(error)
        except UnguardedScriptError:  # the process that started this one reports
            return Exit.OK
        except GradtrendError as error:
            return _refusal(error)
        except (SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # panics of polars are no `Exception`
            if lacks_memory(error):
                return without_memory()
            code = _without_output(error)
            return _bug(error, "--debug" in words) if code is None else code


def _looks_like_a_path(word: str) -> bool:
    return word == "-" or "/" in word or os.sep in word or Path(word).exists()


def _usage(error: click.ClickException) -> Exit:
    with StringIO() as text:
        error.show(text)
        tell("\n".join(map(escape, text.getvalue().rstrip("\n").split("\n"))))
    return Exit.USAGE


def _refusal(error: GradtrendError) -> Exit:
    lines = "\n".join(map(escape, error.message.split("\n")))
    complain(lines, error.hint and escape(error.hint))
    return Exit.USAGE if isinstance(error, ConfigError) else Exit.NOT_JUDGED


def _without_output(error: BaseException) -> Exit | None:
    """The exit code where click itself could not print, None for any other error."""
    if not isinstance(error, OSError):
        return None
    if error.errno == errno.EPIPE:  # `--help | head`
        let_go(sys.stdout)
        return Exit.OK
    if error.errno in _UNWRITABLE:  # `--help > /dev/full`
        let_go(sys.stdout)
        complain(f"standard output cannot be written ({error.strerror})")
        return Exit.USAGE
    return None


def _bug(error: BaseException, debug: bool) -> Exit:
    if debug:
        tell("".join(traceback.format_exception(error)).rstrip("\n"))
    hint = None if debug else "Run again with --debug for the traceback."
    complain(f"internal error: {type(error).__name__}: {escape(str(error))}", hint)
    return Exit.BUG


main = _Program(
    "gradtrend",
    params=[],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="A linter for training runs: reads what a run logged, judges its gradient norm, says what to do next.",
)
click.version_option(__version__, "-V", "--version", prog_name="gradtrend", message="%(prog)s %(version)s")(main)
