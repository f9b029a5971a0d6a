"""Reports with names that formats stumble over, and reports with many runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gradtrend.model.advice import Advice
from gradtrend.model.finding import Finding
from gradtrend.model.report import Failure, Report, RunReport
from gradtrend.model.runlog import Source
from gradtrend.model.words import Severity, Verdict

HOSTILE = {
    "newlines": "a\nb\r\nc\n::error::injected\n- item\n# head",
    "command": "::error file=x,title=y::z%0A%25,:",
    "cdata": "]]> <![CDATA[ <!-- --> </testcase></details>",
    "markup": "&<>\"'<script>alert(1)</script><img src=x onerror=y>&lt;&#64;",
    "markdown": "`a` **b** _c_ [d](http://e.org) | f | ~~g~~ www.evil.org https://evil.org \\| $x$ @all #1 !h",
    "terminal": "\x1b[31mred\x07\x9b31m\x00\u202e",
    "separators": "a\u2028b\u2029c\x85d\x0be\x0c",
    "surrogates": "run_\udcff\ud800_\udfff",
    "no characters": "\ufffe\uffff\U0001ffff",
    "long": "n" * 10_000 + "end",
    "empty": "",
}


def hostile(name: str) -> Report:
    """A call in which everything that comes from logs, rules and paths has this name."""
    path = f"runs/{name}"
    findings = (
        Finding("GT101", "exploding", Severity.ERROR, 0.9, f"{name} rose", name, None, 1, 9, (), (f"lower {name}",)),
        Finding("MY1", f"mine{name}", Severity.WARNING, 0.9, name, f"m{name}", name),
    )
    advice = (Advice("lower-lr", f"Lower {name}", ("GT101",)),)
    sick = RunReport(path, Verdict.EXPLODING, 0.9, (Source("jsonl", name, 1, 9),), findings=findings, next=advice)
    sick = replace(sick, name=name, folder=Path("runs"))
    short = RunReport(f"short{name}", Verdict.UNDETERMINED, None, findings=findings[1:])
    failure = Failure(f"gone{name}", f"gone{name}: no {name}", f"try {name}")
    return Report(1, (sick, short, RunReport(f"ok{name}", Verdict.STABLE, 0.9)), (failure,), folder="/project")


def many(count: int) -> Report:
    """A call of so many sick runs below the working folder, each with an error, a warning and a note."""
    severities = (("GT101", Severity.ERROR), ("GT104", Severity.WARNING), ("GT502", Severity.INFO))
    findings = tuple(Finding(rule, "x", severity, 0.9, "It rose.", "norm") for rule, severity in severities)
    runs = [RunReport(f"runs/{place}", Verdict.EXPLODING, 0.9, findings=findings) for place in range(count)]
    return Report(1, tuple(runs), folder="/project")
