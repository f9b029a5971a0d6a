from __future__ import annotations

import builtins
import json
import pickle
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import polars as pl
import pytest
from click.testing import CliRunner

import gradtrend
from gradtrend.cli import main
from gradtrend.pipeline.programs import judged as room
from gradtrend.report import REPORTERS
from gradtrend.report.json.report import schema
from tests.ingest.runs.writers import fit, jsonl
from tests.places import EXPLODING


@pytest.fixture
def report() -> gradtrend.JudgedRun:
    return gradtrend.analyze(EXPLODING)


def test_its_repr_is_short_and_says_why(report: gradtrend.JudgedRun) -> None:
    assert repr(report).startswith(f"RunReport(exploding, confidence 0.763, run={str(EXPLODING)!r}, why='gradient_norm")
    assert len(repr(report)) < 300


def test_nothing_of_a_name_reaches_a_terminal_by_its_repr() -> None:
    run = gradtrend.RunReport("a\x1b[31m\n\u202e", gradtrend.Verdict.STABLE, 0.9)
    assert repr(run) == "RunReport(stable, confidence 0.9, run='a\\x1b[31m\\n\\u202e', why='')"


def test_its_texts_are_those_of_the_command_line(report: gradtrend.JudgedRun, tmp_path: Path) -> None:
    assert str(report) + "\n" == report.to_text()
    assert "measured:" in report.to_text(verbose=True)
    jsonschema.validate(report.to_dict(), schema())
    assert report.to_dict() == json.loads(report.to_json())
    assert report.to_dict()["exit_code"] == 1
    for suffix, text in ((".json", report.to_json()), (".txt", report.to_text())):
        report.save(tmp_path / f"report{suffix}")
        assert (tmp_path / f"report{suffix}").read_text() == text
    with pytest.raises(gradtrend.ConfigError, match=r"report\.doc"):
        report.save(tmp_path / "report.doc")


def test_a_notebook_is_shown_the_html_report_and_without_it_the_text(
    report: gradtrend.JudgedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "REPORTERS", {"text": REPORTERS["text"]})
    text = report._repr_html_()
    assert text.startswith("<pre>")
    assert "exploding (confidence 0.76)" in text
    hostile = gradtrend.analyze({"<script>grad_norm": [1.0, 2.0, 1.5] * 5})
    assert "<script>" not in hostile._repr_html_()


def test_a_page_of_its_own_within_the_notebook(report: gradtrend.JudgedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    page = '<html><body class="a">it\'s & so</body></html>'
    monkeypatch.setattr(room, "REPORTERS", {"html": None})
    monkeypatch.setattr(room, "reporter", lambda name: lambda report, style: page)
    found: dict[str, str | None] = {}

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.update(attrs)

    Parser().feed(report._repr_html_())
    assert found["srcdoc"] == page


def test_what_was_logged_is_a_frame(report: gradtrend.JudgedRun) -> None:
    frame = report.series_frame()
    assert frame.schema == {
        "metric": pl.String, "role": pl.String, "layer": pl.String, "step": pl.Int64, "value": pl.Float64
    }  # fmt: skip
    norms = frame.filter(pl.col("role") == "grad_norm")
    assert len(norms) == 60
    assert norms["value"].is_infinite().any()
    assert len(frame.to_pandas()) == len(frame)


def test_reports_of_many_read_their_logs_again_when_asked(tmp_path: Path) -> None:
    for seed in range(3):
        jsonl(tmp_path / f"run{seed}" / "metrics.jsonl", fit("stable", seed))
    reports = list(gradtrend.analyze_all(tmp_path))
    assert [len(report.series_frame()) for report in reports] == [120] * 3
    (tmp_path / "run0" / "metrics.jsonl").unlink()
    with pytest.raises(gradtrend.InputError):
        reports[0].series_frame()


def _table() -> dict[str, list[float]]:
    return {"step": list(range(200)), "grad_norm": [1.0 + 0.1 * (i % 7) for i in range(200)]}


@pytest.mark.parametrize(
    "made",
    [
        lambda: gradtrend.analyze(EXPLODING),
        lambda: next(gradtrend.analyze_all(EXPLODING)),
        lambda: gradtrend.analyze(_table()),
        lambda: next(gradtrend.analyze_all(pl.DataFrame(_table()))),
        lambda: pickle.loads(pickle.dumps(gradtrend.analyze(EXPLODING))),
    ],
    ids=["path", "all", "dict", "frame", "pickled"],
)
def test_what_is_saved_has_its_charts(made: Callable[[], gradtrend.JudgedRun], tmp_path: Path) -> None:
    report = made()
    assert all(series.outline is None for series in report.series)  # of thousands of runs they would fill the memory
    report.save(tmp_path / "report.html")
    report.save(tmp_path / "report.svg")
    page, picture = (tmp_path / "report.html").read_text(), (tmp_path / "report.svg").read_text()
    assert "There is no series to draw" not in page
    assert "No gradient norm is logged" not in picture
    assert "<polyline" in picture or "<path" in picture
    assert "There is no series to draw" not in report._repr_html_()


def test_what_is_saved_is_what_the_command_line_writes(report: gradtrend.JudgedRun, tmp_path: Path) -> None:
    for suffix in ("html", "svg"):
        saved, written = tmp_path / f"saved.{suffix}", tmp_path / f"written.{suffix}"
        report.save(saved)
        CliRunner().invoke(main, ["analyze", str(EXPLODING), "-o", str(written)])
        assert saved.read_bytes() == written.read_bytes()


def test_charts_of_a_log_that_is_gone(tmp_path: Path) -> None:
    for seed in range(2):
        jsonl(tmp_path / f"run{seed}" / "metrics.jsonl", fit("stable", seed))
    gone, grown = gradtrend.analyze_all(tmp_path)
    (tmp_path / "run0" / "metrics.jsonl").unlink()
    with pytest.raises(gradtrend.InputError):
        gone.save(tmp_path / "gone.html")
    assert not (tmp_path / "gone.html").exists()
    assert gone._repr_html_().startswith("<pre>")
    gone.save(tmp_path / "gone.json")
    with (tmp_path / "run1" / "metrics.jsonl").open("a") as log:
        log.write('{"step": 100000, "grad_norm": 3.0, "new": 1.0}\n')
    grown.save(tmp_path / "grown.html")


def test_it_survives_a_pickle(report: gradtrend.JudgedRun) -> None:
    again = pickle.loads(pickle.dumps(report))
    assert again == report
    assert again.series_frame().equals(report.series_frame())


def test_a_report_loads_no_notebook(monkeypatch: pytest.MonkeyPatch, report: gradtrend.JudgedRun) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        assert not name.startswith(("IPython", "pandas", "matplotlib"))
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    report._repr_html_()
    report.series_frame()
