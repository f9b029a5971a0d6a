"""Report -> str, one folder a format. The front of this room: the formats, and the words that the command line shares.

A format is loaded when it is asked for. Other packages bring more by the entry point group `gradtrend.reports`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from gradtrend.errors import GradtrendError
from gradtrend.model.report import Report
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.failures import failure_message
from gradtrend.report.wording.style import Style

__all__ = [
    "POINTS",
    "REPORTERS",
    "SUFFIXES",
    "Reporter",
    "Style",
    "escape",
    "failure_message",
    "format_of",
    "known_suffixes",
    "reporter",
]

Reporter = Callable[[Report, Style], str | bytes]  # bytes are a picture


def _text(report: Report, style: Style) -> str:
    from gradtrend.report.text.report import render_text

    return render_text(report, style)


def _json(report: Report, style: Style) -> str:
    from gradtrend.report.json.report import render_json

    return render_json(report, style)


def _html(report: Report, style: Style) -> str:
    from gradtrend.report.html.report import render_html

    return render_html(report, style)


def _svg(report: Report, style: Style) -> str:
    from gradtrend.report.picture.svg import render_svg

    return render_svg(report, style)


def _png(report: Report, style: Style) -> bytes:
    from gradtrend.report.picture.png import render_png

    return render_png(report, style)


def _junit(report: Report, style: Style) -> str:
    from gradtrend.report.ci.junit import render_junit

    return render_junit(report, style)


def _sarif(report: Report, style: Style) -> str:
    from gradtrend.report.ci.sarif import render_sarif

    return render_sarif(report, style)


def _github(report: Report, style: Style) -> str:
    from gradtrend.report.ci.github import render_github

    return render_github(report, style)


def _gitlab(report: Report, style: Style) -> str:
    from gradtrend.report.ci.gitlab import render_gitlab

    return render_gitlab(report, style)


def _markdown(report: Report, style: Style) -> str:
    from gradtrend.report.ci.markdown import render_markdown

    return render_markdown(report, style)


def _jsonl(report: Report, style: Style) -> str:
    from gradtrend.report.json.lines import render_jsonl

    return render_jsonl(report, style)


REPORTERS: Mapping[str, Reporter] = {
    "text": _text,
    "json": _json,
    "jsonl": _jsonl,
    "html": _html,
    "svg": _svg,
    "png": _png,
    "junit": _junit,
    "sarif": _sarif,
    "github": _github,
    "gitlab": _gitlab,
    "markdown": _markdown,
}
# How many points of each series a format draws: two a pixel of a wide window. The others draw none.
POINTS: Mapping[str, int] = {"html": 2000, "svg": 2000, "png": 2000}
# The format that a file's name asks for. A format that is not among the reporters is none.
SUFFIXES: Mapping[str, str] = {
    ".txt": "text",
    ".json": "json",
    ".jsonl": "jsonl",
    ".html": "html",
    ".xml": "junit",
    ".sarif": "sarif",
    ".md": "markdown",
    ".svg": "svg",
    ".png": "png",
}


def format_of(name: str) -> str | None:
    """The format that the suffix of a file's name asks for; None for one that is not known."""
    format_ = SUFFIXES.get(PurePath(name).suffix.lower())
    return format_ if format_ in REPORTERS else None


def known_suffixes() -> str:
    """The suffixes that ask for a format, for people."""
    return ", ".join(suffix for suffix, format_ in SUFFIXES.items() if format_ in REPORTERS)


def reporter(name: str) -> Reporter:
    """The format of that name: a shipped one, or the one that another package brings.

    Raises `ConfigError` for a format that there is not, or that cannot be used.
    """
    if name == "png":
        from gradtrend.report.picture.png import check_pillow

        check_pillow()
    return REPORTERS.get(name) or _of_another_package(name)


def _of_another_package(name: str) -> Reporter:
    from gradtrend.entry_points import Wanted, brought

    wanted = Wanted("gradtrend.reports", "--format", "report", name, tuple(REPORTERS))
    function, origin = brought(wanted)
    if not (callable(function) and _takes_two(function)):
        raise wanted.unusable(origin, f"it cannot be called with a Report and a Style: {function!r:.80}")

    def text_of(report: Report, style: Style) -> str | bytes:
        try:
            text = function(report, style)
        except GradtrendError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"the package {origin} failed to make the report: {why}") from error
        if not isinstance(text, str | bytes):  # what it promised; else an empty report would be written, or none
            raise wanted.unusable(origin, f"it returned {type(text).__name__}, not str")
        return text

    return text_of


def _takes_two(function: Callable[..., object]) -> bool:
    from inspect import signature

    try:
        signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # written in C, and does not say
        return True
    return True
