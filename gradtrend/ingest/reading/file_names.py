"""What the name of a file says."""

from __future__ import annotations

import re
from pathlib import Path

from gradtrend.ingest.files.streams import plain_name


def metric_of_file(path: Path) -> str:
    """The metric that a TensorBoard download is named for: `run-.-tag-train_grad_norm.csv`, `grad_norm (1).csv`."""
    stem = re.sub(r"\.(?:csv|json)$", "", plain_name(path), flags=re.IGNORECASE)
    stem = re.sub(r"\s*(?:\(\d+\)|- ?copy)$", "", stem, flags=re.IGNORECASE)
    return re.sub(r"^.*[-_.]?tag[-_]", "", stem) or stem
