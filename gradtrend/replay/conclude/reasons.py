"""Why the verdict is what it is: sentences with the numbers of the runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradtrend.model.replay import SMALLEST, Origin, Outcome, ReplayCause
from gradtrend.replay.conclude.samples import blamed, carried
from gradtrend.replay.conclude.words import plural
from gradtrend.replay.subject.precision import DEFAULT_LOSS_SCALE

if TYPE_CHECKING:
    from gradtrend.replay.conclude.facts import Facts


def reasons(facts: Facts, outcome: Outcome, cause: ReplayCause | None) -> tuple[str, ...]:
    """The sentences for this outcome, the deciding one first."""
    parts = [_repeated(facts, outcome)]
    if not facts.repeats.failures and outcome is not Outcome.FLAKY:
        parts += _norms(facts, cause)
    if facts.repeats.failures:
        where, *more = _started(facts)
        sample, *others = blamed(facts.blame) or [""]
        parts += [where, sample, *more, *others]
        parts += _swept(facts)
        parts += _swapped(facts)
    elif outcome is Outcome.NOT_REPRODUCED:
        parts += _elsewhere(facts)
    return tuple(part for part in parts if part)


def _repeated(facts: Facts, outcome: Outcome) -> str:
    repeats, where = facts.repeats, f"in {facts.precision} on {facts.device}"
    if outcome is Outcome.FLAKY and 0 < repeats.failures < repeats.runs:
        share = f"{repeats.failures} of {repeats.runs}"
        return f"{share} identical runs {where} were non-finite: {_why_different(facts)}."
    if outcome is Outcome.FLAKY:
        return f"{repeats.runs} identical runs {where} differ by {repeats.spread:.1%}: {_why_different(facts)}."
    same = "bitwise the same" if repeats.identical else f"within {repeats.spread:.1e} of one another"
    if not repeats.failures:
        return f"{repeats.runs} of {repeats.runs} runs {where} were finite ({same})."
    count = len(facts.first.bad_parameters)
    bad = f"{plural(count, 'parameter')} {'has' if count == 1 else 'have'} non-finite gradients"
    what = bad if count else "the loss is non-finite"
    return f"{repeats.failures} of {repeats.runs} runs {where} were non-finite ({same}): {what}."


def _why_different(facts: Facts) -> str:
    if facts.fresh_agree:
        return "a run leaves something behind for the next (new processes agree with one another)"
    if facts.fresh_agree is False:
        return "the step is not deterministic (new processes differ too)"
    return "the step is not deterministic"


def _norms(facts: Facts, cause: ReplayCause | None) -> Iterator[str]:
    norm, logged, usual = facts.first.gradient_norm, facts.logged_norm, facts.usual_norm
    if norm is None:
        return
    if cause is ReplayCause.NORM_OVERFLOW:
        yield (
            f"Every gradient is finite, and their norm is {norm:.6g}: its squares overflow when it is computed in the "
            "gradients' own type, so that clipping sees inf."
        )
        return
    if logged is not None and math.isfinite(logged):
        verb = "matches" if facts.norm_matches else "does not match"
        yield f"The replayed gradient norm {norm:.6g} {verb} the captured {logged:.6g}."
    if usual is not None:
        times = norm / usual if usual else math.inf
        yield f"A usual step has a gradient norm of {usual:.3g}: this one has {times:.3g} times that."
    elif not facts.inspection.expects_bad:
        yield "It is finite and as recorded; whether its norm is large cannot be told without that of usual steps."
    if cause is ReplayCause.EXPLOSION:
        yield from carried(facts.blame, facts.shares)


def _swept(facts: Facts) -> Iterator[str]:
    finite = [row.precision for row in facts.rows if row.finite]
    bad = [row.precision for row in facts.rows if row.finite is False]
    if finite:
        yield f"Finite in {', '.join(finite)}; non-finite in {', '.join(bad)}."
    else:
        yield f"Non-finite in every precision that ran ({', '.join(bad)})."
    if not facts.known:
        yield f"At which precision the run was trained is not known; {facts.precision} is the first that fails."
    if facts.precision == "float16-scaled" and facts.scale_assumed:
        yield f"The loss scale in use was not captured; {DEFAULT_LOSS_SCALE:.0f}, where torch starts, was assumed."


def _started(facts: Facts) -> Iterator[str]:
    origin = facts.origin
    if origin is None:
        yield "The operator that made the first non-finite value could not be found."
        return
    yield f"It starts in {_place(origin)}, operator {_operator(origin)}, in the {origin.phase} pass ({_made(origin)})."
    if origin.source != "operator":
        named = f" {origin.source_name}" if origin.source_name else ""
        if origin.source == "constant":
            yield "The value came from outside torch's operators: a constant, or what the step computes with numpy."
        else:
            yield f"The value was there before: {origin.source}{named}."
    elif origin.exceeds_range:
        yield f"The exact result is {origin.needs:.6g}, beyond {origin.dtype}'s largest number {origin.type_max:.6g}."
    elif origin.lost is not None:
        kind, wide = origin.lost
        small = f"the smallest number of {origin.given[0].dtype} is {SMALLEST.get(origin.given[0].dtype, 0.0):.2g}"
        why = small if kind == "underflow" else f"{origin.given[0].dtype} rounds the difference away"
        yield f"It was given zero where float32 has {wide.abs_min:.3g} at least: {why}."


def _operator(origin: Origin) -> str:
    """A cast says what it casts: `_to_copy (cast of parameter conv.weight to float16)`."""
    if origin.operator != "_to_copy" or not origin.given:
        return origin.operator
    what = origin.given[0].tensor
    return f"_to_copy (cast of {'its input' if what.startswith('given') else what} to {origin.dtype})"


def _place(origin: Origin) -> str:
    module = f"{origin.module} ({origin.module_class})" if origin.module else "the step itself, outside any layer"
    return f"{module}, at {origin.where}" if origin.where else module


def _made(origin: Origin) -> str:
    kinds = [f"{count} {name}" for count, name in ((origin.nan, "NaN"), (origin.inf, "inf")) if count]
    return f"{' and '.join(kinds)} in {origin.dtype}"


def _swapped(facts: Facts) -> Iterator[str]:
    swap = facts.swap
    if swap is None:
        return
    if swap.cured is None:
        yield f"With {swap.module} alone in float32 the step could not be run ({swap.problem})."
    else:
        effect = "is finite" if swap.cured else "is still non-finite"
        yield f"With {swap.module} alone in float32 the step {effect}."


def _elsewhere(facts: Facts) -> Iterator[str]:
    # The scale that is assumed where none was captured is the largest that a scaler begins with: it tells nothing.
    assumed = "float16-scaled" if facts.scale_assumed else ""
    bad = [row.precision for row in facts.rows if row.finite is False and row.precision != assumed]
    if bad and facts.known:
        yield f"It does fail in {', '.join(bad)}, but the run was trained in {facts.precision}."
    elif bad:
        yield f"It does fail in {', '.join(bad)}: if the run was trained so, replay with --precision {bad[0]}."
    failed = [row.precision for row in facts.rows if row.finite is None]
    if failed:
        yield f"It could not be run in {', '.join(failed)}."
    if facts.inspection.expects_bad:
        yield _made_elsewhere(facts)


def _made_elsewhere(facts: Facts) -> str:
    count = len(facts.inspection.bad_parameters)
    what = f"The capture names {plural(count, 'bad parameter')}" if count else "The capture records a non-finite value"
    others = ["other code or versions", "state that a capture does not hold (a global, a file)", "hardware"]
    if facts.inspection.world_size != 1:
        others.insert(0, "another rank")
    return f"{what}: {', '.join(others[:-1])}, or {others[-1]} made {'it' if count < 2 else 'them'}."
