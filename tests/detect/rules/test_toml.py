"""Rule files that are none: pipes, bombs, what is too large."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradtrend.detect.rules.load import load_rules
from gradtrend.detect.rules.toml import DEEPEST_KEY, LARGEST_FILE, parsed, text_of
from gradtrend.errors import ConfigError


def test_a_file_is_read_whatever_ends_its_lines(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes('id = "MY001"\r\nname = "é"\r\n'.encode())
    assert parsed(text_of(tmp_path / "a.toml")) == {"id": "MY001", "name": "é"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a." * 60_000 + "a = 1", "a key of more than 50 parts"),  # 20 s before
        ("[" + "a." * 60_000 + "a]", "a key of more than 50 parts"),
        ('x = {"a" . ' + "b . " * DEEPEST_KEY + "c = 1}", "a key of more than 50 parts"),
        ("# " + "x" * LARGEST_FILE, "larger than 128 KiB"),
        ("x = " + "[" * 5000, "recursion"),
    ],
)
def test_a_bomb_is_a_mistake_that_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "MY001-bomb.toml").write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_rules(tmp_path)


def test_prose_and_numbers_have_as_many_dots_as_they_like(tmp_path: Path) -> None:
    text = f'help = "{"A sentence of words. " * 200}"\nnumbers = [{"1.5, " * 200}]\ndots = "{"." * 500}"\n'
    (tmp_path / "a.toml").write_text(text)
    assert parsed(text_of(tmp_path / "a.toml"))["numbers"] == [1.5] * 200


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(tmp_path / "a.toml")
    with pytest.raises(OSError, match="not a file"):
        text_of(tmp_path / "a.toml")
