from __future__ import annotations

import dataclasses
import pydoc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import gradtrend
from gradtrend import errors
from tests.ingest.runs.writers import fit, jsonl
from tests.places import CAPTURES, EXPLODING, RUNS
from tests.processes import python

CAPTURE = CAPTURES / "lightly_train"
REPLAY_BOTH_WAYS = f"""
import gradtrend
import gradtrend.replay.native
from gradtrend import replay
from gradtrend.replay.native import save_capture

results: tuple[gradtrend.Replay, ...] = gradtrend.replay({str(CAPTURE)!r}, device="cpu")
assert results == replay({str(CAPTURE)!r})
assert gradtrend.replay.native.save_capture is save_capture
save_capture("path", nonsense=1)
"""
MYPY = """
[mypy]
strict = true
[mypy-torch.*,numpy.*,polars.*]
follow_imports = skip
"""


def test_one_run_gives_its_report() -> None:
    report = gradtrend.analyze(EXPLODING)
    assert report.verdict is gradtrend.Verdict.EXPLODING
    assert report.nonfinite is not None
    assert report.nonfinite.grad_first_step == 7
    assert any(finding.rule == "GT101" for finding in report.findings)


def test_a_missing_path_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(gradtrend.InputError, match="missing"):
        gradtrend.analyze(tmp_path / "missing")


def test_several_runs_are_refused_and_named(tmp_path: Path) -> None:
    jsonl(tmp_path / "a" / "metrics.jsonl", fit("stable", 1))
    jsonl(tmp_path / "b" / "metrics.jsonl", fit("exploding", 2))
    with pytest.raises(gradtrend.InputError, match="2 runs") as caught:
        gradtrend.analyze(tmp_path)
    assert all(str(tmp_path / name) in (caught.value.hint or "") for name in "ab")


def test_all_runs_at_a_path_one_after_another(tmp_path: Path) -> None:
    jsonl(tmp_path / "metrics.jsonl", fit("stable", 1), fit("exploding", 2))
    reports = list(gradtrend.analyze_all(tmp_path / "metrics.jsonl"))
    names = [f"{tmp_path / 'metrics.jsonl'}#{part}" for part in (1, 2)]
    assert [(report.run, str(report.verdict)) for report in reports] == [(names[0], "stable"), (names[1], "exploding")]
    assert gradtrend.analyze(names[1]).verdict == "exploding"
    with pytest.raises(gradtrend.InputError, match="no such run"):
        gradtrend.analyze(f"{tmp_path / 'metrics.jsonl'}#3")


def test_what_cannot_be_read_is_raised_behind_the_other_runs(tmp_path: Path) -> None:
    for name in ("a", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_bytes(b"\xff" * 100)
    jsonl(tmp_path / "b" / "metrics.jsonl", fit("stable", 1))
    found = gradtrend.analyze_all(tmp_path)
    assert next(found).verdict == "stable"
    with pytest.raises(gradtrend.InputError, match="2 runs could not be read"):
        next(found)


def test_a_wrong_rule_name_is_a_config_error() -> None:
    with pytest.raises(gradtrend.ConfigError, match="nonsense"):
        gradtrend.analyze(EXPLODING, select=["nonsense"])


def test_an_error_keeps_its_class_and_hint(tmp_path: Path) -> None:
    (tmp_path / "mlruns" / "0").mkdir(parents=True)
    (tmp_path / "mlruns" / "0" / "meta.yaml").write_text("artifact_location: x\nexperiment_id: '0'\nname: a\n")
    with pytest.raises(gradtrend.EmptyLogError, match="no run with metrics") as caught:
        gradtrend.analyze(tmp_path / "mlruns")
    assert "another store" in (caught.value.hint or "")


def test_the_runs_of_a_store() -> None:
    store = RUNS / "trackio" / "two_runs"
    with pytest.raises(gradtrend.InputError, match="holds 2 runs"):
        gradtrend.analyze(store)
    reports = {report.name: report for report in gradtrend.analyze_all(store)}
    assert len(reports) == 2
    for name, report in reports.items():
        assert gradtrend.analyze(store, run_id=name).verdict is report.verdict
    assert gradtrend.analyze(store, newest=True).run == list(reports.values())[-1].run


@pytest.mark.parametrize("call", [gradtrend.analyze, gradtrend.replay])
def test_a_bug_is_raised_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[Path], object], tmp_path: Path
) -> None:
    bug = ZeroDivisionError("by zero")
    for module in ("analyze", "replay"):
        monkeypatch.setattr(f"gradtrend.pipeline.{module}.load_rules", lambda folder: raised(bug))
    with pytest.raises(RuntimeError, match="ZeroDivisionError: by zero") as caught:
        call(tmp_path)
    assert caught.value.__cause__ is bug


def raised(error: Exception) -> None:
    raise error


def test_lists_of_rules_are_taken_as_on_the_command_line() -> None:
    report = gradtrend.analyze(EXPLODING, select="GT101, GT2", ignore="nan-collapse")
    assert [finding.rule for finding in report.findings] == ["GT101"]


def test_replay_is_a_function_and_a_package(tmp_path: Path) -> None:
    done = python("-c", REPLAY_BOTH_WAYS, folder=tmp_path)
    assert done.stderr.splitlines()[-1].startswith("TypeError: save_capture() got an unexpected keyword")


