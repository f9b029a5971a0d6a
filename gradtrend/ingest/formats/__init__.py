"""All adapters, in the order in which they are asked whether a path is theirs.

The front of each format is small: a cheap test of name and first bytes, and what the other rooms must know of the
format. Its reader is loaded only for a path that passes the test, so that reading one small file does not load ten.

Other packages bring formats by the entry point group `gradtrend.formats`; those are never guessed, only named.
"""

from __future__ import annotations

from functools import cache

from gradtrend.ingest.formats import (
    console,
    csv,
    dvclive,
    json,
    jsonl,
    mlflow,
    mmengine,
    tensorboard,
    tensorboard_json,
    trackio,
    wandb,
)  # fmt: skip
from gradtrend.ingest.reading import Adapter

# The sure ones first: magic bytes, then shapes of JSON, then text, where the console takes what nobody else does.
ADAPTERS: tuple[Adapter, ...] = (
    tensorboard.ADAPTER,
    mlflow.ADAPTER,
    wandb.ADAPTER,
    trackio.ADAPTER,
    dvclive.ADAPTER,
    json.ADAPTER,
    mmengine.ADAPTER,
    jsonl.ADAPTER,
    tensorboard_json.ADAPTER,
    csv.ADAPTER,
    console.ADAPTER,
)

read_columns = csv.read_stream  # a stream of numbers, whose columns the user names

SOURCES = ("auto", *(adapter.name for adapter in ADAPTERS))  # what `--source` takes without a look at other packages


def adapters_of(source: str) -> tuple[Adapter, ...]:
    """Whom to ask for logs of the format `source`: the shipped adapters, or the one that another package brings.

    Raises `ConfigError` for a format that there is not, or that cannot be used.
    """
    return ADAPTERS if source in SOURCES else (_of_another_package(source),)


@cache  # asked for every file of a folder
def _of_another_package(source: str) -> Adapter:
    from gradtrend.entry_points import Wanted, brought

    wanted = Wanted("gradtrend.formats", "--source", "format", source, SOURCES)
    adapter, origin = brought(wanted)
    if not isinstance(adapter, Adapter):
        raise wanted.unusable(origin, f"it is of type {type(adapter).__name__}, not gradtrend.plugins.Adapter")
    if adapter.name != source:
        raise wanted.unusable(origin, f"its adapter is named {adapter.name!r}")
    return adapter
