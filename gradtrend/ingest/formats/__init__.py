"""All adapters, in the order in which they are asked whether a path is theirs.

The front of each format is small: a cheap test of name and first bytes, and what the other rooms must know of the
format. Its reader is loaded only for a path that passes the test, so that reading one small file does not load ten.
"""

from __future__ import annotations

from gradtrend.ingest.formats import (
    console,
    csv,
    json,
    jsonl,
    mlflow,
    mmengine,
    tensorboard,
    tensorboard_json,
    trackio,
    wandb,
)  # fmt: skip
from gradtrend.ingest.reading import Adapter

# The sure ones first: magic bytes, then shapes of JSON, then text, where the console takes what nobody else does.
ADAPTERS: tuple[Adapter, ...] = (
    tensorboard.ADAPTER,
    mlflow.ADAPTER,
    wandb.ADAPTER,
    trackio.ADAPTER,
    json.ADAPTER,
    mmengine.ADAPTER,
    jsonl.ADAPTER,
    tensorboard_json.ADAPTER,
    csv.ADAPTER,
    console.ADAPTER,
)
