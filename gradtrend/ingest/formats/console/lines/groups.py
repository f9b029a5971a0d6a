"""Values of a line that are given as a group, under one name.

`{'grad_norm': {'encoder': 0.1}}`, `grad_norm={'default': 1.8}`, `GradNorm(P=1.9, V=79)`, `loss[loss=0.6, ctc_loss=1]`.
"""

from __future__ import annotations

import re

_OPENING = re.compile(
    r"(?P<dict>(?<![\w./-])[\w./-]+(?: {1,3}[\w./-]+){0,5})['\"]? {0,3}[:=]\s*(?:\w+\()?(?P<brace>\{)"
    r"|(?P<call>[A-Za-z_][\w./-]{0,99})(?P<bracket>[(\[])(?=\s*['\"]?[A-Za-z][\w. -]{0,99}['\"]?\s*[=:])"
    r"|(?P<nameless>\{)|(?P<close>[})\]])"
)
_CLOSES = {"{": "}", "(": ")", "[": "]"}
# A name that makes a group of what stands in its brackets; other calls (`Namespace(lr=0.1)`) name no metrics.
_METRICS = re.compile(r"(?:norm|grad|loss|losses)\w*$", re.IGNORECASE)
_LONGEST = 200  # characters of a name that are looked through for it


class Groups:
    """The groups that are open at one place of a line."""

    def __init__(self, line: str) -> None:
        self._open: list[tuple[str, str]] = []  # name ("" for none) and closing bracket
        self._nested = line.count("{") > 1  # in a dict of dicts each name counts

    def read(self, label: str) -> str:
        """Go over the text before a value; what of it stands behind the last `Name(` or `Name[`."""
        behind = 0
        for match in _OPENING.finditer(label):
            if match["close"]:
                if self._open and self._open[-1][1] == match["close"]:
                    self._open.pop()
                continue
            name = (match["dict"] or match["call"] or "").strip()
            bracket = match["brace"] or match["bracket"] or match["nameless"]
            if match["call"] and not _METRICS.search(name, max(0, len(name) - _LONGEST)):
                continue
            named = self._nested or _METRICS.search(name, max(0, len(name) - _LONGEST))
            self._open.append((name if named else "", _CLOSES[bracket]))
            behind = match.end() if match["call"] else behind
        return label[behind:]

    def name(self, own: str) -> str:
        """The full name of a value that its label calls `own`."""
        for group, bracket in reversed(self._open):
            if group:
                own = _joined(group, own, bracket)
        return own


def _joined(group: str, own: str, bracket: str) -> str:
    """`loss[loss=` is the loss itself, and `simple_loss` in it needs no other name."""
    if bracket != "}":
        if own.lower() in ("loss", group.lower()) and "loss" in group.lower():
            return group
        if group.lower() == "loss" and "loss" in own.lower():
            return own
    return f"{group}/{own}"
