"""What is vendored is what was published, with its licence."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import gradtrend

VENDOR = Path(gradtrend.__file__).parent / "report" / "html" / "vendor"
SAID = tomllib.loads((VENDOR / "vendor.toml").read_text(encoding="utf-8"))


def test_every_file_has_the_checksum_that_is_said() -> None:
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir()}
    del found["vendor.toml"]
    assert found == SAID["sha256"]


def test_the_version_and_the_licence_are_those_of_the_file() -> None:
    script = (VENDOR / "uPlot.iife.min.js").read_text(encoding="utf-8")
    assert f"(v{SAID['version']})" in script[:200]
    assert "MIT License" in (VENDOR / "LICENSE").read_text(encoding="utf-8")


def test_it_may_stand_in_a_page_and_reaches_for_nothing() -> None:
    for file in ("uPlot.iife.min.js", "uPlot.min.css"):
        content = (VENDOR / file).read_text(encoding="utf-8")
        assert not [word for word in ("</", "fetch(", "XMLHttpRequest", "import(", "eval(", "url(") if word in content]
