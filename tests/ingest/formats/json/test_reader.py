"""Log histories in JSON: whole, bare, by columns, and cut off."""

from __future__ import annotations

import gzip
import json
import math
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.formats.json import reader
from gradtrend.ingest.reading import Reading, ReadOptions
from tests.ingest.readings import long_table
from tests.places import RUNS

REAL = RUNS / "trainer-state" / "transformers_nan" / "trainer_state.json"
NUMBERS = st.floats(width=64) | st.sampled_from([0.0, math.nan, math.inf, -math.inf])


def read_text(folder: Path, text: str, name: str = "state.json") -> Reading:
    path = folder / name
    path.write_text(text)
    assert reader.claims(path, text.encode()[:65536])
    (reading,) = reader.read(path, ReadOptions())
    return reading


def points(reading: Reading, metric: str) -> list[tuple[int | None, str]]:
    rows = long_table(reading).filter(pl.col("metric") == metric)
    return [(step, repr(value)) for step, value in rows.select("step", "value").iter_rows()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=10), st.booleans(), st.sampled_from([None, 2]))
def test_what_is_written_is_read_back(
    tmp_path: Path, values: list[tuple[float, float]], bare: bool, indent: int | None
) -> None:
    rows: list[dict[str, Any]] = [
        {"epoch": 0.1, "loss": loss, "grad_norm": norm, "step": 5 * i} for i, (loss, norm) in enumerate(values)
    ]
    rows.append({"eval_loss": 1.0, "step": 5})
    rows.append({"train_loss": 1.5, "train_runtime": 3.0, "step": 99})
    document = rows if bare else {"best_metric": None, "log_history": rows, "global_step": 99}
    reading = read_text(tmp_path, json.dumps(document, indent=indent))
    assert points(reading, "loss") == [(5 * i, repr(loss)) for i, (loss, _) in enumerate(values)]
    assert points(reading, "grad_norm") == [(5 * i, repr(norm)) for i, (_, norm) in enumerate(values)]
    assert points(reading, "train_loss") == []  # the summary row


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_cut_state_gives_the_rows_before_the_cut(tmp_path: Path, data: st.DataObject) -> None:
    text = REAL.read_text()
    start = text.index('"log_history"')
    path = tmp_path / "trainer_state.json"
    path.write_text(text[: data.draw(st.integers(start, len(text) - 3))])
    (full,) = reader.read(REAL, ReadOptions())
    try:
        (part,) = reader.read(path, ReadOptions())
    except InputError:
        return
    rows = points(part, "grad_norm")
    assert rows == points(full, "grad_norm")[: len(rows)]
    assert part.skipped_count == 1 or len(rows) == long_table(full).filter(pl.col("metric") == "grad_norm").height


def test_numbers_as_text_and_norms_by_group(tmp_path: Path) -> None:
    text = json.dumps({"log_history": [{"step": 1, "loss": "0.5", "grad_norm": {"encoder": "nan", "decoder": 2}}]})
    reading = read_text(tmp_path, text)
    assert points(reading, "grad_norm/encoder") == [(1, "nan")]
    assert points(reading, "grad_norm/decoder") == [(1, "2.0")]


def test_a_dict_of_lists(tmp_path: Path) -> None:
    keras = read_text(tmp_path, '{"loss": [2.0, NaN], "grad_norm": [1.0, null], "lr": 0.1}')
    assert points(keras, "loss") == [(0, "2.0"), (1, "nan")]
    stepped = read_text(tmp_path, '{"step": [10, 20], "train_loss": [2.0, 1.0], "grad_norm": [1.0, 3.0]}')
    assert points(stepped, "grad_norm") == [(10, "1.0"), (20, "3.0")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"hidden_size": 12, "rms_norm_eps": 1e-06, "layers": [1, 2]}'),
        ("all_results.json", '{"epoch": 1.0, "train_loss": 2.0}'),
        ("annotations.json", '[{"image": "a.png", "label": 3}]'),
        ("metrics.json", '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n'),
        ("scalars.json", "[[1.5, 0, 2.0]]"),
        ("train.log", "{'loss': 1.0, 'grad_norm': 2.0}"),
    ],
)
def test_other_files_are_left_to_others(name: str, text: str) -> None:
    assert not reader.claims(Path(name), text.encode())


