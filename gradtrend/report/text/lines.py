"""Lines of text: broken to a width, names listed, severities coloured."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from gradtrend.model.words import Severity
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.style import Style

MAX_NAMED = 4  # of many; the others are counted
_LOOKS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def severity_word(severity: Severity, style: Style, width: int = 0) -> str:
    """The severity in its colour, filled up to a column's width."""
    return style.paint(f"{severity:<{width}}", _LOOKS[severity])


def wrapped(text: str, style: Style, first: str = "  ", rest: str = "  ", *, whole_words: bool = False) -> list[str]:
    """`text` escaped and broken to the style's width; longer words are broken too, unless they are to be whole."""
    return textwrap.wrap(
        escape(text),
        style.width,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=not whole_words,
    )


def listed(names: Sequence[str], style: Style, *, whole: bool = False) -> str:
    """The first few names, and how many more there are. Long ones are cut in their middle, unless they are to be whole
    or that is where they differ.
    """
    first = [escape(name) for name in names[:MAX_NAMED]]
    short = [shorten(name, 30, style.sign("…", "~")) for name in first]
    shown = ", ".join(first if whole or len({*short}) < len({*first}) else short)
    left = len(names) - MAX_NAMED
    return shown + (f" {style.sign('…', '...')} (+{left})" if left > 0 else "")
