"""What of the gradients stands out, in words, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradtrend.model.advice import Advice
from gradtrend.model.diagnosis import Diagnosis, Flow, LayerFlow

_SHOWN = 3  # names in a sentence
_SATURATING = ("tanh", "sigmoid", "lstm", "gru", "rnn")


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence about what stands out, and what to do about it."""

    text: str
    advice: tuple[Advice, ...] = ()


def named(name: str) -> str:
    """The layer's name; the model itself has none."""
    return name or "(the model)"


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    left = len(names) - _SHOWN
    return ", ".join(map(named, names[:_SHOWN])) + (f" and {left} more" if left > 0 else "")


def factor(value: float) -> str:
    """`0.03`, `1.2`, `30`."""
    return f"{value:.2g}"


def gradient_remarks(found: Diagnosis) -> Iterator[Remark]:
    """The remarks on the gradients."""
    own = [layer for layer in found.layers if layer.parameters]
    if not any(layer.gradient for layer in own):
        yield _none(own)
        return
    bad = [layer.layer for layer in own if layer.gradient and layer.gradient.nonfinite]
    if bad:
        yield Remark(
            f"The gradient is not finite in {_layers(bad)}.",
            (Advice("capture-and-replay", "Save this step (gradtrend.replay.native.save_capture) and replay it: that "
                    "names the operator, and the sample."),),
        )  # fmt: skip
    yield from _zero(own)
    lost = [layer.layer for layer in own if layer.missing == "not-reached" and layer.calls]
    if lost:
        yield Remark(
            f"No gradient reaches {_layers(lost)}, which ran and are to be trained.",
            (Advice("check-graph", f"Look for detach(), no_grad() or .data between {named(lost[-1])} and the loss."),),
        )
    yield from _trend(found)
    for name in found.trend.broken[:_SHOWN]:
        yield Remark(
            f"The gradient of {named(name)} is 10,000 times smaller than that of both its neighbours.",
            (Advice("check-graph", f"Look at what {named(name)} gives to: an output that is scaled down, gated or "
                    "masked hands nothing back to its weights."),),
        )  # fmt: skip


def _layers(names: Sequence[str]) -> str:
    return f"{len(names)} layer{'s' if len(names) > 1 else ''} ({listed(names)})"


def _none(own: Sequence[LayerFlow]) -> Remark:
    if not own:
        return Remark(
            "The model has no parameters: there is nothing to train.",
            (Advice("check-graph", "Register the parts of the model as modules (nn.ModuleList, not a list) and its "
                    "weights as nn.Parameter."),),
        )  # fmt: skip
    frozen = all(layer.missing == "frozen" for layer in own)
    why = ": all are frozen (requires_grad is False)." if frozen else "."
    text = (
        "Set requires_grad on the parameters that are to be trained."
        if frozen
        else "Make the loss from the model's own output: detach(), no_grad(), .item() and numpy cut the graph."
    )
    return Remark(f"No gradient reaches any parameter{why}", (Advice("check-graph", text),))


def _zero(own: Sequence[LayerFlow]) -> Iterator[Remark]:
    zero = [layer.layer for layer in own if layer.gradient and _is_zero(layer)]
    reached = [layer for layer in own if layer.gradient]
    if not zero:
        return
    text = f"The gradient is exactly zero in {_layers(zero)}."
    if len(zero) == len(reached):
        text = "Every gradient is exactly zero: no step changes the model."
    elif len(zero) == len(reached) - 1 and zero[-1] != reached[-1].layer:
        last = named(reached[-1].layer)
        text = f"The gradient is exactly zero in all layers but {last}: nothing passes through it."
        if not reached[-1].weight_norm:
            text = f"{text[:-1]}, as its weights are zero (on purpose? it is then so in the first step only)."
    yield Remark(
        text,
        (Advice("check-graph", f"Find what stops the gradient behind {named(zero[-1])}: dead units, a mask or a factor "
                "of zero, weights of zero."),),
    )  # fmt: skip


def _is_zero(layer: LayerFlow) -> bool:
    gradient = layer.gradient
    return gradient is not None and gradient.max_abs == 0 and not gradient.nonfinite


def _trend(found: Diagnosis) -> Iterator[Remark]:
    trend = found.trend
    if trend.flow in (Flow.EVEN, Flow.UNKNOWN) or trend.factor is None or trend.last is None:
        return
    kinds = {layer.kind.lower() for layer in found.layers} | {output.kind.lower() for output in found.outputs}
    where = f"x{factor(trend.factor)} a layer over {trend.layers} layers"
    norm: tuple[Advice, ...] = ()
    if not any("norm" in kind for kind in kinds):
        norm = (
            Advice("check-normalization", "Put a normalization layer, or a residual connection around every block."),
        )
    if trend.flow is Flow.VANISHING:
        text = f"The gradient is vanishing from {named(trend.last)} toward the input: {where}."
        yield Remark(text, (*norm, *_activation(kinds), _INIT_LARGER))
    else:
        text = f"The gradient is growing from {named(trend.last)} toward the input: {where}."
        yield Remark(text, (*norm, _INIT_SMALLER, _CLIP))


def _activation(kinds: set[str]) -> tuple[Advice, ...]:
    seen = sorted(kind for kind in kinds if kind.startswith(_SATURATING))
    if not seen:
        return ()
    return (Advice("check-activation", f"Replace {seen[0]}, whose slope is below 1, with ReLU, GELU or SiLU."),)


_INIT_LARGER = Advice(
    "check-init",
    "Initialise for the activation: He (kaiming_normal_) for ReLU, Xavier for tanh; PyTorch's own initialisation of "
    "Linear and Conv shrinks the signal in every layer.",
)
_INIT_SMALLER = Advice("check-init", "Initialise smaller: Xavier for tanh, He for ReLU, and a gain of 1 for the rest.")
_CLIP = Advice("clip-gradients", "Clip the gradient norm until then: the layers near the input get the largest steps.")
