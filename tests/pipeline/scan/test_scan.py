"""What a scan says is what `analyze` says; what has not changed is not read again; filters and shards lose nothing."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest

from gradtrend.errors import ConfigError
from gradtrend.ingest.runs.finding import find
from gradtrend.model.many.record import Record
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.scan.files import merged, records_bytes, records_frame
from gradtrend.pipeline.scan.scan import in_order
from gradtrend.pipeline.scan.wanted import Wanted, wanted_from
from gradtrend.report.json.records import record_of
from tests.ingest.runs.finding.test_stores import mlruns, run_id
from tests.ingest.runs.writers import fit, jsonl
from tests.pipeline.scan.scans import below, runs, said, scan
from tests.places import RUNS
from tests.processes import without_override

LONG_AGO = 1_700_000_000.0


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More logs than are read together. Nobody changes them."""
    return runs(tmp_path_factory.mktemp("many") / "runs", 156, points=8)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of three logs are large."""
    monkeypatch.setattr(find, "_TOGETHER_FILES", 2)


def stripped(record: Record) -> Record:
    return replace(record, size=None, modified=None, hyperparameters=())


# --- what is said


@pytest.mark.parametrize("path", [RUNS, RUNS / "trackio", RUNS / "lightly"], ids=lambda path: path.name)
def test_a_record_says_what_analyze_says(path: Path) -> None:
    reports, failures = analyze_paths((str(path),), AnalyzeOptions())
    found = scan(path)
    assert not failures
    assert not found.failures
    expected = in_order(record_of(report) for report in reports)
    assert [*map(repr, map(stripped, found.records))] == [*map(repr, expected)]
    told = {record.run: record for record in found.records}
    for report in reports:
        record = told[report.run]
        assert (record.verdict, record.confidence) == (report.verdict, report.confidence)
        assert set(record.rules) == {finding.rule for finding in report.findings}
        assert record.next == tuple(advice.action for advice in report.next if advice.action is not None)


def test_a_large_tree_is_as_analyze_says_and_is_known(many: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    reports, _ = analyze_paths((str(many),), AnalyzeOptions())
    first = scan(many, state=state)
    assert [*map(repr, map(stripped, first.records))] == [*map(repr, in_order(map(record_of, reports)))]
    assert (len(first.records), first.read, first.known) == (156, 156, 0)
    second = scan(many, state=state)
    assert (second.read, second.known) == (0, 156)
    assert said(second) == said(first)


def test_what_a_run_weighs_and_when_it_was_written(tmp_path: Path) -> None:
    root = runs(tmp_path, 1)
    log = root / "lr-0" / "run-0" / "metrics.jsonl"
    os.utime(log, ns=(0, 1_790_000_000_123_456_789))
    (record,) = scan(root).records
    assert (record.size, record.modified) == (log.stat().st_size, 1_790_000_000.123457)


# --- what is read again


def test_just_what_has_changed_is_read_again(tmp_path: Path, apart: None) -> None:
    root, state = runs(tmp_path / "runs", 6), tmp_path / "state"
    scan(root, state=state)
    changes: list[tuple[int, Callable[[], object]]] = [
        (1, lambda: jsonl(root / "lr-0" / "run-0" / "metrics.jsonl", fit("exploding", 77))),
        (1, lambda: (root / "lr-1" / "run-1" / "hparams.yaml").write_text("learning_rate: 7\n")),
        (1, lambda: runs(root, 1, first=9)),
        (0, lambda: shutil.rmtree(root / "lr-2" / "run-5")),
        (1, lambda: (root / "lr-0" / "run-3").rename(root / "lr-0" / "moved")),
        (0, lambda: (root / "weights.pt").write_bytes(b"x")),
        (0, (root / "unchanged").mkdir),
    ]
    for read, change in changes:
        change()
        again = scan(root, state=state)
        assert again.read == read
        assert said(again) == said(scan(root))
        assert not again.forgot
    assert scan(root, state=state).read == 0


def test_other_options_and_other_rules_read_all_again(tmp_path: Path) -> None:
    root, state = runs(tmp_path / "runs", 2), tmp_path / "state"
    rules = tmp_path / "rules"
    rules.mkdir()
    changed = (RUNS.parents[1] / "rules" / "GT101-exploding.toml").read_text().replace("error", "warning", 1)
    (rules / "GT101.toml").write_text(changed)
    for options in (
        AnalyzeOptions(),
        AnalyzeOptions(metric="grad_norm"),
        AnalyzeOptions(loss="loss"),
        AnalyzeOptions(lr="loss"),
        AnalyzeOptions(source="jsonl"),
        AnalyzeOptions(ignore=("GT101",)),
        AnalyzeOptions(select=("GT101",)),
        AnalyzeOptions(rules_dir=rules),
    ):
        first = scan(root, state=state, options=options)
        assert first.read
        assert first.forgot is (options != AnalyzeOptions())
        again = scan(root, state=state, options=options)
        assert (again.read, again.forgot) == (0, False)
        assert said(again) == said(scan(root, options=options))


def test_a_run_that_failed_is_known_until_its_permission_changes(tmp_path: Path) -> None:
    code = f"""
