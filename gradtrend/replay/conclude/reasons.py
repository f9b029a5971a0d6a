"""Why the verdict is what it is: sentences with the numbers of the runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradtrend.model.replay import Blame, Origin, Outcome, ReplayCause, Sample
from gradtrend.replay.subject.precision import DEFAULT_LOSS_SCALE

if TYPE_CHECKING:
    from gradtrend.replay.conclude.facts import Facts

_SHOWN_SAMPLES = 3


def reasons(facts: Facts, outcome: Outcome, cause: ReplayCause | None) -> tuple[str, ...]:
    """The sentences for this outcome, the deciding one first."""
    parts = [_repeated(facts, outcome)]
    if cause is ReplayCause.EXPLOSION or (outcome is Outcome.NOT_REPRODUCED and not facts.inspection.expects_bad):
        parts.append(_norms(facts))
    if facts.repeats.failures:
        parts += _started(facts)
        parts += _blamed(facts.blame)
        parts += _swept(facts)
        parts += _swapped(facts)
    elif outcome is Outcome.NOT_REPRODUCED:
        parts += _elsewhere(facts)
    return tuple(part for part in parts if part)


def _repeated(facts: Facts, outcome: Outcome) -> str:
    repeats, where = facts.repeats, f"in {facts.precision} on {facts.device}"
    if outcome is Outcome.FLAKY and 0 < repeats.failures < repeats.runs:
        share = f"{repeats.failures} of {repeats.runs}"
        return f"{share} identical runs {where} were non-finite: the step is not deterministic."
    if outcome is Outcome.FLAKY:
        return f"{repeats.runs} identical runs {where} differ by {repeats.spread:.1%}: the step is not deterministic."
    same = "bitwise the same" if repeats.identical else f"within {repeats.spread:.1e} of one another"
    if not repeats.failures:
        return f"{repeats.runs} of {repeats.runs} runs {where} were finite ({same})."
    count = len(facts.first.bad_parameters)
    what = f"{count} parameters have non-finite gradients" if count else "the loss is non-finite"
    return f"{repeats.failures} of {repeats.runs} runs {where} were non-finite ({same}): {what}."


def _norms(facts: Facts) -> str:
    if facts.logged_norm is None or facts.first.gradient_norm is None:
        return ""
    verb = "matches" if facts.norm_matches else "does not match"
    return f"The replayed gradient norm {facts.first.gradient_norm:.6g} {verb} the captured {facts.logged_norm:.6g}."


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
        yield f"The value was there before: {origin.source}{named}."
    elif origin.exceeds_range:
        yield f"The exact result is {origin.needs:.3g}, beyond {origin.dtype}'s largest number {origin.type_max:.5g}."


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


def _blamed(blame: Blame | None) -> Iterator[str]:
    if blame is None:
        return
    if blame.microbatches:
        numbers = ", ".join(str(number) for number in blame.microbatches)
        yield f"Microbatch {numbers} fails alone."
    if blame.samples:
        cured = "without it the step is finite" if blame.cured else "without it the step still fails"
        names = ", ".join(_sample_name(sample) for sample in blame.samples[:_SHOWN_SAMPLES])
        yield f"Sample {names} of {blame.batch_size} makes it fail; {cured}."
    if blame.note:
        yield f"{blame.note[0].upper()}{blame.note[1:]}."


def _sample_name(sample: Sample) -> str:
    """`3 (img_0030.png)`."""
    return f"{sample.index} ({sample.identity})" if sample.identity else str(sample.index)


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
    bad = [row.precision for row in facts.rows if row.finite is False]
    if bad and facts.known:
        yield f"It does fail in {', '.join(bad)}, but the run was trained in {facts.precision}."
    elif bad:
        yield f"It does fail in {', '.join(bad)}: if the run was trained so, replay with --precision {bad[0]}."
    failed = [row.precision for row in facts.rows if row.finite is None]
    if failed:
        yield f"It could not be run in {', '.join(failed)}."
    if facts.inspection.expects_bad:
        count = len(facts.inspection.bad_parameters)
        yield f"The capture names {count} bad parameters: another rank, other code or versions, or hardware made them."