@pytest.mark.parametrize(
    "text", ["", "{", '{"log_history": []}', '{"log_history": 3}', "[1, 2]", '{"log_history": ["x"]}']
)
def test_a_state_without_rows_is_a_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text(text)
    with pytest.raises(InputError, match="no log history"):
        reader.read(path, ReadOptions())


STEPS = [0, 10, 20, 30]
LOSSES, NORMS = [4.0, 3.0, 2.0, 1.0], [1.0, 1.5, math.nan, 0.5]
ROWS = [{"step": s, "loss": a, "grad_norm": b} for s, a, b in zip(STEPS, LOSSES, NORMS, strict=True)]
SHAPES: dict[str, Any] = {
    "pandas to_json": {
        name: {str(i): row[name] for i, row in enumerate(ROWS)} for name in ("step", "loss", "grad_norm")
    },
    "pandas split": {
        "columns": ["step", "loss", "grad_norm"],
        "index": [0, 1, 2, 3],
        "data": [list(row.values()) for row in ROWS],
    },
    "rows by step": {str(row["step"]): {"loss": row["loss"], "grad_norm": row["grad_norm"]} for row in ROWS},
    "pairs": {
        "loss": [list(pair) for pair in zip(STEPS, LOSSES, strict=True)],
        "grad_norm": [list(pair) for pair in zip(STEPS, NORMS, strict=True)],
    },
    "Sacred": {
        name: {"steps": STEPS, "timestamps": ["2026-01-01T00:00:00"] * 4, "values": values}
        for name, values in (("loss", LOSSES), ("grad_norm", NORMS))
    },
    "lists under a name": {"metrics": {"loss": LOSSES, "grad_norm": NORMS}, "steps": STEPS},
    "Comet": [
        {"metricName": name, "metricValue": str(row[name]), "timestamp": 1_700_000_000_000, "step": row["step"]}
        for row in ROWS
        for name in ("loss", "grad_norm")
    ],
    "MLflow's own": {
        "metrics": [
            {"key": name, "value": row[name], "timestamp": 1_700_000_000_000, "step": row["step"]}
            for row in ROWS
            for name in ("loss", "grad_norm")
        ]
    },
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_other_shapes(tmp_path: Path, shape: str, indent: int | None) -> None:
    reading = read_text(tmp_path, json.dumps(SHAPES[shape], indent=indent), "metrics.json")
    assert points(reading, "loss") == [(s, repr(value)) for s, value in zip(STEPS, LOSSES, strict=True)]
    assert points(reading, "grad_norm") == [(s, repr(value)) for s, value in zip(STEPS, NORMS, strict=True)]


def test_objects_one_after_another(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(row, indent=2) for row in ROWS)
    assert points(read_text(tmp_path, text), "loss") == [(s, repr(v)) for s, v in zip(STEPS, LOSSES, strict=True)]
    cut = read_text(tmp_path, text[:-5])
    assert points(cut, "loss") == [(s, repr(v)) for s, v in zip(STEPS[:3], LOSSES[:3], strict=True)]
    assert cut.skipped_count == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"loss": "cross_entropy", "norm": {"0": "layer"}, "lr": 0.1}'),
        ("results.json", '{"eval_loss": 1.5, "epoch": 3}'),
        ("id2label.json", '{"0": {"name": "cat"}, "1": {"name": "dog"}}'),
        ("schema.json", '{"columns": ["id", "name"], "data": [[1, "a"]]}'),
        ("metrics.jsonl", '{"step": 0, "loss": {"0": 1.5, "1": 2.5}}'),
        ("train.log", '{"step": 0, "loss": 1.5}\nLoading checkpoint shards\n{"step": 1, "loss": 2.5}\n'),
        ("scalars.json", '{"step": 0, "loss": 1.5}\n{"step": 1, "lo\n{"step": 2, "loss": 2.5}\n'),
        ("config.json", '{"loss": {"name": "bce_loss"}, "metrics": ["acc", "f1"]}'),
    ],
)
def test_other_json_is_left_alone(tmp_path: Path, name: str, text: str) -> None:
    assert not reader.claims(tmp_path / name, text.encode())


