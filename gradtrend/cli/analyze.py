"""`gradtrend analyze PATH...`: judge runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from gradtrend.cli.exit_codes import blamed_only, exit_code
from gradtrend.cli.job_summary import add_to_job_summary
from gradtrend.cli.options import debug_option, output_option, reading_options, rules_option
from gradtrend.cli.output import announce, emit, stdout_style, tell_failures
from gradtrend.cli.project import project_of, project_options
from gradtrend.cli.target import Target, prepared
from gradtrend.loading import loaded
from gradtrend.model.report import Policy, Report
from gradtrend.pipeline.selection import parse_fail_on, split_list
from gradtrend.report import POINTS, REPORTERS, Style, reporter

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
    default="text",
    show_default=True,
    metavar=f"[{'|'.join(REPORTERS)}|NAME]",
    callback=lambda context, option, given: _known_report(given),
    shell_complete=lambda context, option, typed: [name for name in REPORTERS if name.startswith(typed)],
    help="NAME: a report that an installed package brings.",
)
@output_option
@click.option(
    "--fail-on",
    metavar="LEVEL|RULES",
    help="error, warning, info, never, sick, or a comma list of rule ids and names: what makes the exit code 1.  "
    "[default: error]",
)
@reading_options
@click.option("--select", multiple=True, metavar="RULES", help="Report these rules only (GT101, GT5, a name).")
@click.option("--ignore", multiple=True, metavar="RULES", help="Leave these rules out. The verdict stays.")
@rules_option
@project_options
@click.option("--replay", is_flag=True, help="Replay the run's captured steps too (inspect them, without --trust).")
@click.option("--trust", is_flag=True, help="With --replay: import and run the captured model's code.")
@click.option("-v", "--verbose", is_flag=True, help="Text: the measures behind each finding, and more to do next.")
@click.option("-q", "--quiet", is_flag=True, help="Text: only runs that make the exit code non-zero.")
@click.option("--allow-undetermined", is_flag=True, help="Exit 0 where a run could not be judged or read.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever the runs look like.")
@debug_option
def analyze(paths: tuple[str, ...], **given: Any) -> int:
    """Judge the run in each PATH, or all runs of a store: a run folder, a folder of runs, a log file, a store or server
    of MLflow, the address of one of its pages, a Trackio store, a W&B folder, or - for a piped log.
    """
    from gradtrend.detect.rules import load_rules, with_limits
    from gradtrend.pipeline.analyze import analyze_paths
    from gradtrend.pipeline.parallel import available_processes
    from gradtrend.pipeline.runs import AnalyzeOptions

    given |= {option: split_list(given[option]) for option in ("select", "ignore")}
    project = project_of(given)
    given = project.given
    rules = with_limits(load_rules(given["rules_dir"]), given["limits"])
    policy = Policy(*parse_fail_on(given["fail_on"], rules), given["allow_undetermined"])
    settlement = project.settlement(policy)
    target = prepared(given["output"]) if given["output"] else None
    baseline = prepared(given["write_baseline"]) if given["write_baseline"] else None
    reading = ("metric", "loss", "lr", "source", "columns", "run_ids", "experiment", "newest")
    names = (*reading, "rules_dir", "limits", "select", "ignore", "replay", "trust")
    points = POINTS.get(given["format_"], 0)
    options = AnalyzeOptions(**{name: given[name] for name in names}, announce=announce, points=points)
    loaded()
    outputs = [one.path for one in (target, baseline) if one is not None]
    runs, failures = analyze_paths(paths, options, available_processes(), outputs)
    runs = tuple(map(settlement.settled, runs))
    code = exit_code(runs, failures, policy, given["exit_zero"])
    report = Report(code, runs, failures, policy, rules, project.anchor, project.folder)
    if baseline is not None:
        baseline.write(settlement.baseline())
    _deliver(report, policy, given["format_"], target, given["quiet"], given["verbose"])
    for remark in project.remarks(settlement):
        announce(remark)
    shown = given["format_"] == "text" and target is None
    tell_failures(failures, given["debug"], shown)
    return report.exit_code


def _known_report(name: str) -> str:
    reporter(name)  # before a log is read: an error for a report that there is not
    return name


def _deliver(report: Report, policy: Policy, format_: str, target: Target | None, quiet: bool, verbose: bool) -> None:
    style = replace(Style() if target else stdout_style(), verbose=verbose)
    if quiet and format_ == "text":
        report = blamed_only(report, policy)
        style = replace(style, summary=False)
    text = reporter(format_)(report, style)
    if target:
        target.write(text)
    elif text:
        emit(text)
    if format_ == "github":
        add_to_job_summary(report)
