"""A replay's findings: which rules hold for it, in their own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gradtrend.model.finding import Evidence, Finding
from gradtrend.model.replay import Outcome, Replay, ReplayCause
from gradtrend.model.rule import Rule
from gradtrend.replay.conclude.guards import guard_for

# The cheapest first: what to train in where a step fails in another precision.
_STABLE = {"bfloat16": ("bfloat16 autocast", "bf16-mixed"), "float32": ("float32", "32-true")}
_NEEDS_NO_ORIGIN = (ReplayCause.OTHER_RANK, ReplayCause.EXPLOSION, ReplayCause.NORM_OVERFLOW)
_SENTENCES = 3  # of the reasons that a message can quote


def with_findings(replay: Replay, rules: Sequence[Rule]) -> Replay:
    """The replay with what it found; `rules` are all rules that are in force."""
    topic = _topic(replay)
    found = [_finding(replay, rule) for rule in rules if rule.replay is not None and rule.replay.value == topic]
    return replace(replay, findings=tuple(found))


def _topic(replay: Replay) -> str | None:
    """What a rule must be for to hold: the cause, else the outcome; None for an inspection that saw nothing bad."""
    if replay.cause is not None:
        return replay.cause.value
    if replay.outcome is Outcome.INSPECTED and not replay.inspection.nonfinite:
        return None
    return replay.outcome.value


def _finding(replay: Replay, rule: Rule) -> Finding:
    step = replay.inspection.step
    known = _known(replay)
    true = _circumstances(replay)
    fitting = [one for one in rule.actions if one.when is None or one.when in true]
    texts = [(one.id, _filled(one.text_for.get(replay.inspection.kind, one.text), known)) for one in fitting]
    actions = [(action_id, text) for action_id, text in texts if text is not None]
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        confidence=_confidence(replay),
        message=_filled(rule.message, known) or rule.summary,
        first_step=step,
        last_step=step,
        evidence=tuple(_evidence(replay)),
        actions=tuple(text for _, text in actions),
        action_ids=tuple(action_id for action_id, _ in actions),
    )


def _known(replay: Replay) -> dict[str, object]:
    """What a rule's message and actions may speak of; `note` are the reasons of the verdict."""
    values = {
        "note": " ".join(replay.why[:_SENTENCES]),
        "module": replay.origin.module if replay.origin is not None else None,
        "precision": replay.precision,
        "capture": replay.inspection.path,
        "capture_step": replay.inspection.step,
        "cured_module": replay.swap.module if replay.swap is not None and replay.swap.cured else None,
        "explicit_half": _explicit_half(replay),
        "guard": guard_for(replay.origin) if replay.origin is not None else None,
        **_stable(replay),
        **_range(replay),
    }
    return {name: value for name, value in values.items() if value not in (None, "")}


def _circumstances(replay: Replay) -> set[str]:
    """Which of `REPLAY_CIRCUMSTANCES` hold."""
    origin, blame, inspection = replay.origin, replay.blame, replay.inspection
    hidden = replay.cause is ReplayCause.BACKWARD_OPERATOR and origin is not None and origin.phase == "forward"
    agree = replay.repeats.fresh_agree if replay.repeats is not None else None
    holds = {
        "sample_named": blame is not None and bool(blame.samples),
        "hidden_in_forward": hidden,
        "layer_stands_out": any({"grown", "carries-the-norm"} & set(layer.flags) for layer in replay.layers),
        "left_behind": agree is True,
        "not_deterministic": agree is not True,
        "on_a_gpu": replay.device not in (None, "cpu"),
        "precision_unknown": not replay.precision_known,
        "failure_expected": inspection.expects_bad,
        "nothing_expected": not inspection.expects_bad,
        "other_ranks": inspection.world_size != 1 and inspection.expects_bad,
        "may_be_run": not inspection.refused,
    }
    return {name for name, true in holds.items() if true}


def _explicit_half(replay: Replay) -> str | None:
    """The half type of an operator in a run that is not in one."""
    dtype = replay.origin.dtype if replay.origin is not None else ""
    return dtype if dtype in ("float16", "bfloat16") and (replay.precision or "").startswith("float32") else None


def _stable(replay: Replay) -> dict[str, str]:
    """The precision of those that were run in which the step is finite: its name, and in a trainer's settings."""
    finite = {row.precision for row in replay.sweep if row.finite}
    found = next((name for name in _STABLE if name in finite), None)
    return {} if found is None else dict(zip(("stable_precision", "stable_setting"), _STABLE[found], strict=True))


def _range(replay: Replay) -> dict[str, str]:
    """In which way the operator left the range of its type: too large, too small, or rounded away."""
    origin = replay.origin
    if origin is None:
        return {}
    if origin.exceeds_range:
        return {"needed": f"{origin.needs:.3g}", "dtype": origin.dtype}
    if origin.lost is None:
        return {}
    kind, wide = origin.lost
    dtype = origin.given[0].dtype
    return {"too_small" if kind == "underflow" else "rounded": f"{wide.abs_min:.2g}", "dtype": dtype}


def _filled(template: str, known: Mapping[str, object]) -> str | None:
    """The template with what is known; None where it speaks of what a replay does not know."""
    try:
        return template.format(**known)
    except KeyError:
        return None


def _confidence(replay: Replay) -> float:
    """1 where it is certain, less where the cause rests on fewer legs: no operator found, or a precision assumed."""
    if replay.outcome is not Outcome.CONFIRMED:
        return 0.5 if replay.outcome is Outcome.NOT_REPRODUCED else 1.0
    explained = replay.origin is not None or replay.cause in _NEEDS_NO_ORIGIN
    return (0.99 if explained else 0.8) - (0.0 if replay.precision_known else 0.1)


def _evidence(replay: Replay) -> Iterator[Evidence]:
    if replay.repeats is not None:
        yield Evidence("failed_runs", float(replay.repeats.failures), float(replay.repeats.runs))
    if replay.bad_parameters:
        yield Evidence("bad_parameters", float(len(replay.bad_parameters)))
    if replay.origin is not None and replay.origin.needs is not None:
        yield Evidence("needed_magnitude", replay.origin.needs, replay.origin.type_max)
