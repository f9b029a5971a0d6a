"""Coverage-guided fuzzing of the readers of bytes: an input that reaches a new line of a reader is kept and mutated on.

    pip install atheris                      # libFuzzer for Python; not among the test dependencies
    python -m tests.fuzz.guided [--reader R ...] --corpus FOLDER [--executions 20000] [--rounds 50]

A reader is tried in rounds of so many executions, until a round finds no new arc: what was found at the start and at
the end is printed. The mutations know the format (records with right checksums, pickles operation by operation, lines),
with libFuzzer's own between them. Only the product's own errors may come out; anything else ends a round with its input
kept.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.captured import bent_pickle, small_capture
from tests.fuzz.lines import bent_console, mutated_lines
from tests.fuzz.messages import chunk_file, chunk_records, event_file, event_records, mutated_records
from tests.fuzz.values import NUMBERS, bent_text, encoded
from tests.places import FIXTURES

Read = Callable[[bytes], object]
_LONGEST = 16_384  # bytes of an input
_STATE = re.compile(r"#(\d+)\s+(\w+)\s+cov: (\d+) ft: \d+ corp: (\d+)/")


@dataclass(frozen=True, slots=True)
class Target:
    """A reader: how it is called (its modules are loaded within, so that they are instrumented), what it begins with,
    and how an input is mutated with its format in mind.
    """

    load: Callable[[Path], Read]
    seeds: Callable[[], list[bytes]]
    mutate: Callable[[bytes, random.Random], bytes]


def _of_file(module: str, function: str) -> Callable[[Path], Read]:
    """A reader that takes a path."""

    def load(folder: Path) -> Read:
        from importlib import import_module

        from gradtrend.errors import InputError
        from gradtrend.ingest.reading import ReadOptions

        read = getattr(import_module(module), function)
        options = (ReadOptions(),) if function == "read" else ()
        path = folder / "events.out.tfevents.1.log"

        def once(data: bytes) -> None:
            path.write_bytes(data)
            with suppress(InputError):
                read(path, *options)

        return once

    return load


def _pickle(folder: Path) -> Read:
    from gradtrend.errors import InputError
    from gradtrend.ingest.captures.pickle import load

    def once(data: bytes) -> None:
        with suppress(InputError):
            load(data, {"0": 32, "1": 16, "2": 32, "3": 16})

    return once


def _numbers(folder: Path) -> Read:
    from gradtrend.ingest.reading.numbers import could_be_cut, parse_number, whole

    def once(data: bytes) -> None:
        first, *others = data.decode("utf-8", "surrogateescape").split(",")
        parse_number(first)
        whole(first)
        could_be_cut(first, others)

    return once


def _short(pattern: str, size: int = _LONGEST) -> list[bytes]:
    return [path.read_bytes()[:size] for path in sorted(FIXTURES.glob(pattern)) if path.is_file()]


def _mutate_events(data: bytes, chance: random.Random) -> bytes:
    with suppress(Exception):  # libFuzzer's own mutations leave no records
        return event_file(mutated_records([data], chance, event_records), chance)
    return data


def _mutate_chunks(data: bytes, chance: random.Random) -> bytes:
    with suppress(Exception):
        return chunk_file(mutated_records([data], chance, chunk_records), chance, data)
    return data


TARGETS: Mapping[str, Target] = {
    "tensorboard": Target(
        _of_file("gradtrend.ingest.formats.tensorboard.reader", "read"),
        lambda: _short("runs/tensorboard/*/events*", 6000),
        _mutate_events,
    ),
    "wandb": Target(
        _of_file("gradtrend.ingest.formats.wandb.history", "history_of"),
        lambda: _short("runs/wandb/*/wandb/*/*.wandb"),
        _mutate_chunks,
    ),
    "pickle": Target(_pickle, lambda: [small_capture()["capture/data.pkl"]], bent_pickle),
    "console": Target(
        _of_file("gradtrend.ingest.formats.console.reader", "read"),
        lambda: [data for kind in ("log", "out", "txt") for data in _short(f"runs/console/*/*.{kind}", 2500)],
        lambda data, chance: mutated_lines([data], chance, bent_console),
    ),
    "numbers": Target(
        _numbers,
        lambda: [encoded(text) + b"," + encoded(text) + b",1.5e-05,2.25" for text in NUMBERS],
        bent_text,
    ),
}


def _one_round(name: str, corpus: Path, executions: int, seed: int) -> None:
    """What the process of one round does; it ends in libFuzzer."""
    import atheris

    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder, atheris.instrument_imports(include=["gradtrend.ingest"]):
        read = target.load(Path(folder))

        def mutate(data: bytes, most: int, seed: int) -> bytes:
            chance = random.Random(seed)
            if chance.random() < 0.3:
                return bytes(atheris.Mutate(data, most))
            return target.mutate(data, chance)[:most]

        kept = f"-artifact_prefix={corpus.parent}/{name}-"
        limits = [f"-runs={executions}", f"-seed={seed}", f"-max_len={_LONGEST}", "-timeout=20", "-rss_limit_mb=3000"]
        atheris.Setup(["fuzz", *limits, kept, str(corpus)], read, custom_mutator=mutate)
        atheris.Fuzz()


def _until_quiet(name: str, folder: Path, executions: int, rounds: int) -> bool:
    """Rounds until one finds no new arc; whether nothing broke."""
    corpus = folder / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds()):
        (corpus / f"seed{number}").write_bytes(seed)
    first, done = None, 0
    for turn in range(rounds):
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.guided",
            "--reader",
            name,
            "--corpus",
            str(folder),
            "--round",
            str(turn + 1),
        ]
        ended = subprocess.run([*command, "--executions", str(executions)], capture_output=True, text=True, check=False)
        states = _STATE.findall(ended.stderr)
        if ended.returncode or not states:
            print(f"{name}: broke\n{ended.stdout[-1500:]}{ended.stderr[-3000:]}")
            return False
        begun = int(next(state[2] for state in states if state[1] == "INITED"))
        first = begun if first is None else first
        done += int(states[-1][0])
        print(f"{name}: round {turn + 1}: {states[-1][2]} arcs (from {begun}), {states[-1][3]} inputs", flush=True)
        if int(states[-1][2]) == begun:
            break
    print(
        f"{name}: {done} executions, {first} arcs at the start, {states[-1][2]} at the end, {states[-1][3]} inputs kept"
    )
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided", description=__doc__.splitlines()[0])
    parser.add_argument("--reader", action="append", choices=sorted(TARGETS))
    parser.add_argument("--corpus", type=Path, required=True, help="a folder, kept from call to call")
    parser.add_argument("--executions", type=int, default=20_000, help="of a round")
    parser.add_argument("--rounds", type=int, default=50, help="at most")
    parser.add_argument("--round", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    readers = given.reader or list(TARGETS)
    if given.round is not None:
        _one_round(readers[0], given.corpus / readers[0], given.executions, given.round)
    fine = [_until_quiet(name, given.corpus, given.executions, given.rounds) for name in readers]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
