"""What tells sick runs from healthy ones: found where it is, and by chance no more often than is said."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.detect.contrast import contrasts
from gradtrend.model.many.contrast import Contrast, ContrastKind, Contrasts, Outcome, Part, Spread
from gradtrend.model.runlog import LEFT_OUT, Scalar

Run = tuple[bool, dict[str, Scalar]]


def only(found: Contrasts) -> Contrast:
    (contrast,) = found.found
    return contrast


def random_search(rng: random.Random, runs: int) -> list[dict[str, Scalar]]:
    """Twenty hyperparameters drawn independently: rates, sizes, words and switches."""
    return [
        {f"rate{i}": 10 ** rng.uniform(-5, 0) for i in range(8)}
        | {f"size{i}": rng.choice([16, 32, 64, 128]) for i in range(4)}
        | {f"word{i}": rng.choice(["adam", "sgd", "lion"]) for i in range(4)}
        | {f"switch{i}": rng.random() < 0.3 for i in range(3)}
        | {"seed": rng.randrange(5)}
        for _ in range(runs)
    ]


def grid(rng: random.Random, runs: int) -> list[dict[str, Scalar]]:
    """Hyperparameters of a few values that hang together, some only logged with others."""
    found: list[dict[str, Scalar]] = []
    for i in range(runs):
        big, word = i % 2, rng.choice(["adam", "sgd"])
        run: dict[str, Scalar] = {f"of{j}": (big * j, rng.choice([1, 2]))[j % 2] for j in range(1, 15)}
        found.append(run | {"opt": word} | ({"momentum": rng.choice([0.9, 0.99])} if word == "sgd" else {}))
    return found


@pytest.mark.parametrize(("design", "runs", "ill"), [(random_search, 40, 10), (grid, 30, 9), (random_search, 16, 5)])
def test_by_chance_something_is_named_in_one_sweep_of_twenty(
    design: Callable[[random.Random, int], list[dict[str, Scalar]]], runs: int, ill: int
) -> None:
    rng = random.Random(runs)
    named = 0
    for _ in range(250):
        given = design(rng, runs)
        named += bool(contrasts([(i < ill, run) for i, run in enumerate(rng.sample(given, runs))]).found)
    assert named / 250 <= 0.05 + 0.03  # two standard deviations


def test_what_matters_is_found_at_the_size_of_a_sweep() -> None:
    """40 runs of which about 10 are sick, nearly all for one of twenty reasons."""
    rng = random.Random(5)
    reasons: dict[str, Callable[[dict[str, Scalar]], bool]] = {
        "rate3": lambda run: float(run["rate3"] or 0) > 0.05,
        "size1": lambda run: run["size1"] == 128,
        "switch2": lambda run: bool(run["switch2"]),
    }
    for name, reason in reasons.items():
        hits = 0
        for _ in range(50):
            sweep = [(reason(run) != (rng.random() < 0.05), run) for run in random_search(rng, 40)]
            found = contrasts(sweep).found
            hits += bool(found) and name in found[0].names
        assert hits >= 45, name


def test_a_number_has_its_cut_and_its_spreads() -> None:
    rates = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 0.03] * 4 + [0.1, 0.3, 1.0] * 4
    found = contrasts([(rate > 0.03 or i == 5, {"lr": f"{rate:g}", "n": 3}) for i, rate in enumerate(rates)])
    contrast = only(found)
    assert (contrast.names, contrast.kind, contrast.threshold, contrast.sick_are) == (
        ("lr",), ContrastKind.NUMBER, 0.05, "above"
    )  # fmt: skip
    assert (contrast.inside, contrast.outside) == (Part(12, 12), Part(1, 24))
    assert (contrast.sick, contrast.healthy) == (Spread(0.03, 0.3, 1.0), Spread(1e-4, 1e-3, 0.03))
    assert (found.logged, found.constant, found.tested, found.healthy) == (2, 1, 1, 23)


def test_small_ones_are_sick() -> None:
    found = contrasts([(i < 6, {"warmup": 100 * i}) for i in range(20)])
    contrast = only(found)
    assert (contrast.threshold, contrast.sick_are, contrast.inside) == (550, "below", Part(6, 6))


def test_one_size_in_the_middle() -> None:
    sizes = [16, 32, 64, 128] * 8
    contrast = only(contrasts([(size == 64, {"batch_size": size}) for size in sizes]))
    assert (contrast.kind, contrast.value, contrast.inside, contrast.outside) == (
        ContrastKind.VALUE, 64, Part(8, 8), Part(0, 24)
    )  # fmt: skip


def test_a_word_among_others_and_one_that_protects() -> None:
    words = ["fp16", "bf16", "fp32"] * 8
    contrast = only(contrasts([(word == "fp16", {"precision": word}) for word in words]))
    assert (contrast.value, contrast.inside, contrast.outside) == ("fp16", Part(8, 8), Part(0, 16))
    contrast = only(contrasts([(word != "bf16", {"precision": word}) for word in words]))
    assert (contrast.value, contrast.inside, contrast.outside) == ("bf16", Part(0, 8), Part(16, 16))


def test_of_two_values_the_sicker_is_named() -> None:
    for order in (1, -1):
        runs: list[Run] = [(i < 6, {"clip": None if i < 7 else 1.0}) for i in range(20)][::order]
        contrast = only(contrasts(runs))
        assert (contrast.value, contrast.inside, contrast.outside) == (None, Part(6, 7), Part(0, 13))


def test_a_name_that_only_some_have() -> None:
    runs: list[Run] = [(i < 8, {"lr": 0.1} | ({"ema": i} if i >= 8 else {})) for i in range(20)]
    contrast = only(contrasts(runs))
    assert (contrast.names, contrast.kind) == (("ema",), ContrastKind.PRESENCE)
    assert (contrast.inside, contrast.outside) == (Part(0, 12), Part(8, 8))


def test_numbers_among_words() -> None:
    """`auto` is a value of its own; the numbers are compared among themselves."""
    runs: list[Run] = [(i < 8, {"clip": "auto" if i < 8 else 0.1 * i}) for i in range(24)]
    assert only(contrasts(runs)).value == "auto"
    runs = [(12 <= i < 20, {"clip": "auto" if i < 8 else 0.1 * i}) for i in range(20)]
    assert (
        contrasts([(i >= 14, {"clip": "auto" if i < 8 else 0.1 * i}) for i in range(22)]).found[0].sick_are == "above"
    )


def test_those_that_part_the_runs_alike_are_one() -> None:
    rng = random.Random(1)
    runs: list[Run] = []
    for i in range(30):
        rate = 10 ** rng.uniform(-4, 0)
        runs.append((rate > 0.1, {"optimizer/lr": rate, "lr": f"{rate!r}", "lr_scaled": 8 * rate, "inverse": 1 / rate}))
        runs[-1][1].update({"amp": i % 2 == 0, "precision": ("fp32", "fp16")[i % 2 == 0], "out": f"out/{i}"})
    found = contrasts(runs)
    assert only(found).names[0] == "lr"
    assert set(only(found).names) == {"lr", "optimizer/lr", "lr_scaled", "inverse"}
    assert found.tested == 2
    assert found.rare == 1  # `out`


def test_found_ones_that_set_the_same_runs_apart_are_one() -> None:
    rng = random.Random(2)
    runs: list[Run] = []
    for i in range(30):
        bad = i < 9
        runs.append((bad, {"lr": rng.uniform(1, 2) if bad else rng.uniform(0, 0.9), "opt": "sgd" if bad else "adam"}))
    assert set(only(contrasts(runs)).names) == {"lr", "opt"}


def test_what_is_a_run_s_own_is_no_contrast() -> None:
    runs: list[Run] = [
        (
            i < 10,
            {"name": f"run-{i}", "out": f"/out/{i}", "started_at": 1.7e9 + i, "run_id": i, "seed": i, "pid": 5000 + i},
        )
        for i in range(30)
    ]
    found = contrasts(runs)
    assert (found.found, found.tested, found.rare) == ((), 0, 6)
    assert found.outcome is Outcome.TOO_FEW_RUNS
    assert only(contrasts([(i % 3 == 0, {"seed": i % 3}) for i in range(30)])).value == 0  # it may matter


@pytest.mark.parametrize(
    ("runs", "outcome"),
    [
        ([], Outcome.ONE_SIDED),
        ([(False, {})] * 4, Outcome.ONE_SIDED),
        ([(True, {"lr": 1})] * 4, Outcome.ONE_SIDED),
        ([(True, {}), (False, {})], Outcome.NOTHING_LOGGED),
        ([(i < 3, {"lr": 1}) for i in range(9)], Outcome.NOTHING_VARIES),
        ([(True, {"lr": i}) for i in range(9)], Outcome.ONE_SIDED),
        ([(False, {"lr": i}) for i in range(9)], Outcome.ONE_SIDED),
        ([(i < 1, {"lr": i}) for i in range(9)], Outcome.TOO_FEW_RUNS),
        ([(i < 3, {"lr": i}) for i in range(6)], Outcome.TOO_FEW_RUNS),
        ([(i < 4, {"lr": i}) for i in range(8)], Outcome.FOUND),
        ([(i % 2 == 0, {"lr": i}) for i in range(20)], Outcome.NOTHING_FOUND),
    ],
)  # fmt: skip
def test_the_outcome(runs: list[Run], outcome: Outcome) -> None:
    assert contrasts(runs).outcome is outcome


def test_too_few_runs_for_so_many_hyperparameters_is_said() -> None:
    """Four and four do for one; of twenty, one could lie so by chance."""
    rng = random.Random(0)
    runs: list[Run] = [(i < 4, {f"x{j}": rng.random() for j in range(20)} | {"lr": i}) for i in range(8)]
    assert contrasts(runs).outcome is Outcome.TOO_FEW_RUNS


WORDS = st.sampled_from(["1e-3", "nan", "inf", "auto", "\x1b[31m", "\ud800"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), WORDS)
NAMES = st.sampled_from(["lr", "a/b", "\x1b[31m", "\ud800", "x" * 300, "", "seed"])
RUNS = st.lists(st.tuples(st.booleans(), st.dictionaries(NAMES, SCALARS)), max_size=24)


@settings(deadline=None, max_examples=100)
@given(RUNS, st.randoms(use_true_random=False))
def test_whatever_the_values_are(runs: list[Run], rng: random.Random) -> None:
    found = contrasts(runs)
    shuffled = rng.sample(runs, len(runs))
    again = contrasts(shuffled)
    assert (found.outcome, found.tested, found.rare) == (again.outcome, again.tested, again.rare)
    assert [c.corrected_p for c in found.ranked] == pytest.approx([c.corrected_p for c in again.ranked])
    for contrast in found.ranked:
        assert 0 <= contrast.p <= contrast.corrected_p <= 1
        parts = (contrast.inside, contrast.outside)
        assert all(part is None or 0 <= part.sick <= part.runs <= len(runs) for part in parts)


def test_a_monotone_change_of_a_number_changes_nothing_but_the_number() -> None:
    rng = random.Random(9)
    rates = [10 ** rng.uniform(-4, 0) for _ in range(40)]
    ill = [rate > 0.05 or rng.random() < 0.05 for rate in rates]
    found = [
        only(contrasts([(sick, {"lr": change(rate)}) for sick, rate in zip(ill, rates, strict=True)]))
        for change in (float, math.log, lambda x: x**3, lambda x: -1 / x)
    ]
    assert len({(c.p, c.inside, c.outside, c.sick_are) for c in found}) == 1
    turned = only(contrasts([(sick, {"lr": -rate}) for sick, rate in zip(ill, rates, strict=True)]))
    assert (turned.p, turned.sick_are, turned.inside) == (found[0].p, "below", found[0].inside)


def test_ten_thousand_runs_of_two_hundred() -> None:
    rng = random.Random(0)
    runs: list[Run] = [
        (rng.random() < 0.2, {f"x{j}": rng.random() if j % 2 else rng.choice("abcd") for j in range(200)})
        for _ in range(10_000)
    ]
    contrasts(runs[:50])  # loads scipy
    start = time.process_time()
    assert contrasts(runs).tested == 200
    assert time.process_time() - start < 6  # 2 s here


@pytest.mark.parametrize(("runs", "ill"), [(10_000, 3), (2000, 3), (300, 4)])
def test_a_few_sick_runs_of_a_large_sweep(runs: int, ill: int) -> None:
    rng = random.Random(runs)
    sweep = random_search(rng, runs)
    rates = sorted(10 ** rng.uniform(-5, 0) for _ in range(runs))
    found = contrasts([(i >= runs - ill, run | {"lr": rates[i]}) for i, run in enumerate(sweep)])
    assert found.tested >= 9  # the others could not come to anything
    assert found.found[0].names == ("lr",)
    assert found.found[0].inside == Part(ill, ill)


def test_few_sick_of_ten_thousand_take_no_longer() -> None:
    """With ties, of which no two hyperparameters have the same."""
    rng = random.Random(0)
    runs: list[Run] = [(i < 3, {f"x{j}": rng.randrange(3000) for j in range(60)}) for i in range(10_000)]
    contrasts(runs[:50])  # loads scipy
    start = time.process_time()
    assert contrasts(runs).tested == 60
    assert time.process_time() - start < 5  # 1.5 s here


def test_what_was_left_out_of_some_runs_is_not_compared() -> None:
    runs: list[Run] = [(i < 9, {"lr": i % 4, "note": LEFT_OUT if i < 9 else "x", "n": i % 2}) for i in range(20)]
    found = contrasts(runs)
    assert (found.outcome, found.logged) == (Outcome.NOTHING_FOUND, 2)
    assert not any("note" in contrast.names for contrast in found.ranked)
