"""The two kinds of capture, each brought into one form: gradtrend's own and LightlyTrain's `nan_capture.pt`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError
from gradtrend.ingest.reading.numbers import INT64_LIMIT
from gradtrend.model.capture import CAPTURE_FORMAT, CAPTURE_VERSION, Capture
from gradtrend.model.contents import CaptureContents, Inert, ModelRecipe, Node, TensorRef
from gradtrend.model.replay import PRECISIONS

# Wrappers put these before a parameter's name: Fabric, DistributedDataParallel, torch.compile.
_WRAPPER_PREFIXES = ("_forward_module.", "module.", "_orig_mod.")
_MAX_WRAPPERS = 10  # around one another
_MAX_TEXT = 1000  # characters of a name or version
_MAX_JSON = 1024 * 1024
_MAX_MICROBATCHES = 10_000
_NEWER = "Install a newer gradtrend."


def is_native(tree: Mapping[str, Node]) -> bool:
    """Whether the file says that it is of gradtrend's own format."""
    return tree.get("format") == CAPTURE_FORMAT


def is_lightly_train(tree: Mapping[str, Node]) -> bool:
    """Whether the file has the parts of LightlyTrain's nan_capture.pt."""
    return {"train_model_state_dict", "train_model_class_path", "microbatches"} <= set(tree)


def read_native(path: Path, tree: Mapping[str, Node]) -> CaptureContents:
    """A capture of gradtrend's own format. Raises `InputError` naming the field that is missing or wrong."""
    version = tree.get("format_version")
    if version != CAPTURE_VERSION:
        shown = repr(version)[:40] if isinstance(version, int | str) else f"of type {type(version).__name__}"
        raise InputError(f"{path} has capture format {shown}; this gradtrend reads {CAPTURE_VERSION}", _NEWER)
    model = _mapping(path, tree, "model")
    precision = _mapping(path, tree, "precision", optional=True)
    recipe = ModelRecipe("factory", _text(path, model, "factory"), _json_keywords(path, model.get("kwargs", "{}")))
    summary = _native_summary(path, tree, recipe)
    return CaptureContents(
        summary=summary,
        file=path,
        recipe=recipe,
        state=_state(path, tree.get("model_state")),
        microbatches=_microbatches(path, tree),
        storages={},
        rng=_mapping(path, tree, "rng", optional=True),
        precision=_native_precision(
            precision, _mapping(path, tree, "backend", optional=True), _half_type(tree.get("model_state"))
        ),
        loss_scale=_number(precision.get("loss_scale")),
        loss_divisor=_number(tree.get("loss_divisor")),
        gradient_norm=_number(tree.get("gradient_norm"), finite=False),
        loss=_number(tree.get("loss"), finite=False),
        versions=_texts(_mapping(path, tree, "versions", optional=True)),
        backend=_flags(_mapping(path, tree, "backend", optional=True)),
        buffers=_names(tree.get("buffers")),
    )


def _half_type(state: Node) -> str | None:
    """float16 or bfloat16 where most of the state is in it."""
    sizes: Counter[str] = Counter()
    for value in state.values() if isinstance(state, Mapping) else ():
        if isinstance(value, TensorRef):
            sizes[value.dtype] += value.numel
    most = max(sizes, key=lambda dtype: sizes[dtype], default="float32")
    return most if most in ("float16", "bfloat16") else None


def _native_precision(precision: Mapping[str, Node], backend: Mapping[str, Node], half: str | None) -> str | None:
    if "autocast" not in precision:
        return None
    autocast, scaled = precision["autocast"], precision.get("loss_scale") is not None
    if not isinstance(autocast, str | None):
        return None
    name = "float32" if autocast is None else f"{autocast}-scaled" if scaled else autocast
    if name == "float32" and half is not None:
        return f"{half}-true"
    device = backend.get("device")
    if name == "float32" and backend.get("tf32") is True and isinstance(device, str) and device.startswith("cuda"):
        return "float32-tf32"
    return name if name in PRECISIONS else None


def _native_summary(path: Path, tree: Mapping[str, Node], recipe: ModelRecipe) -> Capture:
    recorded = [_number(tree.get("gradient_norm"), finite=False), _number(tree.get("loss"), finite=False)]
    bad = _bare_names(tree.get("bad_parameters"), tree.get("model_state"))
    return Capture(
        path=str(path),
        kind="gradtrend",
        step=_integer(tree.get("step")),
        rank=_integer(tree.get("rank")),
        bad_parameters=bad,
        model_class=recipe.path,
        finite=not bad and recorded[0] is not None and all(v is None or math.isfinite(v) for v in recorded),
    )


