"""The file that keeps what a scan finds out: whatever becomes of it, no scan says anything else than without it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.errors import ConfigError
from gradtrend.model.many.record import Record
from gradtrend.pipeline.scan.state import Root, State, open_state
from gradtrend.report.json.records import record_line
from tests.pipeline.scan.scans import records, runs, said, scan
from tests.processes import SOURCE, python

A, B = Record("a", failure="why\n"), Record("b", last=math.nan, points=7, hyperparameters=(("lr", 0.1),))


def filled(path: Path, key: str = "k") -> dict[str, Any]:
    """A state with a line of each kind; what it holds."""
    state = open_state(path, key)
    state.keep_formats({"x": (1, 2, "jsonl"), "y": (3, 4, "")})
    state.keep_share("one", "s1", [A])
    state.keep_share("two", "s2", [A, B])
    state.keep_root("root", Root("d", (("one", "s1"), ("two", "s2"))))
    state.close()
    return held(state)


def held(state: State) -> dict[str, Any]:
    shares = {name: (signature, [*map(record_line, kept)]) for name, (signature, kept) in state.shares.items()}
    return {"formats": state.formats, "shares": shares, "roots": state.roots}


def read(path: Path, key: str = "k") -> dict[str, Any]:
    state = open_state(path, key)
    state.close()
    return held(state)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    kept = filled(tmp_path / "s")
    assert read(tmp_path / "s") == kept
    assert len(kept["shares"]["two"][1]) == 2


def test_cut_at_any_byte_it_holds_what_was_whole_and_is_added_to(tmp_path: Path) -> None:
    whole = filled(tmp_path / "s")
    data = (tmp_path / "s").read_bytes()
    cut = tmp_path / "cut"
    for end in range(len(data) + 1):
        cut.write_bytes(data[:end])
        state = open_state(cut, "k")
        found = held(state)
        assert not state.was_other
        for kind, kept in found.items():
            assert kept.items() <= whole[kind].items(), (end, kind)
        lines = data[:end].count(b"\n") + (data[end : end + 1] == b"\n")
        assert sum(map(len, found.values())) == (0, 0, 2, 3, 4, 5)[lines]
        state.keep_share("new", "s", [B])
        state.close()
        assert read(cut)["shares"] == found["shares"] | {"new": ("s", [record_line(B)])}


def test_a_scan_after_a_cut_says_what_it_says_without_a_state(tmp_path: Path) -> None:
    root, state = runs(tmp_path / "runs", 3), tmp_path / "s"
    plain = said(scan(root))
    scan(root, state=state)
    data = state.read_bytes()
    for end in {*range(0, len(data), 97), *(i + 1 for i, byte in enumerate(data) if byte == 10), len(data) - 1}:
        state.write_bytes(data[:end])
        assert said(scan(root, state=state)) == plain


@pytest.mark.parametrize(
    "content",
    [
        b"important\n",
        b'{"step": 1}\n{"step": 2}\n',
        b"\x00" * 50,
        b"\n",
        b'{"gradtrend_state":99,"key":"k"}\n',
        b"[]\n",
    ],
)
def test_a_file_of_something_else_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(ConfigError, match="is no state of a scan") as caught:
        open_state(tmp_path / "s", "k")
    assert "Name another file" in (caught.value.hint or "")
    assert (tmp_path / "s").read_bytes() == content


def test_another_key_forgets_and_says_so(tmp_path: Path) -> None:
    filled(tmp_path / "s")
    before = (tmp_path / "s").read_bytes()
    state = open_state(tmp_path / "s", "other")
    assert state.was_other
    assert not any(held(state).values())
    state.close()
    assert (tmp_path / "s").read_bytes() == before  # until something takes its place
    state = open_state(tmp_path / "s", "other")
    state.keep_share("x", "y", ())
    state.close()
    assert not open_state(tmp_path / "s", "other").was_other


@pytest.mark.parametrize("what", ["pipe", "folder", "missing/s", "loop"])
def test_what_cannot_be_a_state_is_said_at_once(tmp_path: Path, what: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ConfigError, match=f"--state .*{what}: "):
        open_state(tmp_path / what, "k")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("device", ["/dev/full", "/dev/null", "/dev/zero"])
def test_a_device_is_no_state(device: str) -> None:
    with pytest.raises(ConfigError, match="is no file"):
        open_state(Path(device), "k")


def test_one_scan_uses_it_at_a_time(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from gradtrend.pipeline.scan.state import open_state
state = open_state(Path({str(tmp_path / "s")!r}), "k")
print("ready", flush=True)
sys.stdin.read()
"""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, env=environment) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        with pytest.raises(ConfigError, match="used by another scan"):
            open_state(tmp_path / "s", "k")
        other.kill()
    open_state(tmp_path / "s", "k").close()  # nobody has to remove a lock


