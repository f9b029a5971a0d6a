"""`gradtrend replay PATH`: re-run a captured bad step and say what it is."""

from __future__ import annotations

from pathlib import Path

import click

from gradtrend.cli.exit_codes import replay_exit_code
from gradtrend.cli.options import debug_option, output_option, rules_option
from gradtrend.cli.output import announce, emit, stdout_style
from gradtrend.cli.writing.target import prepared
from gradtrend.loading import loaded
from gradtrend.model.precision import PRECISIONS, precision_of_setting
from gradtrend.replay import ReplayOptions
from gradtrend.report import Style
from gradtrend.report.json.replay import replays_to_dict
from gradtrend.report.json.strict import strict_json
from gradtrend.report.text.replay import render_replays

_EPILOG = """\b
Exit codes:
  0    the step is finite when replayed (and no explosion), or was inspected and nothing bad was seen
  1    confirmed, or flaky
  2    wrong option or unwritable -o
  3    no capture, the step cannot be run, or --trust is needed to run it
  4    a bug in gradtrend
  130  interrupted
"""


@click.command(epilog=_EPILOG, short_help="Re-run a captured bad step and say what it is.")
@click.argument("path", type=click.Path(readable=False), metavar="PATH")
@click.option("--device", default="auto", show_default=True, metavar="NAME", help="auto, cpu, cuda, cuda:1 ...")
@click.option(
    "--precision",
    metavar="NAME",
    callback=lambda context, option, given: _precision(given),
    help=f"Replay in this precision: {', '.join(PRECISIONS)}, or a framework's name (16-mixed). Default: as captured.",
)
@click.option(
    "--trust", is_flag=True, help="Import and run the model's code. Without it the capture is inspected only."
)
@click.option("--layers", is_flag=True, help="Diagnose the step layer by layer as well (with --trust).")
@click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", show_default=True)
@output_option
@rules_option
@debug_option
def replay(
    path: str,
    device: str,
    precision: str | None,
    trust: bool,
    layers: bool,
    format_: str,
    output: Path | None,
    rules_dir: Path | None,
    debug: bool,
) -> int:
    """Replay the captured steps of PATH: a run folder, or one capture file.

    The captures of several ranks at one step are judged together.
    """
    from gradtrend.pipeline.replay import replay_path

    target = prepared(output) if output else None
    loaded()
    options = ReplayOptions(device, precision, trust, announce=announce, layers=layers)
    results = replay_path(path, options, rules_dir, output)
    code = replay_exit_code(results)
    if format_ == "json":
        text = strict_json(replays_to_dict(results, code))
    else:
        text = render_replays(results, Style() if target else stdout_style())
    if target:
        target.write(text)
    else:
        emit(text)
    return code


def _precision(given: str | None) -> str | None:
    """One of `PRECISIONS`; a framework's name for one is taken too."""
    named = given if given in PRECISIONS else precision_of_setting(given)
    if given is not None and named is None:
        raise click.BadParameter(f"{given!r} is none of {', '.join(PRECISIONS)}")
    return named
