"""Console text from a file or standard input, by any framework: see `grammar` for what is understood."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import BinaryIO

from gradtrend.ingest.files.streams import decoded_head, open_log, open_stream, plain_name
from gradtrend.ingest.formats.console.ending import ending
from gradtrend.ingest.formats.console.found import what_was_found
from gradtrend.ingest.formats.console.lines.line import LineReader, middle_left_out
from gradtrend.ingest.formats.console.lines.plan import says
from gradtrend.ingest.formats.console.megatron import MegatronLosses
from gradtrend.ingest.formats.console.pieces import Pieces
from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.ingest.formats.console.scan import LineScanner
from gradtrend.ingest.formats.console.series import series_of_rows
from gradtrend.ingest.formats.console.steps.bars import BarSteps
from gradtrend.ingest.formats.console.steps.blocks import BlockSteps
from gradtrend.ingest.formats.console.steps.epochs import EpochHeads
from gradtrend.ingest.formats.console.steps.gaps import missing_steps
from gradtrend.ingest.formats.console.tables import TableReader
from gradtrend.ingest.formats.console.warnings import Warnings
from gradtrend.ingest.limits import LONGEST_PARSED
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.counters import UNKNOWN
from gradtrend.model.runlog import Skipped
from gradtrend.model.words import Role

# A console log is known by its name where training has not begun within the first bytes; a text by its content alone.
_LOG_NAME = re.compile(
    r"\.(?:log|out|err|stdout|stderr)(?:\.\d+)?$|^(?:log|logs|stdout|stderr|console|output|nohup)(?:\.txt)?$|[._-]log\.txt$",
    re.IGNORECASE,
)
# Files beside a run's logs that may well name a loss: settings, tables and documents are not console text.
_OTHER_KINDS = re.compile(r"\.(?:jsonl?|ndjson|ya?ml|csv|tsv|toml|xml|html|md|rst|py|ipynb|cfg|ini|sh|tex|diff|patch)$")
_OF_TABLES = (b"loss", b"norm", b"grad")  # one of them stands in the header of every table
_LONGEST_LOOKED_AT = 20_000  # bytes of a line
_ENOUGH = 2  # lines of a file with any other name that must look like logged ones


def claims(path: Path, head: bytes) -> bool:
    """Whether lines of a text log a loss or a gradient norm, or a file is named like a console log."""
    name = PurePath(plain_name(path).lower())
    if not head or _OTHER_KINDS.match(name.suffix):
        return False
    text = decoded_head(head)
    if b"\0" in text[:8192]:
        return False
    if _LOG_NAME.search(name.name):
        return True
    pieces = re.split(rb"[\r\n]+", text)
    reader = LineReader()
    looked_at = [middle_left_out(piece, _LONGEST_LOOKED_AT) for piece in pieces[:2000]]
    read = (reader.read(piece) for piece in looked_at)
    if sum(logged is not None and not logged.plan.held_out for logged in read) >= _ENOUGH:
        return True
    return _has_table(looked_at)


def _has_table(pieces: Sequence[bytes]) -> bool:
    """Whether the lines hold a table of a step and a loss or a gradient norm, with rows."""
    table, rows = TableReader(), ConsoleRows()
    for piece in pieces:
        if table.is_open and table.take(0, piece, rows):
            if rows.seen >= _ENOUGH:
                return True
        elif any(word in piece.lower() for word in _OF_TABLES):
            table.open_at(piece)
    return False


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """What the file's lines logged; an empty reading where none names a loss, a gradient norm, or what the user named.

    Raises InputError where the file cannot be opened or decompressed.
    """
    with open_log(path) as stream:
        return (_read(stream, path, options.names),)


def read_stream(stream: BinaryIO) -> Sequence[Reading]:
    """What the lines on standard input logged; as `read`."""
    return (_read(open_stream(stream), Path("-")),)


def _read(stream: BinaryIO, path: Path, names: Sequence[str] = ()) -> Reading:
    """What the lines of a log hold; `names` are metrics that the user says are logged there."""
    rows = ConsoleRows()
    held_out = ConsoleRows()  # what is read where nothing of the training is logged
    skipped: list[Skipped] = []
    scanner = LineScanner(stream, skipped, names)
    reader = LineReader(frozenset(names))
    table = TableReader()
    megatron = MegatronLosses()
    blocks = BlockSteps()
    heads = EpochHeads()
    bars = BarSteps()
    warnings = Warnings()
    pieces = Pieces()
    for number, whole in scanner:
        raw = middle_left_out(whole, LONGEST_PARSED)
        if raw is not whole:
            skipped.append(Skipped(f"the middle of a line of {len(whole):,} bytes", line=number))
        if table.is_open and table.take(number, raw, rows):
            continue
        if bars.waits:
            bars.close(scanner.between()[0])
        if not rows.seen:
            reader.look_at(scanner.head)
        logged = reader.read(raw)
        if logged is None:
            if not warnings.take(number, raw, rows):
                table.open_at(raw)
        elif logged.plan.held_out:
            if not rows.seen:
                held_out.add(number, logged)
        else:
            if logged.plan.place.bar and b"kipp" in raw:  # a warning behind a bar that was not yet at its end
                warnings.take(number, raw, rows)
            logged = heads.place(blocks.place(logged, raw, scanner), scanner)
            if warnings.zero_pending:
                logged = warnings.unmask(logged)
            if logged.counter == UNKNOWN:
                bars.watch(number, raw, scanner)
            megatron.watch(number, raw, logged)
            rows.add(number, logged)
            if logged.counter == UNKNOWN or scanner.ends_within_a_line:
                pieces.watch(number, logged, scanner.ends_within_a_line)
        scanner.every_line = table.is_open
    bars.fill(rows, scanner)
    megatron.fill(rows)
    skipped += (*pieces.cut(rows, reader, scanner), *rows.left_out())
    series, notes, lost = series_of_rows(rows if rows.seen else held_out)
    skipped += pieces.fragments(lost, reader)
    notes = (*notes, *warnings.notes(series), *(missing_steps(series) if rows.stride == 1 else ()))
    if not any(says(name) is Role.GRAD_NORM for name in series):
        notes = (*notes, *what_was_found(path, scanner.head, scanner.head_is_all))
    notes = (*notes, *ending(path.name, scanner.end))
    return Reading("console", path, series, digits=rows.kept_digits(), notes=notes).with_skipped(skipped)