import os, sys
from pathlib import Path
from gradtrend.ingest.runs.finding import find
from tests.pipeline.scan.scans import runs, scan
find._TOGETHER_FILES = 2
root, state = runs(Path({str(tmp_path)!r}, "runs"), 4), Path({str(tmp_path)!r}, "state")
log = root / "lr-1" / "run-1" / "metrics.jsonl"
log.chmod(0)
first = scan(root, state=state)
assert [r.run for r in first.records if r.failure and "Permission denied" in r.failure] == [str(log.parent)], first
assert first.read == 4
assert scan(root, state=state).read == 0
log.chmod(0o644)
again = scan(root, state=state)
assert again.read == 1, again
assert not [r for r in again.records if r.failure]
(root / "lr-1").chmod(0)
shut = scan(root, state=state)
assert any("Permission denied" in (r.failure or "") for r in shut.records), shut
(root / "lr-1").chmod(0o755)
assert [*map(repr, scan(root, state=state).records)] == [*map(repr, again.records)]
"""
    done = without_override("-c", code)
    assert not done.returncode, done.stderr


def test_a_bug_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: None) -> None:
    from gradtrend.pipeline import analyze

    root, state = runs(tmp_path / "runs", 3), tmp_path / "state"
    real = analyze.judge

    def breaks(log: object, *rest: object) -> object:
        if log.run.endswith("run-1"):  # type: ignore[attr-defined]
            raise ZeroDivisionError
        return real(log, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(analyze, "judge", breaks)
        broken = scan(root, state=state)
    assert [failure.path for failure in broken.failures] == [str(root / "lr-1" / "run-1")]
    assert len(broken.records) == 3
    again = scan(root, state=state)
    assert (again.read, again.known, again.failures) == (1, 2, ())
    assert said(again) == said(scan(root))


# --- several roots


def test_the_same_tree_twice_and_what_lies_in_it_are_told_once(tmp_path: Path, apart: None) -> None:
    root, state = runs(tmp_path / "runs", 5), tmp_path / "state"
    (tmp_path / "link").symlink_to(root)
    alone = said(scan(root))
    inner = root / "lr-1"
    for others in ([root], [inner], [tmp_path / "link"], [inner / "run-1", inner / "run-1" / "metrics.jsonl"]):
        for order in ([root, *others], [*others, root]):
            for _ in range(2):
                found = scan(*order, state=state)
                if tmp_path / "link" != order[0]:
                    assert said(found) == alone
                assert len(found.records) == 5
    with chdir(tmp_path):
        assert len(scan("runs", "./runs/lr-0", str(root)).records) == 5
    hidden = jsonl_at(root / ".hidden" / "run")
    assert len(scan(root, hidden).records) == 6


def jsonl_at(folder: Path) -> Path:
    jsonl(folder / "metrics.jsonl", fit("stable", 99))
    return folder


def test_a_root_within_a_root_of_another_scan_does_not_mix_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same folder is read together with other logs, where less lies around it."""
    monkeypatch.setattr(find, "_TOGETHER_FILES", 3)
    root, state = tmp_path / "runs", tmp_path / "state"
    runs(root, 4)
    jsonl(root / "mine" / "metrics.jsonl", fit("stable", 50))
    jsonl(root / "mine" / "inner" / "metrics.jsonl", fit("exploding", 51))
    expected = {path: said(scan(path)) for path in (root, root / "mine")}
    for _ in range(2):
        for path in (root, root / "mine", root):
            assert said(scan(path, state=state)) == expected[path]


