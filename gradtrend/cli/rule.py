"""`gradtrend rule [ID]`: what a rule means, its limits, its actions."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gradtrend.cli.options import debug_option, rules_option
from gradtrend.cli.output import emit, stdout_style
from gradtrend.cli.project import config_from, config_options
from gradtrend.errors import ConfigError
from gradtrend.pipeline.selection import near
from gradtrend.report import escape
from gradtrend.report.json.rule import rule_to_dict
from gradtrend.report.json.strict import strict_json
from gradtrend.report.text.rule import rule_page, rule_table


@click.command(short_help="Explain a rule, or list all rules.")
@click.argument("name", required=False, metavar="[ID|NAME]")
@click.option("--format", "format_", type=click.Choice(("text", "json", "toml")), default="text", show_default=True)
@rules_option
@config_options
@debug_option
def rule(
    name: str | None, format_: str, rules_dir: Path | None, config: Path | None, no_config: bool, debug: bool
) -> None:
    """Print what a rule means, its measures and limits and why, what it does not see, and its actions.

    Without an id, list all rules. Limits are shown as the project's settings have them. `--format toml` prints the
    rule's file: change a limit in it and put it in a folder that `gradtrend analyze --rules FOLDER` reads.
    """
    from gradtrend.detect.rules import load_rules, rule_text, with_limits

    settings = config_from(config, no_config)
    folders = settings.rules if rules_dir is None else (rules_dir,)
    rules = with_limits(load_rules(folders), settings.limits, str(settings.file))
    if name is None:
        if format_ == "toml":
            raise ConfigError("--format toml prints one rule", "Name it: gradtrend rule GT101 --format toml")
        table = [rule_to_dict(one) for one in rules]
        emit(strict_json(table) if format_ == "json" else rule_table(rules, stdout_style()))
        return
    found = next((one for one in rules if name.upper() in (one.id.upper(), one.name.upper())), None)
    if found is None:
        raise ConfigError(f"no rule {name!r}", near(name, rules))
    if format_ == "toml":
        emit(_shown(rule_text(found.id, folders)))
    else:
        emit(strict_json(rule_to_dict(found)) if format_ == "json" else rule_page(found, stdout_style()))


def _shown(text: str) -> str:
    """A rule's file: byte for byte where it is redirected, without what a terminal would obey where it is shown."""
    if sys.stdout is None or not sys.stdout.isatty():
        return text
    return "\n".join("\t".join(map(escape, line.split("\t"))) for line in text.split("\n"))
