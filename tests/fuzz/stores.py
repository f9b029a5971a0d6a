"""Mutated stores: databases changed by SQL and byte by byte, and the folders of MLflow's file store."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.fuzz.lines import bent_document
from tests.fuzz.values import FLOATS, INTEGERS, NAMES, NUMBERS, any_value, bent_bytes, bent_text, encoded

Tree = dict[str, bytes]  # the files of a folder by their path in it


def mutated_database(file: Path, seed: bytes, tables: Sequence[str], chance: random.Random) -> None:
    """A database written to `file`: changed by SQL, in its bytes, or both. `tables` are those that are read."""
    file.write_bytes(seed)
    if chance.random() < 0.85:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=OFF").fetchall()
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("PRAGMA foreign_keys=OFF")
            connection.execute("PRAGMA ignore_check_constraints=ON")
            connection.execute("BEGIN")
            for _ in range(chance.choice((1, 1, 2, 4, 8))):
                _change(connection, chance.choice(tables), chance)
            with suppress(sqlite3.Error):
                connection.execute("COMMIT")
    if chance.random() < 0.3:
        file.write_bytes(_bent_pages(file.read_bytes(), chance))


def _change(connection: sqlite3.Connection, table: str, chance: random.Random) -> None:
    """One statement that changes rows or the schema; what the database refuses is left."""
    with suppress(sqlite3.Error, OverflowError, UnicodeError):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        if not columns:  # dropped or renamed by a statement before
            return
        column = chance.choice(columns)
        some = chance.choice(("rowid = 5", "rowid % 3 = 0", "rowid > 20", "1", "rowid < 3"))
        match chance.randrange(12):
            case 0:
                connection.execute(f"DELETE FROM {table} WHERE {some}")
            case 1:
                others = ", ".join(f'"{name}"' for name in columns if name != column)
                connection.execute(f"INSERT INTO {table} ({others}) SELECT {others} FROM {table} WHERE {some}")
            case 2:
                connection.execute(chance.choice(_SCHEMAS).format(table=table, column=column))
            case 3:
                connection.execute(chance.choice(_WRITTEN_SCHEMAS).format(table=table), ())
            case 4:
                connection.execute(
                    f'UPDATE OR REPLACE {table} SET "{column}" = "{chance.choice(columns)}" WHERE {some}'
                )
            case _:
                statement = f'UPDATE OR IGNORE {table} SET "{column}" = ? WHERE {some}'
                connection.execute(statement, (_cell(connection, table, column, chance),))


def _cell(connection: sqlite3.Connection, table: str, column: str, chance: random.Random) -> Any:
    """A value of any type for a cell; for one that holds JSON, mostly that with a change."""
    row = connection.execute(f'SELECT "{column}" FROM {table} LIMIT 1 OFFSET ?', (chance.randrange(20),)).fetchone()
    if row and isinstance(row[0], str) and row[0].startswith("{") and chance.random() < 0.8:
        return bent_document(row[0].encode(), chance).decode("utf-8", "replace")
    match chance.randrange(6):
        case 0:
            return chance.choice(FLOATS)
        case 1:
            return chance.choice(tuple(one for one in INTEGERS if -(2**63) <= one < 2**63))
        case 2:
            return chance.choice(NUMBERS)
        case 3:
            return encoded(chance.choice(NAMES)).decode("utf-8", "replace")
        case 4:
            return None if chance.random() < 0.5 else chance.randbytes(chance.choice((0, 1, 8, 5000)))
        case _:
            return json.dumps(any_value(chance))


_SCHEMAS = (
    "ALTER TABLE {table} DROP COLUMN {column}", "ALTER TABLE {table} RENAME COLUMN {column} TO other",
    "ALTER TABLE {table} RENAME TO other", "DROP TABLE {table}", "ALTER TABLE {table} ADD COLUMN other TEXT",
    "CREATE TABLE other_{table} AS SELECT * FROM {table}", "CREATE INDEX odd ON {table}({column} COLLATE NOCASE)",
    "PRAGMA user_version = 99", "PRAGMA application_id = 7", "CREATE VIEW v AS SELECT * FROM {table}, {table}",
)  # fmt: skip
_WRITTEN_SCHEMAS = (
    "PRAGMA writable_schema=ON", "UPDATE sqlite_master SET sql = 'garbage' WHERE name = '{table}'",
    "UPDATE sqlite_master SET rootpage = 1 WHERE name = '{table}'", "DELETE FROM sqlite_master WHERE type = 'index'",
    "UPDATE sqlite_master SET rootpage = 99999 WHERE name = '{table}'",
    "UPDATE sqlite_master SET type = 'view', rootpage = 0, sql = 'CREATE VIEW {table} AS SELECT 1' "
    "WHERE name = '{table}'",
)  # fmt: skip


def _bent_pages(data: bytes, chance: random.Random) -> bytes:
    """The file with bytes of its head, of a page's head or of cells changed, pages swapped or zeroed, or cut."""
    piece = bytearray(data)
    size = 4096
    pages = max(1, len(piece) // size)
    for _ in range(chance.choice((1, 1, 3, 10))):
        page = chance.randrange(pages) * size
        match chance.randrange(7):
            case 0:
                piece[chance.randrange(16, 100)] = chance.choice((0, 1, 2, 16, 255))
            case 1:
                piece[page + chance.randrange(12)] = chance.randrange(256)
            case 2:
                other = chance.randrange(pages) * size
                piece[page : page + size] = piece[other : other + size]
            case 3:
                piece[page : page + size] = bytes(size)
            case 4 if chance.random() < 0.3:
                del piece[chance.randrange(len(piece)) :]
                return bytes(piece)
            case 5:
                at = page + chance.randrange(size - 8)
                piece[at : at + 8] = chance.randbytes(8)
            case _:
                piece[chance.randrange(len(piece))] ^= 1 << chance.randrange(8)
    return bytes(piece)


def tree_of(folder: Path) -> Tree:
    """The files of a folder; of many parameters only some."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    kept = [path for path in files if "params" not in path.parts or "model_args" in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in kept}


def mutated_tree(seed: Tree, chance: random.Random) -> Tree:
    """The files of a store, some changed in content or name, taken out, doubled or moved."""
    tree = dict(seed)
    for _ in range(chance.choice((1, 2, 4, 12))):
        paths = list(tree)
        if not paths:
            return seed
        path = chance.choice([one for one in paths if chance.random() < 0.3 or "/metrics/" in one] or paths)
        match chance.randrange(8):
            case 0:
                del tree[path]
            case 1:
                tree[_named(path, chance)] = tree.pop(path)
            case 2:
                tree[_named(path, chance)] = tree[path]
            case 3:
                tree[path] = tree[chance.choice(paths)]
            case 4:
                tree[path] = bent_bytes(tree[path], chance)
            case _:
                tree[path] = _bent_file(tree[path], chance)
    return tree or seed


def _bent_file(data: bytes, chance: random.Random) -> bytes:
    """A file of lines `time value step`, or of settings, with one to many lines changed."""
    lines = data.splitlines(keepends=True) or [b"1 2 3\n"]
    first = chance.randrange(len(lines))
    for at in range(first, min(len(lines), first + chance.choice((1, 1, 4, 1000)))):
        words = lines[at].split(b" ")
        if len(words) == 3 and chance.random() < 0.7:
            words[chance.randrange(3)] = encoded(chance.choice((*NUMBERS, *map(str, INTEGERS))))
            lines[at] = b" ".join(words)
        else:
            lines[at] = bent_text(lines[at], chance)
    return b"".join(lines)


def _named(path: str, chance: random.Random) -> str:
    """Another name in the same folder, or one below it, that a file system takes."""
    odd = chance.choice(NAMES).replace("\0", "").strip("/")[:200] or "x"
    odd = "x" if {".", ".."} & set(odd.split("/")) else odd
    folder = path.rsplit("/", 1)[0] if "/" in path else "."
    return f"{folder}/{odd}"
