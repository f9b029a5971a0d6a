"""`gradtrend series PATH`: what was found in a run, before any judgement."""

from __future__ import annotations

from typing import Any

import click

from gradtrend.cli.exit_codes import Policy, exit_code
from gradtrend.cli.output import complain_of, emit, stdout_style, tell
from gradtrend.report.json.series import log_to_dict
from gradtrend.report.json.strict import strict_json
from gradtrend.report.text.series import log_text


@click.command(short_help="List what was found: sources, metrics, roles, skipped lines.")
@click.argument("path", type=click.Path(), metavar="PATH")
@click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--metric", metavar="NAME", help="The gradient norm's metric name.")
@click.option("--loss", metavar="NAME", help="The loss's metric name.")
@click.option("--lr", metavar="NAME", help="The learning rate's metric name.")
@click.option("--source", default="auto", show_default=True, metavar="FORMAT", help="Read only this format.")
@click.option("--run-id", metavar="ID", help="Which run of a store that holds several.")
@click.option("--debug", is_flag=True, help="Show the traceback of an internal error.")
def series(path: str, format_: str, debug: bool, **given: Any) -> int:
    """List the sources of a run, every metric with its role, points and steps, and what was skipped."""
    from gradtrend.pipeline.runs import AnalyzeOptions
    from gradtrend.pipeline.series import logged_series, read_path

    logs, failures = read_path(path, AnalyzeOptions(**given))
    if format_ == "json":
        emit(strict_json({"runs": [log_to_dict(log, logged_series(log)) for log in logs]}))
    else:
        style = stdout_style()
        emit("\n".join(log_text(log, logged_series(log), style) for log in logs))
    for failure in failures:
        complain_of(failure)
        if failure.bug and debug:
            tell(failure.bug)
    return exit_code((), failures, Policy())
