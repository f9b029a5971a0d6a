"""Other stores than S3, by the stores in memory and on disk that the libraries have: what is asked of each is the same.

Google's and Azure's differ from these in how obstore opens them, hf:// from fsspec's memory:// in what is installed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradtrend.errors import InputError, MissingPackageError
from gradtrend.ingest import find_runs, localized
from gradtrend.ingest.captures import find_captures
from gradtrend.ingest.remote import file_system, mirror
from gradtrend.ingest.remote.object_store import ObjectStore
from gradtrend.ingest.runs.finding import addresses
from tests.places import CAPTURES, EXPLODING
from tests.remote import rows

obstore = pytest.importorskip("obstore")
fsspec = pytest.importorskip("fsspec")

LOG = rows(2000)


@pytest.fixture
def memory() -> Iterator[Any]:
    """fsspec's file system in memory, empty."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    yield files
    files.store.clear()


def put(files: Any, key: str, data: bytes) -> None:
    files.pipe_file(f"/{key}", data)


@pytest.mark.parametrize(
    "address", ["gs://bucket/runs", "az://box/runs", "abfss://box@account.dfs.core.windows.net/runs"]
)
@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_google_and_azure_by_other_stores(
    address: str, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = obstore.store.MemoryStore() if kind == "memory" else obstore.store.LocalStore(tmp_path)
    monkeypatch.setattr(ObjectStore, "_opened", lambda self: store)
    for file in EXPLODING.rglob("*"):
        if file.is_file():
            obstore.put(store, f"runs/a/{file.relative_to(EXPLODING).as_posix()}", file.read_bytes())
    obstore.put(store, "runs/b/metrics.jsonl", LOG)
    (files,) = find_runs(address)
    assert files.name == address
    assert {log.path.name for log in files.logs} >= {"metrics.jsonl", "train.log", "mlflow.db"}
    with localized(files) as local:
        assert (local.files.folder / "b" / "metrics.jsonl").read_bytes() == LOG
    (alone,) = find_runs(f"{address}/b/metrics.jsonl")
    assert alone.name == f"{address}/b/metrics.jsonl"


def test_google_and_azure_are_opened_by_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "aGVsbG8=")
    from gradtrend.ingest.remote.address import remote_address
    from gradtrend.ingest.remote.clients import opened

    for text in ("gs://bucket/a", "az://box/a", "azure://box/a", "abfss://box@account.dfs.core.windows.net/a"):
        address = remote_address(text)
        assert address is not None
        assert opened(address).key == "a"


def test_what_fsspec_knows(memory: Any) -> None:
    put(memory, "runs/a/metrics.jsonl", LOG)
    put(memory, "runs/b/metrics.jsonl", LOG[:900])
    (files,) = find_runs("memory://runs")
    with localized(files) as local:
        assert [log.path.read_bytes() for log in local.files.logs] == [LOG, LOG[:900]]
    (one,) = find_runs("memory://runs/a/metrics.jsonl")
    assert one.name == "memory://runs/a/metrics.jsonl"
    with localized(one) as local:
        assert local.files.logs[0].path.read_bytes() == LOG
    put(memory, "runs/a/metrics.jsonl", LOG * 2)
    with localized(one) as local:
        assert local.files.logs[0].path.read_bytes() == LOG * 2


