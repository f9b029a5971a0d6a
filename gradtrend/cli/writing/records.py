"""The files that the records of a scan are written to (`-o`): as they come, and in order at the end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gradtrend.cli.writing.target import Target, prepared
from gradtrend.errors import ConfigError

if TYPE_CHECKING:
    from gradtrend.model.many.record import Record

_PART = ".part"
_STREAMED = ".jsonl"


class RecordFiles:
    """The files of a call. Lines of JSON are added to `FILE.part` as they come, so that an hour's work can be looked at
    and survives what ends it; at the end each file is written whole, in the order of the runs' names.

    Raises `ConfigError` for a suffix that no such file has, for one file given twice, for what the call reads or keeps
    its state in, for a file below a root that no scan has written (it may be a log), and where it cannot be written.
    """

    def __init__(self, paths: Sequence[Path], roots: Sequence[str], state: Path | None, streamed: bool = True) -> None:
        from gradtrend.pipeline.scan.files import check_suffix, holds_records

        for path in paths:
            check_suffix(path, f"-o {path}")
        parts = [path.with_name(path.name + _PART) for path in paths if streamed and _is_streamed(path)]
        written = [*paths, *parts]
        own = [os.path.realpath(path) for path in (*written, *([] if state is None else [state]))]
        if len({*own}) < len(own):
            raise ConfigError("-o and --state name one file twice", "One would replace the other.")
        if {*own} & {*map(os.path.realpath, roots)}:
            raise ConfigError("-o or --state is what is to be read", "Name another file.")
        for path in written:
            foreign = path in parts and path.exists() and not holds_records(path)
            if foreign or (_lies_below(path, roots) and not holds_records(path)):
                raise ConfigError(f"-o {path}: is there, and holds no records", "Name another file.")
        self._targets: list[Target] = [prepared(path) for path in paths]
        self.parts = parts
        self._open: list[tuple[Path, IO[str]]] = []

    @property
    def own(self) -> list[Path]:
        """All that is written."""
        return [*(target.path for target in self._targets), *self.parts]

    @property
    def are_streamed(self) -> bool:
        """Whether lines are wanted as they come."""
        return bool(self.parts)

    def add(self, lines: str) -> None:
        """Add records as they come."""
        if not self._open:  # what an earlier scan has left there is kept until there is something better
            self._open = [(part, _opened(part)) for part in self.parts]
        for part, file in self._open:
            try:
                file.write(lines)
                file.flush()
            except OSError as error:
                raise ConfigError(f"-o {part}: cannot be written ({error.strerror or error})") from None

    def finish(self, records: Sequence[Record]) -> None:
        """Write each file whole."""
        from gradtrend.pipeline.scan.files import records_bytes

        for target in self._targets:
            target.write(records_bytes(records, target.path.suffix))
        for part, file in self._open:
            file.close()
            with suppress(OSError):
                part.unlink()

    def abandon(self) -> list[Path]:
        """Let go of the parts, which hold what has come so far. Gives those that hold anything."""
        for _, file in self._open:
            file.close()
        return [part for part, _ in self._open]


def _is_streamed(path: Path) -> bool:
    return path.suffix.lower() == _STREAMED and (not path.exists() or path.is_file())


def _lies_below(path: Path, roots: Sequence[str]) -> bool:
    real = Path(os.path.realpath(path))
    return any(Path(os.path.realpath(root)) in real.parents for root in roots)


def _opened(part: Path) -> IO[str]:
    try:
        return part.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"-o {part}: cannot be written ({error.strerror or error})") from None
