"""Lines of text: broken to a width, names listed."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.style import Style

_MAX_NAMED = 4


def wrapped(text: str, style: Style, first: str = "  ", rest: str = "  ") -> list[str]:
    """`text` escaped and broken to the style's width."""
    return textwrap.wrap(
        escape(text), style.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def listed(names: Sequence[str], style: Style) -> str:
    """The first few names, and how many more there are."""
    more = style.sign("…", "~")
    shown = ", ".join(shorten(escape(name), 30, more) for name in names[:_MAX_NAMED])
    left = len(names) - _MAX_NAMED
    return shown + (f" {style.sign('…', '...')} (+{left})" if left > 0 else "")