def test_roots_that_cannot_be_read_are_failures_and_no_runs(tmp_path: Path) -> None:
    root = runs(tmp_path / "runs", 1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing.txt").write_text("nothing\n")
    bad = [tmp_path / "missing", tmp_path / "empty", tmp_path / "nothing.txt"]
    for _ in range(2):
        found = scan(*bad, root, state=tmp_path / "state")
        assert len(found.records) == 1
        assert sorted(failure.path for failure in found.failures) == sorted(map(str, bad))
    jsonl(tmp_path / "empty" / "metrics.jsonl", fit("stable", 1))
    assert len(scan(tmp_path / "empty", state=tmp_path / "state").records) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="a name may be any bytes")
def test_names_that_are_no_text(tmp_path: Path, apart: None) -> None:
    root, state = runs(tmp_path / "runs", 2), tmp_path / "state"
    strange = root / os.fsdecode(b"\xff\n\x1b[31m")
    jsonl(strange / "metrics.jsonl", fit("stable", 1))
    first = scan(root, state=state)
    assert [record.run for record in first.records if record.run == str(strange)]
    second = scan(root, state=state)
    assert (said(second), second.read) == (said(first), 0)
    (root / "lr-0" / "run-0" / "hparams.yaml").write_text("lr: 7\n")
    third = scan(root, state=state)
    assert (said(third), third.read) == (said(scan(root)), 1)


def test_what_the_call_writes_into_the_tree_is_no_run(tmp_path: Path) -> None:
    root = runs(tmp_path / "runs", 2)
    state, output, part = root / "state.jsonl", root / "metrics.jsonl", root / "metrics.jsonl.part"
    alone = said(scan(root))
    with chdir(tmp_path):
        for place in (str(root), "runs", "./runs/", f"{root}/../runs"):
            for read in (1, 0, 0):
                part.write_text("")
                os.utime(part)
                found = scan(place, state=state, leave_out=(output, part))
                assert found.read == read
                assert len(found.records) == len(alone)
                output.write_bytes(records_bytes(found.records, ".jsonl"))


# --- stores


def test_runs_of_a_store(tmp_path: Path) -> None:
    store, state = mlruns(tmp_path / "mlruns", "one", "two"), tmp_path / "state"
    (tmp_path / "mlruns" / "hparams.yaml").write_text("lr: 0.1\n")
    first = scan(store, state=state)
    assert [(record.run, record.name) for record in first.records] == [
        (str(store / run_id(number)), name) for number, name in enumerate(("one", "two"))
    ]
    with (store / "7" / run_id(0) / "metrics" / "grad_norm").open("a") as file:
        file.write("1700000000100 3.0 99\n")
    second = scan(store, state=state)
    assert second.read == 1
    assert [record.last_step for record in second.records] == [99, 19]
    mlruns(store, "three", experiment="8", start=2)
    third = scan(store, state=state)
    assert (third.read, said(third)) == (1, said(scan(store)))
    database = RUNS / "trackio" / "two_runs"
    for read in (2, 0):
        found = scan(database, state=tmp_path / "other")
        assert (len(found.records), found.read) == (2, read)


# --- shards


def test_four_shards_make_one_scan(many: Path, tmp_path: Path) -> None:
    whole = scan(many)
    files: dict[str, list[Path]] = {".jsonl": [], ".parquet": []}
    shares: set[str] = set()
    for number in range(1, 5):
        part = scan(many, wanted=wanted_from(shard=f"{number}/4"), state=tmp_path / f"state{number}")
        assert 20 < len(part.records) < 60
        assert not shares & set(said(part))
        shares |= set(said(part))
        for suffix, parts in files.items():
            parts.append(tmp_path / f"{number}{suffix}")
            parts[-1].write_bytes(records_bytes(part.records, suffix))
        assert scan(many, wanted=wanted_from(shard=f"{number}/4"), state=tmp_path / f"state{number}").read == 0
    for parts in files.values():
        again = merged(parts[::-1], Wanted())
        assert not again.failures
        assert records_bytes(again.records, ".jsonl") == records_bytes(whole.records, ".jsonl")
        assert records_frame(again.records).equals(records_frame(whole.records))


