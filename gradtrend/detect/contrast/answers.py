"""A question -> how it parts the runs, and how likely that is by chance."""

from __future__ import annotations

import numpy as np

from gradtrend.detect.contrast.columns import ABSENT, Mask
from gradtrend.detect.contrast.cuts import clean_cut, part_of, spread_of
from gradtrend.detect.contrast.questions import Question
from gradtrend.detect.contrast.ranks import rank_p
from gradtrend.detect.contrast.tables import table_p
from gradtrend.model.many.contrast import Contrast, ContrastKind, Part


def answer(question: Question, sick: Mask) -> tuple[Contrast, bytes]:
    """The best of a question's tests, its p times their number, and the runs that it sets apart: as bytes, which are
    the same for two that cannot be told from one another by these runs.
    """
    have = question.codes != ABSENT
    best, best_p = None, 1.0
    if question.numbers is not None:
        known = ~np.isnan(question.numbers)
        best_p = rank_p(question.numbers[known], sick[known])
    for code in sorted(question.parts, key=lambda code: str(question.values[code])):  # in whatever order runs come
        mask = question.codes == code
        p = table_p(part_of(mask, sick), part_of(have & ~mask, sick))
        if p < best_p or (question.numbers is None and best is None):
            best, best_p = code, p
    p = min(1.0, best_p * question.tests)
    return _by_size(question, sick, p) if best is None else _by_value(question, best, sick, p)


def _by_value(question: Question, code: int, sick: Mask, p: float) -> tuple[Contrast, bytes]:
    have, mask = question.codes != ABSENT, question.codes == code
    inside, outside = part_of(mask, sick), part_of(have & ~mask, sick)
    presence = question.part_kind is ContrastKind.PRESENCE
    if len(question.values) == 2 and not presence and _share(inside) < _share(outside):
        code, inside, outside = 1 - code, outside, inside  # of two values the sicker one is named
    value = None if presence else question.values[code]
    contrast = Contrast(question.names, question.part_kind, p, p, inside, outside, value)
    return contrast, _same_runs(have, mask)


def _by_size(question: Question, sick: Mask, p: float) -> tuple[Contrast, bytes]:
    assert question.numbers is not None
    known = ~np.isnan(question.numbers)
    values, ill = question.numbers[known], sick[known]
    contrast = Contrast(
        question.names, ContrastKind.NUMBER, p, p, sick=spread_of(values[ill]), healthy=spread_of(values[~ill])
    )
    cut = clean_cut(values, ill)
    if cut is None:
        return contrast, question.key
    threshold, sick_are = cut
    mask = known & (question.numbers > threshold if sick_are == "above" else question.numbers <= threshold)
    inside, outside = part_of(mask, sick), part_of(known & ~mask, sick)
    contrast = Contrast(
        contrast.names, contrast.kind, p, p, inside, outside, None, threshold, sick_are, contrast.sick, contrast.healthy
    )
    return contrast, _same_runs(known, mask)


def _share(part: Part) -> float:
    return part.sick / part.runs if part.runs else 0.0


def _same_runs(have: Mask, mask: Mask) -> bytes:
    """The same for a part of the runs and for the rest of them."""
    return min((have & mask).tobytes() + have.tobytes(), (have & ~mask).tobytes() + have.tobytes())
