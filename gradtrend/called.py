"""How programs call the package: bugs told from what a caller can mend, and `gradtrend.replay` as a function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from types import ModuleType
from typing import TYPE_CHECKING

from gradtrend.errors import GradtrendError
from gradtrend.replay import ReplayOptions

if TYPE_CHECKING:
    from gradtrend.model.replay import Replay
    from gradtrend.replay import native


@contextmanager
def bugs_named(path: str, source: str = "auto") -> Iterator[None]:
    """Tell a bug in gradtrend from what a caller can mend: it is raised as a `RuntimeError` that says so."""
    try:
        yield
    except GradtrendError:
        raise
    except Exception as error:
        from gradtrend.pipeline.runs import whose_bug

        what = f"{path}: internal error: {type(error).__name__}: {error}"
        whose = whose_bug(source)
        raise RuntimeError(f"{what}\nThis is a bug in {whose}; please report it with its traceback.") from error


if TYPE_CHECKING:

    class Native(ModuleType):  # a type checker takes `replay` below for all of the package: no module can be called
        capture_step = staticmethod(native.capture_step)
        save_capture = staticmethod(native.save_capture)
        snapshot_random_states = staticmethod(native.snapshot_random_states)


class ReplayPackage(ModuleType):
    """The package `gradtrend.replay`, which can be called: `gradtrend.replay(path)`."""

    if TYPE_CHECKING:
        native: Native

    def __call__(
        self,
        path: str | PathLike[str],
        *,
        device: str = "auto",
        precision: str | None = None,
        trust: bool = False,
        layers: bool = False,
    ) -> tuple[Replay, ...]:
        """The replays of the captured steps at `path`, a run folder or one capture: one result a capture.

        `device` is auto, cpu, cuda, cuda:1 ...; `precision` one of `gradtrend.model.precision.PRECISIONS`, by itself as
        captured. Without `trust` nothing of the file is imported or run, and the captures are inspected only. With
        `layers` each that is run has a `diagnosis`, as `gradtrend.diagnose` gives one. A capture that cannot be run has
        the outcome `cannot-run`. Raises `InputError` where there is no capture, and as `analyze` for a bug.
        """
        from gradtrend.pipeline.replay import replay_path

        with bugs_named(fspath(path)):
            return replay_path(fspath(path), ReplayOptions(device, precision, trust, layers=layers))
