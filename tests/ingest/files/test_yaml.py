"""YAML of any content is read within bounds, or gives nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gradtrend.ingest.files.yaml import read_yaml
from gradtrend.ingest.formats.mlflow.files import read_meta
from gradtrend.ingest.settings.folder import settings_of


def _laughs(first: str, line: str) -> str:
    """Sixty lines, each of which names the one before it twice."""
    return f"a0: &a0 {first}\n" + "".join(f"a{i}: &a{i} " + line.format(f"*a{i - 1}") + "\n" for i in range(1, 60))


_MAPPINGS = _laughs("{lr: 1}", "{{x: {0}, y: {0}}}")
_LISTS = _laughs("[1]", "[{0}, {0}]") + "lr: *a59\nbf16: *a59\n"
_MERGED = _laughs("{lr: 1}", "{{<<: [{0}, {0}]}}")


@pytest.mark.parametrize(
    "text",
    [_MAPPINGS, _LISTS, _MERGED, "a: &a {b: *a}\n", "lr: " + "1:" * 100_000 + "1\n", "lr: " + "1:" * 190 + "1.5\n"],
    ids=["mappings", "lists", "merged", "holds itself", "base 60", "base 60 overflow"],
)
def test_a_bomb_gives_nothing(tmp_path: Path, text: str) -> None:
    for name in ("hparams.yaml", "meta.yaml"):
        (tmp_path / name).write_text(text)
    began = time.monotonic()
    assert settings_of(tmp_path).learning_rate is None
    assert read_meta(tmp_path) == {}
    assert time.monotonic() - began < 5


def test_a_file_far_too_large_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "hparams.yaml"
    path.write_text("lr: 0.1\n" + "x: y\n" * 400_000)
    assert read_yaml(path) == {}


def test_aliases_that_loggers_write_are_read(tmp_path: Path) -> None:
    path = tmp_path / "hparams.yaml"
    path.write_text("betas: &id001\n- 0.9\n- 0.95\nother: *id001\nbase: &b {lr: 0.1}\noptim:\n  <<: *b\n")
    assert read_yaml(path)["other"] == [0.9, 0.95]
    assert settings_of(tmp_path).learning_rate == 0.1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "hparams.yaml")
    os.mkfifo(tmp_path / "meta.yaml")
    assert read_yaml(tmp_path / "hparams.yaml") == {}
    assert read_meta(tmp_path) == {}
