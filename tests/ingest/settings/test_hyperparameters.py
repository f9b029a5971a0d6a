"""All that a run was given: names as they are spelt, short values, and no secrets."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.ingest.limits import LONGEST_HYPERPARAMETER, MOST_HYPERPARAMETERS
from gradtrend.ingest.settings.hyperparameters import hyperparameters_of


def of(*sources: dict[Any, Any]) -> dict[str, Any]:
    found = hyperparameters_of(sources)
    assert list(found) == sorted(found, key=lambda pair: pair[0])
    return dict(found)


def test_names_are_paths_spelt_as_they_are() -> None:
    nested = {"Optim": {"LR": 0.1, "betas": [0.9, 0.99], "groups": [{"lr": 1}]}, "a-b.c": True, 3: None, "_own": 1}
    assert of(nested) == {"Optim/LR": 0.1, "Optim/betas": "[0.9, 0.99]", "a-b.c": True, "3": None}


def test_the_surer_source_counts_under_its_spelling() -> None:
    assert of({"model.lr": "0.3"}, {"model": {"lr": 0.1, "n": 2}}, {"Model": {"LR": 5}}) == {
        "model.lr": "0.3",
        "model/n": 2,
    }


def test_what_wandb_wraps_values_in() -> None:
    assert of({"wandb_version": 1, "lr": {"desc": None, "value": 0.1}, "o": {"value": {"n": 2}}}) == {
        "lr": 0.1,
        "o/n": 2,
    }
    assert of({"lr": {"value": 0.1, "max": 1}}) == {"lr/value": 0.1, "lr/max": 1}


def test_values_that_are_none_are_left_out() -> None:
    long, exact = "x" * (LONGEST_HYPERPARAMETER + 1), "x" * LONGEST_HYPERPARAMETER
    odd = {"a": long, "b": [1] * 99, "c": [[1]], "d": object(), "e": 10**30, "f": ["x" * 150] * 2, "g": {}, "": 1}
    assert of(odd | {"ok": exact, "n" * 600: 1}) == {"ok": exact}
    assert of({"x": float("nan"), "y": float("-inf")}) == {"x": "nan", "y": "-inf"}


@pytest.mark.parametrize(
    "name",
    ["api_key", "API_KEY", "wandbApiKey", "hub_token", "password", "db.passwd", "secret", "client-secret",
     "aws_secret_access_key", "aws_access_key_id", "credentials/user", "HF_TOKEN", "auth/access_key", "slack_webhook"],
)  # fmt: skip
def test_secrets_are_left_out_by_their_name(name: str) -> None:
    assert of({name: "s3cr3t", "lr": 1}) == {"lr": 1}
    assert of({"outer": {name: ["s3cr3t"]}}) == {}


@pytest.mark.parametrize(
    "text",
    ["hf_abcdefghijklmnopqrst", "sk-abcdefghijklmnop1234", "ghp_0123456789abcdef", "postgresql://me:pw@host/db",
     "Bearer abc", "AKIAIOSFODNN7EXAMPLE", "-----BEGIN RSA PRIVATE KEY-----"],
)  # fmt: skip
def test_and_by_themselves(text: str) -> None:
    assert of({"extra": text, "args": ["--x", text]}) == {}


def test_what_only_sounds_like_a_secret_is_kept() -> None:
    kept = {"max_tokens": "2048", "pad_token_id": 0, "sort_key": "len", "token": 7, "use_auth_token": False,
            "keys": "a", "tokenizer": "bpe", "key_dim": 64, "monkey": "x", "url": "https://host/path"}  # fmt: skip
    assert of(kept) == kept


def test_of_too_many_the_least_nested() -> None:
    many = {"deep": {"deeper": {f"x{i:04}": i for i in range(9999)}}, "lr": 0.1}
    found = of(many)
    assert len(found) == MOST_HYPERPARAMETERS
    assert "lr" in found
    start = time.process_time()
    of({f"x{i}": i for i in range(100_000)})
    assert time.process_time() - start < 3


def test_depth_without_end() -> None:
    endless: dict[str, Any] = {"lr": 0.1}
    endless["self"] = endless
    assert of(endless)["lr"] == 0.1
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"x": deep}
    assert of(deep) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(st.dictionaries(st.text(max_size=8), JSON))
def test_whatever_it_is_it_can_be_written_as_strict_json(values: dict[str, Any]) -> None:
    json.dumps(of(values), allow_nan=False)
