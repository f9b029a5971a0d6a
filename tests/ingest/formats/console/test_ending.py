"""What the end of a console log says."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from gradtrend.ingest.formats.console.reader import read, read_stream
from gradtrend.ingest.reading import ReadOptions
from gradtrend.model.runlog import Note

_ENDS = ("stopped-on-nan", "crashed")
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
        ("FloatingPointError: Loss became infinite or NaN at iteration=501!\n", "stopped-on-nan", "iteration=501!"),
        (TRACEBACK + "FloatingPointError: Predicted boxes or scores contain Inf/NaN.\n", "stopped-on-nan", "Inf/NaN"),
        (TRACEBACK + "x.NanLossDuringTrainingError: NaN loss during training.\n", "stopped-on-nan", "NaN loss"),
        ("InvalidArgumentError: LossTensor is inf or nan. : Tensor had NaN values\n", "stopped-on-nan", "LossTensor"),
        (
            "  8/10 [==>.] - ETA: 0s - loss: 1.37Batch 8: Invalid loss, terminating training\n",
            "stopped-on-nan",
            "Batch 8",
        ),
        (TRACEBACK + "Exception: Current loss scale already at minimum - exiting.\n", "stopped-on-nan", "at minimum"),
        (TRACEBACK + "RuntimeError: grad_scale is too small, exiting: 7.4e-09\n", "stopped-on-nan", "too small"),
        (TRACEBACK + "RuntimeError: normal expects all elements of std >= 0.0\n", "stopped-on-nan", "std >= 0.0"),
        (TRACEBACK + "RuntimeError: Magnitude of gradient is bad: -nan\n", "stopped-on-nan", "-nan"),
        (TRACEBACK + "Exception: Loss exploded\n", "stopped-on-nan", "Loss exploded"),
        ("RuntimeError: Loss exploded to nan at step 51!\n", "stopped-on-nan", "exploded to nan"),
        ("Loss has exploded at step 51\n", "stopped-on-nan", "has exploded"),
        (TRACEBACK + "RuntimeError: Loss exploded to 150.0 at step 51!\n", "crashed", "exploded to 150.0"),
        ("Loss exploded to 150.0 at step 51!\n", None, ""),
        ("Loss exploded: 1e+05\n", None, ""),
        ("loss_gap is nan-safe now\n", None, ""),
        ("step 7 loss = nan\n", None, ""),
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
    notes = ends_of(log)
    assert [note.kind for note in notes] == ([] if kind is None else [kind])
    assert all(said in note.message for note in notes)


def test_what_was_said_long_before_the_end_does_not_count(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("Loss is nan, retrying\n" + "step 1 loss 2.0 grad_norm 1.0\n" * 2000)
    assert ends_of(log) == []


def test_a_compressed_log_and_a_pipe_end_as_any_other(tmp_path: Path) -> None:
    text = b"step 1 loss 2.0 grad_norm 1.0\n" * 200_000 + b"Loss is nan, stopping training\n"
    (tmp_path / "train.log.gz").write_bytes(gzip.compress(text))
    (piped,) = read_stream(io.BytesIO(text))
    assert [note.kind for note in ends_of(tmp_path / "train.log.gz")] == ["stopped-on-nan"]
    assert [note.kind for note in piped.notes if note.kind in _ENDS] == ["stopped-on-nan"]


def ends_of(log: Path) -> list[Note]:
    """The notes on the end of a log."""
    (reading,) = read(log, ReadOptions())
    return [note for note in reading.notes if note.kind in _ENDS]


def stop_of(tmp_path: Path, end: str) -> Note:
    log = tmp_path / "train.log"
    log.write_text("step 1 loss 2.0 grad_norm 1.0\n" + end)
    (note,) = ends_of(log)
    return note


@pytest.mark.parametrize(
    ("end", "step", "of_loss"),
    [
        ("FloatingPointError: Loss became infinite or NaN at iteration=501!\n", 501, "loss"),
        ("global step 77: Loss is nan, stopping training\n", 77, "loss"),
        ("Loss is nan, stopping training\n", None, "loss"),
        ("FloatingPointError: Minimum loss scale reached (0.0001).\n", None, ""),
        ("In epoch: 1 step: 5, loss is NAN or INF, training process cannot continue\n", None, "loss"),
    ],
)
def test_the_step_of_a_stop_and_whether_the_loss_made_it(
    tmp_path: Path, end: str, step: int | None, of_loss: str
) -> None:
    note = stop_of(tmp_path, end)
    assert (note.first_step, note.details) == (step, of_loss)


def test_the_terms_of_the_loss_behind_a_stop(tmp_path: Path) -> None:
    end = "FloatingPointError: Loss became infinite or NaN at iteration=9!\n"
    terms = "loss_dict = {'loss_cls': tensor(nan, device='cuda:0'), 'loss_box': tensor(0.25, device='cuda:0')}\n"
    assert stop_of(tmp_path, end + terms).message.endswith("(loss_cls of 2 terms not finite)")
