"""The page in a real browser: what is drawn, said, zoomed and walked; no error, no request.

Where there is no browser these tests are skipped, and fail in CI, which installs one.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradtrend.model.report import Report
from gradtrend.report import Style
from gradtrend.report.html.report import render_html
from tests.report.drawn import HOSTILE, exploding, layered, log, report_of, stable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed (pip install playwright)")
    if program is None:
        missing("there is no Chromium here (apt-get install chromium)")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])  # root may not use one
        yield started
        started.close()


def missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI has to test the page")
    pytest.skip(what)


class Opened:
    """A page in the browser, with all that it complained of and asked for."""

    def __init__(self, browser: Browser, folder: Path, report: Report, scheme: Any = "light", at: str = "") -> None:
        file = folder / "report.html"
        file.write_text(render_html(report, Style()), encoding="utf-8")
        context = browser.new_context(viewport={"width": 1300, "height": 900}, color_scheme=scheme)
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(file.as_uri() + at)
        self.page.wait_for_timeout(100)

    def view(self, run: int = 0) -> tuple[float, float]:
        """The steps in view."""
        first, last = self.page.evaluate(f"G.groups.get('{run}').view")
        return first, last

    def readout(self, place: int = 0) -> str:
        """What a chart says of the point under the cursor."""
        return self.page.locator("figure.chart .readout").nth(place).inner_text()

    def hover(self, share: float, place: int = 0) -> None:
        """Move the mouse over a chart, so far from left to right."""
        box = self.page.locator(".u-over").nth(place).bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)

    def pixels(self, selector: str, colour: str) -> int:
        """How many pixels of a canvas have nearly the colour of that name."""
        count: int = self.page.evaluate(
            """([selector, name]) => {
              const canvas = document.querySelector(selector);
              const probe = document.createElement("canvas").getContext("2d");
              probe.fillStyle = G.colour(name);
              probe.fillRect(0, 0, 1, 1);
              const wanted = probe.getImageData(0, 0, 1, 1).data;
              const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
              let found = 0;
              for (let i = 0; i < data.length; i += 4)
                found += [0, 1, 2].every((k) => Math.abs(data[i + k] - wanted[k]) < 6) && data[i + 3] > 200;
              return found;
            }""",
            [selector, colour],
        )
        return count

    def is_quiet(self) -> None:
        """No error, no warning, and nothing asked for but the file itself."""
        of_the_tests = "Canvas2D: Multiple readback"  # they read pixels, the page does not
        assert [text for text in self.complaints if not text.startswith(of_the_tests)] == []
        assert [url for url in self.requests if not url.startswith("file:")] == []
        assert len(self.requests) == 1


@pytest.fixture
def failed(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """A run that explodes and is NaN at its end."""
    opened = Opened(browser, tmp_path, report_of(log(tmp_path / "run", exploding())))
    yield opened
    opened.is_quiet()
    opened.page.context.close()


def test_hovering_shows_the_values_of_all_charts(failed: Opened) -> None:
    failed.hover(0.25)
    assert failed.readout(0).startswith("step 100: ")
    assert failed.readout(1) == "step 100: 2.75"
    assert failed.readout(2) == "step 100: 0.001"
    failed.page.mouse.move(5, 5)
    assert failed.readout(0) == ""


def test_nan_is_drawn_and_said(failed: Opened) -> None:
    failed.hover(0.95)
    assert failed.readout(0).endswith(": NaN")
    assert "bad" in (failed.page.locator("figure .readout").first.get_attribute("class") or "")
    assert failed.pixels(".norm canvas", "bad") > 30
    assert failed.pixels(".loss canvas", "bad") == 0


def test_the_line_does_not_cross_the_gap(browser: Browser, tmp_path: Path) -> None:
    def change(step: int, norm: float) -> float:
        return math.nan if 100 <= step < 300 else norm

    opened = Opened(browser, tmp_path, report_of(log(tmp_path / "run", stable(change=change))))
    count = opened.page.evaluate(
        """() => { const u = G.groups.get("0").charts[0].u; const {left, top, width, height} = u.bbox;
          const data = u.ctx.getImageData(left + width * 0.3, top, width * 0.4, height).data;
          let blue = 0;
          for (let i = 0; i < data.length; i += 4) blue += data[i + 2] > data[i] + 60;
          return blue; }"""
    )
    assert count == 0
    opened.is_quiet()


def test_dragging_zooms_all_charts_and_double_click_resets(failed: Opened) -> None:
    assert failed.page.locator(".reset").is_disabled()
    failed.hover(0.25)
    failed.page.mouse.down()
    failed.hover(0.5)
    failed.page.mouse.up()
    failed.page.wait_for_timeout(100)
    first, last = failed.view()
    assert first == pytest.approx(100, abs=3)
    assert last == pytest.approx(200, abs=3)
    assert failed.page.evaluate("G.groups.get('0').charts.map(c => Math.round(c.u.scales.x.min))") == [round(first)] * 3
    box = failed.page.locator(".u-over").first.bounding_box()
    assert box is not None
    failed.page.mouse.dblclick(box["x"] + 50, box["y"] + 50)
    failed.page.wait_for_timeout(100)
    assert failed.view() == (0, 399)


def test_the_wheel_zooms_with_control_and_else_scrolls_the_page(failed: Opened) -> None:
    failed.hover(0.5)
    failed.page.mouse.wheel(0, 300)
    failed.page.wait_for_timeout(100)
    assert failed.view() == (0, 399)
    failed.page.evaluate("window.scrollTo(0, 0)")
    failed.hover(0.5)
    failed.page.keyboard.down("Control")
    failed.page.mouse.wheel(0, -300)
    failed.page.keyboard.up("Control")
    failed.page.wait_for_timeout(100)
    first, last = failed.view()
    assert last - first < 300
    failed.page.locator(".reset").click()
    failed.page.wait_for_timeout(100)
    assert failed.view() == (0, 399)


def test_a_chart_is_walked_with_the_keyboard(failed: Opened) -> None:
    failed.page.locator("figure.norm").focus()
    press = failed.page.keyboard.press
    for key, said in (
        ("Home", "step 0"),
        ("ArrowRight", "step 1"),
        ("Shift+ArrowRight", "step 11"),
        ("End", "step 399"),
    ):
        press(key)
        assert failed.readout(0).startswith(f"{said}:")
    press("Home")
    press("n")
    assert failed.readout(0) == "step 350: NaN"
    assert failed.page.locator(".said").inner_text().startswith("step 350: grad_norm NaN, loss ")
    press("o")
    assert failed.readout(0).startswith("step 2")
    press("+")
    failed.page.wait_for_timeout(100)
    assert failed.view()[1] - failed.view()[0] < 250
    press("0")
    failed.page.wait_for_timeout(100)
    assert failed.view() == (0, 399)


def test_what_is_drawn_follows_the_theme(failed: Opened) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light, line = failed.page.evaluate(paper), failed.pixels(".loss canvas", "line")
    button = failed.page.locator("button.theme")
    button.click()
    button.click()
    assert button.inner_text() == "Theme: dark"
    failed.page.wait_for_timeout(50)
    assert failed.page.evaluate(paper) != light
    assert failed.pixels(".loss canvas", "line") > line / 2  # in the colour of the line on dark paper
    failed.page.emulate_media(color_scheme="dark")
    button.click()
    failed.page.wait_for_timeout(50)
    assert button.inner_text() == "Theme: auto"
    assert failed.page.evaluate(paper) != light


def test_it_is_dark_where_the_system_is(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, tmp_path, report_of(log(tmp_path / "run", exploding())), "dark")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    opened.page.emulate_media(media="print")
    assert opened.page.locator(".reset").is_hidden()
    opened.is_quiet()


def test_the_map_of_layers_says_its_cells(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, tmp_path, report_of(log(tmp_path / "run", layered())))
    page = opened.page
    assert opened.pixels(".heat canvas", "bad") > 20
    heat = page.locator("figure.heat")
    heat.scroll_into_view_if_needed()
    box = heat.locator(".plot canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 12)
    small = heat.locator(".readout").inner_text()
    assert small.endswith(" in 0")
    assert float(small.split(": ")[1].split()[0]) < 1e-6
    heat.focus()
    page.keyboard.press("ArrowDown")
    assert heat.locator(".readout").inner_text().endswith(" in 1")
    opened.is_quiet()


def test_the_rows_of_several_runs_open_their_reports(browser: Browser, tmp_path: Path) -> None:
    paths = [log(tmp_path / f"run{i}", exploding() if i == 7 else stable(seed=i)) for i in range(12)]
    opened = Opened(browser, tmp_path, report_of(*paths))
    page = opened.page
    rows = page.locator("table.runs tbody tr")
    assert rows.count() == 12
    assert rows.first.inner_text().startswith("exploding")
    assert page.locator("section.run:visible").count() == 0
    rows.first.click()
    page.wait_for_timeout(150)
    assert page.locator("section.run:visible h2").inner_text() == str(paths[7])
    assert page.locator("section.run:visible .u-over").count() == 3
    assert page.locator("table.runs").is_hidden()
    page.go_back()
    page.wait_for_timeout(100)
    assert page.locator("table.runs").is_visible()
    page.locator(".chip", has_text="exploding").click()
    assert page.locator("table.runs tbody tr:visible").count() == 1
    page.locator(".chip", has_text="exploding").click()
    page.locator("input[type=search]").fill("run3")
    assert page.locator("table.runs tbody tr:visible").count() == 1
    page.locator("input[type=search]").fill("")
    page.locator("th button", has_text="Run").click()
    assert "run0" in rows.first.inner_text()
    assert page.locator("th[aria-sort=ascending]").inner_text() == "Run"
    opened.is_quiet()


def test_the_table_fits_a_phone(browser: Browser, tmp_path: Path) -> None:
    report = report_of(log(tmp_path / "a", stable()), log(tmp_path / "b", exploding()))
    opened = Opened(browser, tmp_path, report)
    opened.page.set_viewport_size({"width": 400, "height": 800})
    assert opened.page.evaluate("document.querySelector('.wide').scrollWidth") <= 400
    row = opened.page.locator("table.runs tbody tr").first
    assert {"exploding", "b"} <= set(row.inner_text().split())
    assert "has not come back" in row.inner_text()


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    paths = []
    for name in HOSTILE:
        rows = [{**row, f"grad_norm/{name}": row["grad_norm"], "grad_norm/x": 1.0} for row in exploding(60, 30, 50)]
        paths.append(log(tmp_path / name.replace("/", "_"), rows))
    opened = Opened(browser, tmp_path, report_of(*paths))
    for place in range(len(paths)):
        opened.page.evaluate(f"location.hash = '#run-{place}'")
        opened.page.wait_for_timeout(100)
        assert opened.page.locator("section.run:visible figure.heat canvas").count() == 2  # the map, and its scale
    assert opened.page.locator("img").count() == 0
    assert opened.page.evaluate("typeof hurt") == "undefined"
    opened.is_quiet()


def test_strange_series_are_drawn_without_an_error(browser: Browser, tmp_path: Path) -> None:
    strange = {
        "one": [1.0, 2.0, 3.0],
        "bad": [math.nan] * 20,
        "zeros": [0.0] * 20,
        "negative": [-1.0, 1.0] * 10,
        "wide": [1e300, 1e-300] * 10,
        "flat": [1.0] * 20,
    }
    paths = [
        log(tmp_path / name, [{"step": i, "loss": value, "grad_norm": value} for i, value in enumerate(values)])
        for name, values in strange.items()
    ]
    paths.append(log(tmp_path / "single", [{"step": 3, "loss": 1.0, "grad_norm": 1.0}]))
    opened = Opened(browser, tmp_path, report_of(*paths))
    for place in range(len(paths)):
        opened.page.evaluate(f"location.hash = '#run-{place}'")
        opened.page.wait_for_timeout(100)
        assert opened.page.locator("section.run:visible .u-over").count() == 2
        opened.page.locator("section.run:visible figure").first.focus()
        for key in ("End", "n", "o", "+", "+", "0"):
            opened.page.keyboard.press(key)
    opened.is_quiet()
