"""Captures are found and read; damaged and hostile files say what is wrong and run nothing."""

from __future__ import annotations

import gc
import math
import os
import resource
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from gradtrend.errors import InputError
from gradtrend.ingest.captures import archive
from gradtrend.ingest.captures.find import find_captures, read_capture
from gradtrend.model.contents import GlobalRef, Inert, TensorRef


class Metadata:
    """Any class of the training code: the reader must not build it."""

    def __init__(self) -> None:
        self.step, self.rank = 41, 3
        self.nan_param_names = ["module.layer.weight", "_forward_module.module.layer.bias", "module.kept.weight"]
        self.gradient_accumulation_steps = 2


class Trap:
    """A pickle that would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def lightly_capture(**changes: object) -> dict[str, object]:
    return {
        "train_model_state_dict": {
            "layer.weight": torch.ones(2, 3),
            "layer.bias": torch.zeros(2),
            "module.kept.weight": torch.zeros(1),
        },
        "train_model_class_path": "my.code.Model",
        "train_model_init_kwargs": {"size": 3, "set": {1, 2}},
        "microbatches": [{"image": torch.rand(4, 3), "names": ["a", "b"]}, {"image": torch.rand(4, 3)}],
        "rng_state": {"torch": torch.get_rng_state()},
        "metadata": Metadata(),
        **changes,
    }


def saved(path: Path, tree: object, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(tree, path, **options)
    return path


def test_a_lightly_train_capture_is_found_and_read(tmp_path: Path) -> None:
    path = saved(tmp_path / "debug/nan_capture/rank3/nan_capture.pt", lightly_capture())
    (capture,) = find_captures(tmp_path)
    assert capture.path == "debug/nan_capture/rank3/nan_capture.pt"
    assert (capture.kind, capture.step, capture.rank, capture.problem) == ("lightly-train", 41, 3, None)
    assert capture.bad_parameters == ("layer.weight", "layer.bias", "module.kept.weight")
    assert capture.model_class == "my.code.Model"

    contents = read_capture(path)
    assert contents.state["layer.weight"] == TensorRef("float32", (2, 3), (3, 1), 0, "0")
    assert contents.loss_divisor == 2
    assert isinstance(contents.recipe.keywords["set"], Inert)
    assert contents.microbatches[0]["names"] == ["a", "b"]


def test_the_bytes_of_a_tensor_lie_where_the_contents_say(tmp_path: Path) -> None:
    weights = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    path = saved(tmp_path / "nan_capture.pt", lightly_capture(train_model_state_dict={"w": weights}))
    contents = read_capture(path)
    span = contents.storages[contents.state["w"].storage]
    assert path.read_bytes()[span.start : span.start + span.size] == weights.numpy().tobytes()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_pickle_protocol_is_read(tmp_path: Path, protocol: int) -> None:
    path = saved(tmp_path / "nan_capture.pt", lightly_capture(), pickle_protocol=protocol)
    assert read_capture(path).summary.step == 41


def test_views_parameters_half_types_and_subclasses_are_described(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    state = {
        "column": base.t()[1],
        "wide": torch.zeros(1).expand(1000, 1000),
        "parameter": torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16)),
        "scalar": torch.tensor(3),
    }
    contents = read_capture(saved(tmp_path / "nan_capture.pt", lightly_capture(train_model_state_dict=state)))
    assert contents.state["column"].stride == (4,)
    assert contents.state["column"].offset == 1
    assert contents.state["wide"].numel == 1_000_000
    assert contents.state["parameter"].parameter
    assert contents.state["parameter"].dtype == "bfloat16"
    assert contents.state["scalar"].shape == ()


def test_nothing_in_the_file_runs(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    path = saved(tmp_path / "debug/nan_capture/rank0/nan_capture.pt", lightly_capture(extra=Trap(mark)))
    assert find_captures(tmp_path)[0].step == 41
    read_capture(path)
    assert not mark.exists()


def test_what_the_file_would_have_called_is_kept_by_name(tmp_path: Path) -> None:
    keywords = {"trap": Trap(tmp_path / "ran")}
    contents = read_capture(saved(tmp_path / "a.pt", lightly_capture(train_model_init_kwargs=keywords)))
    trap = contents.recipe.keywords["trap"]
    assert isinstance(trap.callee, GlobalRef)
    assert trap.callee.name == "mkdir"


# --- damaged and hostile files --------------------------------------------------------------------------------------


def rewritten(path: Path, **members: bytes) -> Path:
    """The archive with some members (by their last name) replaced."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, members.get(name.rsplit("/", 1)[1].replace(".", "_"), data))
    return path


