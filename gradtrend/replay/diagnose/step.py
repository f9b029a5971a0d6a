"""The front: one step of a subject, of a live model or of a capture, to its diagnosis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradtrend.model.diagnosis import Diagnosis, LayerFlow
from gradtrend.model.replay import Replay
from gradtrend.replay.diagnose.activations import layer_outputs
from gradtrend.replay.diagnose.depth import broken_layers, depth_trend
from gradtrend.replay.diagnose.gradients import is_matrix, layer_flows
from gradtrend.replay.diagnose.live import errors_said, live_step
from gradtrend.replay.diagnose.losses import loss_at_start
from gradtrend.replay.diagnose.overfit import copy_of, overfit
from gradtrend.replay.diagnose.remarks import with_remarks
from gradtrend.replay.diagnose.watch import StepWatch
from gradtrend.replay.run.step import run_step
from gradtrend.replay.search.sweep import precisions_for, sweep
from gradtrend.replay.subject.failure import named
from gradtrend.replay.subject.subject import Subject


def diagnose_live(
    model: Any, batch: Any, step: Any, classes: int | None, device: str | None, precisions: bool, overfit_steps: int
) -> Diagnosis:
    """The diagnosis of one step of a live model, which is left as it is.

    Raises `InputError` and `ReplayError` as `live_step`, and `ReplayError` for what the model itself raises.
    """
    with errors_said(step), live_step(model, batch, step, device) as live:
        twin = copy_of(model) if overfit_steps > 0 else None
        found = _looked_at(live.subject, live.precision, classes)
        if precisions:
            wide = live.precision == "float64"  # autocast leaves float64 as it is: all rows would be the same
            names = ("float64",) if wide else precisions_for(live.subject.device, live.precision)
            found = replace(found, precisions=sweep(live.subject, names)[0])
        if twin is not None:
            live.subject.reset()
            found = replace(found, overfit=overfit(twin, live.loss_of, overfit_steps))
    return with_remarks(found)


def with_diagnosis(result: Replay, subject: Subject) -> Replay:
    """The replay with the diagnosis of its step, in the precision that it was judged in; without one where the model
    cannot be watched, and a note says so.
    """
    try:
        found = _looked_at(subject, result.precision or "float32", None)
    except Exception as error:  # the user's model may refuse to be watched; the verdict stands without that
        return replace(result, notes=(*result.notes, f"Diagnosing the layers failed: {named(error)}"))
    made = with_remarks(found)
    advice = tuple(one for one in made.next if one.action != "capture-and-replay")  # which is what is being done
    return replace(result, diagnosis=replace(made, next=advice))


def _looked_at(subject: Subject, precision: str, classes: int | None) -> Diagnosis:
    watch = StepWatch(subject.model)
    result = run_step(subject, precision, watch=watch)
    flows = layer_flows(subject.model, watch.calls, subject.scale_in(precision))
    matrices = {name for name, module in subject.model.named_modules() if is_matrix(module)}
    broken = broken_layers(flows)
    flows = tuple(replace(flow, breaks=index in broken) for index, flow in enumerate(flows))
    trend = depth_trend([flow for flow in flows if flow.layer in matrices and not flow.breaks])
    return Diagnosis(
        loss=result.loss,
        gradient_norm=result.gradient_norm,
        device=str(subject.device),
        precision=precision,
        training=subject.model.training,
        parameters=sum(parameter.numel() for parameter in subject.model.parameters()),
        layers=flows,
        outputs=layer_outputs(watch.outputs.values()),
        trend=replace(trend, broken=tuple(flows[place].layer for place in broken)),
        start=loss_at_start(watch.losses, result.loss, classes, _any_gradient(flows)),
    )


def _any_gradient(flows: tuple[LayerFlow, ...]) -> bool:
    return any(flow.gradient is not None and flow.gradient.max_abs > 0 for flow in flows)
