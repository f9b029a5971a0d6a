"""Text and data made safe to stand in a page. Everything that comes from a log goes through here."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from gradtrend.report.wording.escape import escape


def text(value: object) -> str:
    """`value` for an element or a quoted attribute: no markup, nothing that reorders or hides what is read."""
    return html.escape(escape(str(value)), quote=True)


def prose(sentence: str) -> str:
    """A sentence for an element, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(sentence))


def element(name: str, content: str, **attributes: object) -> str:
    """`<name attribute="...">content</name>`; the content is markup, attributes are escaped here.

    `class_` is `class`, `data_x` is `data-x`; True stands without a value, None and False are left out.
    """
    return f"<{name}{_attributes(attributes)}>{content}</{name}>"


def _attributes(attributes: dict[str, object]) -> str:
    parts = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = key.rstrip("_").replace("_", "-")
        parts.append(f" {shown}" if value is True else f' {shown}="{text(value)}"')
    return "".join(parts)


def script_json(data: Any) -> str:
    """JSON that may stand in a `<script>` of any HTML parser: ASCII, and without a character that ends or opens one."""
    dumped = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return dumped.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
