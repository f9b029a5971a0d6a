"""Where objects lie in a mirror: never outside it, whatever their keys are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.ingest.remote.objects import Held
from gradtrend.ingest.remote.sparse import empty_again, folder_name, make, path_of, write_at, written

ROOT = Path("/mirror/root")
PARTS = st.one_of(st.sampled_from(["..", ".", "", "a", "a/b", "\0", "\n", "~", "C:", "..\\x", "x" * 300]), st.text())


@given(st.lists(PARTS, max_size=6).map("/".join))
def test_no_key_leads_out_of_a_mirror(key: str) -> None:
    path = path_of(ROOT, key)
    if path is not None:
        assert path != ROOT
        assert ROOT in path.parents
        assert ".." not in path.parts


@pytest.mark.parametrize("key", ["../x", "/etc/passwd", "a/../../x", "a//b", "", ".", "a/.", "a\0b", "a/"])
def test_keys_that_are_no_paths(key: str) -> None:
    assert path_of(ROOT, key) is None


@given(st.text())
def test_a_part_of_an_address_is_one_name_of_a_folder(part: str) -> None:
    name = folder_name(part)
    assert path_of(ROOT, name) == ROOT / name
    assert "/" not in name


def test_a_file_has_the_size_and_the_time_of_its_object_and_takes_no_room(tmp_path: Path) -> None:
    held = Held("a/b.jsonl", 50_000_000, 1_700_000_000.5, present=3)
    path = tmp_path / held.key
    make(path, held)
    with written(path, held) as file:
        write_at(file, 0, b"abc" * 1000)
    empty_again(path, held)
    status = path.stat()
    assert (status.st_size, status.st_mtime) == (held.size, held.modified)
    assert status.st_blocks * 512 < 100_000
    assert path.read_bytes()[:6] == b"abc\0\0\0"


def test_a_name_that_is_taken_is_an_error(tmp_path: Path) -> None:
    make(tmp_path / "a", Held("a", 1, 0.0))
    for key in ("a", "a/b"):
        with pytest.raises(OSError, match=r"."):
            make(tmp_path / key, Held(key, 1, 0.0))
