"""What a step itself changes of the model's own attributes, and what these were before it."""

from __future__ import annotations

from gradtrend.replay.run.step import run_step
from gradtrend.replay.subject.outside import as_before, changed_attributes, sentences
from gradtrend.replay.subject.subject import Subject


def settle(subject: Subject, precision: str) -> None:
    """Put counters that were captured after the step back to before it, and note what a reader must know.

    A counter is one where the step, begun with what it must have been, ends with what was captured.
    """
    outside = subject.outside
    changing = _changes_in_a_run(subject, precision)
    guessed = False
    if changing and outside.taken == "after":
        captured = {place: outside.attributes[place] for place in changing}
        before = {place: as_before(captured[place], captured[place], end) for place, end in changing.items()}
        if None not in before.values():
            outside.attributes |= before
            again = _changes_in_a_run(subject, precision)
            guessed = all(again.get(place) == value for place, value in captured.items())
            if not guessed:
                outside.attributes |= captured
    subject.notes += sentences(outside, changing, guessed)


def _changes_in_a_run(subject: Subject, precision: str) -> dict[tuple[str, str], object]:
    """The attributes that a run leaves changed, with what they are then; {} where it cannot be run."""
    if not subject.outside.attributes:
        return {}
    try:
        run_step(subject, precision)
    except Exception:  # the user's code may raise anything
        return {}
    return dict(changed_attributes(subject.model, subject.outside.attributes))
