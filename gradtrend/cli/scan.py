"""`gradtrend scan ROOT...`: judge many runs, one record each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradtrend.cli.exit_codes import Exit
from gradtrend.cli.options import color_option, debug_option, outputs_option, reading_options, rules_option
from gradtrend.cli.output import announce, complain, emit, stdout_style, tell_failures
from gradtrend.cli.progress import Bar
from gradtrend.cli.project import config_from, config_options
from gradtrend.cli.writing.records import RecordFiles
from gradtrend.errors import ConfigError, GradtrendError
from gradtrend.loading import loaded
from gradtrend.pipeline.selection import parse_fail_on, split_list
from gradtrend.report.json.records import record_line

if TYPE_CHECKING:  # the help needs none of it
    from gradtrend.model.many.record import Record
    from gradtrend.pipeline.runs import AnalyzeOptions
    from gradtrend.pipeline.scan.engines import Engine
    from gradtrend.pipeline.scan.scan import Scanned
    from gradtrend.pipeline.scan.wanted import Wanted

_EPILOG = """\b
Exit codes:
  0    done, whatever the runs look like
  1    a finding at or above --fail-on, where that is given
  2    wrong option, rule, rule file, state or unwritable -o
  3    a ROOT could not be read (single runs that could not are in the table)
  4    a bug in gradtrend
  130  interrupted
"""
_ROWS = 20


@click.command(epilog=_EPILOG, short_help="Judge thousands of runs; only what has changed since the last time.")
@click.argument("roots", nargs=-1, required=True, type=click.Path(readable=False), metavar="ROOT...")
@outputs_option("Write a record a run: .jsonl, .parquet or .csv.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(("text", "jsonl")),
    default="text",
    show_default=True,
    help="Standard output: the worst as a table, or a record a run as soon as it is judged.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, readable=False),
    metavar="FILE",
    help="Keep what is found out here: runs that have not changed are not read again, a scan that was ended goes on.",
)
@click.option(
    "--newer-than", metavar="WHEN", help="Only runs with a log written to since: 30m, 12h, 2d, 1w, or a date."
)
@click.option(
    "--verdict", multiple=True, metavar="LIST", help="Only runs of these verdicts; sick, unreadable are two more."
)
@click.option("--include", multiple=True, metavar="GLOB", help="Only runs of such a whole name ('*/lr-0.1/*').")
@click.option("--exclude", multiple=True, metavar="GLOB", help="No runs of such a whole name.")
@click.option("--rows", type=click.IntRange(min=0), default=_ROWS, show_default=True, help="Rows of the table.")
@click.option("--shard", metavar="I/N", help="Only the I-th of N shares of the runs, for N machines or jobs.")
@click.option(
    "--merge", is_flag=True, help="Join the records of several scans: each ROOT is a file that -o has written."
)
@click.option("--processes", type=click.IntRange(min=1), metavar="N", help="So many processes.  [default: all cores]")
@click.option(
    "--engine",
    type=click.Choice(("local", "dask")),
    default="local",
    show_default=True,
    help="Who does the work: this machine, or the workers of a Dask cluster.",
)
@click.option("--scheduler", metavar="ADDRESS", help="The scheduler of the Dask cluster: tcp://host:8786.")
@click.option(
    "--fail-on",
    default="never",
    show_default=True,
    metavar="LEVEL|RULES",
    help="error, warning, info, sick, or a comma list of rule ids and names: what makes the exit code 1.",
)
@reading_options
@click.option("--select", multiple=True, metavar="RULES", help="Report these rules only (GT101, GT5, a name).")
@click.option("--ignore", multiple=True, metavar="RULES", help="Leave these rules out. The verdict stays.")
@rules_option
@config_options
@color_option
@debug_option
def scan(roots: tuple[str, ...], **given: Any) -> int:
    """Find all runs below each ROOT (a folder, a bucket, a store, whatever `analyze` takes), judge them, and keep one
    record a run: its verdict, why, what to do, and its hyperparameters.
    """
    from gradtrend.detect.rules import load_rules, with_limits
    from gradtrend.pipeline.scan.wanted import wanted_from

    options, limits = _options(given)
    rules = with_limits(load_rules(options.rules_dir), limits)
    severity, failing = parse_fail_on(given["fail_on"], rules)
    wanted = wanted_from(given["newer_than"], given["verdict"], given["include"], given["exclude"], given["shard"])
    _check(given)
    files = RecordFiles(given["outputs"], roots, given["state"], streamed=not given["merge"])
    seen = _Seen(files, given["format_"] == "jsonl")
    loaded()
    try:
        with seen.shown():
            scanned = _merged(roots, wanted, given) if given["merge"] else _scanned(roots, options, wanted, given, seen)
            if scanned.forgot:
                announce(f"--state {given['state']} was of other options, rules or another version: all was read again")
    except KeyboardInterrupt:
        return _what_is_done(seen, given)
    except GradtrendError:
        files.abandon()
        raise
    if given["format_"] == "text":
        _tell(scanned.records, scanned.tells, given)
    elif given["merge"]:
        emit("".join(map(record_line, scanned.records)))
    if scanned.failures and not scanned.records and given["outputs"]:
        files.abandon()
        announce("nothing was written: a file that is there keeps what an earlier scan has found")
    else:
        files.finish(scanned.records)
    for pattern in scanned.unmatched:
        announce(f"{pattern!r} fits no run: patterns are of whole names, as `-o` has them ('*/lr-0.1/*')")
    tell_failures(scanned.failures, given["debug"])
    if any(failure.bug for failure in scanned.failures):
        return Exit.BUG
    found = any(_fails(record, severity, failing) for record in scanned.records)
    return Exit.FOUND if found else Exit.NOT_JUDGED if scanned.failures else Exit.OK


def _options(given: dict[str, Any]) -> tuple[AnalyzeOptions, Any]:
    """What is read and judged, the settings of a project beneath the command line."""
    from gradtrend.pipeline.runs import AnalyzeOptions

    config = config_from(given["config"], given["no_config"])
    said = {name: given[name] or getattr(config, name) for name in ("metric", "loss", "lr")}
    said |= {name: given[name] for name in ("source", "columns", "run_ids", "experiment", "newest")}
    said["rules_dir"] = given["rules_dir"] or config.rules or None
    said["select"] = split_list(given["select"]) or config.select
    return AnalyzeOptions(**said, ignore=split_list(given["ignore"]), limits=config.limits), config.limits


def _check(given: dict[str, Any]) -> None:
    """Raise `ConfigError` for options that exclude or need one another."""
    if (given["engine"] == "dask") != (given["scheduler"] is not None):
        raise ConfigError("--engine dask and --scheduler ADDRESS belong together", "Start one with `dask scheduler`.")
    if given["processes"] and given["engine"] == "dask":
        raise ConfigError("--processes: the workers of the cluster are as many as there are")
    if given["merge"] and (given["state"] or given["shard"] or given["scheduler"]):
        raise ConfigError("--merge reads no logs: --state, --shard and --scheduler have no meaning there")


class _Seen:
    """The records of a scan as they come: what is written of them at once, and how far it is."""

    def __init__(self, files: RecordFiles, on_standard_output: bool) -> None:
        self.records: list[Record] = []
        self.files = files
        self._emits = on_standard_output
        self._bar = Bar("Judging")

    def heard(self, records: Sequence[Record], done: int, count: int) -> None:
        """Take what has been judged, or is known: one of so many shares of logs."""
        self.records += records
        lines = "".join(map(record_line, records)) if self._emits or self.files.are_streamed else ""
        if lines:
            self.files.add(lines)
            if self._emits:
                emit(lines)
        self._bar.show(done, count)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Leave no bar behind, whatever ends the work."""
        self._bar.announce("Looking for runs ...")
        try:
            yield
        finally:
            self._bar.clear()


