"""What was found in a run, before any judgement: sources, metrics, and why each was or was not used."""

from __future__ import annotations

from collections.abc import Callable

from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role
from gradtrend.report.escape import escape, shorten
from gradtrend.report.json import Json, source_to_dict
from gradtrend.report.numbers import steps
from gradtrend.report.style import Style
from gradtrend.report.text import source_lines
from gradtrend.report.why import listed, wrapped

_NAME = 40  # columns for a metric's name
_LOOKS_LIKE = ("grad", "norm")
_HEAD = ("metric", "role", "layer", "points", "steps", "parts", "NaN/inf")


def log_to_dict(log: RunLog, explain: Callable[[str], str]) -> Json:
    """One run's sources and series. `explain` says why a metric has its role."""
    return {
        "run": log.run,
        "sources": [source_to_dict(source) for source in log.sources],
        "series": [row | {"why": explain(row["metric"])} for row in series_rows(log)],
        "notes": [
            {"kind": n.kind, "message": n.message, "metric": n.metric, "first_step": n.first_step} for n in log.notes
        ],
        "captures": [{"path": c.path, "kind": c.kind, "step": c.step} for c in log.captures],
    }


def series_rows(log: RunLog) -> list[Json]:
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


def log_text(log: RunLog, explain: Callable[[str], str], style: Style) -> str:
    """The same for a person; reasons only for gradient norms and for names that look like one."""
    lines = [style.paint(escape(log.run), "bold"), "", style.paint("Sources", "bold")]
    lines += source_lines(log.sources, style) or ["  none"]
    rows = series_rows(log)
    lines += ["", style.paint("Series", "bold"), *_table(rows, style)]
    lines += ["", style.paint("Why taken as the gradient norm, or not", "bold"), *_reason_lines(rows, explain, style)]
    notes = [line for note in log.notes for line in wrapped(f"{note.kind}: {note.message}", style, rest="    ")]
    if notes:
        lines += ["", style.paint("Noticed while reading", "bold"), *notes]
    return "".join(f"{line}\n" for line in lines)


def _reason_lines(rows: list[Json], explain: Callable[[str], str], style: Style) -> list[str]:
    """Reasons for gradient norms and for names that look like one, the metrics of one reason together."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["role"] == Role.GRAD_NORM or any(word in row["metric"].lower() for word in _LOOKS_LIKE):
            reasons.setdefault(explain(row["metric"]), []).append(row["metric"])
    lines = [
        line
        for reason, names in reasons.items()
        for line in wrapped(f"{listed(names, style)}: {reason}", style, rest="    ")
    ]
    if not any(row["role"] == Role.GRAD_NORM for row in rows):
        lines += wrapped("No series is taken as the gradient norm; --metric NAME names it.", style)
    return lines


def _table(rows: list[Json], style: Style) -> list[str]:
    mark = style.sign("…", "~")
    cells = [_HEAD] + [
        (
            shorten(escape(row["metric"]), _NAME, mark),
            row["role"],
            shorten(escape(row["layer"] or "-"), _NAME // 2, mark),
            str(row["points"]),
            steps(row["first_step"], row["last_step"]).removeprefix("steps ").removeprefix("step ") or "-",
            str(row["segments"]),
            str(row["nonfinite"]),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    ]
