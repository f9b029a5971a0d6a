"""A share of logs at hand: as it is, or fetched from its remote place for as long as it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gradtrend.errors import InputError
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.finding.tree import LogFile
from gradtrend.model.runlog import RunLog

if TYPE_CHECKING:  # loaded where there is an address
    from gradtrend.ingest.remote.objects import Missed, Remote

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Local:
    """A share whose logs are files of this machine, at `root`, and how what is told of them is put into the words of
    its address, `shown`. Both are empty for logs that are files anyway.
    """

    files: RunFiles
    root: str = ""
    shown: str = ""

    def told(self, text: str) -> str:
        """A text with the address in place of the folder in which its logs lie just now."""
        return text.replace(self.root, self.shown) if self.root else text

    def told_error(self, error: InputError) -> InputError:
        """An error, likewise."""
        return type(error)(self.told(error.message), None if error.hint is None else self.told(error.hint))

    def told_by(self, work: Callable[[], _T]) -> _T:
        """The outcome of some work on the share. Raises the errors of it, likewise."""
        try:
            return work()
        except InputError as error:
            raise self.told_error(error) from error

    def told_log(self, log: RunLog) -> RunLog:
        """A run as read, likewise; it has no folder any more."""
        if not self.root:
            return log
        sources = tuple(
            replace(
                one,
                path=self.told(one.path),
                skipped=tuple(replace(piece, reason=self.told(piece.reason)) for piece in one.skipped),
            )
            for one in log.sources
        )
        notes = tuple(replace(one, message=self.told(one.message), details=self.told(one.details)) for one in log.notes)
        captures = tuple(
            replace(one, problem=None if one.problem is None else self.told(one.problem)) for one in log.captures
        )
        return replace(log, run=self.told(log.run), sources=sources, notes=notes, captures=captures, folder=None)


@contextmanager
def localized(files: RunFiles) -> Iterator[Local]:
    """The share with its logs at hand, fetched where they are not; what was fetched is given back afterwards.

    Raises InputError where nothing of it can be fetched.
    """
    if files.remote is None:
        yield Local(files)
        return
    from gradtrend.ingest.remote.fetch import fetched

    remote = files.remote
    with fetched(remote) as (root, missed):
        yield Local(_moved(files, remote, root, missed), str(root), remote.shown)


def _moved(files: RunFiles, remote: Remote, root: Path, missed: Sequence[Missed]) -> RunFiles:
    """The share as it lies below another root, without the logs that could not be fetched."""
    old, new = remote.root, str(root)

    def moved(path: Path) -> Path:
        return Path(str(path).replace(old, new, 1)) if old != new else path

    def moved_log(log: LogFile) -> LogFile:
        runs = tuple(
            replace(run, place=run.place.replace(old, new), folders=tuple(f.replace(old, new) for f in run.folders))
            for run in log.runs
        )
        return replace(log, path=moved(log.path), runs=runs)

    from gradtrend.ingest.runs.finding.elsewhere import passed_over

    logs = tuple(map(moved_log, files.logs))
    late = [passed_over(root, one) for one in missed]
    gone = {one.path for one in late}
    own = gone & {log.path for log in logs}  # whatever their names
    passed = (
        *(replace(one, path=moved(one.path)) for one in files.passed_over),
        *(replace(one, unread=True) if one.path in own else one for one in late),
    )
    picked = files.picked
    if picked is not None and old != new:
        runs = {run.id: run for log in logs for run in log.runs}
        picked = replace(picked, runs=tuple(runs.get(run.id, run) for run in picked.runs))
    return replace(
        files,
        name=files.name.replace(remote.shown, new, 1),
        only=None if files.only is None else files.only.replace(remote.shown, new, 1),
        folder=moved(files.folder),
        logs=tuple(log for log in logs if log.path not in gone),
        with_debug=tuple(map(moved, files.with_debug)),
        passed_over=passed,
        picked=picked,
        remote=None,
    )


def shown_path(files: RunFiles, path: Path) -> str:
    """The path of a log of a share as people are told it: of a remote one its address."""
    remote = files.remote
    return str(path) if remote is None else str(path).replace(remote.root, remote.shown, 1)
