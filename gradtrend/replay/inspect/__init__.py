"""What a capture says without running anything and without torch: names, shapes, and values already non-finite."""

from __future__ import annotations

from collections.abc import Iterator

from gradtrend.model.contents import CaptureContents, GlobalRef, Inert, Node
from gradtrend.model.replay import Inspection
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
        parameters=len(contents.state),
        microbatches=tuple(fields_of(contents.microbatches)),
        precision=contents.precision,
        loss=contents.loss,
        gradient_norm=contents.gradient_norm,
        versions=tuple(sorted(contents.versions.items())),
        nonfinite=tuple(nonfinite_tensors(contents)),
        imports=_needed_imports(contents),
        notes=tuple(_notes(contents)),
    )


def _notes(contents: CaptureContents) -> Iterator[str]:
    if contents.summary.kind == "lightly-train":
        yield "Its buffers (BatchNorm statistics) are those after the bad step; LightlyTrain saves them then."
        if contents.precision is None:
            yield "It does not say at which precision the run was trained."
        yield "Its random state was taken before the batch was loaded, and holds no python or numpy state."


def _needed_imports(contents: CaptureContents) -> tuple[str, ...]:
    """What a replay would import and call, by name: the model's recipe and every object its arguments hold."""
    names = dict.fromkeys([contents.recipe.path])
    for tree in (contents.recipe.keywords, contents.microbatches):
        names.update(dict.fromkeys(ref.path for ref in _globals(tree)))
    return tuple(name for name in names if name.partition(".")[0] not in ("builtins", "__builtin__"))


def _globals(tree: Node) -> Iterator[GlobalRef]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, GlobalRef):
            yield node
        elif isinstance(node, dict):
            pending.extend(node.values())
        elif isinstance(node, list | tuple):
            pending.extend(node)
        elif isinstance(node, Inert):
            pending.extend(node.parts)
