"""Numbers as people read them, where more than one room writes them."""

from __future__ import annotations

import math

_PLAIN_DECADES = 4  # x10000 and beyond is shorter with an exponent


def times(decades: float) -> str:
    """A ratio given in decades as a person writes it: `x1.5`, `x300`, `x6e17`."""
    if abs(decades) < _PLAIN_DECADES:
        return f"x{float(f'{10**decades:.2g}'):g}"
    exponent = math.floor(decades)
    digit = round(10 ** (decades - exponent))
    return f"x1e{exponent + 1}" if digit == 10 else f"x{digit}e{exponent}"
