"""`gradtrend series PATH`: what was found in a run, before any judgement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradtrend.cli.exit_codes import exit_code
from gradtrend.cli.options import debug_option, reading_options
from gradtrend.cli.output import emit, stdout_style, tell_failures
from gradtrend.cli.project import config_from, config_options
from gradtrend.loading import loaded
from gradtrend.model.report import Policy
from gradtrend.report.json.series import log_to_dict
from gradtrend.report.json.strict import strict_json
from gradtrend.report.text.series import log_text

if TYPE_CHECKING:  # the help of all commands loads this file
    from gradtrend.cli.writing.target import Target
    from gradtrend.model.runlog import RunLog


@click.command(short_help="List what was found: sources, metrics, roles, skipped lines.")
@click.argument("path", type=click.Path(readable=False), metavar="PATH")
@click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, readable=False),
    help="Write all values to a table: a file that ends in .parquet or .csv.",
)
@reading_options
@config_options
@debug_option
def series(
    path: str,
    format_: str,
    output: Path | None,
    debug: bool,
    config: Path | None,
    no_config: bool,
    **given: Any,
) -> int:
    """List the sources of a run, every metric with its role, points and steps, and what was skipped."""
    from gradtrend.cli.writing.outputs import table_target
    from gradtrend.pipeline.parallel import available_processes
    from gradtrend.pipeline.runs import AnalyzeOptions
    from gradtrend.pipeline.series import logged_series, read_path

    settings = config_from(config, no_config)
    given |= {name: given[name] or getattr(settings, name) for name in ("metric", "loss", "lr")}
    loaded()
    target = None if output is None else table_target(output)
    logs, failures = read_path(path, AnalyzeOptions(**given), available_processes(), output)
    if target is not None:
        if logs:
            _write_table(logs, target)
    elif format_ == "json":
        emit(strict_json({"runs": [log_to_dict(log, logged_series(log)) for log in logs]}))
    else:
        style = stdout_style()
        emit("\n".join(log_text(log, logged_series(log), style) for log in logs))
    tell_failures(failures, debug)
    return exit_code((), failures, Policy())


def _write_table(logs: Sequence[RunLog], target: Target) -> None:
    from gradtrend.pipeline.programs.tables import frame_of, table_bytes

    frame = frame_of(logs)
    target.write(table_bytes(frame, target.path.suffix))
    runs = f"{len(logs)} run{'s' * (len(logs) != 1)}"
    emit(f"{runs}: {len(frame):,} values of {frame['metric'].n_unique():,} metrics\n")
