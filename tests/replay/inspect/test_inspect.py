"""What is said of a capture without running it, also of tensors that lie oddly in their file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from gradtrend.errors import InputError
from gradtrend.ingest.captures.find import read_capture
from gradtrend.model.replay import Inspection
from gradtrend.replay.inspect import health, inspect_capture


def inspected(path: Path, state: dict[str, torch.Tensor], microbatches: list[object]) -> Inspection:
    torch.save(
        {
            "format": "gradtrend.capture",
            "format_version": 1,
            "model": {"factory": "train:make", "kwargs": "{}"},
            "model_state": state,
            "microbatches": microbatches,
        },
        path,
    )
    return inspect_capture(read_capture(path), path.name)


@pytest.mark.parametrize("chunk", [3, 7, 50, 1000])
def test_every_value_is_counted_once_however_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(health, "_CHUNK", chunk)
    values = torch.zeros(6, 5, 4)
    values[2, 3, 1] = torch.nan
    values[5, 4, 3] = torch.inf
    views = {"plain": values, "turned": values.permute(2, 0, 1), "repeated": values[:, :, None].expand(6, 5, 9, 4)}
    result = inspected(tmp_path / "a.gradtrend.pt", views, [torch.zeros(1)])
    assert [(h.name, h.nan, h.positive_inf) for h in result.nonfinite] == [(name, 1, 1) for name in views]


def test_a_batch_named_a_thousand_times_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    elements = health._elements
    monkeypatch.setattr(health, "_elements", lambda contents, ref: looks.append(ref) or elements(contents, ref))
    one = {"image": torch.tensor([torch.nan])}
    result = inspected(tmp_path / "a.gradtrend.pt", {"w": torch.ones(1)}, [one] * 1000)
    assert len(result.nonfinite) == 1000
    assert len(looks) == 2


def test_only_so_many_fields_are_listed_and_long_keys_cut(tmp_path: Path) -> None:
    batch = {f"k{i}": i for i in range(300)}
    result = inspected(tmp_path / "a.gradtrend.pt", {"w": torch.ones(1)}, [batch] * 300 + [{"a" * 500: 1}])
    assert len(result.microbatches) == 301
    assert sum(map(len, result.microbatches)) == 20_000
    short = inspected(tmp_path / "b.gradtrend.pt", {"w": torch.ones(1)}, [{"a" * 500: 1, ("b", 2): 1}])
    assert [field.name for field in short.microbatches[0]] == ["a" * 100, "(b, 2)"]


def test_a_view_with_gaps_and_repeats_is_looked_at_as_it_lies(tmp_path: Path) -> None:
    """As many elements as lie between its first and its last, and not the same."""
    stored = torch.zeros(8)
    stored[2], stored[5], stored[3] = torch.nan, torch.nan, torch.inf
    view = stored.as_strided((2, 2, 2), (3, 3, 1))
    assert not view.isnan().any()
    result = inspected(tmp_path / "a.gradtrend.pt", {"w": view}, [torch.zeros(1)])
    assert [(h.nan, h.positive_inf) for h in result.nonfinite] == [(0, 2)]


def test_a_capture_that_is_cut_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.gradtrend.pt"
    inspected(path, {"w": torch.ones(100_000)}, [torch.zeros(1)])
    contents = read_capture(path)
    os.truncate(path, 1000)
    with pytest.raises(InputError, match="written to while it was read"):
        list(health.nonfinite_tensors(contents))
