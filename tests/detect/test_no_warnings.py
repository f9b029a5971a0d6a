"""Numbers at the edge of what a float holds are judged without a word of numpy's on standard error."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import pytest

import gradtrend

EDGES = ["1e308", "-1e308", "1.7976931348623157e308", "5e-324", "0", "-0.0", "NaN", "Infinity", "-Infinity", "1e-320"]
USUAL = ["1", "2.5", "1e154", "1e-200", "3e38", "65504"]
NAMES = ["grad_norm", "loss", "lr", "val_loss", "loss_scale", "grad_norm/layer1", "grad_norm/layer2", "aux_loss"]


def rows(chance: random.Random) -> str:
    """Rows of a few metrics that take a few of the values, in steps that may begin again."""
    count = chance.choice([2, 5, 12, 40, 150])
    values = chance.sample(EDGES + USUAL, chance.randint(1, 4))
    names = chance.sample(NAMES, chance.randint(1, 6))

    def value() -> str:
        return (
            chance.choice(values) if chance.random() < 0.7 else repr(chance.lognormvariate(0, chance.choice([1, 90])))
        )

    steps = [i if chance.random() < 0.95 else 0 for i in range(count)]
    return "".join(f'{{"step": {step}, {", ".join(f"{name!r}: {value()}" for name in names)}}}\n' for step in steps)


@pytest.mark.parametrize("seed", range(3))
def test_values_at_the_edges(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "metrics.jsonl"
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for _ in range(20):
            path.write_text(rows(chance).replace("'", '"'))
            assert list(gradtrend.analyze_all(path))
