"""`gradtrend analyze PATH...`: judge runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from gradtrend.cli.exit_codes import Exit, Policy, blamed_only, exit_code, parse_fail_on
from gradtrend.cli.options import color_option, debug_option, outputs_option, reading_options, rules_option
from gradtrend.cli.output import announce, complain, stdout_style, tell_failures
from gradtrend.cli.outputs import Output, deliver, outputs_of
from gradtrend.cli.progress import Progress, shown
from gradtrend.loading import loaded
from gradtrend.model.report import Report
from gradtrend.pipeline.selection import split_list
from gradtrend.report import REPORTERS, Style, reporter

_EPILOG = """\b
Exit codes:
  0    every run judged, nothing at or above --fail-on
  1    a finding at or above --fail-on
  2    wrong option, rule id, rule file or unwritable -o
  3    a run could not be judged or read
  4    a bug in gradtrend
  130  interrupted
"""


@click.command(epilog=_EPILOG, short_help="Judge training runs from their logs.")
@click.argument("paths", nargs=-1, required=True, type=click.Path(readable=False), metavar="PATH...")
@click.option(
    "--format",
    "format_",
    show_default="text, or by the suffix of -o",
    metavar=f"[{'|'.join(REPORTERS)}|NAME]",
    callback=lambda context, option, given: _known_report(given),
    shell_complete=lambda context, option, typed: [name for name in REPORTERS if name.startswith(typed)],
    help="NAME: a report that an installed package brings.",
)
@outputs_option
@click.option(
    "--fail-on",
    default="error",
    show_default=True,
    metavar="LEVEL|RULES",
    help="error, warning, info, never, or a comma list of rule ids and names: what makes the exit code 1.",
)
@reading_options
@click.option("--select", multiple=True, metavar="RULES", help="Report these rules only (GT101, GT5, a name).")
@click.option("--ignore", multiple=True, metavar="RULES", help="Leave these rules out. The verdict stays.")
@rules_option
@click.option("--replay", is_flag=True, help="Replay the run's captured steps too (inspect them, without --trust).")
@click.option("--trust", is_flag=True, help="With --replay: import and run the captured model's code.")
@click.option("-v", "--verbose", is_flag=True, help="Text: details of each of several runs, measures, more to do next.")
@color_option
@click.option("-q", "--quiet", is_flag=True, help="Text: only runs that make the exit code non-zero.")
@click.option("--allow-undetermined", is_flag=True, help="Exit 0 where a run could not be judged or read.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever the runs look like.")
@debug_option
def analyze(paths: tuple[str, ...], **given: Any) -> int:
    """Judge the run in each PATH, or all runs of a store: a run folder, a folder of runs, a log file, a store or server
    of MLflow, the address of one of its pages, a Trackio store, a W&B folder, or - for a piped log.
    """
    from gradtrend.detect.rules import load_rules
    from gradtrend.pipeline.analyze import analyze_paths
    from gradtrend.pipeline.parallel import available_processes
    from gradtrend.pipeline.runs import AnalyzeOptions

    rules = load_rules(given["rules_dir"])
    given |= {option: split_list(given[option]) for option in ("select", "ignore")}
    policy = Policy(*parse_fail_on(given["fail_on"], rules), given["allow_undetermined"])
    outputs = outputs_of(given["outputs"], given["format_"])
    reading = ("metric", "loss", "lr", "source", "columns", "run_ids", "experiment", "newest")
    names = (*reading, "rules_dir", "select", "ignore", "replay", "trust")
    options = AnalyzeOptions(**{name: given[name] for name in names}, announce=announce)
    style = replace(stdout_style(given["color"]), verbose=given["verbose"], summary=not given["quiet"])
    in_text = any(output == Output("text") for output in outputs)
    progress = Progress(style if in_text and not given["quiet"] else None, _below(paths))
    loaded()
    files = [output.target.path for output in outputs if output.target is not None]
    try:
        with shown(progress):
            runs, failures = analyze_paths(paths, options, available_processes(), files, progress.heard)
    except KeyboardInterrupt:
        return _what_is_done(progress, outputs, policy, style)
    report = Report(exit_code(runs, failures, policy, given["exit_zero"]), runs, failures)
    _deliver(report, outputs, policy, style, progress.streamed)
    tell_failures(failures, given["debug"], in_text)
    return report.exit_code


def _what_is_done(progress: Progress, outputs: Sequence[Output], policy: Policy, style: Style) -> Exit:
    """Show what had been judged when the user ended it; files are left as they were."""
    if not progress.runs:
        return Exit.INTERRUPTED
    report = Report(Exit.INTERRUPTED, tuple(progress.runs), tuple(progress.failures))
    standard = [output for output in outputs if output.target is None]
    if standard:
        _deliver(report, standard, policy, style, progress.streamed)
    of = "" if progress.count is None else f", {progress.done} of {progress.count} logs read"
    no_file = "No file was written." if len(standard) < len(outputs) else None
    complain(f"interrupted; runs judged: {len(progress.runs)}{of}", no_file)
    return Exit.INTERRUPTED


def _deliver(report: Report, outputs: Sequence[Output], policy: Policy, style: Style, streamed: bool) -> None:
    """Write each report; with `--quiet` the text has those runs only that are to blame for the exit code."""
    if style.summary:
        deliver(report, outputs, style, streamed)
        return
    for output in outputs:
        deliver(blamed_only(report, policy) if output.format == "text" else report, [output], style)


def _below(paths: Sequence[str]) -> str:
    """The folder that all runs of a call will lie below."""
    from gradtrend.report.text.table import common_folder

    return common_folder([f"{path.rstrip('/')}/" for path in (*paths, paths[0])])


def _known_report(name: str | None) -> str | None:
    if name is not None:
        reporter(name)  # before a log is read: an error for a report that there is not
    return name