def test_shards_do_not_hang_on_the_order_of_a_listing(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = wanted_from(shard="2/3")
    expected = said(scan(many, wanted=wanted))
    real = os.scandir

    class Reversed:
        def __init__(self, path: str) -> None:
            with real(path) as entries:
                self._entries = [*entries][::-1]

        def __enter__(self) -> list[os.DirEntry[str]]:
            return self._entries

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(os, "scandir", Reversed)
    assert said(scan(many, wanted=wanted)) == expected


def test_a_shard_does_not_make_the_state_forget_or_believe(tmp_path: Path, apart: None) -> None:
    """A run of another share that has changed is still read when all are wanted."""
    root, state = runs(tmp_path / "runs", 8), tmp_path / "state"
    scan(root, state=state)
    for number in range(8):
        log = next((root / f"lr-{number % 3}" / f"run-{number}").glob("metrics.*"))
        log.write_text(log.read_text().replace("0.9", "0.8"))
        os.utime(log, (LONG_AGO, LONG_AGO + number))
    scan(root, state=state, wanted=wanted_from(shard="1/2"))
    found = scan(root, state=state)
    assert said(found) == said(scan(root))
    assert 0 < found.read < 8


# --- filters


@pytest.fixture
def varied(tmp_path: Path, apart: None) -> Path:
    """Runs of several ages and kinds, two in one file, and a store."""
    root = runs(tmp_path / "runs", 6)
    jsonl(root / "two" / "metrics.jsonl", fit("stable", 11), fit("exploding", 12))
    mlruns(root / "store" / "mlruns", "wise-ox", "bad-ox")
    (root / "broken").mkdir()
    (root / "broken" / "metrics.jsonl").write_bytes(b"\xff" * 100)
    for number, log in enumerate(sorted(root.rglob("metrics.*"))):
        os.utime(log, (LONG_AGO + number * 1000, LONG_AGO + number * 1000))
    return root


FILTERS = {
    "verdict": {"verdict": ("exploding,unreadable",)},
    "sick": {"verdict": ("sick",)},
    "newer": {"newer_than": "2023-11-14T23:30:00+00:00"},
    "include": {"include": ("*/lr-0/*",)},
    "exclude": {"exclude": ("*/lr-0/*", "*ox")},
    "number": {"include": ("*#2",)},
    "number without its sign": {"include": ("*2",)},
    "any letter": {"include": ("*tw???",)},
    "a set": {"include": ("*[!0-9]",)},
    "a name of a store's run": {"include": ("wise-*",)},
    "not a name": {"exclude": ("wise-*",)},
    "not an id": {"exclude": (f"*{run_id(0)}",)},
    "all": {
        "include": ("*run-*", "*two*"),
        "exclude": ("*-1",),
        "verdict": ("stable", "sick"),
        "newer_than": "2023-11-14",
    },
    "a future": {"newer_than": "2099-01-01"},
    "a file": {"include": ("*.jsonl",)},
}


@pytest.mark.parametrize("given", FILTERS.values(), ids=FILTERS)
def test_filters_give_what_is_left_of_all(varied: Path, tmp_path: Path, given: dict[str, str]) -> None:
    wanted = wanted_from(**given)  # type: ignore[arg-type]
    everything, state = scan(varied, state=tmp_path / "all"), tmp_path / "state"
    expected = [repr(record) for record in everything.records if wanted.has(record)]
    for _ in range(2):
        assert said(scan(varied, wanted=wanted, state=state)) == expected
    assert said(scan(varied, state=state)) == said(everything)
    assert said(scan(varied, wanted=wanted, state=state)) == expected
    again = scan(f"{varied}/", wanted=wanted)
    assert [record.run.replace("runs//", "runs/") for record in again.records] == [
        record.run for record in everything.records if wanted.has(record)
    ]


def test_a_filtered_scan_does_not_make_the_state_believe(varied: Path, tmp_path: Path) -> None:
    """A run that was not wanted, and so not read, has changed for the next scan."""
    state = tmp_path / "state"
    scan(varied, state=state)
    jsonl(varied / "lr-0" / "run-0" / "metrics.jsonl", fit("exploding", 500))
    scan(varied, state=state, wanted=wanted_from(include=["*/lr-1/*"]))
    assert said(scan(varied, state=state)) == said(scan(varied))


def test_filters_are_what_they_say(varied: Path) -> None:
    def names(**given: object) -> set[str]:
        return {record.run.removeprefix(f"{varied}/") for record in scan(varied, wanted=wanted_from(**given)).records}  # type: ignore[arg-type]

    everything = names()
    assert len(everything) == 11
    assert names(verdict=["unreadable"]) == {"broken"}
    assert names(include=["*#2"]) == {"two#2"}
    ids = {f"store/mlruns/{run_id(number)}" for number in range(2)}
    assert names(include=["*-ox"]) == ids
    assert everything - names(exclude=["wise-ox"]) == {f"store/mlruns/{run_id(0)}"}
    assert everything - names(exclude=["*/store/*"]) == ids
    assert names(newer_than="2099-01-01") == ids  # of a store that is a folder nobody knows


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"newer_than": "soon"}, "--newer-than soon: neither an age nor a date"),
        ({"newer_than": ""}, "neither an age nor a date"),
        ({"newer_than": "-3d"}, "neither an age nor a date"),
        ({"verdict": ["bad"]}, "there is no verdict 'bad'"),
        ({"shard": "0/4"}, "--shard 0/4: not one"),
        ({"shard": "5/4"}, "--shard 5/4: not one"),
        ({"shard": "4"}, "--shard 4: not one"),
        ({"shard": "١/٤"}, "not one"),
        ({"shard": f"1/{'9' * 5000}"}, "not one"),
    ],
)
def test_a_filter_that_says_nothing_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        wanted_from(**given)  # type: ignore[arg-type]
    assert caught.value.hint