def test_keys_that_want_to_lie_elsewhere(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    hostile = [
        "runs/../../outside.jsonl",
        "runs/a/../../../outside.jsonl",
        "runs//etc/outside.jsonl",
        "runs/./outside.jsonl",
        f"runs/{'long' * 100}.jsonl",
        "runs/" + f"{'deep' * 50}/" * 25 + "x.jsonl",
        "runs/nul\0.jsonl",
    ]
    sound = ["runs/a/metrics.jsonl", "runs/A/metrics.jsonl", "runs/new\nline.jsonl", "runs/~/metrics.jsonl"]
    for key in hostile + sound:
        memory.store[f"/{key}"] = fsspec.implementations.memory.MemoryFile(memory, f"/{key}", LOG)
    memory.store["/runs/a"] = fsspec.implementations.memory.MemoryFile(memory, "/runs/a", LOG)
    (files,) = find_runs("memory://runs")
    assert files.remote is not None
    root = Path(files.remote.root)
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert all(root in file.parents for file in written)
    assert {str(log.path.relative_to(root)) for log in files.logs} >= {"A/metrics.jsonl", "new\nline.jsonl"}
    reasons = {one.reason for one in files.passed_over}
    assert "its key is no path" in reasons
    assert any("name" in reason and "long" in reason for reason in reasons)
    assert "its key is also that of a folder" in reasons
    assert (root / "a" / "metrics.jsonl").is_file()


def test_captured_steps_are_inspected_and_large_ones_are_told(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = next(iter(sorted(CAPTURES.rglob("*.pt"), key=lambda path: path.stat().st_size))).read_bytes()
    put(memory, "runs/metrics.jsonl", LOG)
    put(memory, "runs/debug/nan_capture/rank0/nan_capture.pt", capture)
    put(memory, "runs/debug/nan_capture/rank1/nan_capture.pt", capture + b"x" * 100)
    monkeypatch.setattr(mirror, "LARGEST_BESIDE", len(capture))
    for address in ("memory://runs", "memory://runs/metrics.jsonl"):
        (files,) = find_runs(address)
        with localized(files) as local:
            (found,) = find_captures(local.files.folder)
            assert found.problem is None
            assert found.path == "debug/nan_capture/rank0/nan_capture.pt"
        assert files.remote is not None
        root = Path(files.remote.root)
        assert [str(one.path.relative_to(root)) for one in files.passed_over] == [
            "debug/nan_capture/rank1/nan_capture.pt"
        ]


def test_a_hundred_thousand_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most are weights and images, which are neither mirrored nor asked for."""
    store = obstore.store.MemoryStore()
    monkeypatch.setattr(ObjectStore, "_opened", lambda self: store)
    keys = [f"runs/step{i}/{name}" for i in range(25_000) for name in ("a.pt", "b.png", "c.safetensors", "d.npz")]
    held = [mirror.Held(key.removeprefix("runs/"), 1 << 30, 0.0) for key in keys]

    async def below(self: ObjectStore, folder: str, most: int) -> list[mirror.Held]:
        return [*held, mirror.Held("run/metrics.jsonl", len(LOG), 0.0)]

    obstore.put(store, "runs/run/metrics.jsonl", LOG)
    monkeypatch.setattr(ObjectStore, "below", below)
    start = time.monotonic()
    (files,) = find_runs("gs://bucket/runs")
    assert time.monotonic() - start < 30
    assert [log.path.name for log in files.logs] == ["metrics.jsonl"]
    assert files.remote is not None
    assert len(list(Path(files.remote.root).rglob("*"))) == 2


def test_more_objects_than_anybody_means(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "MOST_OBJECTS", 3)
    for i in range(4):
        put(memory, f"runs/{i}.jsonl", LOG)
    with pytest.raises(InputError, match="more than 3 objects lie below"):
        find_runs("memory://runs")


def test_more_bytes_than_there_is_room_for(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memory, "runs/metrics.jsonl", LOG)
    monkeypatch.setattr("gradtrend.ingest.remote.fetch.MOST_FETCHED", 10)
    with pytest.raises(InputError, match="of logs are to be read at once"):
        find_runs("memory://runs")
    monkeypatch.undo()
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=5))
    with pytest.raises(InputError, match="no room for"):
        find_runs("memory://runs")


def test_a_call_of_fsspec_that_hangs_is_left(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memory, "runs/metrics.jsonl", LOG)
    monkeypatch.setattr(file_system, "SECONDS_OF_TRIES", 0.05)
    monkeypatch.setattr("gradtrend.ingest.remote.fetch.MOST_TRIES", 2)
    monkeypatch.setattr(type(memory), "find", lambda *args, **options: time.sleep(3))
    with pytest.raises(InputError, match="memory://runs: no whole answer in 2 tries: TimeoutError"):
        find_runs("memory://runs")


@pytest.mark.parametrize(
    ("module", "address", "said"),
    [("obstore", "s3://bucket/a", "obstore is not installed"), ("fsspec.core", "hf://me/a", "fsspec is not installed")],
)
def test_a_missing_package_is_told_with_what_installs_it(
    module: str, address: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, f"{module}.store", None)
    with pytest.raises(MissingPackageError, match=said) as raised:
        find_runs(address)
    assert raised.value.hint == "pip install 'gradtrend[remote]'"


def test_what_fsspec_itself_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    from fsspec.registry import _registry

    _registry.pop("hf", None)
    with pytest.raises(MissingPackageError, match="hf://me/a") as raised:
        find_runs("hf://me/a")
    assert raised.value.hint == "pip install huggingface_hub"


def test_a_path_never_loads_what_is_remote(tmp_path: Path) -> None:
    assert not addresses.is_remote(str(tmp_path))
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "bucket").mkdir()
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert not addresses.is_remote("s3://bucket")  # a folder of that name is there
    finally:
        os.chdir(before)
