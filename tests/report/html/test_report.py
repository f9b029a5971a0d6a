"""The page: what stands in it, that it is whole, harmless and small."""

from __future__ import annotations

import json
import math
import re
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradtrend.detect.outlines import kept_points
from gradtrend.model.report import Failure, Report, RunReport, SeriesReport
from gradtrend.model.series import Outline
from gradtrend.model.words import Role, Trend, Verdict
from gradtrend.report import POINTS, REPORTERS, Style
from gradtrend.report.html.report import render_html
from gradtrend.report.wording.brief import onset_of
from tests.places import EXPLODING
from tests.report.drawn import HOSTILE, exploding, layered, log, report_of, stable
from tests.report.html.pages import Page


def page_of(*paths: Path) -> Page:
    return Page(render_html(report_of(*paths), Style()))


def test_one_run_says_verdict_why_and_next(tmp_path: Path) -> None:
    page = page_of(log(tmp_path / "run", exploding()))
    assert not page.unbalanced
    assert page.named("span", class_="verdict") == ["exploding"]
    assert page.named("h2") == [str(tmp_path / "run")]
    assert any("GT101" in item and "rose from" in item for item in page.named("li", class_="error"))
    assert page.named("ol", class_="next")
    assert len(page.named("figure")) == 3


def test_the_chart_has_band_onset_and_nan(tmp_path: Path) -> None:
    (data,) = page_of(log(tmp_path / "run", exploding())).data
    norm, loss, lr = data["charts"]
    assert [norm["kind"], loss["kind"], lr["kind"]] == ["norm", "loss", "lr"]
    assert norm["steps"] == {"from": 0, "by": 1, "n": 400}
    assert norm["values"][350:] == ["N"] * 50
    assert 0.7 < norm["band"][0] < norm["band"][1] < 2
    assert 195 <= norm["onset"] <= 230
    assert norm["log"] is True
    assert lr["log"] is False
    assert data["span"] == [0, 399]


def test_what_the_norm_covers_is_said(tmp_path: Path) -> None:
    rows = [row if i < 100 else {k: v for k, v in row.items() if k != "grad_norm"} for i, row in enumerate(stable())]
    page = page_of(log(tmp_path / "run", rows))
    assert "it covers 25% of the run" in page.named("p", class_="facts")[0]
    assert any("not logged" in item for item in page.named("li"))


def test_the_table_beside_a_chart_has_all_that_it_marks(tmp_path: Path) -> None:
    table = page_of(log(tmp_path / "run", exploding())).named("table")[0]
    for what in ("the rise begins", "first NaN or inf", "highest", "lowest"):
        assert what in table
    assert "350NaN" in table


def test_layers_are_a_map(tmp_path: Path) -> None:
    (data,) = page_of(log(tmp_path / "run", layered())).data
    heat = data["heat"]
    assert heat["layers"] == [str(i) for i in range(12)]  # without "blocks." and ".weight"
    assert heat["marked"][:6] == list(range(6))
    assert {len(row) for row in heat["cells"]} == {2 * heat["columns"]}
    bad = [i for i, row in enumerate(heat["cells"]) if 4094 in _codes(row)]
    assert bad == [11]


def _codes(row: str) -> list[int]:
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return [digits.index(a) * 64 + digits.index(b) for a, b in zip(row[::2], row[1::2], strict=True)]


def test_several_runs_are_a_table_worst_first(tmp_path: Path) -> None:
    paths = [log(tmp_path / "a", stable()), log(tmp_path / "b", exploding()), log(tmp_path / "c", stable(seed=5))]
    page = page_of(*paths)
    assert page.named("tr")[1].startswith("explodingb")
    assert [attributes["href"] for attributes in page.attributes("a") if "href" in attributes][:3] == [
        "#run-0", "#run-1", "#run-2",
    ]  # fmt: skip
    assert len(page.data) == 3
    ids = [attributes.get("id") for attributes in page.attributes("section")]
    assert ids == ["all", "run-0", "run-1", "run-2"]


def test_the_table_says_of_a_run_without_a_norm_what_its_loss_does(tmp_path: Path) -> None:
    climbing = ({"step": i, "loss": 3 / (1 + i / 30) + max(0, i - 200) / 20} for i in range(300))
    report = report_of(log(tmp_path / "a", climbing), log(tmp_path / "b", stable()))
    row = next(row for row in render_html(report, Style()).split("<tr") if row.startswith(" data-verdict=diverging"))
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert (cells[3], cells[4]) == (str(onset_of(report.runs[0])), "5.22")
    assert "<svg" in cells[5]
    assert cells[5].endswith("<small>loss</small>")
    assert "…" not in cells[6][:-1]  # cut at its end, if at all


