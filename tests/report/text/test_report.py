from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gradtrend.model.advice import Advice, SoFar
from gradtrend.model.finding import Finding
from gradtrend.model.report import Failure, Report, RunReport
from gradtrend.model.runlog import Skipped, Source
from gradtrend.model.words import Severity, Verdict
from gradtrend.report import REPORTERS, SUFFIXES, format_of, known_suffixes
from gradtrend.report.text.report import render_text, summary
from gradtrend.report.wording.style import Style

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def _text(*runs: RunReport, failures: tuple[Failure, ...] = (), style: Style | None = None) -> str:
    return render_text(Report(0, runs, failures), style or Style())


def test_verdict_why_next_in_this_order_on_one_screen(exploding: RunReport) -> None:
    lines = _text(exploding).splitlines()
    assert lines[0] == "out/run: exploding (confidence 0.99)"
    assert lines.index("Why") < lines.index("Next") < len(lines) - 1
    assert lines[-1].startswith("Read: ")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= Style().width


def test_the_numbers_of_the_log_are_there(exploding: RunReport) -> None:
    text = _text(exploding)
    assert "412 points, steps 1 to 412; usual level 0.9, peak 3.2e5 (x4e5); rises from step 371 on" in text
    assert "GT101 exploding, steps 371 to 397\n" in text
    assert "measured" not in text
    flat = " ".join(text.split())
    assert "gradient norm from step 398 (15 points), loss from step 398 (15 points), both at the same step" in flat
    assert "27 steps after the rise began" in flat
    assert "first non-finite in module layer2.1.relu (ReLU), batch 397" in flat
    assert "Read: metrics.jsonl (jsonl; skipped 1: line 413 truncated)" in flat


def test_the_curve_marks_nan_and_inf(exploding: RunReport) -> None:
    curve = next(line for line in _text(exploding).splitlines() if line.startswith("  gradient_norm "))
    assert curve.endswith("▁▁▁▅█✕✕  0.8 to 3.2e5")


def test_the_measures_and_each_confidence_are_told_on_request(exploding: RunReport) -> None:
    text = _text(exploding, style=Style(verbose=True))
    assert "GT101 exploding, steps 371 to 397 (confidence 0.99)" in text
    assert "measured: decades above baseline 5.5 (limit 1)" in text


def test_a_log_without_steps_has_rows(exploding: RunReport) -> None:
    note = Finding("GT515", "no-steps", Severity.INFO, 1.0, "It logs no step.")
    text = " ".join(_text(replace(exploding, findings=(*exploding.findings, note))).split())
    for words in (
        "rows 1 to 412",
        "rises from row 371 on",
        "exploding, rows 371 to 397",
        "from row 398",
        "27 rows after",
    ):
        assert words in text


def test_so_far_it_looks_healthy(unjudged: RunReport) -> None:
    told = {so_far: _text(replace(unjudged, so_far=so_far)).splitlines()[0] for so_far in (*SoFar, None)}
    assert told == {
        SoFar.HEALTHY: "runs/short: undetermined (could not be judged; so far it looks healthy)",
        SoFar.SUSPICIOUS: "runs/short: undetermined (could not be judged; so far it looks suspicious)",
        None: "runs/short: undetermined (could not be judged)",
    }


def test_errors_come_before_notes(exploding: RunReport) -> None:
    text = _text(exploding)
    assert text.index("GT101") < text.index("GT502")
    assert "  1. Lower the learning rate.\n  2. Clip the norm.\n" in text


def test_the_finding_that_gave_the_verdict_is_told_first(exploding: RunReport) -> None:
    other = replace(exploding.findings[1], rule="GT001", name="other", actions=("Re-run.",))
    text = _text(replace(exploding, findings=(*exploding.findings, other)))
    assert text.index("GT101") < text.index("GT001")


def test_layers_of_one_rule_stand_together(layered: RunReport) -> None:
    text = _text(layered)
    assert "GT401 vanishing-layer: 9 layers: 0_weight, 1_weight, 2_weight, 3_weight … (+5)" in text
    assert text.count("GT401") == 1
    assert text.count("Check the activation.") == 1