@pytest.mark.parametrize("cut", [9, 40])
def test_a_damaged_compressed_state_gives_the_rows_before_the_damage(tmp_path: Path, cut: int) -> None:
    rows = [{"step": i, "loss": 1.5 + i % 7, "grad_norm": 2.5} for i in range(500)]
    path = tmp_path / "trainer_state.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"log_history": rows}).encode())[:-cut])
    (reading,) = reader.read(path, ReadOptions())
    assert long_table(reading).height > 500


@pytest.mark.parametrize("piece", ['"columns": [', '"loss', '{"0": ', '"name": "', "}\n{\n"])
def test_a_text_made_to_take_long_is_claimed_or_not_at_once(tmp_path: Path, piece: str) -> None:
    text = '{"loss": 1, ' + piece * 300_000
    start = time.process_time()
    reader.claims(tmp_path / "metrics.json.gz", gzip.compress(text.encode())[:65536])
    assert time.process_time() - start < 10


def test_own_steps_that_are_too_few_name_the_values_that_they_can(tmp_path: Path) -> None:
    text = json.dumps({"loss": {"steps": [0, 10], "values": [3.0, 2.0, 1.0]}, "other": [1, 2, 3]})
    assert points(read_text(tmp_path, text), "loss") == [(0, "3.0"), (10, "2.0")]


def test_a_pandas_document_of_many_rows(tmp_path: Path) -> None:
    values = {"step": range(0, 30_000, 10), "loss": [1.5] * 3000, "grad_norm": [2.5] * 3000}
    text = json.dumps({name: {str(i): value for i, value in enumerate(column)} for name, column in values.items()})
    assert points(read_text(tmp_path, text), "grad_norm") == [(step, "2.5") for step in values["step"]]


@pytest.mark.parametrize("shape", ["lists", "rows of one value"])
def test_a_document_whose_loss_stands_far_behind(tmp_path: Path, shape: str) -> None:
    values: dict[str, list[float]] = {"step": list(range(20_000)), "lr": [0.001] * 20_000, "loss": [1.5] * 20_000}
    document: Any = values
    if shape != "lists":
        document = [{"name": n, "value": v, "step": i} for n in ("lr", "loss") for i, v in enumerate(values[n])]
    assert len(points(read_text(tmp_path, json.dumps(document)), "loss")) == 20_000


@pytest.mark.parametrize("depth", [100, 970, 985, 30_000])
def test_a_row_that_is_nested_too_deep_costs_no_other(tmp_path: Path, depth: int) -> None:
    deep = '{"a": ' * depth + '"}]\\""' + "}" * depth
    rows = [f'{{"step": 1, "loss": 2.0, "x": {deep}}}', *(f'{{"step": {i}, "loss": 1.5}}' for i in range(2, 12))]
    path = tmp_path / "trainer_state.json"
    path.write_text(f'{{"log_history": [{", ".join(rows)}]}}')
    (reading,) = reader.read(path, ReadOptions())
    assert reading.series["loss"]["step"].to_list()[-10:] == list(range(2, 12))
    assert len(reading.skipped) == 11 - reading.series["loss"].height


def test_json_lines_that_end_with_a_history_are_lines() -> None:
    text = '{"loss": 2.0, "step": 1}\n' * 3 + '{"log_history": [{"loss": 1.0, "step": 1}]}\n'
    assert not reader.claims(Path("logging.jsonl"), text.encode())