def test_commands_are_code(tmp_path: Path) -> None:
    page = render_html(report_of(log(tmp_path / "a", exploding())), Style())
    assert "<code>gradtrend replay</code>" in page
    assert "`gradtrend replay`" not in page


def test_only_the_worst_of_many_have_charts_and_it_is_said(tmp_path: Path) -> None:
    one = report_of(log(tmp_path / "bad", exploding()), log(tmp_path / "good", stable(60)))
    runs = [replace(run, run=f"runs/{i}") for i in range(50) for run in one.runs]
    page = Page(render_html(Report(0, tuple(runs)), Style()))
    assert len(page.data) == 24
    assert len(page.named("tbody")[0]) > 0
    assert "Charts are drawn for the 24 worst" in "".join(page.named("section", id="all"))
    verdicts = page.named("span", class_="verdict")[:100]
    assert verdicts == ["exploding"] * 50 + ["stable"] * 50


def test_failures_and_reports_without_charts_are_told(report: Report) -> None:
    """As a package of another's would give them: without outlines."""
    page = Page(render_html(report, Style()))
    assert not page.unbalanced
    assert "no such path" in "".join(page.named("section", class_="failed"))
    assert "Traceback" not in "".join(page.named("body"))
    alone = Page(render_html(Report(3, (), (Failure("out/x", "no such path"),)), Style()))
    assert "no such path" in "".join(alone.named("main"))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_from_logs_do_no_harm(tmp_path: Path, name: str) -> None:
    rows = [{**row, f"grad_norm/{name}": row["grad_norm"], "grad_norm/other": 2.0} for row in exploding(60, 30, 50)]
    folder = log(tmp_path / name.replace("/", "_"), rows)
    text = render_html(report_of(folder, log(tmp_path / "other", stable(60))), Style())
    page = Page(text)
    assert not page.unbalanced
    scripts = [attributes for attributes in page.attributes("script") if attributes.get("type") != "application/json"]
    assert len(scripts) == 1
    assert not page.attributes("img")
    handlers = [key for _, attributes, _ in page.elements for key in attributes if key.startswith("on")]
    assert not handlers
    assert not [char for char in text if char in "\x1b\u202e\u2028"]
    assert len(page.data) == 2


def test_nothing_is_loaded_and_a_policy_says_so() -> None:
    text = render_html(report_of(EXPLODING), Style())
    page = Page(text)
    (policy,) = [a["content"] for a in page.attributes("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.findall(r"\b(?:src|href)=[\"']?(?!#)", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))


def test_one_run_is_below_150_kb(tmp_path: Path) -> None:
    assert len(render_html(report_of(EXPLODING), Style())) < 150_000
    assert len(render_html(report_of(log(tmp_path / "run", stable(2000))), Style())) < 150_000


def test_a_million_steps_are_below_1_mb_and_keep_the_spike() -> None:
    random = np.random.default_rng(1)
    steps = np.arange(1_000_000)
    values = np.exp(random.normal(0, 0.2, len(steps)))
    values[333_333], values[612_345] = 4321.0, np.nan
    series = [_long(name, role, steps, values) for name, role in (("norm", Role.GRAD_NORM), ("loss", Role.LOSS))]
    text = render_html(Report(0, (RunReport("long", Verdict.STABLE, 0.9, series=tuple(series)),)), Style())
    assert len(text) < 1_000_000
    (data,) = Page(text).data
    assert 4321 in data["charts"][0]["values"]
    assert "N" in data["charts"][0]["values"]


def _long(name: str, role: Role, steps: Any, values: Any) -> SeriesReport:
    kept = kept_points(steps, values, POINTS["html"])
    outline = Outline(array("q", steps[kept].tolist()), array("d", values[kept].tolist()))
    return SeriesReport(name, role, None, len(steps), 0, len(steps) - 1, Trend.STABLE, outline=outline)


def test_strange_values_are_strict_json(tmp_path: Path) -> None:
    values = [0.0, -1.0, 1e300, 1e-300, math.inf, -math.inf, math.nan, 1.0] * 5
    rows = [{"step": i, "loss": 1.0, "grad_norm": value} for i, value in enumerate(values)]
    (data,) = page_of(log(tmp_path / "run", rows)).data
    assert json.dumps(data, allow_nan=False)
    assert {"N", "I", "-I"} <= {value for value in data["charts"][0]["values"] if isinstance(value, str)}


def test_every_format_of_a_report_that_draws_asks_for_points() -> None:
    assert set(POINTS) == {"html", "svg", "png"}
    assert set(POINTS) <= set(REPORTERS)
