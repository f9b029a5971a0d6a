"""A reading as one table, for tests that look at rows."""

from __future__ import annotations

import polars as pl

from gradtrend.ingest.reading import POINTS_SCHEMA, Reading

SCHEMA = pl.Schema({"metric": pl.String, **POINTS_SCHEMA})


def long_table(reading: Reading) -> pl.DataFrame:
    """One row a point, one metric after another; holds that each metric has a table as it must."""
    for points in reading.series.values():
        assert points.schema == POINTS_SCHEMA
        assert points.height
    named = (points.select(pl.lit(metric).alias("metric"), pl.all()) for metric, points in reading.series.items())
    return pl.concat([pl.DataFrame(schema=SCHEMA), *named])
