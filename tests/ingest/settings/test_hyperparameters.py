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
from gradtrend.model.runlog import LEFT_OUT


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
     "aws_secret_access_key", "aws_access_key_id", "credentials/user", "HF_TOKEN", "auth/access_key", "slack_webhook",
     "OPENAI_KEY", "anthropic-key", "auth/pass", "db_pass", "dbPass", "pass", "azure_storage_key"],
)  # fmt: skip
def test_secrets_are_left_out_by_their_name(name: str) -> None:
    assert of({name: "s3cr3t", "lr": 1}) == {name: LEFT_OUT, "lr": 1}
    assert of({"outer": {name: ["s3cr3t"]}}) == {f"outer/{name}": LEFT_OUT}


def test_a_secret_may_be_a_number_and_a_switch_is_none() -> None:
    assert of({"password": 123456, "auth": {"pass": 1.5}, "api_key": [1, 2]}) == {
        "password": LEFT_OUT, "auth/pass": LEFT_OUT, "api_key": LEFT_OUT
    }  # fmt: skip
    assert of({"hub_token": "x" * 999, "prompt": "x" * 999}) == {"hub_token": LEFT_OUT}
    assert of({"password": None, "secret": False, "api_key": ""}) == {"password": None, "secret": False, "api_key": ""}


_RANDOM = "a8Fk2Lq0Zr7Tn4Wx9Bv1Yc6Md3Hs5Jp0Gu2Ke"


@pytest.mark.parametrize(
    "text",
    [f"hf_{_RANDOM}", f"sk-{_RANDOM}", f"sk-proj-a-{_RANDOM}", f"sk-ant-api03-{_RANDOM}", f"ghp_{_RANDOM}",
     "postgresql://me:pw@host/db", "postgresql://u:p/w@h", "Bearer abc", "AKIAIOSFODNN7EXAMPLE",
     "-----BEGIN RSA PRIVATE KEY-----", f"https://{_RANDOM}:x@host", f"eyJhbGciOiJIUzI1NiJ9.{_RANDOM}.{_RANDOM}",
     "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=Zm9v==;EndpointSuffix=core.windows.net",
     "https://b.s3.amazonaws.com/x?X-Amz-Expires=60&X-Amz-Signature=0af1", "https://a.blob.core.windows.net/c?sig=aZ9%3D",
     "https://host/c?sv=2022&sig=aZ9%3D"],
)  # fmt: skip
def test_and_by_themselves(text: str) -> None:
    assert of({"extra": text, "args": ["--x", text], "url": f"key={text}"}) == dict.fromkeys(
        ("args", "extra", "url"), LEFT_OUT
    )


def test_what_only_sounds_like_a_secret_is_kept() -> None:
    kept = {"max_tokens": "2048", "pad_token_id": 0, "sort_key": "len", "token": 7, "use_auth_token": False,
            "keys": "a", "tokenizer": "bpe", "key_dim": 64, "monkey": "x", "url": "https://host/path"}  # fmt: skip
    assert of(kept) == kept
    for name in ("passes", "num_passes", "key_dim", "n_keys", "token_dim", "num_tokens", "max_tokens", "tokenizer",
                 "pass_through", "forward_pass", "high_pass", "eos_token", "mask_token", "image_key"):  # fmt: skip
        for value in (3, 0.5, "x"):
            assert of({name: value}) == {name: value}


@pytest.mark.parametrize(
    "text",
    ["mask-rcnn-resnet50", "task-oriented-bert-base-2024", "disk-cached-dataset", "s3://EURASIA-languages2020",
     "s3://AKIA-and-others", "sk-learn-gradient-boosting-2024", "hf_transformers_backend_for_large_models",
     "http://host:8080/data@v2", "sftp://me@host/data", "docker://ubuntu:22.04@sha256:0af1", "mu=0,sig=0.1",
     "git@github.com:me/repo"],
)  # fmt: skip
def test_words_that_begin_or_end_as_a_key_does_are_kept(text: str) -> None:
    assert of({"model": text}) == {"model": text}


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
