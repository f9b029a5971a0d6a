"""What is said of versions is said in one way everywhere."""

from __future__ import annotations

import re
import tomllib

from tests.places import ROOT
from tests.supply.lowest import lowest

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")


def test_each_dependency_has_a_lowest_version() -> None:
    assert len(lowest()) == len(PROJECT["dependencies"])
    assert all(re.fullmatch(r"[\w.-]+==\d+(?:\.\d+)+", pin) for pin in lowest())


def test_the_workflow_runs_each_python_that_is_named() -> None:
    named = [one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert named[0] == PROJECT["requires-python"].removeprefix(">=")
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", WORKFLOW)[0]) == named  # type: ignore[index]
