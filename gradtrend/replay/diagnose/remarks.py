"""What stands out in a step, in words, and what to do about it: nothing where nothing is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from gradtrend.model.advice import Advice
from gradtrend.model.diagnosis import Diagnosis, Fit, LayerOutput, Start
from gradtrend.replay.diagnose.flow import Remark, factor, gradient_remarks, listed, named

# Networks at initialisation (`depth.py` has which) have up to 0.59 of a layer's units dead for a batch: deep layers
# without norm see much the same in every sample. Of a dozen values a unit may be zero by chance.
_DEAD = 0.8
_ENOUGH = 32
# Sound networks have none; tanh with weights three times too large 0.38, ten times 0.8.
_SATURATED = 0.5
_HALVES = ("bfloat16", "float16")


def with_remarks(found: Diagnosis) -> Diagnosis:
    """The diagnosis with its remarks, the actions that come of them (each once) and the limits of this look."""
    remarks = [
        *_nonfinite(found), *_start(found), *gradient_remarks(found), *_units(found), *_precisions(found),
        *_learning(found),
    ]  # fmt: skip
    texts: dict[str, Advice] = {}
    for remark in remarks:
        for advice in remark.advice:
            texts.setdefault(advice.text, advice)
    return replace(
        found,
        remarks=tuple(remark.text for remark in remarks),
        next=tuple(texts.values()),
        notes=(*found.notes, *_notes(found)),
    )


def _notes(found: Diagnosis) -> Iterator[str]:
    if not found.training:
        yield "The model is in evaluation mode: without dropout, and with BatchNorm's running statistics."
    masked = _first_nonfinite(found)
    if masked is not None and math.isfinite(found.loss):
        yield f"{named(masked.layer)} ({masked.kind}) gives NaN or inf, which does not reach the loss: a mask, perhaps."
    unused = [layer.layer for layer in found.layers if layer.missing == "not-reached" and not layer.calls]
    if unused and any(layer.gradient for layer in found.layers):
        yield f"Not used in this step: {listed(unused)}."


def _nonfinite(found: Diagnosis) -> Iterator[Remark]:
    if math.isfinite(found.loss):
        return
    first = _first_nonfinite(found)
    where = "" if first is None else f"; the first to give NaN or inf is {named(first.layer)} ({first.kind})"
    text = "Check the batch for NaN, inf and values out of range."
    if first is not None:
        text = f"Look at what {named(first.layer)} is given: the batch, its weights, and a division, log or root in it."
    yield Remark(f"The loss is not finite{where}.", (Advice("check-data", text),))


def _first_nonfinite(found: Diagnosis) -> LayerOutput | None:
    return next((output for output in found.outputs if output.values.nonfinite), None)


def _start(found: Diagnosis) -> Iterator[Remark]:
    start = found.start
    if start is None:
        return
    if start.state is Start.FAR_ABOVE:
        yield Remark(
            f"The cross-entropy is {start.loss:.3g}, far above the {start.expected:.3g} of guessing among "
            f"{start.classes} classes: the logits are too large.",
            (Advice("check-init", "If training is to begin here: make the head's weights smaller (std 0.02, or zero "
                    "with zero bias), and do not tie it to an embedding drawn from N(0, 1).", conditional=True),),
        )  # fmt: skip
    elif start.state is Start.ALL_IGNORED:
        yield Remark(
            f"All targets of {start.function} are ignored: nothing can be learned from this batch.",
            (Advice("check-labels", "Look at the labels: all of them are the index that the loss ignores."),),
        )
    elif start.state is Start.DEAD_HEAD:
        yield Remark(
            f"The cross-entropy is exactly ln({start.classes}) and no gradient comes of it: the head is dead.",
            (Advice("check-init", "Give the head, or what feeds it, weights other than zero."),),
        )


def _units(found: Diagnosis) -> Iterator[Remark]:
    dead = [output for output in found.outputs if _is_dead(output)]
    if dead:
        worst = max(dead, key=lambda output: (output.dead or 0) / (output.units or 1))
        yield Remark(
            f"Dead units: in {_places(dead)} {_most(worst.dead, worst.units)} give zero for the whole batch.",
            (Advice("lower-lr", "Lower the learning rate, if it was trained: too large a step pushes ReLU units below "
                    "zero for good."),
             Advice("check-activation", "Use a leaky ReLU or GELU, and bias and inputs around zero.")),
        )  # fmt: skip
    full = [output for output in found.outputs[:-1] if (output.saturated_share or 0.0) >= _SATURATED]
    if full:
        worst = max(full, key=lambda output: output.saturated_share or 0.0)
        yield Remark(
            f"Saturated: in {_places(full)} {worst.saturated_share or 0.0:.0%} of the values lie at the ends of "
            f"{worst.kind}, where its slope is near zero.",
            (Advice("check-init", "Make the weights before it smaller, or normalise what it is given."),),
        )


def _is_dead(output: LayerOutput) -> bool:
    if output.dead is None or not output.units or output.positions is None:
        return False
    return output.dead >= _DEAD * output.units and output.positions >= _ENOUGH


def _places(outputs: list[LayerOutput]) -> str:
    return listed([output.layer for output in outputs])


def _most(part: int | None, whole: int | None) -> str:
    return f"{part} of {whole} units" if part != whole else f"all {whole} units"


def _precisions(found: Diagnosis) -> Iterator[Remark]:
    if not math.isfinite(found.loss):
        return
    for row in found.precisions:
        if row.precision in _HALVES and row.finite is False and row.precision != found.precision:
            where = f", first in {row.first_bad_module}" if row.first_bad_module else ""
            yield Remark(
                f"In {row.precision} the step is not finite{where}.",
                (Advice("stabler-precision", f"Do not train in {row.precision} as it is: bfloat16 has float32's range, "
                        "and a module can be left in float32."),),
            )  # fmt: skip


def _learning(found: Diagnosis) -> Iterator[Remark]:
    tried = found.overfit
    if tried is None or tried.first is None or tried.last is None:
        return
    what = f"{tried.steps} step{'s' if tried.steps > 1 else ''} of Adam at {factor(tried.rate)} on this batch alone"
    if tried.state is Fit.NONFINITE and math.isfinite(tried.first):
        yield Remark(
            f"The loss is not finite after {what}.",
            (Advice("lower-lr", f"Begin with a learning rate below {factor(tried.rate)}."),),
        )
    elif tried.state is Fit.STANDS and (found.start is None or found.start.state is not Start.BELOW):
        yield Remark(
            f"The batch cannot be learned: the loss stands ({tried.first:.3g} to {tried.last:.3g}) through {what}.",
            (Advice("check-graph", "Check that the loss depends on the model's output, and its weights are trained."),
             Advice("check-labels", "Check that the labels belong to these inputs, and are not all ignored."),
             Advice("raise-lr", "If both are right: try a higher learning rate, or more steps (overfit_steps).",
                    conditional=True)),
        )  # fmt: skip