def test_damaged_lines_are_not_known_and_the_others_are(tmp_path: Path) -> None:
    whole = filled(tmp_path / "s")
    lines = (tmp_path / "s").read_bytes().splitlines(keepends=True)
    lines[2] = b"\xff\x00" + lines[2][9:]
    (tmp_path / "s").write_bytes(b"".join(lines) + b"}{\n[1]\nnull\n\n")
    found = read(tmp_path / "s")
    assert found["shares"] == {"two": whole["shares"]["two"]}
    assert found["roots"] == whole["roots"]


def test_tidying_keeps_all_and_keeps_a_link(tmp_path: Path) -> None:
    filled(tmp_path / "real")
    (tmp_path / "s").symlink_to(tmp_path / "real")
    (tmp_path / "real").chmod(0o640)
    state = open_state(tmp_path / "s", "k")
    for number in range(20):
        state.keep_share("one", f"s{number}", [B])
    kept = held(state)
    before = (tmp_path / "s").stat().st_size
    state.close(tidy=True)
    assert (tmp_path / "s").is_symlink()
    assert (tmp_path / "s").stat().st_size < before / 2
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    assert read(tmp_path / "s") == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["real", "s"]


def test_a_scan_does_not_make_it_grow(tmp_path: Path) -> None:
    root, state = runs(tmp_path / "runs", 4), tmp_path / "s"
    scan(root, state=state)
    before = state.stat().st_size
    for _ in range(10):
        (root / "lr-0" / "run-0" / "hparams.yaml").touch()
        scan(root, state=state)
    assert state.stat().st_size < 2 * before


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    code = f"""
import resource, signal, sys
from pathlib import Path
from gradtrend.errors import ConfigError
from gradtrend.model.many.record import Record
from gradtrend.pipeline.scan.state import open_state
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, -1))
state = open_state(Path({str(tmp_path / "s")!r}), "k")
try:
    for number in range(100):
        state.keep_share(str(number), "s", [Record("r")])
except ConfigError as error:
    print(error.message)
"""
    done = python("-c", code)
    assert "s: cannot be written (File too large)" in done.stdout
    kept = read(tmp_path / "s")["shares"]
    assert kept.keys() == {str(number) for number in range(len(kept))}
    assert kept


HOSTILE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["exploding", "error", "nan", "\ud800", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
FIELDS = st.sampled_from([*Record.__dataclass_fields__, "nonfinite_fields", "sick"])
RECORDS = st.lists(
    st.fixed_dictionaries({"run": HOSTILE, "verdict": HOSTILE, "hyperparameters": HOSTILE}).flatmap(
        lambda made: st.dictionaries(FIELDS, HOSTILE, max_size=5).map(lambda more: made | more)
    ),
    max_size=2,
)
LINES = st.lists(
    st.fixed_dictionaries({"share": HOSTILE, "signature": HOSTILE, "records": RECORDS | HOSTILE})
    | st.fixed_dictionaries({"formats": st.dictionaries(st.text(max_size=3), HOSTILE) | HOSTILE})
    | st.fixed_dictionaries({"tells": HOSTILE, "of": HOSTILE})
    | st.fixed_dictionaries({"root": HOSTILE, "digest": HOSTILE, "shares": HOSTILE})
    | st.dictionaries(st.sampled_from(["share", "formats", "root"]), HOSTILE),
    max_size=4,
)


def test_lines_too_deep_and_numbers_too_long_are_not_known(tmp_path: Path) -> None:
    whole = filled(tmp_path / "s")
    with (tmp_path / "s").open("a") as file:
        file.write("[" * 100_000 + "\n" + '{"share":' * 50_000 + "\n" + '{"formats": {"x": [' + "9" * 5000 + "]}}\n")
    assert read(tmp_path / "s") == whole
    (tmp_path / "s").write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="is no state"):
        open_state(tmp_path / "s", "k")


@settings(max_examples=80)
@given(lines=LINES)
def test_hostile_lines_are_never_more_than_not_known(lines: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s")
        open_state(path, "k").close()
        with path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        state = open_state(path, "k")
        for signature, kept in state.shares.values():
            assert isinstance(signature, str)
            for record in kept:
                json.loads(record_line(record))
        for root in state.roots.values():
            assert all(isinstance(text, str) for share in root.shares for text in share)
        again = held(state)
        for number in range(20):
            state.keep_share("x", str(number), [])
        state.keep_share("x", "", [])
        state.close(tidy=True)
        assert read(path) == again | {"shares": again["shares"] | {"x": ("", [])}}


@settings(max_examples=50)
@given(record=records())
def test_any_record_comes_back_as_it_was(record: Record) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s")
        state = open_state(path, "k")
        state.keep_share("x\udcff", "s", [record])
        state.close()
        state = open_state(path, "k")
        state.close()
        (back,) = state.shares["x\udcff"][1]
        assert repr(back) == repr(record)
