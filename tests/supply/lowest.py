"""`python tests/supply/lowest.py` prints the lowest version of each dependency that pyproject.toml allows, for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def lowest() -> list[str]:
    """`name==version` for each dependency without extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.sub(r"^([\w.-]+)>=([\d.]+).*$", r"\1==\2", wanted) for wanted in project["dependencies"]]


if __name__ == "__main__":
    print("\n".join(lowest()))
