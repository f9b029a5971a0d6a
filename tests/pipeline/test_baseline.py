from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gradtrend.errors import ConfigError
from gradtrend.pipeline.baseline import Known, baseline_text, read_baseline

KNOWN = Counter({Known("runs/b", "GT101", "norm"): 1, Known("runs/a\udcff", "GT401", "norm/x", "x"): 3})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    file.write_text(baseline_text(KNOWN, {"GT101": "exploding"}), encoding="ascii")
    assert read_baseline(file) == KNOWN


def test_the_order_of_findings_changes_nothing() -> None:
    turned = Counter(dict(reversed(KNOWN.items())))
    assert baseline_text(KNOWN, {}) == baseline_text(turned, {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"gradtrend_baseline": 2, "findings": []}',
        '{"gradtrend_baseline": 1}',
        '{"gradtrend_baseline": 1, "findings": [3]}',
        '{"gradtrend_baseline": 1, "findings": [{"run": "a"}]}',
        '{"gradtrend_baseline": 1, "findings": [{"run": "a", "rule": "GT101", "metric": 4}]}',
        '{"gradtrend_baseline": 1, "findings": [{"run": "a", "rule": "GT101", "count": 0}]}',
        '{"gradtrend_baseline": 1, "findings": [{"run": "a", "rule": "GT101", "count": true}]}',
        "[" * 100_000,
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "known.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"--baseline .*known\.json"):
        read_baseline(file)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file") as caught:
        read_baseline(tmp_path / "gone")
    assert "--write-baseline" in (caught.value.hint or "")
