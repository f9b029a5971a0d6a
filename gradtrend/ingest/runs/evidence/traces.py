"""What tells fits apart: of each log the values of its norm and its loss, its steps and its times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.names import Naming, name_metric
from gradtrend.ingest.runs.finding.places import home_of, is_held_out
from gradtrend.model.words import Role

_FLOAT32_DIGITS = 7
_DECIMALS = np.arange(1, 8)  # of a text that prints a fixed number of them
_MANTISSA_DECIMALS = np.arange(2, 6)  # of one that prints a few significant digits: 3 to 6
_SMALLEST, _LARGEST = 1e-38, 3.4e38  # of float32, as event files keep them
_SAMPLE = 60  # values from which it is told how many digits a log prints
_WANDB_FILE = re.compile(r"^run-([\w-]+)\.wandb$")
# A log that begins later than this many of its own intervals does not begin at the beginning.
_FRESH = 1.5

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """One series: its steps, ascending, each once, with its last value. Values differ when they differ by more than
    `relative` of their size and more than `absolute`, which is what the log prints. `earlier` has the values that a log
    had at first, where a resumed run wrote others over them.
    """

    steps: _Ints
    values: _Floats
    relative: float
    absolute: float
    earlier: Values | None = None

    @property
    def interval(self) -> int:
        """The usual distance of two steps."""
        return int(np.median(np.diff(self.steps))) if len(self.steps) > 1 else 1


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One fit as one log has it.

    `part` is its number where a log holds several (from 1), else 0; `home` the folder of its run as far as names say.
    `norm` and `loss` are None where it logs none that counts; `weak` says that its norm may be any norm.
    """

    reading: Reading
    part: int
    home: Path
    norm: Values | None
    loss: Values | None
    weak: bool
    began: float | None
    identity: str | None

    @property
    def path(self) -> Path:
        """Its log."""
        return self.reading.path

    @property
    def format(self) -> str:
        """The format of its log."""
        return self.reading.format

    @property
    def main(self) -> Values | None:
        """The norm, or without one the loss."""
        return self.norm or self.loss

    @property
    def first(self) -> int:
        """The first step of norm or loss."""
        return min(int(v.steps[0]) for v in (self.norm, self.loss) if v is not None)

    @property
    def last(self) -> int:
        """The last step of norm or loss."""
        return max(int(v.steps[-1]) for v in (self.norm, self.loss) if v is not None)

    @property
    def interval(self) -> int:
        """The usual distance of two steps of its main series."""
        return self.main.interval if self.main is not None else 1

    @property
    def is_fresh(self) -> bool:
        """Whether it begins where a fit begins: no later than its own pace lets it."""
        return self.reading.numbered or self.first <= max(1, _FRESH * self.interval)


def trace_of(reading: Reading, part: int, root: Path, made_by_writer: bool, chosen: Mapping[Role, str]) -> Trace:
    """The trace of a reading that has steps. `chosen` are the metrics that the user named."""
    norm, naming = _series(reading, Role.GRAD_NORM, chosen)
    loss, _ = _series(reading, Role.LOSS, chosen)
    folder = reading.path.parent  # one called `test` that logs a norm is no evaluation
    return Trace(
        reading,
        part,
        folder if norm is not None and is_held_out(folder) else home_of(folder, root, made_by_writer),
        norm,
        loss,
        weak=naming is not None and naming.priority > 0 and not naming.chosen,
        began=_began(reading),
        identity=_identity(reading),
    )


def _identity(reading: Reading) -> str | None:
    """The id that its tool gave the run, None where the log does not say."""
    if reading.run is not None:
        return f"{reading.format}:{reading.run.id}"
    named = _WANDB_FILE.match(reading.path.name)
    return f"wandb:{named[1]}" if named else None


def _series(reading: Reading, role: Role, chosen: Mapping[Role, str]) -> tuple[Values | None, Naming | None]:
    """The series by which a log is compared in that role: the least partial one, then that with the most points."""
    if role in chosen:
        points = reading.series.get(chosen[role])
        return (None, None) if points is None else (_values(points, reading.digits), None)
    candidates = []
    for metric, points in reading.series.items():
        naming = name_metric(metric)
        if naming.role is role and naming.layer is None:
            candidates.append((naming.priority, naming.clipped, -points.height, metric, naming))
    for _, _, _, metric, naming in sorted(candidates, key=lambda c: c[:4]):
        values = _values(reading.series[metric], reading.digits)
        if values is not None:
            return values, naming
    return None, None


def _values(points: pl.DataFrame, digits: int) -> Values | None:
    rows = points.drop_nulls("step") if points["step"].null_count() else points
    earlier = None
    relative = 10.0 ** (1 - min(digits, _FLOAT32_DIGITS, _significant(rows["value"].to_numpy())))
    steps = rows["step"].to_numpy()
    if not (steps[1:] > steps[:-1]).all():
        rows = rows.select("step", "value")
        first = rows.unique("step", keep="first").sort("step")
        rows = rows.unique("step", keep="last").sort("step")
        earlier = Values(first["step"].to_numpy(), first["value"].to_numpy(), relative, 0.0)
    if not rows.height:
        return None
    values = _as_float32_holds(rows["value"].to_numpy())
    return Values(rows["step"].to_numpy(), values, relative, _resolution(values), earlier)


def _as_float32_holds(values: _Floats) -> _Floats:
    """The values with those as inf that a log of float32 has as inf."""
    large = np.abs(values) > _LARGEST
    return np.where(large, np.copysign(np.inf, values), values) if large.any() else values


def _resolution(values: _Floats) -> float:
    """Half a unit of the last decimal that a text prints; where it prints more than a few what float32 has as 0."""
    finite = values[np.isfinite(values)][:_SAMPLE]
    decimals = _kept(finite, _DECIMALS) if len(finite) else None
    return _SMALLEST if decimals is None else 0.51 * 10.0**-decimals


def _significant(values: _Floats) -> int:
    """How many significant digits a text prints, where that is fewer than float32 has."""
    finite = values[np.isfinite(values) & (np.abs(values) > _SMALLEST)][:_SAMPLE]  # 10 to the power of -324 is 0
    if not len(finite):
        return _FLOAT32_DIGITS
    with np.errstate(all="ignore"):  # the smallest numbers have no power of ten: then nothing is told by the digits
        mantissas = finite / 10.0 ** np.floor(np.log10(np.abs(finite)))
        decimals = _kept(mantissas, _MANTISSA_DECIMALS)
    return _FLOAT32_DIGITS if decimals is None else decimals + 1


def _kept(values: _Floats, decimals: _Ints) -> int | None:
    """The least of some numbers of decimals with which all values are told; None where none does."""
    scaled = values[:, None] * 10.0**decimals
    told = (np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))).all(axis=0)
    return int(decimals[int(told.argmax())]) if told.any() else None


def _began(reading: Reading) -> float | None:
    """The time of the first value, else when the log was opened."""
    times = (points["time"].min() for points in reading.series.values())
    first = min((float(t) for t in times if isinstance(t, int | float)), default=None)
    return first if first is not None else reading.started