def read_lightly_train(path: Path, tree: Mapping[str, Node]) -> CaptureContents:
    """A nan_capture.pt of LightlyTrain. Raises `InputError` naming the part that is missing or wrong."""
    metadata = _attributes(tree.get("metadata"))
    class_path = _text(path, tree, "train_model_class_path")
    count = _integer(metadata.get("gradient_accumulation_steps"))
    microbatches = _microbatches(path, tree)
    device = metadata.get("train_model_device")
    return CaptureContents(
        summary=Capture(
            path=str(path),
            kind="lightly-train",
            step=_integer(metadata.get("step")),
            rank=_integer(metadata.get("rank")),
            bad_parameters=_bare_names(metadata.get("nan_param_names"), tree["train_model_state_dict"]),
            model_class=class_path,
        ),
        file=path,
        recipe=ModelRecipe("class", class_path, _mapping(path, tree, "train_model_init_kwargs")),
        state=_state(path, tree.get("train_model_state_dict")),
        microbatches=microbatches,
        storages={},
        rng=_mapping(path, tree, "rng_state", optional=True),
        loss_divisor=float(count or len(microbatches)),
        backend={"device": device} if isinstance(device, str) else {},
    )


def _attributes(node: Node) -> Mapping[str, Node]:
    """The attributes of an object that was not built: its `__dict__`, which pickle hands to BUILD."""
    if isinstance(node, Mapping):
        return node
    if isinstance(node, Inert) and node.state:
        state = node.state[-1]
        if isinstance(state, tuple) and len(state) == 2:  # (__dict__, slots)
            merged = [part for part in state if isinstance(part, Mapping)]
            return {key: value for part in merged for key, value in part.items()}
        if isinstance(state, Mapping):
            inner = state.get("__dict__")  # pydantic keeps the fields one level down
            return inner if isinstance(inner, Mapping) else state
    return {}


def _mapping(path: Path, tree: Mapping[str, Node], field: str, optional: bool = False) -> Mapping[str, Node]:
    value = _attributes(tree.get(field))
    if not isinstance(tree.get(field), Mapping) and not (optional and tree.get(field) is None):
        raise InputError(f"{path}: the capture's field {field!r} is missing or of the wrong kind", "Capture it again.")
    return value


def _text(path: Path, tree: Mapping[str, Node], field: str) -> str:
    value = tree.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_TEXT:
        raise InputError(f"{path}: the capture's field {field!r} is missing or no text", "Capture it again.")
    return value


def _state(path: Path, node: Node) -> dict[str, Node]:
    if not isinstance(node, Mapping) or not any(isinstance(value, TensorRef) for value in node.values()):
        raise InputError(f"{path}: the capture holds no model state", "Capture the step again.")
    return {str(name): value for name, value in node.items()}


def _microbatches(path: Path, tree: Mapping[str, Node]) -> tuple[Node, ...]:
    value = tree.get("microbatches")
    if not isinstance(value, list | tuple) or not value:
        raise InputError(f"{path}: the capture holds no microbatches", "Capture the step again.")
    if len(value) > _MAX_MICROBATCHES:
        raise InputError(f"{path}: the capture holds {len(value):,} microbatches", "Do not trust this file.")
    return tuple(value)


def _json_keywords(path: Path, text: Node) -> dict[str, Any]:
    if isinstance(text, str | bytes) and len(text) > _MAX_JSON:
        raise InputError(f"{path}: the factory's keyword arguments are {len(text):,} long", "Capture it again.")
    try:
        keywords = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: the factory's keyword arguments are no JSON ({error})", "Capture it again."
        ) from error
    if not isinstance(keywords, dict):
        raise InputError(f"{path}: the factory's keyword arguments are no JSON object", "Capture it again.")
    return keywords


def _bare_names(node: Node, state: Node) -> tuple[str, ...]:
    """Parameter names as in the model state: without the prefixes that wrappers add."""
    names = node if isinstance(node, list | tuple) else ()
    known = state if isinstance(state, Mapping) else {}
    return tuple(_bare_name(name, known) for name in names if isinstance(name, str) and len(name) <= _MAX_TEXT)


def _bare_name(name: str, known: Mapping[str, Node]) -> str:
    for _ in range(_MAX_WRAPPERS):
        prefix = next((prefix for prefix in _WRAPPER_PREFIXES if name.startswith(prefix)), None)
        if name in known or prefix is None:
            break
        name = name.removeprefix(prefix)
    return name


def _names(node: Node) -> frozenset[str]:
    return frozenset(name for name in node if isinstance(name, str)) if isinstance(node, list) else frozenset()


def _integer(node: Node) -> int | None:
    """A step, rank or count: an integer of 64 bits, None for anything else."""
    return node if isinstance(node, int) and not isinstance(node, bool) and abs(node) < INT64_LIMIT else None


def _number(node: Node, finite: bool = True) -> float | None:
    if isinstance(node, int) and not isinstance(node, bool) and node.bit_length() < 1000:  # what a float can hold
        return float(node)
    return node if isinstance(node, float) and (math.isfinite(node) or not finite) else None


def _texts(node: Mapping[str, Node]) -> dict[str, str]:
    return {str(key): value[:_MAX_TEXT] for key, value in node.items() if isinstance(value, str)}


def _flags(node: Mapping[str, Node]) -> dict[str, bool | str]:
    return {
        str(key): value[:_MAX_TEXT] if isinstance(value, str) else value
        for key, value in node.items()
        if isinstance(value, bool | str)
    }
