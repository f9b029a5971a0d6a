"""All adapters, in the order in which they are asked whether a path is theirs.

A cheap test of name and first bytes stands before each, and its module is loaded only for a path that passes: reading
one small file must not load ten formats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from gradtrend.ingest.reading import SQLITE_MAGIC, Adapter, Reading, ReadOptions
from gradtrend.ingest.text_stream import encoding_of, is_compressed

_Test = Callable[[Path, bytes], bool]


def _adapter(name: str, module: str, possible: _Test) -> Adapter:
    """The adapter of a module in this room. `possible` rules out paths that it would not claim, never one it would."""
    return Adapter(name, partial(_claims, module, possible), partial(_read, module))


def _loaded(module: str) -> Adapter:
    adapter: Adapter = import_module(f"gradtrend.ingest.{module}").ADAPTER
    return adapter


def _claims(module: str, possible: _Test, path: Path, head: bytes) -> bool:
    return possible(path, head) and _loaded(module).claims(path, head)


def _read(module: str, path: Path, options: ReadOptions) -> Sequence[Reading]:
    return _loaded(module).read(path, options)


def _is_event_file(path: Path, head: bytes) -> bool:
    return b"brain.Event:" in head or "tfevents" in path.name


def _is_mlflow(path: Path, head: bytes) -> bool:
    return _is_sqlite(path, head) or "mlflow" in path.name or path.as_posix().startswith("http") or path.is_dir()


def _is_wandb(path: Path, head: bytes) -> bool:
    return head.startswith(b":W&B")


def _is_sqlite(path: Path, head: bytes) -> bool:
    return head.startswith(SQLITE_MAGIC)


def _is_anything(path: Path, head: bytes) -> bool:
    return True  # a file that cannot be opened has a name all the same


def _is_text(path: Path, head: bytes) -> bool:
    return bool(head)


def _mentions(words: tuple[bytes, ...], path: Path, head: bytes) -> bool:
    """Whether a text contains one of the words, or cannot be searched as it stands."""
    return any(word in head for word in words) or is_compressed(head) or encoding_of(head) is not None


# The sure ones first: magic bytes, then shapes of JSON, then text, where the console takes what nobody else does.
ADAPTERS: tuple[Adapter, ...] = (
    _adapter("tensorboard", "tensorboard", _is_event_file),
    _adapter("mlflow", "mlflow_store", _is_mlflow),
    _adapter("wandb", "wandb_run", _is_wandb),
    _adapter("trackio", "trackio_store", _is_sqlite),
    _adapter("trainer-state", "trainer_state", partial(_mentions, (b"{", b"["))),
    _adapter("mmengine", "mmengine_log", partial(_mentions, (b'"iter"',))),
    _adapter("jsonl", "jsonl", _is_anything),
    _adapter("tensorboard-json", "tb_json", partial(_mentions, (b"[",))),
    _adapter("csv", "csv_log", _is_text),
    _adapter("console", "console", _is_text),
)
