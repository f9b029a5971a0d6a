"""The gradient norm as a picture."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gradtrend.model.report import Report, RunReport
from gradtrend.model.words import Verdict
from gradtrend.report import Style, reporter
from gradtrend.report.picture.axes import log_range, log_ticks, step_label, step_ticks
from gradtrend.report.picture.png import render_png
from gradtrend.report.picture.svg import render_svg
from tests.processes import python
from tests.report.drawn import HOSTILE, exploding, log, report_of, stable

SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_it_shows_verdict_onset_band_and_nan(tmp_path: Path) -> None:
    svg = render_svg(report_of(log(tmp_path / "run", exploding())), Style())
    said = words(svg)
    assert any(text.startswith("exploding (confidence") for text in said)
    assert any(text.startswith("onset 2") for text in said)
    assert any("usual range before the onset" in text and "red: NaN or inf" in text for text in said)
    boxes = [element.get("fill") for element in ElementTree.fromstring(svg).iter(f"{SVG}rect")]
    assert {"#1e6edc", "#c8141e"} <= set(boxes)


def test_a_spike_and_a_gap_are_in_the_line(tmp_path: Path) -> None:
    bend = {150: 500.0, 300: float("nan")}
    report = report_of(log(tmp_path / "run", stable(change=bend.get)))
    lines = [
        line.get("points") or "" for line in ElementTree.fromstring(render_svg(report, Style())).iter(f"{SVG}polyline")
    ]
    curves = [[tuple(map(float, p.split(","))) for p in line.split()] for line in lines if len(line.split()) > 50]
    assert len(curves) == 2
    heights = sorted(point[1] for point in curves[0])
    assert heights[1] - heights[0] > 100


def test_of_several_runs_the_worst(tmp_path: Path) -> None:
    report = report_of(log(tmp_path / "a", stable()), log(tmp_path / "b", exploding()))
    said = words(render_svg(report, Style()))
    assert said[0].endswith("/b")
    assert said[1].endswith("the worst of 2 runs")


def test_without_a_norm_the_loss_is_drawn(tmp_path: Path) -> None:
    rows = ({"step": i, "loss": 3 / (1 + i / 30)} for i in range(100))
    svg = render_svg(report_of(log(tmp_path / "a", rows)), Style())
    assert any(said.startswith("loss (the loss); 100 points") for said in words(svg))
    assert "polyline" in svg
    assert "usual range" not in svg


def test_a_loss_that_has_no_place_on_a_log_axis_is_not(tmp_path: Path) -> None:
    rows = ({"step": i, "loss": 1 - i / 30} for i in range(100))
    assert "No gradient norm is logged." in words(render_svg(report_of(log(tmp_path / "a", rows)), Style()))


def test_without_a_norm_or_a_run_it_says_so() -> None:
    assert "No run could be judged." in words(render_svg(Report(3), Style()))
    run = RunReport("run", Verdict.UNDETERMINED, None)
    assert "No gradient norm is logged." in words(render_svg(Report(3, (run,)), Style()))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_do_no_harm(tmp_path: Path, name: str) -> None:
    svg = render_svg(report_of(log(tmp_path / name.replace("/", "_"), exploding(60, 30, 50))), Style())
    names = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(svg).iter()}
    assert names == {"svg", "title", "rect", "text", "polyline"}
    assert not [char for char in svg if char in "\x1b\u202e\u2028"]


def test_the_png_is_one_and_shows_the_same(tmp_path: Path) -> None:
    from PIL import Image

    data = render_png(report_of(log(tmp_path / "run", exploding())), Style())
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (1920, 880)
    assert zlib.crc32(data[12:29]) == struct.unpack(">I", data[29:33])[0]
    (tmp_path / "run.png").write_bytes(data)
    colours = Image.open(tmp_path / "run.png").convert("RGB").getcolors(1 << 24) or []
    drawn = {colour for _, colour in colours}
    assert {(0x1D, 0x4F, 0x9E), (0xB8, 0x14, 0x1F), (0xFF, 0xFF, 0xFF)} <= drawn


def test_without_pillow_one_clear_message(tmp_path: Path) -> None:
    run = tmp_path / "not looked at"
    code = (
        "import sys; sys.modules['PIL'] = None\nfrom gradtrend.cli import main\n"
        f"main(['analyze', {str(run)!r}, '--format', 'png', '-o', {str(tmp_path / 'x.png')!r}])"
    )
    done = python("-c", code)
    assert done.returncode == 2
    assert "needs Pillow" in done.stderr
    assert "gradtrend[png]" in done.stderr
    assert not (tmp_path / "x.png").exists()


def test_the_command_line_writes_files_and_pipes(tmp_path: Path) -> None:
    run = log(tmp_path / "run", exploding(60, 30, 50))
    for name in ("html", "svg", "png"):
        words_ = ("-m", "gradtrend", "analyze", run, "--format", name)
        done = python(*words_, "-o", tmp_path / f"x.{name}")
        assert done.returncode == 1
        assert "nan-collapse" in done.stdout  # the line that sums up
        piped = subprocess.run([sys.executable, *map(str, words_)], capture_output=True, check=False)
        assert piped.stdout == (tmp_path / f"x.{name}").read_bytes()


def test_ticks_are_few_and_round() -> None:
    assert log_ticks(*log_range([1.0, 1.2])) == pytest.approx([0.3, 0.5, 0.7, 1, 2, 3])
    assert log_ticks(-0.1, 20.1)[:3] == [1, 1e4, 1e8]
    assert step_ticks(0, 999_999)[:2] == [0, 200_000]
    assert step_ticks(5, 5) == [5]
    assert step_ticks(3, 7) == [3, 4, 5, 6, 7]
    assert [step_label(step) for step in (250_000, 1_500_000, 9999)] == ["250k", "1.5M", "9999"]


def test_a_reporter_gives_what_it_draws(tmp_path: Path) -> None:
    report = report_of(log(tmp_path / "run", stable(60)))
    assert isinstance(reporter("png")(report, Style()), bytes)
    assert isinstance(reporter("svg")(report, Style()), str)
