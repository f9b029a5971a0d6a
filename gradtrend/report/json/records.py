"""The runs of a scan as JSON, one on a line, for other programs; and back, for what is known of an earlier scan."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gradtrend.model.many.record import Record
from gradtrend.model.report import Failure, NonFinite, RunReport
from gradtrend.model.runlog import Hyperparameters
from gradtrend.model.words import Severity, Verdict
from gradtrend.report.json.strict import strict_line
from gradtrend.report.wording.brief import because, deciding_loss, onset_of, worst_severity
from gradtrend.report.wording.subject import deciding_series

_FIELDS = {field.name: field for field in dataclasses.fields(Record)}
_NUMBERS = ("baseline", "peak", "last", "last_loss")
_LARGEST = 1 << 63  # no column of a table has more
_VERDICTS: Mapping[str | None, Verdict] = {verdict.value: verdict for verdict in Verdict}
_SEVERITIES: Mapping[str | None, Severity] = {severity.value: severity for severity in Severity}
_NONFINITE: Mapping[str | None, float] = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_SCALARS = (bool, int, float, str, type(None))


def record_of(report: RunReport) -> Record:
    """What a report says, in short."""
    loss = deciding_loss(report)
    top = deciding_series(report) or loss
    return Record(
        run=report.run,
        name=report.name,
        verdict=report.verdict,
        confidence=report.confidence,
        severity=worst_severity(report),
        onset_step=onset_of(report),
        brief=because(report),
        why=report.why,
        rules=tuple(sorted({finding.rule for finding in report.findings})),
        next=tuple(advice.action for advice in report.next if advice.action is not None),
        metric=None if top is None else top.metric,
        points=0 if top is None else top.points,
        last_step=None if top is None else top.last_step,
        baseline=None if top is None else top.baseline,
        peak=None if top is None else top.peak,
        last=None if top is None else top.last,
        last_loss=None if loss is None else loss.last,
        nonfinite_step=_first_nonfinite(report.nonfinite),
        cause=None if report.nonfinite is None or report.nonfinite.cause is None else report.nonfinite.cause.value,
        formats=tuple(sorted({source.format for source in report.sources})),
    )


def record_of_failure(failure: Failure) -> Record:
    """What is kept of a run that could not be read."""
    return Record(run=failure.path, failure=failure.message, hint=failure.hint)


def _first_nonfinite(found: NonFinite | None) -> int | None:
    steps = () if found is None else (found.grad_first_step, found.loss_first_step, found.forward_first_step)
    return min((step for step in steps if step is not None), default=None)


def record_line(record: Record) -> str:
    """A record on a line of its own."""
    return strict_line(record_to_dict(record))


def record_to_dict(record: Record) -> dict[str, Any]:
    """A record as JSON has it: hyperparameters an object, the time as text (ISO 8601, UTC), and whether it is sick.
    What numbers were that are not finite, and so null, stands in `nonfinite_fields`.
    """
    made: dict[str, Any] = row_of(record) | {"hyperparameters": dict(record.hyperparameters)}
    what = {name: str(made[name]) for name in _NUMBERS if made[name] is not None and not math.isfinite(made[name])}
    return made | dict.fromkeys(what) | ({"nonfinite_fields": what} if what else {})


def row_of(record: Record) -> dict[str, Any]:
    """A record as a row of a table has it: hyperparameters as JSON text."""
    made: dict[str, Any] = {name: getattr(record, name) for name in _FIELDS}
    made["modified"] = None if record.modified is None else _time_text(record.modified)
    made["hyperparameters"] = strict_line(dict(record.hyperparameters)).rstrip("\n")
    return {"run": made.pop("run"), "name": made.pop("name"), "sick": record.is_sick, **made}


def record_from_line(line: str | bytes) -> Record | None:
    """The record that a line holds; None for one that holds none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record_from_dict(found) if isinstance(found, dict) else None


def record_from_dict(found: Mapping[str, Any]) -> Record | None:
    """The record that an object is; None where it is none. What is of another kind than it should be is not known."""
    run = found.get("run")
    verdict = found.get("verdict")
    if not isinstance(run, str) or "verdict" not in found or "hyperparameters" not in found:
        return None
    if isinstance(verdict, str) and verdict not in _VERDICTS:  # of a later version, perhaps
        return None
    get = found.get
    return Record(
        run=run,
        name=_text(get("name")),
        verdict=_VERDICTS.get(_text(get("verdict"))),
        confidence=_share(get("confidence")),
        severity=_SEVERITIES.get(_text(get("severity"))),
        onset_step=_count(get("onset_step")),
        brief=_text(get("brief")) or "",
        why=_text(get("why")) or "",
        rules=_list(get("rules")),
        next=_list(get("next")),
        metric=_text(get("metric")),
        points=_count(get("points")) or 0,
        last_step=_count(get("last_step")),
        baseline=_number("baseline", found),
        peak=_number("peak", found),
        last=_number("last", found),
        last_loss=_number("last_loss", found),
        nonfinite_step=_count(get("nonfinite_step")),
        cause=_text(get("cause")),
        formats=_list(get("formats")),
        size=_count(get("size")),
        modified=_time(get("modified")),
        hyperparameters=_hyperparameters(get("hyperparameters")),
        failure=_text(get("failure")),
        hint=_text(get("hint")),
    )


def _text(given: Any) -> str | None:
    return given if isinstance(given, str) else None


def _list(given: Any) -> tuple[str, ...]:
    return tuple([one for one in given if isinstance(one, str)]) if isinstance(given, list) else ()


def _count(given: Any) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) and abs(given) < _LARGEST else None


def _share(given: Any) -> float | None:
    return given if isinstance(given, float) and 0 <= given <= 1 else None if given != 1 else 1.0


def _number(name: str, found: Mapping[str, Any]) -> float | None:
    given = found.get(name)
    if isinstance(given, float):
        return given
    if given is None:
        what = found.get("nonfinite_fields")
        return _NONFINITE.get(_text(what.get(name))) if isinstance(what, dict) else None
    try:
        return float(given) if isinstance(given, int) and not isinstance(given, bool) else None
    except OverflowError:
        return None


def _hyperparameters(given: Any) -> Hyperparameters:
    if not isinstance(given, dict):
        return ()
    return tuple([(name, value) for name, value in given.items() if isinstance(value, _SCALARS)])


def _time_text(seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # no clock has it
        return None


def _time(given: Any) -> float | None:
    try:
        seconds = datetime.fromisoformat(given).timestamp() if isinstance(given, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds is not None and math.isfinite(seconds) else None
