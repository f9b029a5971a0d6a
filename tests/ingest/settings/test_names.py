"""Settings by the names that frameworks give them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.ingest.settings.names import merge_settings, settings_from
from gradtrend.model.runlog import Settings


def test_transformers_arguments_as_mlflow_parameters() -> None:
    params = {
        "learning_rate": "5e-05", "max_grad_norm": "1.0", "fp16": "False", "bf16": "True", "warmup_steps": "10",
        "per_device_train_batch_size": "16", "gradient_accumulation_steps": "4", "optim": "adamw_torch",
    }  # fmt: skip
    assert settings_from(params) == Settings("transformers", "bf16", 5e-05, 10, 1.0, 16, 4, "adamw_torch")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"model_args/lr": "[0.001, 0.1]"}, Settings(learning_rate=0.1)),
        ({"optim": {"lr": 0.1, "name": "sgd"}, "lr": 0.2}, Settings(learning_rate=0.2)),
        ({"model_args/gradient_clip_val": "None"}, Settings(gradient_clip=0.0)),
        ({"precision": 16}, Settings(precision="16")),
        ({"precision": "no", "fp16": True}, Settings(precision="fp16")),
        ({"warmup_steps": 0.1, "batch_size": "auto"}, Settings()),
        ({"metric_args/precision/average": "['macro']"}, Settings()),
        ({"lr": float("nan"), "batch_size": True}, Settings()),
    ],
)
def test_single_values(values: dict[str, object], expected: Settings) -> None:
    assert settings_from(values) == expected


def test_merge_fills_what_the_first_does_not_know() -> None:
    merged = merge_settings(Settings(precision="a"), Settings(precision="b", batch_size=1), Settings(batch_size=2))
    assert merged == Settings(precision="a", batch_size=1)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["lr", "precision", "grad_clip", "x"]), inner)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["lr", "batch_size", "precision", "optim", "fp16", "warmup_steps", "a/b"]), json_values
    )
)
def test_anything_in_a_file_is_read(values: dict[str, object]) -> None:
    settings = settings_from(values)
    assert settings.learning_rate is None or isinstance(settings.learning_rate, float)