# --- merging


def test_of_a_run_in_two_files_the_newer_counts(tmp_path: Path) -> None:
    old, new = Record("a", modified=1.0, points=1), Record("a", modified=2.0, points=2)
    paths = [tmp_path / "old.jsonl", tmp_path / "new.parquet"]
    for path, record in zip(paths, (old, new), strict=True):
        path.write_bytes(records_bytes([record], path.suffix))
    for order in (paths, paths[::-1]):
        assert merged(order, Wanted()).records == (new,)


def test_files_that_hold_no_records_are_told(tmp_path: Path) -> None:
    good = records_bytes([Record("a"), Record("b")], ".jsonl")
    files = {
        "log.jsonl": b'{"step": 1}\n',
        "deep.jsonl": b"[" * 100_000,
        "noise.parquet": b"PAR1nonsense",
        "empty.parquet": b"",
        "cut.jsonl": good[:-5],
        "good.jsonl": good,
        "empty.jsonl": b"",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "other.parquet").write_bytes(b"")
    records_frame([Record("a")]).drop("hyperparameters").write_parquet(tmp_path / "other.parquet")
    paths = [*(tmp_path / name for name in files), tmp_path / "other.parquet", tmp_path / "missing.jsonl", tmp_path]
    found = merged(paths, Wanted())
    assert [record.run for record in found.records] == ["a", "b"]
    told = {Path(failure.path).name: failure.message for failure in found.failures}
    assert set(told) == {Path(path).name for path in paths} - {"good.jsonl", "empty.jsonl"}
    assert "line 2 is no record" in told["cut.jsonl"]


def test_one_order_whatever_comes_first() -> None:
    given = [Record("run-2"), Record("run-10"), Record("run-02"), Record("x", name="b"), Record("x", name="a")]
    given += [Record("\udcff"), Record("\\udcff!")]
    assert in_order(given) == in_order(given[::-1])
    names = [record.run for record in in_order(given)]
    assert [name for name in names if name.startswith("run")] == ["run-02", "run-2", "run-10"]


def test_records_of_a_scan_do_not_hang_on_what_a_folder_is_called(tmp_path: Path) -> None:
    a, b = runs(tmp_path / "a", 3), runs(tmp_path / "b", 3)
    assert [*map(repr, below(scan(a).records, a))] == [*map(repr, below(scan(b).records, b))]
