"""A replay as JSON: `captures[].replay` of the report, and the elements of `gradtrend replay --format json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradtrend.model.report import SCHEMA_VERSION
from gradtrend.report.json.diagnosis import diagnosis_to_dict
from gradtrend.report.json.fields import plain
from gradtrend.version import __version__

if TYPE_CHECKING:
    from gradtrend.model.replay import Replay


def replays_to_dict(replays: Sequence[Replay], exit_code: int) -> dict[str, Any]:
    """The whole answer of `gradtrend replay`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "gradtrend", "version": __version__},
        "exit_code": exit_code,
        "replays": [replay_to_dict(replay) for replay in replays],
    }


def replay_to_dict(replay: Replay) -> dict[str, Any]:
    """One replay, fields as in `gradtrend.model.replay`.

    JSON has no NaN: a field that is not finite is null, and its object's `nonfinite_fields` says what it was.
    """
    made: dict[str, Any] = plain(replay)
    return made | {"diagnosis": None if replay.diagnosis is None else diagnosis_to_dict(replay.diagnosis)}
