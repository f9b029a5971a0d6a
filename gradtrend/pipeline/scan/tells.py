"""What tells the sick runs of a scan from the healthy ones, by their hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from gradtrend.model.many.contrast import Contrasts
from gradtrend.model.many.record import Record
from gradtrend.model.words import Verdict
from gradtrend.pipeline.scan.state import State
from gradtrend.report.text.scan import what_tells


def contrasts_of(records: Sequence[Record]) -> Contrasts:
    """The hyperparameters of the runs that were judged, by how well they tell the sick ones from the others."""
    from gradtrend.detect.contrast import contrasts

    return contrasts([(record.is_sick, dict(record.hyperparameters)) for record in records if _is_judged(record)])


def tells_of(records: Sequence[Record], state: State) -> tuple[str, ...]:
    """As `contrasts_of`, in sentences. Loading what computes them takes longer than a scan that finds nothing new, so
    `state` keeps them with a digest of what they were made of.
    """
    if len({record.is_sick for record in records if _is_judged(record)}) < 2:
        return ()
    made_of = _digest(records)
    if state.tells[0] != made_of:
        state.keep_tells(made_of, what_tells(contrasts_of(records)))
    return state.tells[1]


def _is_judged(record: Record) -> bool:
    return record.verdict is not None and record.verdict is not Verdict.UNDETERMINED


def _digest(records: Sequence[Record]) -> str:
    text = repr([(record.is_sick, record.hyperparameters) for record in records if _is_judged(record)])
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
