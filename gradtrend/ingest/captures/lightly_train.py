"""LightlyTrain's captures, `nan_capture.pt`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gradtrend.ingest.captures import parts
from gradtrend.model.capture import Capture
from gradtrend.model.contents import CaptureContents, Inert, ModelRecipe, Node


def claims(tree: Mapping[str, Node]) -> bool:
    """Whether the file has the parts of LightlyTrain's nan_capture.pt."""
    return {"train_model_state_dict", "train_model_class_path", "microbatches"} <= set(tree)


def read(path: Path, tree: Mapping[str, Node]) -> CaptureContents:
    """A nan_capture.pt of LightlyTrain. Raises `InputError` naming the part that is missing or wrong."""
    metadata = _attributes(tree.get("metadata"))
    class_path = parts.text(path, tree, "train_model_class_path")
    count = parts.integer(metadata.get("gradient_accumulation_steps"))
    microbatches = parts.microbatches(path, tree)
    device = metadata.get("train_model_device")
    return CaptureContents(
        summary=Capture(
            path=str(path),
            kind="lightly-train",
            step=parts.integer(metadata.get("step")),
            rank=parts.integer(metadata.get("rank")),
            bad_parameters=parts.bare_names(metadata.get("nan_param_names"), tree["train_model_state_dict"]),
            model_class=class_path,
        ),
        recipe=ModelRecipe("class", class_path, parts.mapping(path, tree, "train_model_init_kwargs")),
        state=parts.state(path, tree.get("train_model_state_dict")),
        microbatches=microbatches,
        rng=parts.mapping(path, tree, "rng_state", optional=True),
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
