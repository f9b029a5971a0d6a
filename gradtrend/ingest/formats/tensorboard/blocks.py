"""An event file in blocks of whole records, through one buffer: files of gigabytes fit, and one that is cut while it is
read only ends early (in a file that is mapped into memory, that kills the process).
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.files.regular import open_regular
from gradtrend.ingest.formats.tensorboard.checksums import FRAME_BYTES, HEADER_BYTES, header_length
from gradtrend.ingest.formats.tensorboard.records import Records, scan
from gradtrend.ingest.limits import LARGEST_RECORD
from gradtrend.model.runlog import Skipped

# More than is searched behind damage, and some 50,000 scalars: what is decoded together stays in the processor's caches
# (1,000,000 scalars took .26 s in blocks of 2 MiB, .34 s of 16 and .42 s of 64).
BLOCK_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of a file from its byte `base` on, valid until the next block is asked for, and the records within them."""

    data: memoryview
    base: int
    records: Records


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a file as long as it was when it was opened, at least one. Raises InputError where it cannot be
    read.
    """
    try:
        with open_regular(path) as file:
            yield from _blocks(file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _blocks(file: io.FileIO, size: int) -> Iterator[Block]:
    base, held, buffer = 0, 0, bytearray(min(size, BLOCK_BYTES))
    while True:
        wanted = min(len(buffer), size - base)
        held += _read_into(file, memoryview(buffer)[held:wanted])
        data = memoryview(buffer)[:held]
        records = scan(data, base, size - base if held == wanted else held)
        if held < wanted:
            short = Skipped("the file was cut while it was read", offset=base + held)
            records = replace(records, damage=(*records.damage, short), end=None)
        yield Block(data, base, records)
        if records.end is None:
            return
        if records.end:
            held -= records.end
            base += records.end
            memoryview(buffer)[:held] = data[records.end :]
            continue
        length = header_length(data[:HEADER_BYTES])
        assert length is not None  # else, so much data would do to say what follows
        if length <= LARGEST_RECORD:
            buffer = buffer + bytes(FRAME_BYTES + length - len(buffer))
        else:
            large = Skipped(f"a record of {length:,} bytes", offset=base)
            yield Block(data[:0], base, replace(records, damage=(large,)))
            base += FRAME_BYTES + length
            held = 0
            file.seek(base)


def _read_into(file: io.FileIO, room: memoryview) -> int:
    """How many bytes were read: all that there is room for, fewer where the file ends."""
    count = 0
    while count < len(room) and (read := file.readinto(room[count:])):
        count += read
    return count
