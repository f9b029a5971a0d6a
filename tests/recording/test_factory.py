"""A factory that no other process could import, or only by training again, is refused with the way out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradtrend.recording.factory import factory_path
from tests.replay import steps


def test_a_function_of_a_module_and_its_text() -> None:
    assert factory_path(steps.healthy) == "tests.replay.steps:healthy"
    assert factory_path("tests.replay.steps:healthy") == "tests.replay.steps:healthy"
    assert factory_path("not_loaded_yet:make") == "not_loaded_yet:make"


@pytest.mark.parametrize(
    "factory", ["steps", ":make", "module:", "__main__:make", "tests.replay.steps:absent", lambda: None, 3]
)
def test_factories_that_replay_could_not_import(factory: object) -> None:
    with pytest.raises(ValueError, match="factory"):
        factory_path(factory)  # type: ignore[arg-type]


SCRIPT = """
from gradtrend.recording.factory import factory_path

def make():
    return None

{guard}
    for factory in (make, "train:make"):
        try:
            print("taken", factory_path(factory))
        except ValueError as error:
            print("refused", error)
"""


@pytest.mark.parametrize(("guard", "taken"), [("if True:", 0), ('if __name__ == "__main__":', 1)])
def test_the_script_that_is_running(tmp_path: Path, guard: str, taken: int) -> None:
    """Importing it would train again, unless it has a guard and is named as the module that it then is."""
    (tmp_path / "train.py").write_text(SCRIPT.format(guard=guard))
    done = subprocess.run([sys.executable, tmp_path / "train.py"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "train again" in lines[0]
    assert "move it to a module" in lines[0]
    assert sum(line.startswith("taken") for line in lines) == taken
