"""A sweep as people run them: many runs with settings of their own, of which those with a high learning rate fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

TOO_HIGH = 0.1


def make_sweep(root: Path, runs: int = 48, steps: int = 200) -> None:
    """Runs `lr-<rate>/run-<n>` below a folder: with a rate above 0.1 norm and loss climb, of every other to NaN."""
    rng = np.random.default_rng(5)
    rates = 10 ** rng.uniform(-4, 0, runs // 4)
    for run in range(runs):
        rate, seed = float(f"{rates[run // 4]:.1e}"), run % 4
        folder = root / f"lr-{rate:g}" / f"run-{run:02d}"
        folder.mkdir(parents=True)
        settings = {"lr": rate, "seed": seed, "width": [64, 128, 256][run % 3], "precision": "bf16-mixed"}
        (folder / "hparams.yaml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
        norm = np.exp(rng.normal(0, 0.2, steps))
        loss = 0.5 + 2 * np.exp(-5 * np.arange(steps) / steps) + rng.normal(0, 0.02, steps)
        if rate > TOO_HIGH:
            since = int(steps * rng.uniform(0.3, 0.7))
            norm[since:] *= 10 ** np.linspace(0, 5, steps - since)
            loss[since:] += np.linspace(0, 4, steps - since)
            if seed % 2:
                norm[-20:] = loss[-20:] = np.nan
        rows = ({"step": 10 * i, "train_loss": loss[i], "grad_norm": norm[i]} for i in range(steps))
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
