"""No line makes reading it cost time by the square of its length, whatever is repeated on it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from gradtrend.ingest.formats.console.ending import ending
from gradtrend.ingest.formats.console.lines.labels import without_level
from gradtrend.ingest.formats.console.lines.line import LineReader, clean, has_decimal_commas
from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.ingest.formats.console.steps import bars, blocks, epochs
from gradtrend.ingest.formats.console.tables import TableReader
from gradtrend.ingest.formats.console.warnings import Warnings
from gradtrend.ingest.limits import LONGEST_NAME
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.runs.evidence import borders
from gradtrend.ingest.settings.lines import said_in

PIECES = (
    "nan(", "nan", "a.", "a.b/c-", "1e", "1e-", "[", "]", " ", "\t", "key=", "\x1b[", "\x1b[0;", "\x1b]", "^[[1;",
    "[1;", "a", "a_", "aA", "1,", "1,000,", "0", "9 ", "|", "- ", "{", "{'", "'", '"', "loss ", "loss: ", "loss=",
    "loss", "loss_", "losses[", "grad norm ", "grad_", "grad.", "step ", "step/", "1/", "1/1 ", "1:00", "10-", "(",
    ") ", "epoch ", ".", ": ", ", ", "%|", "1%|", '="', "\\", "a=(", "skip ", "nan loss ", "inf", "null", "the ",
    "-->", "train ", "1.", "1.0 ", "no ", "loaded a ", "start a ", "found ", "val ", "val]", "rank ", "gpu:", "norm",
    "I0912 a:1", "INFO:", "a.INFO:", "[step=1,", "[step ", "Epoch[1][1/", "tensor(", "np.float64(", "=>", "<",
    "loss 1.5 ", "step 1 ", "__", "_/", "#", "é", "\0", "Error ", "loss returned in ", "to satisfy the constraint ",
    "minimum loss scale ", "[1/1] ", "device=a:", "loss 1 (", "loss(", "loss: a ", "a.b: ", "a  b", "a,b;",
    "1 epoch ", "quartiles 1 ", "loss: 1 (inf", "weight", "layer.", "1_", "-1", "nanx", "nan x", "1.#inf", "global_",
    "learners/", "gradients/",
)  # fmt: skip
SHORT, LONG = 2_000, 16_000
NOTHING = 0.15  # seconds: some ten times what any line of LONG characters takes
MOST_RATIO = 32  # of eight times the length; 64 is the square


def _row(line: bytes) -> None:
    LineReader().read(line)


def _table(line: bytes) -> None:
    for header in (b"| step | loss | grad_norm |", b"Step  Training Loss  Grad Norm", b"step,loss"):
        table = TableReader()
        table.open_at(header)
        table.take(1, line, ConsoleRows())
    TableReader().open_at(line[:4000])


def _warning(line: bytes) -> None:
    Warnings().take(1, line[:1000], ConsoleRows())


def _heads(line: bytes) -> None:
    text = without_level(clean(line))
    for pattern in (blocks._GLOBAL, blocks._TAIL):
        pattern.search(text)
    for pattern in (blocks._HEAD, epochs._HEAD):
        pattern.match(text)
    bars._bar(line, 0)


def _ends(line: bytes) -> None:
    ending("train.log", line)
    ending("train.log", b"Traceback (most recent call last):\n" + line)
    said_in(line, unread=True)
    has_decimal_commas(line)


def _borders(line: bytes) -> None:
    for name in ("_RESUMED", "_NOT_RESUMED", "_CLOSING", "_BANNER", "_EPOCH", "_COUNT"):
        getattr(borders, name).search(line)


def _name(line: bytes) -> None:
    name_metric.__wrapped__(line.decode())
    name_metric.__wrapped__(line.decode()[:LONGEST_NAME])


def _seconds(work: Callable[[bytes], None], line: str) -> float:
    began = time.process_time()
    work(line.encode())
    return time.process_time() - began


@pytest.mark.parametrize("work", [_row, _table, _warning, _heads, _ends, _borders, _name])
@pytest.mark.parametrize(("head", "tail"), [("", "!"), ("loss ", " 1.5")])
def test_no_line_costs_time_by_the_square(work: Callable[[bytes], None], head: str, tail: str) -> None:
    slow = []
    for piece in PIECES:
        long, short = (f"{head}{piece * (size // len(piece))}{tail}" for size in (LONG, SHORT))
        taken = _seconds(work, long)
        if taken > NOTHING:
            ratio = min(taken, _seconds(work, long)) / min(_seconds(work, short) for _ in range(3))
            if ratio > MOST_RATIO:
                slow.append(f"{piece!r}: {taken:.2f} s, {ratio:.0f} times as long as for an eighth")
    assert not slow, "\n".join(slow)


def test_a_log_that_logs_nothing_is_not_looked_through_again_for_each_line() -> None:
    reader, head = LineReader(), b"the loss of weight, the norm of it\n" * 7000
    began = time.process_time()
    for _ in range(20_000):
        reader.look_at(head)
    assert time.process_time() - began < 10  # once takes milliseconds, so each time a minute
