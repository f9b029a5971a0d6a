"""Every text and record format with bytes broken at random: what is left is read, or a clear error says why not."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.formats import ADAPTERS
from gradtrend.ingest.reading import MAX_SKIPPED_KEPT, Adapter, ReadOptions
from tests.ingest.readings import SCHEMA, long_table
from tests.places import RUNS

TRIPLES = ("[" + ", ".join(f"[{1.7e9 + i}, {i}, {i / 7}]" for i in range(30)) + "]").encode()


def sample(adapter: Adapter) -> bytes:
    patterns = {
        "console": "console/torchtitan/train.log",
        "csv": "csv/lightning_val_rows/**/metrics.csv",
        "mmengine": "mmengine/mmdet_json/None.log.json",
        "trackio": "trackio/two_runs/trackio/toy.db",
        "trainer-state": "trainer-state/transformers_nan/trainer_state.json",
        "wandb": "wandb/define_metric/**/*.wandb",
    }
    return TRIPLES if adapter.name == "tensorboard-json" else next(RUNS.glob(patterns[adapter.name])).read_bytes()


# The others have tests of damage of their own.
DAMAGED = [adapter for adapter in ADAPTERS if adapter.name not in ("dvclive", "jsonl", "mlflow", "tensorboard")]


@pytest.mark.parametrize("adapter", DAMAGED, ids=lambda adapter: adapter.name)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(data=st.data())
def test_broken_bytes(tmp_path: Path, adapter: Adapter, data: st.DataObject) -> None:
    whole = bytearray(sample(adapter))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        piece = data.draw(st.binary(min_size=1, max_size=30))
        whole[at : at + len(piece)] = piece
    cut = data.draw(st.integers(0, len(whole)) | st.just(len(whole)))
    compressed = data.draw(st.booleans()) and adapter.name != "trackio"
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(whole[:cut]) if compressed else whole[:cut])
    adapter.claims(path, path.read_bytes()[:65536])
    with contextlib.suppress(InputError):
        for reading in adapter.read(path, ReadOptions()):
            assert long_table(reading).schema == SCHEMA
            assert len(reading.skipped) <= MAX_SKIPPED_KEPT
            assert reading.skipped_count >= len(reading.skipped)
