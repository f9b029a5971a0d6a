"""What other packages and people add, added as docs/plugins.md says: a format, a report and a rule of their own."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import gradtrend
from gradtrend import plugins
from gradtrend.errors import ConfigError
from gradtrend.ingest.formats import ADAPTERS
from gradtrend.report import REPORTERS
from tests.places import EXPLODING
from tests.processes import SOURCE, python
from tests.test_lazy_imports import loaded
from tests.test_readme import blocks, page

SECTION = page("plugins")
MODULE = blocks("python", SECTION)[0]
PROJECT, RULE = blocks("toml", SECTION)[:2]
POINTS = tomllib.loads(PROJECT)["project"]["entry-points"]
FORMATS, REPORTS = "gradtrend.formats", "gradtrend.reports"
# Norms that double: for the shipped rules a run that is sound.
LOG, OTHER_LOG = (
    "toy log\n"
    + "".join(
        f"{step} grad_norm {(1 + step / 60) * (1 + step % every / 30)}\n{step} loss {2 - step / 100}\n"
        for step in range(80)
    )
    for every in (3, 4)
)


def install(folder: Path, points: dict[str, dict[str, str]], module: str = MODULE, package: str = "toy-logs") -> None:
    """Lay out a package as an installer does: its module, and beside it its metadata."""
    metadata = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    groups = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in named.items()) for group, named in points.items())
    (metadata / "entry_points.txt").write_text("\n".join(groups))
    (folder / "toy.py").write_text(module)


def call(site: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """The command in a process that finds what is installed in `site`."""
    return python("-m", "gradtrend", *words, folder=site, finds=(site, SOURCE))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages, with a toy log beside them."""
    (tmp_path / "toy.log").write_text(LOG)
    return tmp_path


@pytest.fixture
def rules(site: Path) -> Path:
    folder = site / "my-rules"
    folder.mkdir()
    (folder / "MY001.toml").write_text(RULE)
    return folder


def test_a_format_a_report_and_a_rule_of_ones_own(site: Path, rules: Path) -> None:
    install(site, POINTS)
    words = ("--source", "toy", "--format", "toy", "--rules", rules)
    done = call(site, "analyze", "toy.log", *words)
    assert (done.stdout, done.stderr, done.returncode) == ("toy.log stable MY001\n", "", 0)
    assert call(site, "analyze", "toy.log", *words, "--fail-on", "doubled").returncode == 1


@pytest.mark.parametrize(
    ("option", "printed", "code"),
    [("--select", " MY001", 0), ("--ignore", "", 0), ("--fail-on", " MY001", 1)],
)
def test_a_rule_of_ones_own_is_named_by_its_id(site: Path, rules: Path, option: str, printed: str, code: int) -> None:
    install(site, POINTS)
    words = ("--source", "toy", "--format", "toy", "--rules", rules)
    done = call(site, "analyze", "toy.log", *words, option, "my001")
    assert (done.stdout, done.stderr, done.returncode) == (f"toy.log stable{printed}\n", "", code)


def test_a_format_of_ones_own_is_read_in_folders_and_listed(site: Path) -> None:
    install(site, POINTS)
    for name in ("a", "b"):
        (site / "runs" / name).mkdir(parents=True)
        log = LOG if name == "a" else OTHER_LOG  # two runs, not one and its copy
        (site / "runs" / name / "norms.h5").write_text(log)  # no shipped format looks at such a name
        shutil.copy(EXPLODING / "metrics.jsonl", site / "runs" / name)
    done = call(site, "analyze", "runs", "--source", "toy", "--format", "toy")
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [["runs/a", "stable"], ["runs/b", "stable"]]
    listed = call(site, "series", "toy.log", "--source", "toy")
    assert listed.returncode == 0
    assert "toy.log (toy)" in listed.stdout


def test_it_is_not_guessed(site: Path) -> None:
    install(site, POINTS, module="raise SystemExit('loaded')")
    done = call(site, "analyze", "toy.log", "--format", "json")
    assert '"format": "console"' in done.stdout
    assert "loaded" not in done.stderr


