"""`gradtrend config`: which settings are in force, and where they come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradtrend.cli.options import debug_option
from gradtrend.cli.output import emit
from gradtrend.cli.project import config_from, config_options
from gradtrend.report import escape
from gradtrend.report.json.strict import strict_json

if TYPE_CHECKING:
    from gradtrend.pipeline.config import Config, Setting

_NONE = {"select": "all rules", "ignore": "nothing"}


@click.command(short_help="Show which settings are in force, and where they come from.")
@click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", show_default=True)
@config_options
@debug_option
def config(format_: str, config: Path | None, no_config: bool, debug: bool) -> None:
    """Show the settings that `gradtrend analyze` takes here, and the file that each comes from.

    They stand in gradtrend.toml, or in `[tool.gradtrend]` of pyproject.toml: the first of these that is found from the
    working folder upward.
    """
    from gradtrend.pipeline.config import settings_in_force

    found = config_from(config, no_config)
    settings = settings_in_force(found)
    emit(strict_json(_as_json(found, settings)) if format_ == "json" else _as_text(found, settings))


def _as_json(config: Config, settings: list[Setting]) -> dict[str, object]:
    return {
        "file": None if config.file is None else str(config.file),
        "settings": [{"key": one.key, "value": one.value, "origin": one.origin or "default"} for one in settings],
    }


def _as_text(config: Config, settings: list[Setting]) -> str:
    lines = [f"Settings: {escape(str(config.file)) if config.file else 'none found; these are the defaults'}", ""]
    width = max(len(one.key) for one in settings)
    for one in settings:
        origin = "" if one.origin is None else "  (set there)"
        for place, value in enumerate(_shown(one)):
            lines.append(f"  {escape(one.key) if place == 0 else '':<{width}}  {escape(value)}{origin}")
    return "".join(f"{line}\n" for line in lines)


def _shown(setting: Setting) -> list[str]:
    value = setting.value
    if value in (None, []):
        return [_NONE.get(setting.key, "-")]
    if setting.key == "ignore":
        return [_ignore(one) for one in value]
    if isinstance(value, list):
        return [", ".join(map(str, value))]
    return [value if isinstance(value, str) else json.dumps(value)]


def _ignore(table: dict[str, str]) -> str:
    of = ", ".join(f"{key} {table[key]}" for key in ("metric", "run") if key in table)
    return table["rule"] + (f" ({of})" if of else "") + (f": {table['reason']}" if "reason" in table else "")
