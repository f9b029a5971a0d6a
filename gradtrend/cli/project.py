"""What a project says of its calls: the options that name its settings, baseline and anchor, and what wins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gradtrend.errors import ConfigError
from gradtrend.model.identity import below
from gradtrend.model.report import Anchor

if TYPE_CHECKING:
    from gradtrend.model.report import Policy
    from gradtrend.pipeline.config import Config
    from gradtrend.pipeline.settle import Settlement

_F = TypeVar("_F", bound=Callable[..., Any])

_CONFIG = (
    click.option(
        "--config",
        type=click.Path(path_type=Path, readable=False),
        metavar="FILE",
        help="The settings: gradtrend.toml or a pyproject.toml. By itself the first that is found upward.",
    ),
    click.option("--no-config", is_flag=True, help="Take no settings from files."),
)
_PROJECT = (
    *_CONFIG,
    click.option(
        "--baseline",
        type=click.Path(path_type=Path, readable=False),
        metavar="FILE",
        help="Findings that are known: they are shown as such and do not fail.",
    ),
    click.option(
        "--write-baseline",
        type=click.Path(path_type=Path, readable=False),
        metavar="FILE",
        help="Write the findings that fail to a file, as known from now on.",
    ),
    click.option(
        "--anchor",
        metavar="FILE[:LINE]",
        help="sarif, github, gitlab: tell findings at this file of the repository (train.yaml).",
    ),
)


def config_options(command: _F) -> _F:
    """The options that say which settings are in force."""
    return _with(command, _CONFIG)


def project_options(command: _F) -> _F:
    """These, and what else a project has: known findings, and a file to tell findings at."""
    return _with(command, _PROJECT)


def _with(command: _F, options: tuple[Callable[[_F], _F], ...]) -> _F:
    for option in reversed(options):  # as decorators, of which the last is applied first
        command = option(command)
    return command


def config_from(config: Path | None, no_config: bool) -> Config:
    """The settings that are in force. Raises ConfigError."""
    from gradtrend.pipeline.config import Config, load_config

    if config is not None and no_config:
        raise ConfigError("--config and --no-config exclude each other")
    return Config() if no_config else load_config(Path(working_folder()), config)


@dataclass(frozen=True, slots=True)
class Project:
    """What is in force for one call of `analyze`: the settings, and what the command line says in place of them."""

    config: Config
    given: dict[str, Any]
    folder: str
    anchor: Anchor | None

    def settlement(self, policy: Policy) -> Settlement:
        """What ignores and knows findings: the settings' ignores only where the command line has none."""
        from collections import Counter

        from gradtrend.pipeline.baseline import read_baseline
        from gradtrend.pipeline.settle import Settlement

        ignores = () if self.given["ignore"] else self.config.ignore
        known = Counter() if self.baseline is None else read_baseline(self.baseline)
        return Settlement(ignores, known, policy, self.folder, self.given["write_baseline"] is not None)

    @property
    def baseline(self) -> Path | None:
        """The file of known findings."""
        found: Path | None = self.given["baseline"] or self.config.baseline
        return found

    def remarks(self, settlement: Settlement) -> list[str]:
        """What of the settings and the baseline matched nothing."""
        from gradtrend.pipeline.settle import remarks

        return remarks(settlement, self.config.file, self.baseline)


def project_of(given: dict[str, Any]) -> Project:
    """The settings beneath the options of a call: what is given on the command line wins. Raises ConfigError."""
    from gradtrend.pipeline.config.settings import FAIL_ON

    config = config_from(given["config"], given["no_config"])
    below_it = {
        "fail_on": config.fail_on or FAIL_ON,
        "select": config.select,
        "metric": config.metric,
        "loss": config.loss,
        "lr": config.lr,
        "rules_dir": config.rules or None,
    }
    merged = given | {name: value for name, value in below_it.items() if not given[name] and given[name] != ""}
    folder = working_folder()
    return Project(config, merged | {"limits": config.limits}, folder, anchor_at(given["anchor"], folder))


def working_folder() -> str:
    """The absolute path of the working folder. Raises ConfigError where it has been deleted."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise ConfigError(
            "the working folder does not exist any more", "Go to another folder, and call again."
        ) from None


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # longer than names are, or with a NUL
        return False


def anchor_at(text: str | None, folder: str) -> Anchor | None:
    """`--anchor FILE[:LINE]`. Raises ConfigError for a file that is not there, or not below the working folder."""
    if text is None:
        return None
    file, line = text, None
    head, colon, tail = text.rpartition(":")
    if not _is_file(text) and colon and tail.isascii() and tail.isdigit():
        file, line = head, int(tail[:9])
    if not _is_file(file):
        raise ConfigError(f"--anchor {text}: no such file", "Name a file of the repository: --anchor train.yaml:12")
    path = below(file, folder)
    if path is None or line == 0:
        what = "lines are counted from 1" if line == 0 else "lies outside the working folder"
        raise ConfigError(f"--anchor {text}: {what}")
    return Anchor(path, line)
