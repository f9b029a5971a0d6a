"""How many of the family's captures the program judges as they are: `python -m tests.replay.family.score [--show]`."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from gradtrend.model.replay import Replay
from gradtrend.pipeline.replay import replay_path
from gradtrend.replay import ReplayOptions
from gradtrend.report.text.replay import render_replays
from gradtrend.report.wording.style import Style
from tests.replay.family import accumulation, backward, data, forward, noise, precision, samples, shapes, state, usual
from tests.replay.family.case import Case
from tests.replay.family.live import Seen, train_one_step

PARTS = (state, usual, precision, data, samples, forward, backward, noise, shapes, accumulation)
CASES: tuple[Case, ...] = tuple(case for part in PARTS for case in part.CASES)
FIELDS = ("outcome", "cause", "module", "operator", "sample", "microbatch", "words")


@dataclass(frozen=True, slots=True)
class Judged:
    """A case with what training saw, and what the program says of its capture."""

    case: Case
    seen: Seen
    replay: Replay
    report: str

    def answers(self) -> dict[str, str]:
        """What the program said, a field each."""
        replay, origin, blame = self.replay, self.replay.origin, self.replay.blame
        return {
            "outcome": str(replay.outcome),
            "cause": "none" if replay.cause is None else str(replay.cause),
            "module": "nothing found" if origin is None else origin.module,
            "operator": "nothing found" if origin is None else short(origin.operator),
            "sample": str(tuple((one.microbatch, one.index) for one in blame.samples)) if blame else "()",
            "microbatch": str(blame.microbatches) if blame else "()",
            "words": "; ".join(self.wrong_words()) or "as they should be",
        }

    def wrong_words(self) -> Iterator[str]:
        told = " ".join(self.report.split())
        for pattern in self.case.truth.says:
            if not re.search(pattern, told, re.IGNORECASE):
                yield f"lacks {pattern!r}"
        for pattern in self.case.truth.silent:
            if found := re.search(pattern, told, re.IGNORECASE):
                yield f"says {found.group()!r}"

    def marks(self) -> Iterator[tuple[str, bool, str]]:
        """Field, whether right, and what is true, for every field that the case asks of."""
        truth, said = self.case.truth, self.answers()
        wanted: dict[str, tuple[str, ...]] = {
            "outcome": truth.outcome,
            "cause": truth.cause,
            "module": truth.module,
            "operator": truth.operator,
            "sample": () if truth.samples is None else (str(truth.samples),),
            "microbatch": () if truth.microbatches is None else (str(truth.microbatches),),
            "words": ("as they should be",) if truth.says or truth.silent else (),
        }
        for field, right in wanted.items():
            if right:
                yield field, said[field] in right, " or ".join(right)


def short(operator: str) -> str:
    """`sqrt backward` for `div (backward of sqrt)`, `div` for `div_`."""
    slope = re.search(r"\(backward of (.+)\)", operator)
    name = slope.group(1) if slope else operator
    return name.removesuffix("_") + (" backward" if slope else "")


def judged(case: Case, folder: Path) -> Judged:
    """Train the case's step, capture it, and replay the capture as the command line does."""
    path = folder / "debug" / "step40.gradtrend.pt"
    path.parent.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = train_one_step(case, path)
        (replay,) = replay_path(str(path), ReplayOptions(device="cpu", trust=case.trust))
    return Judged(case, seen, replay, render_replays([replay], Style()).replace(str(path), path.name))


def judge_all(cases: Iterable[Case]) -> list[Judged]:
    """All of them, each in place of the one before: a path with a case's name would say what the report must say."""
    with tempfile.TemporaryDirectory() as folder:
        return [judged(case, Path(folder)) for case in cases]


def totals(results: Iterable[Judged]) -> dict[str, tuple[int, int]]:
    """Right and asked, a field each."""
    marks = [(field, right) for one in results for field, right, _ in one.marks()]
    return {name: (sum(r for f, r in marks if f == name), sum(f == name for f, _ in marks)) for name in FIELDS}


def falsely_confirmed(results: Iterable[Judged]) -> list[str]:
    return [
        one.case.name
        for one in results
        if str(one.replay.outcome) == "confirmed" and "confirmed" not in one.case.truth.outcome
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the reports of the cases that are missed")
    parser.add_argument("--kind", help="only this kind of case, or only the case of this name")
    given = parser.parse_args()
    torch.set_num_threads(1)
    cases = [case for case in CASES if given.kind in (None, case.kind, case.name)]
    results = judge_all(cases)
    for one in results:
        misses = [(field, true) for field, right, true in one.marks() if not right]
        for field, true in misses:
            print(f"{one.case.kind:<14}{one.case.name:<34}{field:<11} said {one.answers()[field]!r}, true {true!r}")
        if given.show and misses:
            print(one.report)
    for name, (right, asked) in totals(results).items():
        print(f"{name:<12}{right}/{asked}" + (f"  {right / asked:.1%}" if asked else ""))
    print(f"{len(results)} captures; falsely confirmed: {', '.join(falsely_confirmed(results)) or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
