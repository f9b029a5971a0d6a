"""The tests that stand before the adapters: they may save work, never change which adapter a path gets."""

from __future__ import annotations

import gzip
import pickle
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.ingest import formats
from gradtrend.ingest.formats import ADAPTERS
from gradtrend.ingest.reading import HEAD_BYTES, SQLITE_MAGIC, Adapter
from tests.places import RUNS

FOLDERS = (
    "tensorboard", "mlflow", "wandb", "trackio", "dvclive", "json", "mmengine", "jsonl", "tensorboard_json", "csv",
    "console",
)  # fmt: skip
READERS = [import_module(f"gradtrend.ingest.formats.{folder}.reader") for folder in FOLDERS]
# Where the front asks all that there is to ask, the reader claims nothing.
EAGER = tuple(
    Adapter(adapter.name, getattr(reader, "claims", adapter.claims), reader.read)
    for adapter, reader in zip(ADAPTERS, READERS, strict=True)
)
PATHS = sorted(path for path in RUNS.rglob("*") if path.name != "expected.toml")


def heads(path: Path) -> list[bytes]:
    """The first bytes of a file as they are and as other programs would store them; b"" where it cannot be opened."""
    if path.is_dir():
        return [b""]
    head = path.read_bytes()[:HEAD_BYTES]
    if head.startswith(SQLITE_MAGIC):  # the readers of stores open the file itself
        return [head]
    text = head.decode("utf-8", errors="replace")
    return [b"", head, gzip.compress(head), text.encode("utf-16"), b"\xef\xbb\xbf" + head, b"\n \r\n" + head]


def claiming(adapters: tuple[Adapter, ...], path: Path, head: bytes) -> list[str]:
    return [adapter.name for adapter in adapters if adapter.claims(path, head)]


def test_each_folder_has_its_adapter_in_the_list() -> None:
    fronts = [import_module(f"gradtrend.ingest.formats.{folder}") for folder in FOLDERS]
    assert [front.ADAPTER for front in fronts] == list(ADAPTERS)
    folders = {child.name for child in Path(formats.__file__).parent.iterdir() if child.is_dir()}
    assert folders - {"__pycache__"} == set(FOLDERS)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(RUNS)))
def test_no_test_rules_out_what_the_adapter_claims(path: Path) -> None:
    for head in heads(path):
        assert claiming(ADAPTERS, path, head) == claiming(EAGER, path, head)


@given(st.binary(min_size=1, max_size=200), st.sampled_from(["events.out.tfevents.1", "mlflow.db", "x.json", "a.log"]))
def test_nor_for_any_bytes(head: bytes, name: str) -> None:
    assert claiming(ADAPTERS, Path(name), head) == claiming(EAGER, Path(name), head)


def test_an_adapter_can_be_sent_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(ADAPTERS))
    assert [adapter.name for adapter in sent] == [adapter.name for adapter in ADAPTERS]
    assert claiming(sent, Path("x.csv"), b"step,loss\n1,2\n2,1\n") == ["csv"]


def test_an_address_is_mlflow() -> None:
    assert claiming(ADAPTERS, Path("http://localhost:5000"), b"") == ["mlflow"]