def _scanned(
    roots: Sequence[str], options: AnalyzeOptions, wanted: Wanted, given: dict[str, Any], seen: _Seen
) -> Scanned:
    from gradtrend.pipeline.scan.scan import scan_all

    with _engine(given) as engine:
        tell = given["format_"] == "text"
        return scan_all(roots, options, wanted, engine, given["state"], seen.files.own, seen.heard, tell)


def _merged(paths: Sequence[str], wanted: Wanted, given: dict[str, Any]) -> Scanned:
    from gradtrend.pipeline.scan.files import merged

    return merged([Path(path) for path in paths], wanted, given["format_"] == "text")


@contextmanager
def _engine(given: dict[str, Any]) -> Iterator[Engine]:
    if given["engine"] == "dask":
        from gradtrend.pipeline.scan.dask import dask_cluster

        with dask_cluster(given["scheduler"]) as engine:
            yield engine
        return
    from gradtrend.pipeline.parallel import available_processes
    from gradtrend.pipeline.scan.engines import here

    yield here(given["processes"] or available_processes())


def _tell(records: Sequence[Record], tells: Sequence[str], given: dict[str, Any]) -> None:
    from gradtrend.report.text.scan import scan_text

    emit(scan_text(records, given["rows"], tells, stdout_style(given["color"]), bool(given["outputs"])))


def _what_is_done(seen: _Seen, given: dict[str, Any]) -> Exit:
    """Show what had been judged when the user ended it."""
    if given["format_"] == "text" and seen.records:
        _tell(seen.records, (), given)
    parts = seen.files.abandon()
    kept = f"{parts[0]} holds them, for `gradtrend scan --merge`." if parts else None
    kept = f"What was judged is kept in {given['state']}; the same call goes on from there." if given["state"] else kept
    complain(f"interrupted; runs judged: {len(seen.records):,}", kept)
    return Exit.INTERRUPTED


def _fails(record: Record, severity: Any, rules: frozenset[str]) -> bool:
    worst = record.severity
    return (severity is not None and worst is not None and worst.rank >= severity.rank) or bool(rules & {*record.rules})
