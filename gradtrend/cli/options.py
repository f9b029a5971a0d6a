"""Options that several commands have, the same in each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

_READING = (
    click.option("--metric", metavar="NAME", help="The gradient norm's metric name."),
    click.option("--loss", metavar="NAME", help="The loss's metric name."),
    click.option("--lr", metavar="NAME", help="The learning rate's metric name."),
    click.option("--source", default="auto", show_default=True, metavar="FORMAT", help="Read only this format."),
    click.option(
        "--columns",
        metavar="NAMES",
        callback=lambda context, option, given: () if given is None else tuple(map(str.strip, given.split(","))),
        help="What the columns of bare numbers are called: step,loss,grad_norm (- for one to be left out).",
    ),
    click.option(
        "--run-id",
        "run_ids",
        multiple=True,
        metavar="ID",
        help="Only this run of a store: its id, its name, or the beginning of either. Several times for several.",
    ),
    click.option("--experiment", metavar="NAME", help="Only the runs of this experiment of a store: its name or id."),
    click.option("--newest", is_flag=True, help="Only the newest run of a store that has metrics."),
)

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, readable=False),
    callback=lambda context, option, given: None if given == Path("-") else given,
    help="Write the report to a file; - for standard output.",
)


def outputs_option(help_: str) -> Callable[[_F], _F]:
    """The files that a command writes to, each in the format of its suffix."""
    return click.option(
        "-o",
        "--output",
        "outputs",
        multiple=True,
        metavar="FILE",
        type=click.Path(path_type=Path, readable=False),
        help=f"{help_} Several times for several.",
    )


color_option = click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    show_default=True,
    help="auto: on a terminal, unless NO_COLOR is set, and wherever FORCE_COLOR is.",
)
rules_option = click.option(
    "--rules", "rules_dir", type=click.Path(path_type=Path), help="Folder of rules to add or override."
)
debug_option = click.option("--debug", is_flag=True, help="Show the traceback of an internal error.")


def reading_options(command: _F) -> _F:
    """The options that say which logs are read and which of their metrics is what."""
    for option in reversed(_READING):  # as decorators, of which the last is applied first
        command = option(command)
    return command
