"""Fuzzing by hand: mutated logs of every format, judged one after another, and what broke.

    python -m tests.fuzz.run [--format F ...] [--executions N] [--seconds S] [--seed N] [--only NUMBER] [--kept FOLDER]

An execution is given by format, seed and number alone, and can be done again with `--only`. What breaks is kept with
its input in a folder of its own under `--kept`. It takes some 15 ms; several seeds may run at once, best with TMPDIR in
memory. How a format is added is said in `forms.py`, what is checked in `execution.py`; `guided.py` looks for new lines
of the readers of bytes.
"""

from __future__ import annotations

import argparse
import faulthandler
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.execution import SECONDS, Bench
from tests.fuzz.forms import FORMS

_TOLD = 3  # of one kind are kept and shown
_BACKSTOP = 10 * SECONDS  # for code in C, which no signal handler reaches: the process then says where it is and ends


@dataclass(slots=True)
class Tally:
    """What was done of one format, and what broke, by the last line that tells the kind. `slowest` is the longest
    execution, in seconds, and its number: what took far longer than others is worth a look.
    """

    executions: int = 0
    seconds: float = 0.0
    slowest: tuple[float, int] = (0.0, 0)
    broken: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def add(self, number: int, seconds: float, what: str | None) -> int:
        """Counts an execution, and what it broke; how often that kind has been broken by now."""
        self.executions += 1
        self.seconds += seconds
        self.slowest = max(self.slowest, (seconds, number))
        if what is None:
            return 0
        found = self.broken.setdefault(what.strip().splitlines()[-1][:160], [])
        found.append((number, what))
        return len(found)


def run(
    forms: Sequence[str], executions: int, seconds: float, seed: int, folder: Path, kept: Path | None = None
) -> dict[str, Tally]:
    """So many executions in all, shared out over the formats by their shares, or as many as the time allows."""
    bench = Bench(folder)
    tallies = {form: Tally() for form in forms}
    end = time.monotonic() + seconds
    with suppress(KeyboardInterrupt):  # and what was done is told
        for form, number in _turns(forms, executions):
            begin = time.monotonic()
            if begin > end:
                break
            faulthandler.dump_traceback_later(_BACKSTOP, exit=True)
            what = bench.execute(form, seed, number)
            faulthandler.cancel_dump_traceback_later()
            found = tallies[form].add(number, time.monotonic() - begin, what)
            if what is not None and kept is not None and found <= _TOLD:
                _keep(kept / f"{form}-{seed}-{number}", folder / "input", what)
    return tallies


def _turns(forms: Sequence[str], executions: int) -> Iterator[tuple[str, int]]:
    """The formats in turn, each as often as its share says, so many executions in all."""
    whole = sum(FORMS[form].share for form in forms)
    done = dict.fromkeys(forms, 0)
    for turn in range(1, executions + 1):
        form = max(forms, key=lambda one: turn * FORMS[one].share / whole - done[one])
        yield form, done[form]
        done[form] += 1


def _keep(place: Path, given: Path, what: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(given, place / "input")
    (place / "what.txt").write_text(what, encoding="utf-8", errors="backslashreplace")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__.splitlines()[0])
    parser.add_argument("--format", action="append", choices=sorted(FORMS), help="one format; may be given again")
    parser.add_argument("--executions", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this execution of the one format alone")
    parser.add_argument("--kept", type=Path, help="a folder for the inputs that broke something")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    forms = given.format or list(FORMS)
    with tempfile.TemporaryDirectory() as folder:
        if given.only is not None:
            what = Bench(Path(folder)).execute(forms[0], given.seed, given.only)
            if given.kept is not None:
                _keep(given.kept / f"{forms[0]}-{given.seed}-{given.only}", Path(folder, "input"), what or "nothing")
            print(what or "nothing broke")
            return what is not None
        tallies = run(forms, given.executions, given.seconds, given.seed, Path(folder), given.kept)
    return _told(tallies)


def _told(tallies: dict[str, Tally]) -> int:
    """Print what was done; how many kinds of things broke."""
    for form, tally in tallies.items():
        rate = tally.executions / tally.seconds if tally.seconds else 0.0
        broke = sum(map(len, tally.broken.values()))
        slowest = f"{tally.slowest[0]:.1f} s (number {tally.slowest[1]})"
        print(f"{form:<17}{tally.executions:>8} executions{rate:>8.0f}/s{broke:>6} broke, slowest {slowest}")
    for form, tally in tallies.items():
        for kind, found in tally.broken.items():
            print(f"\n{form}: {len(found)} times: {kind}\n  numbers {[number for number, _ in found[:8]]}")
            print("  " + found[0][1].strip().replace("\n", "\n  ")[-3000:])
    whole = sum(tally.executions for tally in tallies.values())
    kinds = sum(len(tally.broken) for tally in tallies.values())
    print(f"\n{whole} executions, {kinds} kinds of faults")
    return min(kinds, 1)


if __name__ == "__main__":
    sys.exit(main())
