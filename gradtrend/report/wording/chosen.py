"""Which series of a run are drawn, and over which steps."""

from __future__ import annotations

from gradtrend.model.report import RunReport, SeriesReport
from gradtrend.model.words import Role
from gradtrend.report.wording.subject import deciding_series

_MOST_NORMS, _MOST_LOSSES = 3, 2  # more than one screen of charts is not looked at


def drawn_series(run: RunReport) -> list[SeriesReport]:
    """The series with an outline that a person looks at: norms, losses, learning rate, loss scale.

    Totals come before a layer, which is there only where it decided; what decided is always among them.
    """
    decided = deciding_series(run)
    norms = [s for s in run.series if s.role is Role.GRAD_NORM and (s.layer is None or s is decided)]
    norms.sort(key=lambda s: (s.layer is not None, s is not decided))
    if decided in norms[_MOST_NORMS:]:
        norms[_MOST_NORMS - 1] = decided
    losses = [s for s in run.series if s.role is Role.LOSS]
    others = [s for s in run.series if s.role in (Role.LR, Role.LOSS_SCALE)]
    ranked = _with_outline(norms)[:_MOST_NORMS] + _with_outline(losses)[:_MOST_LOSSES]
    return ranked + _with_outline(others)


def span_of(run: RunReport) -> tuple[int, int]:
    """The first and the last step of all series of a run."""
    ends = [step for s in run.series for step in (s.first_step, s.last_step) if step is not None]
    return min(ends, default=0), max(ends, default=0)


def _with_outline(series: list[SeriesReport]) -> list[SeriesReport]:
    return [s for s in series if s.outline is not None]
