"""The series of a run as rows of a table."""

from __future__ import annotations

from typing import Any

from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role


def series_rows(log: RunLog) -> list[dict[str, Any]]:
    """One dict a series, gradient norms first: metric, role, layer, points, steps, segments, non-finite points."""
    import polars as pl

    rows = (
        log.table.group_by("series", maintain_order=True)
        .agg(
            pl.col("role").first().cast(pl.String),
            pl.col("layer").first().cast(pl.String),
            pl.len().alias("points"),
            pl.col("step").min().alias("first_step"),
            pl.col("step").max().alias("last_step"),
            pl.col("segment").n_unique().alias("segments"),
            (~pl.col("value").is_finite()).sum().alias("nonfinite"),
        )
        .with_columns(pl.col("series").cast(pl.String).alias("metric"))
        .drop("series")
        .to_dicts()
    )
    place = {role: i for i, role in enumerate(Role)}
    columns = ("metric", "role", "layer", "points", "first_step", "last_step", "segments", "nonfinite")
    return sorted(({c: row[c] for c in columns} for row in rows), key=lambda row: place[Role(row["role"])])
