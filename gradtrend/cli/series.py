"""`gradtrend series PATH`: what was found in a run, before any judgement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


@click.command(short_help="List what was found: sources, metrics, roles, skipped lines.")
@click.argument("path", type=click.Path(readable=False), metavar="PATH")
@click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", show_default=True)
@reading_options
@config_options
@debug_option
def series(path: str, format_: str, debug: bool, config: Path | None, no_config: bool, **given: Any) -> int:
    """List the sources of a run, every metric with its role, points and steps, and what was skipped."""
    from gradtrend.pipeline.parallel import available_processes
    from gradtrend.pipeline.runs import AnalyzeOptions
    from gradtrend.pipeline.series import logged_series, read_path

    settings = config_from(config, no_config)
    given |= {name: given[name] or getattr(settings, name) for name in ("metric", "loss", "lr")}
    loaded()
    logs, failures = read_path(path, AnalyzeOptions(**given), available_processes())
    if format_ == "json":
        emit(strict_json({"runs": [log_to_dict(log, logged_series(log)) for log in logs]}))
    else:
        style = stdout_style()
        emit("\n".join(log_text(log, logged_series(log), style) for log in logs))
    tell_failures(failures, debug)
    return exit_code((), failures, Policy())
