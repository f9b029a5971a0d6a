from __future__ import annotations

import pytest

from gradtrend.model.precision import PRECISIONS, is_float16, precision_of_setting

WRITTEN = [
    "16-mixed",
    "fp16",
    "torch.float16",
    "16-true",
    "bf16-mixed",
    "torch.bfloat16",
    "bf16-true",
    "32",
    "no",
    "64",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_name_that_is_known_is_float16_to_both(written: str) -> None:
    ours = precision_of_setting(written)
    assert ours in PRECISIONS
    assert is_float16(written) == ours.startswith("float16")


@pytest.mark.parametrize("written", ["half", "amp_fp16"])
def test_a_name_that_only_looks_like_float16_is_no_precision_to_replay_in(written: str) -> None:
    assert is_float16(written)
    assert precision_of_setting(written) is None
