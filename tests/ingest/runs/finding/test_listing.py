"""What a listing tells apart: each change of what a report hangs on, and of which run it is."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.ingest.limits import DEEPEST_FOLDER
from gradtrend.ingest.runs.finding import find
from gradtrend.ingest.runs.finding.find import find_runs
from gradtrend.ingest.runs.finding.listing import UNREADABLE, Listing, listing_of, signatures
from gradtrend.ingest.runs.finding.tree import Found, Known, found_below
from tests.ingest.runs.finding.test_stores import mlruns, run_id
from tests.ingest.runs.writers import csv, fit, jsonl
from tests.processes import without_override

LONG_AGO = 1_000_000_000


def listed(path: Path | str, *leave_out: str) -> Listing:
    found = listing_of(str(path), frozenset(leave_out))
    assert found is not None
    return found


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs that are each read by themselves, as those of a large tree are."""
    monkeypatch.setattr(find, "_TOGETHER_FILES", 2)
    for number, name in enumerate("abc"):
        jsonl(tmp_path / "root" / name / "metrics.jsonl", fit("stable", number))
        (tmp_path / "root" / name / "hparams.yaml").write_text("lr: 0.1\n")
    return tmp_path / "root"


def signed(path: Path | str) -> tuple[str, dict[str, str]]:
    """The digest of all, and the signature of each share."""
    shares = find_runs(str(path))
    listing = listed(path)
    return listing.digest, dict(zip([share.name for share in shares], signatures(listing, shares), strict=True))


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def put(path: Path, data: bytes = b"x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a log grows": lambda run: append(run / "metrics.jsonl", '{"step": 60, "loss": 1, "grad_norm": 1}\n'),
    "a log is touched": lambda run: os.utime(run / "metrics.jsonl", (LONG_AGO, LONG_AGO)),
    "other settings of one length": lambda run: put(run / "hparams.yaml", b"lr: 0.2\n"),
    "settings are removed": lambda run: (run / "hparams.yaml").unlink(),
    "Hydra's settings": lambda run: put(run / ".hydra" / "config.yaml", b"lr: 0.2\n"),
    "settings of a logger's folder": lambda run: put(run / "version_0" / "hparams.yaml", b"lr: 0.2\n"),
    "a captured step": lambda run: put(run / "debug" / "nan_capture" / "rank0" / "nan_capture.pt"),
    "a log more": lambda run: csv(run / "metrics.csv", fit("stable", 9)),
    "its log has another name": lambda run: (run / "metrics.jsonl").rename(run / "log.jsonl"),
    "nobody may read it": lambda run: (run / "metrics.jsonl").chmod(0o000),
    "an empty log": lambda run: put(run / "other.jsonl", b""),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_that_of_one_run(tree: Path, change: Callable[[Path], object]) -> None:
    digest, before = signed(tree)
    change(tree / "b")
    changed, after = signed(tree)
    assert changed != digest
    assert {name for name in after if after[name] != before.get(name)} == {str(tree / "b")}


def test_a_run_that_is_gone_and_one_that_is_new_change_no_other(tree: Path) -> None:
    digest, before = signed(tree)
    (tree / "b").rename(tree / "d")
    changed, after = signed(tree)
    assert changed != digest
    assert before.keys() ^ after.keys() == {str(tree / "b"), str(tree / "d")}
    assert all(before[name] == after[name] for name in before.keys() & after.keys())


IRRELEVANT = ("checkpoint.ckpt", "weights.safetensors", "picture.png", ".cache/x.jsonl", "node_modules/log.jsonl")


@pytest.mark.parametrize("name", IRRELEVANT)
def test_what_no_report_hangs_on_changes_nothing(tree: Path, name: str) -> None:
    before = signed(tree)
    put(tree / "b" / name)
    assert signed(tree) == before


def test_what_the_call_writes_itself_is_left_out_however_it_is_reached(tree: Path, tmp_path: Path) -> None:
    before = listed(tree)
    put(tree / "runs.jsonl")
    put(tmp_path / "elsewhere.jsonl")
    (tree / "b" / "link.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    (tmp_path / "link").symlink_to(tree)
    own = (str(tree / "runs.jsonl"), str(tmp_path / "elsewhere.jsonl"))
    assert listed(tree, *own) == before
    assert {*listed(tmp_path / "link", *own).files} == {f.replace("/root/", "/link/") for f in before.files}
    with chdir(tree):
        assert {*listed(".", *own).files} == {os.path.relpath(f, tree) for f in before.files}
    assert listed(tree) != before


@pytest.mark.parametrize("spelt", [".", "./", "root", "root/", "./root", "link"])
def test_settings_beside_a_log_at_the_root_are_its_own_however_it_is_given(tmp_path: Path, spelt: str) -> None:
    root = tmp_path / "root"
    jsonl(root / "metrics.jsonl", fit("stable", 1))
    (tmp_path / "link").symlink_to(root)
    with chdir(root if (spelt.startswith("./") and "root" not in spelt) or spelt == "." else tmp_path):
        before, of_runs = signed(spelt)
        put(root / "hparams.yaml", b"lr: 0.1\n")
        after, now = signed(spelt)
    assert before != after
    assert list(now) == list(of_runs)
    assert [*now.values()] != [*of_runs.values()]


def test_a_log_by_itself_has_what_is_read_beside_it(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    jsonl(log, fit("stable", 1))
    digests = [signed(log)]
    for change in (
        lambda: put(tmp_path / "hparams.yaml", b"lr: 0.1\n"),
        lambda: put(tmp_path / ".hydra" / "overrides.yaml", b"- lr=0.1\n"),
        lambda: put(tmp_path / "debug" / "nan_capture" / "nan_capture.pt"),
        lambda: append(log, "\n"),
    ):
        change()
        digests.append(signed(log))
    put(tmp_path / "other.jsonl")
    assert signed(log) == digests[-1]
    assert len({digest for digest, _ in digests}) == len(digests)
    assert len({tuple(of_runs.values()) for _, of_runs in digests}) == len(digests)


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_what_a_database_has_beside_it(tmp_path: Path, ending: str) -> None:
    base = tmp_path / "log.db"
    with closing(sqlite3.connect(base)) as made:
        made.execute("create table x (y)")
        made.commit()
    for root in (base, tmp_path):
        before = listed(root)
        put(tmp_path / f"log.db{ending}")
        assert listed(root) != before
        (tmp_path / f"log.db{ending}").unlink()


def test_nothing_is_known_of_what_is_not_there_of_addresses_and_of_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "missing", tmp_path / "pipe", "http://localhost:1/", "-"):
        assert listing_of(str(path)) is None


@pytest.mark.skipif(sys.platform != "linux", reason="a name may be any bytes")
def test_a_name_may_hold_any_bytes(tmp_path: Path) -> None:
    before = listed(tmp_path)
    strange = os.fsdecode(b"\xff\xfe\n\x1b[31m")
    jsonl(tmp_path / strange / "metrics.jsonl", fit("stable", 1))
    assert str(tmp_path / strange / "metrics.jsonl") in listed(tmp_path).files
    assert listed(tmp_path).digest != before.digest
    assert len(signed(tmp_path)[1]) == 1


def test_links_in_a_circle_end(tree: Path) -> None:
    (tree / "a" / "up").symlink_to(tree)
    (tree / "self").symlink_to(tree / "self")
    (tree / "nothing.jsonl").symlink_to(tree / "missing")
    assert len(listed(tree).files) == 6


def test_a_folder_below_a_link_has_the_path_by_which_its_logs_are_read(tree: Path) -> None:
    """Else a change of it would be nobody's."""
    (tree / "0").symlink_to(tree / "c")
    (tree / "a" / "other").symlink_to(tree.parent / "outside")
    (tree / "z").symlink_to(tree.parent / "outside")
    jsonl(tree.parent / "outside" / "metrics.jsonl", fit("stable", 7))
    logs = {str(log.path) for share in find_runs(str(tree)) for log in share.logs}
    assert logs <= {*listed(tree).files}
    before = signed(tree)[1]
    append(tree / "c" / "metrics.jsonl", "\n")
    after = signed(tree)[1]
    assert {name for name in after if before[name] != after[name]} == {str(tree / "c")}


def test_a_folder_that_cannot_be_looked_into_is_told_and_then_seen(tree: Path) -> None:
    code = f"""
import os
from gradtrend.ingest.runs.finding.listing import UNREADABLE, listing_of
root = {str(tree)!r}
os.chmod(root + "/b", 0)
closed = listing_of(root)
assert closed.files[root + "/b"] == UNREADABLE, closed
os.chmod(root + "/b", 0o755)
assert listing_of(root).digest != closed.digest
"""
    done = without_override("-c", code)
    assert not done.returncode, done.stderr
    assert UNREADABLE not in listed(tree).files.values()


def test_trees_without_end_are_left(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["d"] * (DEEPEST_FOLDER + 3))
    jsonl(folder / "metrics.jsonl", fit("stable", 1))
    assert not listed(tmp_path).files


# --- stores


def test_a_change_of_one_run_of_a_store_is_that_of_one(tmp_path: Path) -> None:
    store = mlruns(tmp_path / "mlruns", "one", "two", "three")
    before = signed(store)[1]
    append(store / "7" / run_id(1) / "metrics" / "grad_norm", "1700000000100 3.0 99\n")
    after = signed(store)[1]
    assert len(after) == 3
    assert {name for name in after if after[name] != before[name]} == {str(store / run_id(1))}


def test_what_lies_around_a_store_is_that_of_its_only_run(tmp_path: Path) -> None:
    """With the second run it is nobody's: the first is read again."""
    store = mlruns(tmp_path / "mlruns", "one")
    before = signed(tmp_path)[1]
    mlruns(tmp_path / "mlruns", "two", experiment="8", start=1)
    after = signed(tmp_path)[1]
    name = str(store / run_id(0))
    assert before[name] != after[name]


# --- what is known of files


def random_tree() -> st.SearchStrategy[dict[str, int]]:
    names = st.sampled_from(["a", "b", "logs", "debug", "artifacts", ".hidden", "runs", "version_0", "é"])
    files = st.sampled_from(["metrics.jsonl", "train.log", "x.csv", "hparams.yaml", "w.pt", "empty.jsonl", "notes.txt"])
    path = st.tuples(st.lists(names, max_size=3), files).map(lambda parts: "/".join([*parts[0], parts[1]]))
    return st.dictionaries(path, st.integers(0, 5), max_size=12)


def make(root: Path, tree: dict[str, int], links: list[tuple[int, int]]) -> None:
    for path, seed in tree.items():
        file = root / path
        if path.endswith(".csv"):
            csv(file, fit("stable", seed, 12))
        elif path.endswith("empty.jsonl") or not path.endswith((".jsonl", ".log")):
            put(file, b"" if path.endswith(".jsonl") else b"lr: 0.1\n")
        else:
            jsonl(file, fit("stable", seed, 12))
    folders = sorted({root, *(place for path in tree for place in (root / path).parents if root in place.parents)})
    for number, (at, to) in enumerate(links):
        link = folders[at % len(folders)] / f"{'0z'[number % 2]}link{number}"
        link.symlink_to(folders[to % len(folders)])


LINKS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4)


@settings(max_examples=40)
@given(tree=random_tree(), links=LINKS)
def test_listing_and_walk_enter_the_same(tree: dict[str, int], links: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "root")
        root.mkdir()
        make(root, tree, links)
        found = found_below(root, "auto")
        files = listed(root).files
        assert {str(log.path) for log in found.logs} <= {*files}
        assert listed(root) == listed(root)


@settings(max_examples=40)
@given(tree=random_tree(), links=LINKS, again=st.integers(0, 2))
def test_what_is_known_changes_nothing(tree: dict[str, int], links: list[tuple[int, int]], again: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "root")
        root.mkdir()
        make(root, tree, links)
        memory: dict[str, tuple[int, int, str]] = {}
        assert walk(root, memory) == found_below(root, "auto")
        looked_into = dict(memory)
        assert walk(root, memory) == found_below(root, "auto")
        assert memory == looked_into
        if logs := found_below(root, "auto").logs:
            append(logs[again % len(logs)].path, "\nno log any more\n" * 200)
            assert walk(root, memory) == found_below(root, "auto")


def walk(root: Path, memory: dict[str, tuple[int, int, str]]) -> Found:
    """A walk that remembers what files are."""

    def format_of(path: str, size: int, modified: int) -> str | None:
        known = memory.get(path)
        return known[2] if known is not None and known[:2] == (size, modified) else None

    def heard(path: str, size: int, modified: int, format_: str) -> None:
        assert format_of(path, size, modified) is None
        memory[path] = size, modified, format_

    return found_below(root, "auto", known=Known(format_of, heard))
