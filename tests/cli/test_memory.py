"""Where memory is limited: a report, or one plain sentence and exit code 3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import EXPLODING

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and processes as Linux has them")
GRADTREND = f"{sys.executable} -m gradtrend"


def limited(mebibytes: int, words: str) -> subprocess.CompletedProcess[str]:
    line = f"ulimit -v {mebibytes * 1024}; exec {GRADTREND} {words}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("mebibytes", [*range(80, 520, 40), 700, 1000, 1500])
def test_one_run(mebibytes: int) -> None:
    done = limited(mebibytes, f"analyze {EXPLODING}")
    assert done.returncode in (1, 3)
    if done.returncode == 1:
        assert ": exploding (confidence" in done.stdout
        assert done.stderr == ""
    else:
        assert "memory" in done.stdout + done.stderr
        assert len(done.stderr.splitlines()) in (0, 2)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["rule", f"series {EXPLODING}", f"replay {EXPLODING}", "--help"])
@pytest.mark.parametrize("mebibytes", [120, 250])
def test_other_commands(words: str, mebibytes: int) -> None:
    done = limited(mebibytes, words)
    assert done.returncode in (0, 3)
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr + done.stdout


def test_a_run_that_takes_too_much_loses_itself_alone(tmp_path: Path) -> None:
    """1,500,000 rows, beside a log of 100."""
    huge, small = tmp_path / "huge.jsonl", tmp_path / "small.jsonl"
    for path, count in ((huge, 1_500_000), (small, 100)):
        rows = (f'{{"step": {i}, "grad_norm": {1 + i % 2 / 10}, "loss": {2 - i / count}}}\n' for i in range(count))
        path.write_text("".join(rows))
    done = limited(700, f"analyze {huge} {small}")
    assert f"{small}: stable" in done.stdout
    assert f"{huge}: error: " in done.stdout
    assert "memory" in done.stdout
    assert done.returncode == 3


def test_without_a_limit_one_run_starts_no_process() -> None:
    code = (
        "import os\nos.fork = None\nimport multiprocessing.context as c\nc.SpawnProcess.start = None\n"
        f"from gradtrend.cli import main\nmain(['analyze', {str(EXPLODING)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 1