def test_a_type_checker_takes_replay_for_both(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(f"{REPLAY_BOTH_WAYS}\ngradtrend.replay.native.save_capture(3)\nreplay(3)\n")
    (tmp_path / "mypy.ini").write_text(MYPY)
    done = python("-m", "mypy", "program.py", folder=tmp_path)
    refused = {line.split(":")[1] for line in done.stdout.splitlines() if "error:" in line}
    assert refused == {"10", "12", "13"}, done.stdout  # the last line of the program, and the two added


def test_help_says_how_replay_is_called() -> None:
    text = pydoc.plain(pydoc.render_doc(gradtrend.replay))
    assert "gradtrend.replay(path: " in text
    assert "The replays of the captured steps at `path`" in text
    assert "native" in text


def test_everything_public_is_there() -> None:
    for name in gradtrend.__all__:
        assert hasattr(gradtrend, name)
    assert gradtrend.__all__ == sorted(gradtrend.__all__)


def test_help_is_two_screens_of_what_is_called() -> None:
    text = pydoc.plain(pydoc.render_doc(gradtrend))
    assert len(text.splitlines()) < 100
    for name in ("analyze(", "analyze_all(", "diagnose(", "replay(", "save(", "series_frame()"):
        assert name in text


def test_all_types_that_a_report_or_a_replay_holds_are_public() -> None:
    for kind in types_in(gradtrend.RunReport) | types_in(gradtrend.Replay):
        assert getattr(gradtrend, kind.__name__) is kind


def test_all_errors_are_public() -> None:
    for name, value in vars(errors).items():
        if isinstance(value, type):
            assert getattr(gradtrend, name) is value


def types_in(kind: type, known: frozenset[type] = frozenset()) -> frozenset[type]:
    """The project's own types that a dataclass holds, itself included."""
    if kind in known or not kind.__module__.startswith("gradtrend."):
        return known
    known |= {kind}
    public = {name: getattr(gradtrend, name) for name in gradtrend.__all__}
    pending = list(get_type_hints(kind, localns=public).values()) if dataclasses.is_dataclass(kind) else []
    while pending:
        hint = pending.pop()
        pending += get_args(hint)
        if isinstance(hint, type):
            known = types_in(hint, known)
    return known


def test_what_a_report_holds_is_found() -> None:
    assert {"Evidence", "Skipped", "Frame", "Magnitude", "Role"} <= {
        kind.__name__ for kind in types_in(gradtrend.RunReport)
    }


def _rows() -> Iterator[str]:
    return (f'{{"step": {step}, "grad_norm": 1.0, "loss": 1.0}}\n' for step in range(10))


@pytest.mark.parametrize("error", [ZeroDivisionError, MemoryError, RecursionError])
def test_a_run_that_cannot_be_read_loses_none_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    from gradtrend.pipeline import analyze

    for name in "abc":
        jsonl(tmp_path / name / "metrics.jsonl", fit("stable", ord(name)))
    real = analyze.judge

    def breaks(log: object, *rest: object) -> object:
        if log.run.endswith("b"):  # type: ignore[attr-defined]
            raise error
        return real(log, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(analyze, "judge", breaks)
    found = gradtrend.analyze_all(tmp_path)
    assert [next(found).run, next(found).run] == [str(tmp_path / name) for name in "ac"]
    with pytest.raises(RuntimeError if error is ZeroDivisionError else gradtrend.InputError):
        next(found)


def test_a_scan_is_a_sequence_of_records_with_a_text_a_table_and_files(tmp_path: Path) -> None:
    jsonl(tmp_path / "runs" / "a" / "metrics.jsonl", fit("stable", 1))
    jsonl(tmp_path / "runs" / "b" / "metrics.jsonl", fit("exploding", 2))
    found = gradtrend.scan(tmp_path / "runs", processes=0, state=tmp_path / "state")
    assert [(record.run, str(record.verdict)) for record in found] == [
        (str(tmp_path / "runs" / "a"), "stable"),
        (str(tmp_path / "runs" / "b"), "exploding"),
    ]
    assert isinstance(found, gradtrend.Scan)
    assert isinstance(found[0], gradtrend.Record)
    assert (len(found), len(found[:1]), found[-1].is_sick) == (2, 1, True)
    assert repr(found) == "<Scan of 2 runs: 1 exploding, 1 stable>"
    assert str(found).endswith("2 runs: 1 exploding, 1 stable")
    assert found.frame()["run"].to_list() == [record.run for record in found]
    for suffix in ("jsonl", "parquet", "csv"):
        found.save(tmp_path / f"all.{suffix}")
        assert (tmp_path / f"all.{suffix}").stat().st_size
    with pytest.raises(gradtrend.ConfigError, match=r"no file of records has the suffix '\.txt'"):
        found.save(tmp_path / "all.txt")
    with ThreadPoolExecutor(1) as executor:
        assert list(gradtrend.scan([tmp_path / "runs"], executor=executor, verdict="exploding")) == [found[1]]


def test_a_scan_raises_where_no_path_can_be_read_and_only_there(tmp_path: Path) -> None:
    jsonl(tmp_path / "runs" / "metrics.jsonl", fit("stable", 1))
    (tmp_path / "empty").mkdir()
    for nothing in ([tmp_path / "missing"], [tmp_path / "empty", tmp_path / "missing"]):
        with pytest.raises(gradtrend.InputError, match=r"missing|empty"):
            gradtrend.scan(nothing, processes=0)
    found = gradtrend.scan([tmp_path / "missing", tmp_path / "runs"], processes=0, verdict="exploding")
    assert (len(found), len(found.failures)) == (0, 1)
    with pytest.raises(gradtrend.ConfigError, match="--shard 3/2"):
        gradtrend.scan(tmp_path / "runs", shard="3/2")
