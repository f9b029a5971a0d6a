"""The one MLflow adapter: each form goes to its reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradtrend.errors import InputError
from gradtrend.ingest.formats.mlflow import ADAPTER
from gradtrend.ingest.reading import ReadOptions
from tests.ingest.readings import long_table
from tests.places import EXPLODING, LIGHTLY

FORMS = [(LIGHTLY / "mlflow_filestore_nan" / "mlruns", 15), (EXPLODING / "mlflow.db", 60)]


@pytest.mark.parametrize(("path", "points"), FORMS, ids=["files", "sqlite"])
def test_each_form_is_claimed_and_read(path: Path, points: int) -> None:
    head = b"" if path.is_dir() else path.read_bytes()[: 1 << 16]
    assert ADAPTER.claims(path, head)
    (reading,) = ADAPTER.read(path, ReadOptions())
    assert reading.format == "mlflow"
    assert (long_table(reading)["metric"] == "gradient_norm").sum() >= points


def test_an_address_goes_to_the_server_reader() -> None:
    assert ADAPTER.claims(Path("http://localhost:5000"), b"")
    with pytest.raises(InputError, match="cannot read from http://:5000"):
        ADAPTER.read(Path("http://:5000"), ReadOptions())


def test_other_paths_are_not_claimed(tmp_path: Path) -> None:
    assert not ADAPTER.claims(tmp_path, b"")
    assert not ADAPTER.claims(LIGHTLY / "sparse" / "metrics.jsonl", b"{}")
