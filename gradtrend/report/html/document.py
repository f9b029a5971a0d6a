"""The page around the report: its head, which forbids the network, its style and script, and the data."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from importlib import resources

from gradtrend.report.html.markup import script_json, text
from gradtrend.version import __version__

_STYLES = ("vendor/uPlot.min.css", "page/page.css", "page/charts.css")
_SCRIPTS = (
    "vendor/uPlot.iife.min.js",
    "page/numbers.js",
    "page/theme.js",
    "page/axes.js",
    "page/marks.js",
    "page/chart.js",
    "page/heat.js",
    "page/group.js",
    "page/keys.js",
    "page/runs.js",
    "page/start.js",
)
_COMMENT = re.compile(r"^\s*//.*\n|^\s+", re.MULTILINE)
_TOGGLE = "<button type=button class=theme>Theme: auto</button>"


def document(title: str, body: str, data: Mapping[int, object]) -> str:
    """The whole page. `title` is plain text, `body` markup, `data` what the script draws of each run."""
    style = "\n".join(_asset(name) for name in _STYLES)
    script = "\n".join(_asset(name) for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    parts = "".join(
        f'<script type="application/json" data-run="{place}">{script_json(one)}</script>\n'
        for place, one in data.items()
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header class=top><h1>gradtrend</h1>{_TOGGLE}</header>\n<main>{body}</main>\n"
        f"<footer>gradtrend {__version__}. This page is one file and loads nothing.</footer>\n"
        f"<noscript><p class=facts>The charts are drawn by a script; their values stand in the tables.</p></noscript>\n"
        f"{parts}<script>{script}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    """A file of this folder; our own without comments and indents, which no reader of the page needs."""
    folder = resources.files("gradtrend.report.html")
    content = folder.joinpath(name).read_text(encoding="utf-8")
    return content if name.startswith("vendor/") else _COMMENT.sub("", content)


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
