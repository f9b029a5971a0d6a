"""A page taken apart as a browser does: elements with their text, and the data of its charts."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

_VOID = {"meta", "input", "br", "img", "link", "rect", "path"}


class Page(HTMLParser):
    """The elements of a page in order, as (name, attributes, text directly and deeper)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[int] = []
        self.unbalanced: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))
        if tag not in _VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if not self._open or self.elements[self._open[-1]][0] != tag:
            self.unbalanced.append(tag)
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        for place in self._open:
            self.elements[place][2].append(data)

    def named(self, name: str, **wanted: str) -> list[str]:
        """The texts of the elements of that name; `class_` is one of their classes."""
        return ["".join(text) for tag, attributes, text in self.elements if tag == name and _fits(attributes, wanted)]

    def attributes(self, name: str) -> list[dict[str, str | None]]:
        """The attributes of the elements of that name."""
        return [attributes for tag, attributes, _ in self.elements if tag == name]

    @property
    def data(self) -> list[Any]:
        """What the script draws of each run."""
        return [json.loads(text) for text in self.named("script", type="application/json")]


def _fits(attributes: dict[str, str | None], wanted: dict[str, str]) -> bool:
    return all(
        value in (attributes.get("class") or "").split() if key == "class_" else attributes.get(key) == value
        for key, value in wanted.items()
    )
