"""`gradtrend analyze PATH...`: judge runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradtrend.cli.exit_codes import Exit, blamed_only, exit_code
from gradtrend.cli.options import color_option, debug_option, outputs_option, reading_options, rules_option
from gradtrend.cli.output import announce, complain, stdout_style, tell_failures
from gradtrend.cli.progress import Progress, shown
from gradtrend.cli.project import project_of, project_options
from gradtrend.cli.writing.outputs import Output, deliver, outputs_of
from gradtrend.cli.writing.target import Target, prepared
from gradtrend.errors import ConfigError
from gradtrend.loading import loaded
from gradtrend.model.report import Policy, Report, RunReport
from gradtrend.pipeline.selection import parse_fail_on, split_list
from gradtrend.report import POINTS, REPORTERS, Style, reporter

if TYPE_CHECKING:  # the help needs none of it
    from gradtrend.pipeline.settle import Settlement

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
@outputs_option("Write the report to a file, in the format of its suffix; - for standard output.")
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
@click.option("-v", "--verbose", is_flag=True, help="Text: details of each of several runs, measures, more to do next.")
@color_option
@click.option("-q", "--quiet", is_flag=True, help="Text: only runs that make the exit code non-zero.")
@click.option("--allow-undetermined", is_flag=True, help="Exit 0 where a run could not be judged or read.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever the runs look like.")
@debug_option
def analyze(paths: tuple[str, ...], **given: Any) -> int:
    """Judge the run in each PATH, or all runs of a store: a run folder, a folder of runs, a log file, a store or server
    of MLflow, the address of one of its pages, a Trackio store, a W&B folder, any of these in an object store (s3://,
    gs://, az://, hf:// ...), or - for a piped log.
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
    outputs = outputs_of(given["outputs"], given["format_"])
    baseline = prepared(given["write_baseline"]) if given["write_baseline"] else None
    _check_apart(outputs, baseline, project.baseline)
    reading = ("metric", "loss", "lr", "source", "columns", "run_ids", "experiment", "newest")
    names = (*reading, "rules_dir", "limits", "select", "ignore", "replay", "trust")
    points = max(POINTS.get(output.format, 0) for output in outputs)
    options = AnalyzeOptions(**{name: given[name] for name in names}, announce=announce, points=points)
    style = replace(stdout_style(given["color"]), verbose=given["verbose"], summary=not given["quiet"])
    in_text = any(output == Output("text") for output in outputs)
    settle = _settling(settlement)
    progress = Progress(style if in_text and not given["quiet"] else None, _below(paths), settle)
    reported = partial(Report, policy=policy, rules=rules, anchor=project.anchor, folder=project.folder)
    loaded()
    targets = [*(output.target for output in outputs), baseline]
    files = [target.path for target in targets if target is not None]
    try:
        with shown(progress):
            runs, failures = analyze_paths(paths, options, available_processes(), files, progress.heard)
    except KeyboardInterrupt:
        return _what_is_done(progress, outputs, policy, style, reported)
    runs = tuple(map(settle, runs))
    report = reported(exit_code(runs, failures, policy, given["exit_zero"]), runs, failures)
    if baseline is not None:
        baseline.write(settlement.baseline())
    _deliver(report, outputs, policy, style, progress.streamed)
    for remark in project.remarks(settlement):
        announce(remark)
    tell_failures(failures, given["debug"], in_text)
    return report.exit_code


def _check_apart(outputs: Sequence[Output], written: Target | None, read: Path | None) -> None:
    """Raise `ConfigError` where a report would replace the file of known findings, the one read or the one written."""
    kept = {os.path.realpath(path) for path in (written.path if written else None, read) if path is not None}
    for output in outputs:
        if output.target is not None and os.path.realpath(output.target.path) in kept:
            raise ConfigError(f"-o {output.target.path}: holds the known findings", "Name another file for the report.")


def _settling(settlement: Settlement) -> Callable[[RunReport], RunReport]:
    """What settles each run once: a run whose row is shown as it is judged stands in the report too."""
    known: dict[int, tuple[RunReport, RunReport]] = {}

    def settle(run: RunReport) -> RunReport:
        if id(run) not in known:
            known[id(run)] = run, settlement.settled(run)  # the run too, so that no other gets its number
        return known[id(run)][1]

    return settle


def _what_is_done(
    progress: Progress, outputs: Sequence[Output], policy: Policy, style: Style, reported: Callable[..., Report]
) -> Exit:
    """Show what had been judged when the user ended it; files are left as they were."""
    if not progress.runs:
        return Exit.INTERRUPTED
    report = reported(Exit.INTERRUPTED, tuple(progress.runs), tuple(progress.failures))
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
    from gradtrend.pipeline.inputs import told
    from gradtrend.report.text.table import common_folder

    return common_folder([f"{told(path).rstrip('/')}/" for path in (*paths, paths[0])])


def _known_report(name: str | None) -> str | None:
    if name is not None:
        reporter(name)  # before a log is read: an error for a report that there is not
    return name
