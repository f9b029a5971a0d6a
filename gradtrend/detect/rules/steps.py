"""Which steps a fired rule speaks of."""

from __future__ import annotations

from gradtrend.detect.rules.evaluate import Check


def steps_of(check: Check) -> tuple[int | None, int | None]:
    """First and last step of what fired: the rise or fall to the end, the spike, the non-finite stretch."""
    curve = check.curve
    measures = {e.measure for e in check.evidence}
    if measures & {"collapse_points", "masked_share"}:
        first = curve.run.nonfinite.collapse_step
        last = int(curve.series.steps[-1]) if curve.series is not None and len(curve.series) else first
        return first, last if first is None or last is None else max(first, last)
    if measures & {"recovered_points", "late_nonfinite_share"}:
        return _nonfinite_span(check)
    shape = curve.shape
    if shape is None:
        return None, None
    steps, last = shape.steps, int(shape.steps[-1])
    if "early_spike_decades" in measures and curve.early_spikes:
        return int(steps[curve.early_spikes[0].first]), int(steps[curve.early_spikes[-1].last])
    if measures & {"late_spike_decades", "late_spikes", "loss_spike_factor"} and curve.late_spikes:
        return int(steps[curve.late_spikes[0].first]), int(steps[curve.late_spikes[-1].last])
    if measures & {"decades_above_baseline", "decades_above_total_rise"}:
        return int(steps[shape.rise.onset]), last
    if "decades_fallen" in measures:
        return int(steps[min(shape.fall.onset, shape.points - 1)]), last
    return int(steps[0]), last


def _nonfinite_span(check: Check) -> tuple[int | None, int | None]:
    run = check.curve.run
    steps = [int(s) for n in (*run.norms, *([run.loss] if run.loss is not None else [])) for s in n.steps[~n.finite]]
    return min(steps, default=None), max(steps, default=None)