def test_a_long_list_of_layers_is_broken_to_the_width(layered: RunReport) -> None:
    findings = [replace(one, layer=f"encoder.blocks.{i}.attention") for i, one in enumerate(layered.findings * 5)]
    lines = _text(replace(layered, findings=tuple(findings)), style=Style(width=60)).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("  error   GT"))
    assert lines[start + 1].startswith("    encoder.")
    assert max(map(len, lines)) <= 60


def test_findings_without_a_place_are_all_told(exploding: RunReport) -> None:
    notes = tuple(
        Finding("GT510", "damaged-log", Severity.INFO, 0.9, text) for text in ("a.jsonl is cut.", "b.jsonl is cut.")
    )
    text = _text(replace(exploding, findings=notes))
    assert "GT510 damaged-log: 2 times\n    a.jsonl is cut.\n    b.jsonl is cut.\n" in text


def test_a_path_is_not_named_twice() -> None:
    assert _text(failures=(Failure("out/x", "out/x: no such path"),)) == "out/x: error: no such path\n"


def test_could_not_judge_says_what_was_missing_and_what_to_log(unjudged: RunReport) -> None:
    text = _text(unjudged)
    assert text.startswith("runs/short: undetermined (could not be judged)\n")
    assert "has 2 points; a verdict needs 3" in text
    assert "Next\n  Log the gradient norm at every step.\n" in text


def test_several_runs_are_a_table_with_failures_and_a_summary_below(report: Report) -> None:
    text = render_text(report, Style())
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["exploding", "vanishing", "undetermined", "stable"]
    assert "4 runs: 1 exploding, 1 vanishing, 1 stable, 1 undetermined; 10 errors, 1 warning; 2 paths could" in text
    assert "out/other: error: no such path\n  Check the spelling.\n" in text
    assert "out/bug: error: internal error: ValueError: odd\n" in text
    assert lines[-1] == "Why, and what to do: gradtrend analyze RUN, or -v for the 3 that are not well."
    assert "Next" not in lines


def test_details_of_those_that_are_not_well_on_request(report: Report) -> None:
    lines = render_text(report, Style(verbose=True)).splitlines()
    heads = [line.split(":")[0] for line in lines if ": exploding (" in line or "vanishing (" in line]
    assert heads == ["out/run", "runs/layers"]
    assert lines.count("Next") == 3
    assert not [line for line in lines if line.startswith("runs/ok:")]


def test_one_run_has_no_summary(stable: RunReport) -> None:
    text = _text(stable)
    assert "1 run" not in text
    assert "  grad_norm  ▄▅  1 to 1.2\n" in text


def test_a_terminal_shows_what_fits_of_the_well_ones(stable: RunReport, exploding: RunReport) -> None:
    report = Report(1, (*(replace(stable, run=f"runs/{i}") for i in range(100)), replace(exploding, run="runs/bad")))
    lines = render_text(report, Style(columns=80, rows=24)).splitlines()
    assert len(lines) < 24
    assert lines[2].startswith("exploding")
    assert "85 more with nothing to look at, listed by -v" in lines
    assert len(render_text(report, Style()).splitlines()) > 101
    assert len(render_text(report, Style(columns=80, rows=24, verbose=True)).splitlines()) > 101


def test_what_was_streamed_is_not_listed_again_unless_it_needs_a_look(stable: RunReport, exploding: RunReport) -> None:
    text = render_text(Report(1, (stable, exploding)), Style(), streamed=True)
    assert "runs/ok" not in text
    assert "1 more with nothing to look at, as listed above" in text


def test_summary_without_any_run() -> None:
    failures = (Failure("a", "x"), Failure("b", "x"))
    assert summary(Report(3, (), failures)) == "2 paths could not be read"


def test_an_empty_report_is_empty() -> None:
    assert render_text(Report(0), Style()) == ""


def test_colour_changes_nothing_but_colour(report: Report) -> None:
    plain, coloured = render_text(report, Style()), render_text(report, Style(colour=True))
    assert "\x1b[" not in plain
    assert "\x1b[31mexploding" in coloured
    assert _ANSI.sub("", coloured) == plain


