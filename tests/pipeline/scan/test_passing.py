"""What fails in the moment of a scan is read again by the next, what is damaged is not."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from gradtrend.ingest.files import streams
from tests.pipeline.scan.scans import runs, said, scan


def test_a_file_that_a_system_could_not_read_is_read_by_the_next_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, state = runs(tmp_path / "runs", 3), tmp_path / "state"
    whole = said(scan(root))
    real = streams.buffered

    def stale(path: Path) -> Any:
        if path.parent.name == "run-1" and path.name == "metrics.jsonl":
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
        return real(path)

    monkeypatch.setattr(streams, "buffered", stale)
    (failed,) = [record.failure for record in scan(root, state=state).records if record.failure]
    assert "Stale file handle" in failed
    monkeypatch.undo()
    again = scan(root, state=state)
    assert said(again) == whole
    assert scan(root, state=state).read == 0


def test_a_damaged_file_is_known(tmp_path: Path) -> None:
    root, state = tmp_path / "runs", tmp_path / "state"
    root.mkdir()
    (root / "metrics.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00" + os.urandom(100))
    before = scan(root, state=state)
    assert [record.failure for record in before.records] != [None]
    again = scan(root, state=state)
    assert (said(again), again.read) == (said(before), 0)
