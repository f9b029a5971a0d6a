"""gradtrend's own captures, `*.gradtrend.pt`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError
from gradtrend.ingest.captures import objects, parts
from gradtrend.ingest.captures.limits import check_size
from gradtrend.model.capture import CAPTURE_FORMAT, CAPTURE_VERSION, Capture
from gradtrend.model.contents import CaptureContents, ModelRecipe, Node, TensorRef
from gradtrend.model.precision import PRECISIONS

_OTHER_TYPES = ("float16", "bfloat16", "float64")
_MAX_JSON = 1024 * 1024
_NEWER = "Install a newer gradtrend."


def claims(tree: Mapping[str, Node]) -> bool:
    """Whether the file says that it is of gradtrend's own format."""
    return tree.get("format") == CAPTURE_FORMAT


def read(path: Path, tree: Mapping[str, Node]) -> CaptureContents:
    """A capture of gradtrend's own format. Raises `InputError` naming the field that is missing or wrong."""
    version = tree.get("format_version")
    if version != CAPTURE_VERSION:
        shown = repr(version)[:40] if isinstance(version, int | str) else f"of type {type(version).__name__}"
        raise InputError(f"{path} has capture format {shown}; this gradtrend reads {CAPTURE_VERSION}", _NEWER)
    model = parts.mapping(path, tree, "model")
    precision = parts.mapping(path, tree, "precision", optional=True)
    backend = parts.mapping(path, tree, "backend", optional=True)
    baseline = parts.mapping(path, tree, "baseline", optional=True)
    microbatches = parts.microbatches(path, tree)
    check_size(microbatches)
    recipe = ModelRecipe("factory", parts.text(path, model, "factory"), _json_keywords(path, model.get("kwargs", "{}")))
    return CaptureContents(
        summary=_summary(path, tree, recipe),
        recipe=recipe,
        state=parts.state(path, tree.get("model_state")),
        microbatches=tuple(map(objects.stand_ins, microbatches)),
        rng=parts.mapping(path, tree, "rng", optional=True),
        precision=_precision(precision, backend, _other_type(tree.get("model_state"))),
        loss_scale=parts.number(precision.get("loss_scale")),
        loss_divisor=_divisor(tree.get("loss_divisor")),
        gradient_norm=parts.number(tree.get("gradient_norm"), finite=False),
        loss=parts.number(tree.get("loss"), finite=False),
        versions=_texts(parts.mapping(path, tree, "versions", optional=True)),
        backend=_flags(backend),
        buffers=_names(tree.get("buffers")),
        eval_modules=_names(tree["eval_modules"]) if "eval_modules" in tree else None,
        frozen_parameters=_names(tree["frozen_parameters"]) if "frozen_parameters" in tree else None,
        outside=objects.outside_state(parts.mapping(path, tree, "outside", optional=True)),
        world_size=parts.integer(tree.get("world_size")),
        baseline_norm=parts.number(baseline.get("gradient_norm")),
        baseline_norms=_numbers(parts.mapping(path, baseline, "parameters", optional=True)),
    )


def _other_type(state: Node) -> str | None:
    """The type that most of the state is in, where it is not float32."""
    sizes: Counter[str] = Counter()
    for value in state.values() if isinstance(state, Mapping) else ():
        if isinstance(value, TensorRef):
            sizes[value.dtype] += value.numel
    most = max(sizes, key=lambda dtype: sizes[dtype], default="float32")
    return most if most in _OTHER_TYPES else None


def _precision(precision: Mapping[str, Node], backend: Mapping[str, Node], other: str | None) -> str | None:
    if "autocast" not in precision:
        return None
    autocast, scaled = precision["autocast"], precision.get("loss_scale") is not None
    if not isinstance(autocast, str | None):
        return None
    name = "float32" if autocast is None else f"{autocast}-scaled" if scaled and autocast == "float16" else autocast
    if name == "float32" and other is not None:
        return other if other == "float64" else f"{other}-true"
    device = backend.get("device")
    if name == "float32" and backend.get("tf32") is True and isinstance(device, str) and device.startswith("cuda"):
        return "float32-tf32"
    return name if name in PRECISIONS else None


def _summary(path: Path, tree: Mapping[str, Node], recipe: ModelRecipe) -> Capture:
    recorded = [parts.number(tree.get("gradient_norm"), finite=False), parts.number(tree.get("loss"), finite=False)]
    bad = parts.bare_names(tree.get("bad_parameters"), tree.get("model_state"))
    return Capture(
        path=str(path),
        kind="gradtrend",
        step=parts.integer(tree.get("step")),
        rank=parts.integer(tree.get("rank")),
        bad_parameters=bad,
        model_class=recipe.path,
        finite=not bad and recorded[0] is not None and all(v is None or math.isfinite(v) for v in recorded),
    )


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


def _names(node: Node) -> frozenset[str]:
    return frozenset(name for name in node if isinstance(name, str)) if isinstance(node, list) else frozenset()


def _divisor(node: Node) -> float | None:
    """What the losses are divided by; None for what nothing can be divided by."""
    value = parts.number(node)
    return value if value is not None and value > 0 else None


def _numbers(node: Mapping[str, Node]) -> dict[str, float]:
    numbers = ((name, parts.number(value)) for name, value in node.items() if isinstance(name, str))
    return {name: value for name, value in numbers if value is not None}


def _texts(node: Mapping[str, Node]) -> dict[str, str]:
    return {str(key): value[: parts.MAX_TEXT] for key, value in node.items() if isinstance(value, str)}


def _flags(node: Mapping[str, Node]) -> dict[str, bool | str]:
    return {
        str(key): value[: parts.MAX_TEXT] if isinstance(value, str) else value
        for key, value in node.items()
        if isinstance(value, bool | str)
    }
