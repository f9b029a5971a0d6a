"""How sure a verdict is, from how far rules are beyond their limits."""

from __future__ import annotations


def confidence(strength: float, points: int | None) -> float:
    """How sure a fired rule is: 0.5 at its limit, 0.88 at twice it, less where a trend rests on a few points.

    The form is a choice; that it is calibrated is measured by the confidence benchmark. `math.inf` is for what rests on
    no limit: that nothing fired.
    """
    few = 1.0 if points is None else points / (points + 2)
    return round((1 - 0.5 / strength**2) * few, 3)


def unrivalled(closeness: float) -> float:
    """What is left of a confidence when another rule, which would have meant another verdict, came this near to its
    limit (0..1): half of it at the limit, as for the rule that fired.
    """
    return 1 - 0.5 * closeness**2
