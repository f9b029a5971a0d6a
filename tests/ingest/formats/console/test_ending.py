"""What the end of a console log says."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gradtrend.ingest.formats.console.ending import ending

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    main()\n'


@pytest.mark.parametrize(
    ("end", "kind", "said"),
    [
        ("Loss is nan, stopping training\n", "stopped-on-nan", "Loss is nan, stopping training"),
        ("ERROR: Non-finite loss at step 9\n", "stopped-on-nan", "Non-finite loss"),
        (
            TRACEBACK + "FloatingPointError: Minimum loss scale reached (0.0001).\n",
            "stopped-on-nan",
            "Minimum loss scale reached",
        ),
        (TRACEBACK + "torch.OutOfMemoryError: CUDA out of memory.\n", "crashed", "torch.OutOfMemoryError"),
        ("[rank0]: " + TRACEBACK + "[rank0]: ValueError: no\n", "crashed", "ValueError: no"),
        (TRACEBACK, "crashed", "a traceback"),
        ("Training time 0:01:02\n", None, ""),
        ("nan_to_num keeps the loss finite\n", None, ""),
        ("", None, ""),
    ],
)
def test_the_last_words(tmp_path: Path, end: str, kind: str | None, said: str) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1 loss 2.0 grad_norm 1.0\n" * 2000 + end)
    notes = ending(log)
    assert [note.kind for note in notes] == ([] if kind is None else [kind])
    assert all(said in note.message for note in notes)


def test_what_was_said_long_before_the_end_does_not_count(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("Loss is nan, retrying\n" + "step 1 loss 2.0 grad_norm 1.0\n" * 2000)
    assert ending(log) == ()


def test_a_compressed_log_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "train.log.gz"
    log.write_bytes(gzip.compress(b"Loss is nan, stopping training\n"))
    assert ending(log) == ()
