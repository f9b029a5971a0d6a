"""What a call loads, seen from a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import EXPLODING

RUN = EXPLODING / "metrics.jsonl"
NEVER = ("torch", "mlflow", "pandas", "tensorboard", "tbparse", "wandb", "scipy")
_TAIL = "import sys; print('LOADED', *sys.modules)"


def loaded(code: str) -> set[str]:
    """Names of the modules in memory once `code` has run."""
    done = subprocess.run([sys.executable, "-c", f"{code}\n{_TAIL}"], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def _command(*words: str) -> str:
    return f"from gradtrend.cli import main\ntry:\n    main({list(words)!r})\nexcept SystemExit: pass"


@pytest.mark.parametrize(
    "words", [("--help",), ("--version",), ("analyze", "--help"), ("scan", "--help"), ("rule", "--help")]
)
def test_help_loads_neither_polars_nor_numpy(words: tuple[str, ...]) -> None:
    assert not {"polars", "numpy", "scipy", *NEVER} & loaded(_command(*words))


def test_the_python_package_loads_nothing_heavy() -> None:
    assert not {"polars", "numpy", "scipy", "click", *NEVER} & loaded("import gradtrend")


def test_a_diagnosis_is_printed_without_torch() -> None:
    """Its types, text and JSON are for programs that have none: torch is there where a model is."""
    code = "import gradtrend; print(gradtrend.Diagnosis, gradtrend.DepthTrend)\nimport gradtrend.pipeline.diagnose"
    assert "torch" not in loaded(code)


def test_analysing_json_lines_loads_only_what_it_needs() -> None:
    modules = loaded(_command("analyze", str(RUN), "--fail-on", "never"))
    assert "polars" in modules
    assert not set(NEVER) & modules
    assert not any(name.startswith(("gradtrend.report.ci.", "gradtrend.pipeline.config.keys")) for name in modules)


def test_a_scan_loads_no_cluster_and_no_statistics_for_runs_that_are_all_alike() -> None:
    modules = loaded(_command("scan", str(RUN), "--processes", "1"))
    assert "gradtrend.pipeline.scan.scan" in modules
    assert not {"scipy", "dask", "distributed", "obstore", "fsspec", *NEVER} & modules


def test_a_report_that_draws_nothing_loads_nothing_that_draws() -> None:
    drawing = {"gradtrend.model.series", "gradtrend.detect.outlines", "PIL"}
    for name in ("text", "json"):
        modules = loaded(_command("analyze", str(RUN), "--format", name))
        assert not drawing & modules
        assert not [
            module for module in modules if module.startswith(("gradtrend.report.html", "gradtrend.report.pict"))
        ]
    modules = loaded(_command("analyze", str(RUN), "--format", "html", "-o", os.devnull))
    assert {"gradtrend.detect.outlines", "gradtrend.report.html.report"} <= modules
    assert not {"PIL", "gradtrend.report.picture.png"} & modules


def test_other_packages_are_looked_for_only_when_asked() -> None:
    """polars loads importlib.metadata by itself, so that beside it only our own module tells."""
    assert not {"gradtrend.entry_points", "importlib.metadata"} & loaded(_command("analyze", "--help"))
    for words in ((), ("--source", "jsonl", "--format", "json")):
        assert "gradtrend.entry_points" not in loaded(_command("analyze", str(RUN), *words))


def test_a_folder_of_json_lines_loads_no_store(tmp_path: Path) -> None:
    """Each folder is asked whether it is a store: what would talk to a server is not needed for that."""
    (tmp_path / "plots").mkdir()
    (tmp_path / "metrics.jsonl").write_text(RUN.read_text())
    modules = loaded(_command("analyze", str(tmp_path), "--fail-on", "never"))
    assert "gradtrend.ingest.formats.jsonl.reader" in modules
    assert not {"ssl", "http.client", "urllib.request", "sqlite3"} & modules
    wandb, mlflow = "gradtrend.ingest.formats.wandb.", "gradtrend.ingest.formats.mlflow."
    assert not any(name.startswith((wandb, f"{mlflow}server", f"{mlflow}rest", f"{mlflow}sqlite")) for name in modules)


def test_a_short_log_loads_no_other_format_and_no_masked_arrays(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    norms = [1.0, 1.5, 0.9, 1.1, 1.2, 0.8, 1.0, "NaN", "NaN", "NaN"]
    rows = [
        f'{{"step": {i}, "timestamp": {1760000000000 + i}, "loss": {9 - i}, "grad_norm": {norm}}}\n'
        for i, norm in enumerate(norms)
    ]
    log.write_text("".join(rows))
    modules = loaded(_command("analyze", str(log), "--fail-on", "never"))
    readers = {name for name in modules if name.startswith("gradtrend.ingest.formats.") and name.endswith(".reader")}
    loaded_last, asked_before = "gradtrend.ingest.formats.jsonl.reader", "gradtrend.ingest.formats.json.reader"
    assert readers == {loaded_last, asked_before}
    assert not {"numpy.ma", "sqlite3", "yaml"} & modules