def test_ascii_where_unicode_cannot_be_shown(report: Report) -> None:
    text = render_text(report, Style(unicode=False, verbose=True))
    assert text.isascii()
    assert "___=#xx" in text


@pytest.mark.parametrize(
    "bad", ["\x1b[31m", "\r", "\n", "\x07", "\x9b", "\u202e", "\u2066", "\u200b", "\u2028", "\udc80"]
)
def test_nothing_from_a_log_reaches_the_terminal_raw(exploding: RunReport, bad: str) -> None:
    name = f"a{bad}b"
    finding = replace(exploding.findings[1], message=f"See {name}.", metric=name, actions=(f"Do {name}.",))
    run = replace(
        exploding,
        run=name,
        next=(Advice(None, f"Do {name}."),),
        findings=(finding,),
        series=tuple(replace(series, metric=name) for series in exploding.series),
        sources=(Source("jsonl", name, 1, 1, (Skipped(name, line=1),), 1),),
        captures=(replace(exploding.captures[0], path=name),),
    )
    text = _text(run, failures=(Failure(name, name, name),))
    assert bad not in text.replace("\n", "") if bad == "\n" else bad not in text
    assert name not in text
    text.encode("utf-8")


def test_many_findings_and_actions_stay_on_one_screen(exploding: RunReport) -> None:
    findings = tuple(replace(exploding.findings[1], rule=f"GT3{i:02}", severity=Severity.WARNING) for i in range(20))
    run = replace(exploding, findings=findings, next=tuple(Advice("check-data", f"Do {i}.") for i in range(8)))
    lines = _text(run).splitlines()
    assert len(lines) <= 45
    assert "  and 14 more findings, listed by --format json" in lines
    assert [line for line in lines if "Do " in line] == ["  1. Do 0.", "  2. Do 1.", "  3. Do 2."]
    assert "  5. Do 4." in _text(run, style=Style(verbose=True)).splitlines()


def test_long_skipped_lists_are_counted() -> None:
    skipped = tuple(Skipped("cut record", offset=100 + i) for i in range(100))
    run = RunReport("r", Verdict.UNDETERMINED, None, sources=(Source("tensorboard", "events", 1, 5, skipped, 250),))
    text = " ".join(_text(run).split())
    assert "skipped 250: byte 100 cut record; byte 101 cut record; byte 102 cut record; and 247 more" in text


def test_the_reporters_are_listed_in_one_place(report: Report) -> None:
    drawn = ["html", "svg", "png"]
    assert list(REPORTERS) == ["text", "json", "jsonl", *drawn, "junit", "sarif", "github", "gitlab", "markdown"]
    for render in REPORTERS.values():
        text = render(report, Style())
        assert isinstance(text, bytes) or text.endswith("\n")


def test_a_suffix_asks_for_a_format_that_there_is() -> None:
    assert format_of("a/b.JSON") == "json"
    assert format_of("report") is None
    assert format_of("report.yaml") is None
    assert all(format_of(f"x{suffix}") in {*REPORTERS, None} for suffix in SUFFIXES)
    assert known_suffixes().startswith(".txt, .json, .jsonl")


def test_a_run_of_a_store_has_its_name_beside_its_id(exploding: RunReport) -> None:
    run = replace(exploding, run="mlflow.db/0a1b", name="sweep\x1b-3")
    assert _text(run).startswith("mlflow.db/0a1b (sweep\\x1b-3): exploding")
    assert _text(replace(run, run="out/sweep-3", name="sweep-3")).startswith("out/sweep-3: exploding")


def test_known_findings_are_said_to_be_known(layered: RunReport) -> None:
    def known(count: int) -> str:
        findings = [replace(finding, known=place < count) for place, finding in enumerate(layered.findings)]
        return _text(replace(layered, findings=tuple(findings)))

    assert "known" not in known(0)
    assert "(2 of 9 known)" in known(2)
    assert "(known)" in known(9)