@pytest.mark.parametrize(
    ("group", "value", "why"),
    [
        (FORMATS, "gone:ADAPTER", "No module named 'gone'"),
        (FORMATS, "toy:GONE", "has no attribute 'GONE'"),
        (FORMATS, "toy:read", "it is of type function, not gradtrend.plugins.Adapter"),
        (FORMATS, "toy:ADAPTER", "its adapter is named 'toy'"),
        (REPORTS, "gone:report", "No module named 'gone'"),
        (REPORTS, "toy:ADAPTER", "it cannot be called with a Report and a Style"),
        (REPORTS, "toy:one_argument", "it cannot be called with a Report and a Style"),
        (REPORTS, "toy:no_text", "it returned dict, not str"),
    ],
)
def test_what_cannot_be_used_is_one_clear_message(site: Path, group: str, value: str, why: str) -> None:
    more = "\ndef one_argument(report): return ''\n\ndef no_text(report, style): return {}\n"
    install(site, {FORMATS: POINTS[FORMATS], group: {"toy": POINTS[FORMATS]["toy"], "odd": value}}, MODULE + more)
    option = "--source" if group == FORMATS else "--format"
    done = call(site, "analyze", "toy.log", *(() if group == FORMATS else ("--source", "toy")), option, "odd")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gradtrend: {option} odd: the package toy-logs ({value}) cannot be used: ")
    assert why in line


@pytest.mark.parametrize(
    ("option", "shipped"), [("--source", [adapter.name for adapter in ADAPTERS]), ("--format", list(REPORTERS))]
)
def test_an_unknown_name_lists_the_shipped_ones_and_those_installed(
    site: Path, option: str, shipped: list[str]
) -> None:
    install(site, POINTS)
    done = call(site, "analyze", "toy.log", option, "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    message, hint = done.stderr.splitlines()
    assert message.startswith(f"gradtrend: {option}: no ")
    assert "'nonsense'" in message
    assert ", ".join(shipped) in hint
    assert hint.endswith("; of installed packages: toy.")


def test_two_packages_with_one_name_are_both_named(site: Path) -> None:
    install(site, POINTS)
    install(site, POINTS, package="other-toys")
    done = call(site, "analyze", "toy.log", "--source", "toy")
    assert done.returncode == 2
    assert "toy-logs (toy:ADAPTER)" in done.stderr
    assert "other-toys (toy:ADAPTER)" in done.stderr


def test_a_damaged_list_of_entry_points_is_said(site: Path) -> None:
    install(site, POINTS)
    (site / "toy_logs-1.0.dist-info" / "entry_points.txt").write_text("[gradtrend.formats]\nnonsense\n")
    done = call(site, "analyze", "toy.log", "--source", "toy")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "entry points of the installed packages cannot be read" in line


def test_a_bug_in_a_package_is_not_said_to_be_gradtrends(site: Path) -> None:
    install(site, POINTS, MODULE.replace("int(step)", "int(step) / 0").replace("run.run", "run.gone"))
    done = call(site, "analyze", "toy.log", "--source", "toy")
    assert done.returncode == 4
    assert "the package that brings the format toy" in " ".join(done.stdout.split())
    done = call(site, "analyze", EXPLODING / "metrics.jsonl", "--format", "toy")
    assert done.returncode == 4
    assert "the package toy-logs (toy:one_line_a_run) failed to make the report: AttributeError" in done.stderr


def test_a_format_that_needs_a_file_says_what_can_be_piped(site: Path) -> None:
    install(site, POINTS)
    done = call(site, "analyze", "-", "--source", "toy")
    assert done.returncode == 3
    assert "toy cannot be read from standard input" in done.stdout
    assert "Known there: console, csv, jsonl." in done.stdout


def test_a_python_program_names_them_too(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, POINTS)
    monkeypatch.syspath_prepend(str(site))
    assert gradtrend.analyze(site / "toy.log", source="toy").verdict == "stable"
    with pytest.raises(ConfigError, match="nonsense"):
        gradtrend.analyze(site / "toy.log", source="nonsense")


def test_all_that_a_package_is_written_with_is_there_and_loaded_late() -> None:
    assert [name for name in plugins.__all__ if getattr(plugins, name, None) is None] == []
    assert set(plugins.__all__) <= set(dir(plugins))
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = plugins.Nonsense  # type: ignore[attr-defined]
    assert not {"polars", "numpy", "gradtrend.ingest", "gradtrend.report"} & loaded("import gradtrend.plugins")
