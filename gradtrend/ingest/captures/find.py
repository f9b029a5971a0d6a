"""Captured bad steps: find them in a run folder, and read one whole, building no foreign object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.captures import lightly_train, native, pickle
from gradtrend.ingest.captures.archive import HeldFile, TorchArchive, locate_storages, open_archive
from gradtrend.ingest.captures.limits import tensors
from gradtrend.model.capture import Capture
from gradtrend.model.contents import CaptureContents, Node, TensorRef

_NATIVE_SUFFIX = ".gradtrend.pt"
# Views may overlap (`unfold`, tied weights under other shapes), but who looks at them all must come to an end.
_MAX_OVERLAP = 16  # values that are looked at, a byte of the file
_MIN_VALUES = 100_000_000  # always looked at: it takes half a second

_Claims = Callable[[Mapping[str, Node]], bool]
_Reads = Callable[[Path, Mapping[str, Node]], CaptureContents]
_KINDS: tuple[tuple[_Claims, _Reads], ...] = (
    (native.claims, native.read),
    (lightly_train.claims, lightly_train.read),
)


def find_captures(run: Path) -> tuple[Capture, ...]:
    """The captures of a run folder (under `debug/`), or the one capture that `run` itself is, ordered by path.

    Only names and shapes are read, no tensor data. A file that cannot be read gives a `Capture` with its `problem`.
    """
    if run.is_file():
        return (_summary(run, run.name),)
    return tuple(_summary(path, path.relative_to(run).as_posix()) for path in _capture_files(run))


def _capture_files(run: Path) -> list[Path]:
    """The capture files of a run folder: LightlyTrain's under `debug/nan_capture/`, native ones under `debug/`.

    A folder at or below `debug/` may be given too.
    """
    inside = "debug" in run.resolve().parts
    debug = run if inside else run / "debug"
    lightly_train = "**/nan_capture.pt" if inside else "nan_capture/**/*.pt"
    try:
        found = {*debug.glob(lightly_train), *debug.glob(f"**/*{_NATIVE_SUFFIX}")}
        return sorted(path for path in found if path.is_file())
    except OSError:
        return []


def read_capture(path: Path) -> CaptureContents:
    """The contents of one capture file; the checksums of its tensors are compared.

    Raises `InputError` for anything that is not a whole capture of a known kind.
    """
    archive, contents = _read(path)
    used = dict.fromkeys(tensors(_tensor_trees(contents)))
    _check_overlap(used, archive.sizes)
    held = HeldFile(path)
    spans = locate_storages(archive, dict.fromkeys(ref.storage for ref in used))
    return replace(contents, storages=spans, bytes_at=held.bytes_at)


def _check_overlap(refs: Iterable[TensorRef], sizes: Mapping[str, int]) -> None:
    """Raise `InputError` where tensors overlap so much that a small file is seen as billions of values."""
    declared = sum(ref.distinct for ref in refs)
    if declared > max(_MIN_VALUES, _MAX_OVERLAP * sum(sizes.values())):
        raise InputError(
            f"damaged or hostile file: its tensors declare {declared:,} values in {sum(sizes.values()):,} bytes",
            "Do not trust this file.",
        )


def _read(path: Path) -> tuple[TorchArchive, CaptureContents]:
    archive = open_archive(path)
    tree = pickle.load(archive.pickle, archive.sizes)
    if isinstance(tree, dict):
        for claims, read in _KINDS:
            if claims(tree):
                return archive, read(path, tree)
    raise InputError(
        f"{path} holds no capture (a checkpoint, or another file of torch.save)",
        "Give a nan_capture.pt of LightlyTrain or a *.gradtrend.pt file.",
    )


def _summary(path: Path, shown: str) -> Capture:
    try:
        status = path.stat()
    except OSError:  # removed in the meantime
        return _summary_of(path, shown, 0, 0)
    return _summary_of(path, shown, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)  # a replay asks several times for the captures of a run
def _summary_of(path: Path, shown: str, changed: int, size: int) -> Capture:
    try:
        return replace(_read(path)[1].summary, path=shown)
    except InputError as error:
        kind = "gradtrend" if path.name.endswith(_NATIVE_SUFFIX) else "lightly-train"
        return Capture(path=shown, kind=kind, step=None, problem=error.message)


def _tensor_trees(contents: CaptureContents) -> list[Node]:
    outside = (contents.outside.generators, contents.outside.buffers, contents.outside.data) if contents.outside else ()
    return [contents.state, contents.microbatches, contents.rng, contents.recipe.keywords, *outside]
