"""Sick and healthy runs with what each was given -> what tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gradtrend.detect.contrast.answers import answer
from gradtrend.detect.contrast.columns import columns_of
from gradtrend.detect.contrast.family import corrected, worth_testing
from gradtrend.detect.contrast.questions import questions_of
from gradtrend.model.many.contrast import Contrast, Contrasts, Outcome
from gradtrend.model.runlog import Scalar

LEVEL = 0.05  # the usual one: of twenty sweeps in which nothing matters, in one something is named all the same


def contrasts(runs: Sequence[tuple[bool, Mapping[str, Scalar]]]) -> Contrasts:
    """What tells the sick runs from the healthy ones, of the hyperparameters of each.

    A number is tested by its size, a word by each value against the others, a name that only some runs have by whether
    they have it. What could come to nothing, however the sick runs lie, is not tested: a value that one run has alone,
    such as its name. How many runs are enough follows from the same: four sick and four healthy ones for one
    hyperparameter, some six of each for twenty.
    """
    sick = np.array([is_sick for is_sick, _ in runs], dtype=np.bool_)
    columns = list(columns_of([given for _, given in runs]))
    varying = [column for column in columns if len(column.values) > 1 or not column.present.all()]
    constant = len(columns) - len(varying)
    found = Contrasts(Outcome.ONE_SIDED, sick.size, int(sick.sum()), (), 0, len(columns), constant, len(varying), LEVEL)
    if found.sick in (0, found.runs):  # of no runs too
        return found
    if not varying:
        return replace(found, outcome=Outcome.NOTHING_VARIES if columns else Outcome.NOTHING_LOGGED)
    questions = questions_of(varying, sick, LEVEL)
    chosen = [questions[i] for i in worth_testing([question.least for question in questions], LEVEL)]
    tested = {name for question in chosen for name in question.names}
    found = replace(found, tested=len(chosen), rare=len(varying) - len(tested))
    if not chosen:
        return replace(found, outcome=Outcome.TOO_FEW_RUNS)
    answers = [answer(question, sick) for question in chosen]
    ps = corrected([contrast.p for contrast, _ in answers])
    ranked = sorted(
        ((replace(contrast, corrected_p=p), part) for (contrast, part), p in zip(answers, ps, strict=True)),
        key=lambda one: (one[0].corrected_p, one[0].p, one[0].names),
    )
    found = replace(found, ranked=_joined(ranked))
    return replace(found, outcome=Outcome.FOUND if found.found else Outcome.NOTHING_FOUND)


def _joined(ranked: Sequence[tuple[Contrast, bytes]]) -> tuple[Contrast, ...]:
    """The contrasts, those that were found and set the same runs apart as one under the name of the surest."""
    joined: list[Contrast] = []
    place: dict[bytes, int] = {}
    for contrast, part in ranked:
        at = place.get(part)
        if at is None or contrast.corrected_p > LEVEL:
            place.setdefault(part, len(joined))
            joined.append(contrast)
        else:
            first = joined[at]
            new = tuple(name for name in contrast.names if name not in first.names)
            joined[at] = replace(first, names=(*first.names, *new))
    return tuple(joined)
