"""How a text report may look: colour or not, Unicode or not, how wide."""

from __future__ import annotations

from dataclasses import dataclass

# SGR codes of the eight basic colours: every terminal has them and themes keep them readable.
_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}


@dataclass(frozen=True, slots=True)
class Style:
    """What the reader's screen can show. `summary` asks for the closing line below several runs, `verbose` for the
    measures behind findings, more of the next actions, and of several runs for the details of those that are not well.

    `width` is that of running text. `columns` and `rows` are those of a terminal, where tables are cut; None of a file.
    """

    colour: bool = False
    unicode: bool = True
    width: int = 88
    summary: bool = True
    verbose: bool = False
    columns: int | None = None
    rows: int | None = None

    def paint(self, text: str, *looks: str) -> str:
        """`text` (escaped already) in the given looks, or as it is where colour is off."""
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(_CODES[look] for look in looks)}m{text}\x1b[0m"

    def sign(self, fancy: str, plain: str) -> str:
        """`fancy` where Unicode can be shown, else `plain`."""
        return fancy if self.unicode else plain
