"""What a capture says without running anything and without torch: names, shapes, and values already non-finite."""

from __future__ import annotations

from collections.abc import Iterator

from gradtrend.model.contents import CaptureContents, TensorRef
from gradtrend.model.replay import Inspection
from gradtrend.replay.imports import needed_imports, refused_imports
from gradtrend.replay.inspect.fields import fields_of
from gradtrend.replay.inspect.health import nonfinite_tensors


def inspect_capture(contents: CaptureContents, shown: str) -> Inspection:
    """Everything that can be said of a capture as it lies in the file; `shown` is its path for the report."""
    summary = contents.summary
    return Inspection(
        path=shown,
        kind=summary.kind,
        step=summary.step,
        rank=summary.rank,
        model=summary.model_class,
        bad_parameters=summary.bad_parameters,
        parameters=sum(isinstance(node, TensorRef) for node in contents.state.values()),
        microbatches=tuple(fields_of(contents.microbatches)),
        precision=contents.precision,
        loss=contents.loss,
        gradient_norm=contents.gradient_norm,
        versions=tuple(sorted(contents.versions.items())),
        nonfinite=tuple(nonfinite_tensors(contents)),
        imports=needed_imports(contents),
        refused=refused_imports(contents),
        notes=tuple(_notes(contents)),
        world_size=contents.world_size,
    )


def _notes(contents: CaptureContents) -> Iterator[str]:
    if contents.eval_modules is None and contents.summary.kind == "gradtrend":
        yield "It does not say which modules were in training mode: all are replayed in it."
    if contents.summary.kind == "lightly-train":
        yield "Its buffers (BatchNorm statistics) are those after the bad step; LightlyTrain saves them then."
        if contents.precision is None:
            yield "It does not say at which precision the run was trained."
        yield "Its random state was taken before the batch was loaded, and holds no python or numpy state."