def problem_of(run: Path, path: Path) -> str:
    """What `find_captures` says; `read_capture` must refuse the file too."""
    with pytest.raises(InputError):
        read_capture(path)
    problem = find_captures(run)[0].problem
    assert problem is not None
    return problem


@pytest.fixture
def capture_path(tmp_path: Path) -> Path:
    return saved(tmp_path / "debug/nan_capture/rank0/nan_capture.pt", lightly_capture())


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_truncated_file(tmp_path: Path, capture_path: Path, share: float) -> None:
    data = capture_path.read_bytes()
    capture_path.write_bytes(data[: int(len(data) * share)])
    assert problem_of(tmp_path, capture_path)


def test_damaged_tensor_data_is_noticed_when_read_whole(capture_path: Path) -> None:
    data = bytearray(capture_path.read_bytes())
    at = data.index(struct.pack("<6f", *[1.0] * 6))
    data[at] ^= 0xFF
    capture_path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="damaged"):
        read_capture(capture_path)


def test_a_zip_of_another_kind(tmp_path: Path, capture_path: Path) -> None:
    with zipfile.ZipFile(capture_path, "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    assert "not one of torch.save" in problem_of(tmp_path, capture_path)


@pytest.mark.parametrize("content", [b"\x80\x02}q\x00.", b"hello", b"\x00" * 100, b"PK\x03\x04"])
def test_no_zip_at_all(tmp_path: Path, capture_path: Path, content: bytes) -> None:
    capture_path.write_bytes(content)
    assert problem_of(tmp_path, capture_path)


def test_the_old_format_of_torch_save(tmp_path: Path, capture_path: Path) -> None:
    torch.save(lightly_capture(), capture_path, _use_new_zipfile_serialization=False)
    assert "old format" in problem_of(tmp_path, capture_path)


def test_a_checkpoint_is_no_capture(tmp_path: Path, capture_path: Path) -> None:
    torch.save({"state_dict": {"w": torch.ones(1)}}, capture_path)
    assert "no capture" in problem_of(tmp_path, capture_path)


def test_a_torchscript_program_is_no_capture(tmp_path: Path, capture_path: Path) -> None:
    with zipfile.ZipFile(capture_path, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02}.")
        archive.writestr("m/constants.pkl", b"\x80\x02).")
    assert "TorchScript" in problem_of(tmp_path, capture_path)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\\..\\b"])
def test_a_path_that_escapes(tmp_path: Path, capture_path: Path, name: str) -> None:
    with zipfile.ZipFile(capture_path, "a") as archive:
        archive.writestr(name, b"x")
    assert "leads out" in problem_of(tmp_path, capture_path)


def test_a_storage_key_that_escapes(tmp_path: Path, capture_path: Path) -> None:
    with zipfile.ZipFile(capture_path) as archive:
        data = archive.read("nan_capture/data.pkl")
    old = b"X\x01\x00\x00\x000"
    assert old in data
    rewritten(capture_path, data_pkl=data.replace(old, b"X\x0a\x00\x00\x00../version", 1))
    assert "missing" in problem_of(tmp_path, capture_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice(tmp_path: Path, capture_path: Path) -> None:
    with zipfile.ZipFile(capture_path, "a") as archive:
        archive.writestr("nan_capture/data.pkl", b"\x80\x02}.")
    assert "twice" in problem_of(tmp_path, capture_path)


def test_a_compressed_archive(tmp_path: Path, capture_path: Path) -> None:
    with zipfile.ZipFile(capture_path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("nan_capture/data/999", b"\0" * 10_000_000)
    assert "compressed" in problem_of(tmp_path, capture_path)


def test_two_gigabytes_declared_in_a_small_file(tmp_path: Path, capture_path: Path) -> None:
    """The declared size is compared with what is there; nothing is allocated for it."""
    with zipfile.ZipFile(capture_path) as archive:
        data = archive.read("nan_capture/data.pkl")
    shape = b"K\x02K\x03\x86"
    assert shape in data
    huge = b"J" + struct.pack("<i", 500_000_000) + b"K\x01\x86"
    rewritten(capture_path, data_pkl=data.replace(shape, huge, 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    problem = problem_of(tmp_path, capture_path)
    assert "declares" in problem
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_an_endless_tree(tmp_path: Path, capture_path: Path) -> None:
    batches: list[object] = [torch.ones(1)]
    for _ in range(60):
        batches = [batches, batches]
    torch.save(lightly_capture(microbatches=batches), capture_path)
    with pytest.raises(InputError, match="without end"):
        read_capture(capture_path)


def test_a_tree_that_holds_itself(capture_path: Path) -> None:
    batches: list[object] = []
    batches.append(batches)
    torch.save(lightly_capture(microbatches=batches), capture_path)
    with pytest.raises(InputError, match="without end"):
        read_capture(capture_path)


@pytest.mark.parametrize("missing", ["microbatches", "train_model_class_path", "train_model_state_dict"])
def test_a_capture_without_a_part_names_it_or_is_none(tmp_path: Path, capture_path: Path, missing: str) -> None:
    torch.save({name: value for name, value in lightly_capture().items() if name != missing}, capture_path)
    assert "no capture" in problem_of(tmp_path, capture_path)


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    pipe = tmp_path / "debug/nan_capture/rank0/nan_capture.pt"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    assert find_captures(tmp_path) == ()
    with pytest.raises(InputError, match="regular"):
        read_capture(pipe)


def test_no_such_file(tmp_path: Path) -> None:
    assert find_captures(tmp_path) == ()
    with pytest.raises(InputError, match="cannot be read"):
        read_capture(tmp_path / "none.pt")


def test_arrays_of_numpy_stay_unbuilt(tmp_path: Path) -> None:
    batches = [{"image": np.ones(3)}]
    contents = read_capture(saved(tmp_path / "a.pt", lightly_capture(microbatches=batches)))
    assert isinstance(contents.microbatches[0]["image"], Inert)


def test_a_native_capture_of_an_explosion_is_finite(tmp_path: Path) -> None:
    native = {
        "format": "gradtrend.capture",
        "format_version": 1,
        "model": {"factory": "train:make", "kwargs": "{}"},
        "model_state": {"w": torch.ones(2)},
        "microbatches": [torch.ones(3)],
        "step": 5,
        "gradient_norm": 1e6,
    }
    saved(tmp_path / "debug/a.gradtrend.pt", native)
    saved(tmp_path / "debug/b.gradtrend.pt", native | {"gradient_norm": math.inf})
    saved(tmp_path / "debug/c.gradtrend.pt", native | {"bad_parameters": ["module.w"]})
    saved(tmp_path / "debug/d.gradtrend.pt", native | {"format_version": 2})
    found = find_captures(tmp_path)
    assert [capture.finite for capture in found] == [True, False, False, False]
    assert found[2].bad_parameters == ("w",)
    assert "format 2" in (found[3].problem or "")


# --- captures that would take for ever ------------------------------------------------------------------------------


def native_capture(**changes: object) -> dict[str, object]:
    return {
        "format": "gradtrend.capture",
        "format_version": 1,
        "model": {"factory": "train:make", "kwargs": "{}"},
        "model_state": {"w": torch.ones(4)},
        "microbatches": [{"image": torch.ones(4)}],
        "step": 7,
        **changes,
    }


def doubled(times: int = 60) -> object:
    """A list that holds the former one twice, and so on: its text would be endless."""
    made: object = 1
    for _ in range(times):
        made = [made, made]
    return made


@pytest.mark.parametrize(
    "changes",
    [
        {"format_version": doubled()},
        {"format_version": 10**5000},
        {"step": 10**5000},
        {"model": {"factory": "a:b", "kwargs": doubled()}},
        {"model": {"factory": "a" * 5000, "kwargs": "{}"}},
        {"model": {"factory": "a:b", "kwargs": '{"a": [' + "[]," * 500_000 + "1]}"}},
        {"microbatches": [1] * 20_000},
        {"microbatches": doubled(22)},
    ],
    ids=[
        "endless version",
        "huge version",
        "huge step",
        "endless keywords",
        "long name",
        "long keywords",
        "batches",
        "endless batch",
    ],
)
def test_a_field_out_of_all_proportion(tmp_path: Path, changes: dict[str, object]) -> None:
    path = saved(tmp_path / "debug/a.gradtrend.pt", native_capture(**changes))
    assert len(problem_of(tmp_path, path)) < 300


@pytest.mark.parametrize(
    "changes",
    [
        {"precision": {"autocast": doubled()}},
        {"precision": {"autocast": doubled(), "loss_scale": 1.0}},
        {"precision": {"autocast": None}, "backend": {"tf32": True, "device": doubled()}},
        {"step": 2**70, "rank": -(2**70)},
        {"bad_parameters": ["module." * 1_000_000]},
        {"versions": {"torch": "9" * 1_000_000}},
    ],
    ids=["autocast", "scaled autocast", "device", "numbers", "wrapped name", "version"],
)
def test_an_odd_detail_is_left_out(tmp_path: Path, changes: dict[str, object]) -> None:
    contents = read_capture(saved(tmp_path / "a.gradtrend.pt", native_capture(**changes)))
    assert contents.precision in (None, "float32")
    assert contents.summary.step in (None, 7)
    assert contents.summary.rank is None
    assert all(len(text) <= 1000 for text in (*contents.versions.values(), *contents.summary.bad_parameters))


def test_a_huge_accumulation_count(tmp_path: Path) -> None:
    metadata = Metadata()
    metadata.gradient_accumulation_steps = 10**300
    contents = read_capture(saved(tmp_path / "nan_capture.pt", lightly_capture(metadata=metadata)))
    assert contents.loss_divisor == 2.0


@pytest.mark.parametrize(
    ("shape", "stride", "stored"),
    [((90_000, 1000), (1, 1), 91_002), ((2,) * 62, (1,) * 62, 100), ((1,), (2**60,), 4)],
)
def test_a_small_storage_seen_as_billions_of_values(
    tmp_path: Path, shape: tuple[int, ...], stride: tuple[int, ...], stored: int
) -> None:
    values = torch.zeros(stored)
    state = {f"w{start}": torch.as_strided(values, shape, stride, start) for start in range(3)}
    path = saved(tmp_path / "nan_capture.pt", lightly_capture(train_model_state_dict=state))
    with pytest.raises(InputError, match="damaged or hostile"):
        read_capture(path)


def test_overlapping_views_that_people_make_are_read(tmp_path: Path) -> None:
    windows = torch.rand(64, 64).unfold(0, 7, 1).unfold(1, 7, 1)
    path = saved(tmp_path / "nan_capture.pt", lightly_capture(microbatches=[{"image": windows}]))
    assert read_capture(path).microbatches[0]["image"].shape == (58, 58, 7, 7)


def test_a_zip_of_a_million_members(tmp_path: Path, capture_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_DIRECTORY_BYTES", 300_000)  # the real limit takes seconds to write
    with zipfile.ZipFile(capture_path, "a") as opened:
        for i in range(4000):
            opened.writestr(f"nan_capture/data/{i + 1000:040}", b"")
    assert "members" in problem_of(tmp_path, capture_path)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_capture_that_is_no_longer_needed_is_closed(capture_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        contents = read_capture(saved(capture_path, lightly_capture()))
        del contents
        gc.collect()
