"""What the modules gave, by depth."""

from __future__ import annotations

from collections.abc import Iterable

from gradtrend.model.diagnosis import LayerOutput, Moments
from gradtrend.replay.diagnose.moments import all_moments
from gradtrend.replay.diagnose.units import Units
from gradtrend.replay.diagnose.watch import Output


def layer_outputs(outputs: Iterable[Output]) -> tuple[LayerOutput, ...]:
    """One entry a module or function that gave numbers, in the order of the first call."""
    given = [output for output in outputs if output.sums]
    moments = all_moments([output.sums for output in given])
    return tuple(_entry(output, values) for output, values in zip(given, moments, strict=True) if values is not None)


def _entry(output: Output, values: Moments) -> LayerOutput:
    units = output.units if output.comparable else None
    if units is None:
        return LayerOutput(output.layer, output.kind, output.calls, values)
    quiet = int(units.quiet.sum())
    return LayerOutput(
        layer=output.layer,
        kind=output.kind,
        calls=output.calls,
        values=values,
        units=units.count,
        positions=units.positions,
        dead=None if units.saturates else quiet,
        saturated=quiet if units.saturates else None,
        saturated_share=_share(units) if units.saturates else None,
    )


def _share(units: Units) -> float:
    return units.ended / units.values if units.values else 0.0
