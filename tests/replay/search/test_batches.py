"""Nested batches are cut by sample whatever their shape, and name their samples."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch

from gradtrend.replay.search.batches import Layout, identity, layout_of, layouts_of, take

Pair = namedtuple("Pair", ["image", "label"])
VIEWS = [torch.zeros(6, 3), torch.zeros(6, 3)]
BATCHES: list[tuple[str, Any, int]] = [
    ("tensor", torch.zeros(6, 3), 6),
    ("dict", {"image": torch.zeros(6, 3), "classes": [torch.zeros(1)] * 6, "image_path": list("abcdef")}, 6),
    ("tuple", (torch.zeros(6, 3), torch.zeros(6)), 6),
    ("named tuple", Pair(torch.zeros(6, 3), torch.zeros(6)), 6),
    ("views", {"views": VIEWS, "name": list("abcdef")}, 6),
    ("boxes", {"image": torch.zeros(3, 3), "boxes": [torch.zeros(2, 4), torch.zeros(5, 4), torch.zeros(1, 4)]}, 3),
    ("scalar beside", {"image": torch.zeros(6, 3), "temperature": torch.tensor(2.0), "mode": "train"}, 6),
]


@pytest.mark.parametrize(("name", "batch", "size"), BATCHES, ids=[name for name, _, _ in BATCHES])
def test_the_size_and_a_part(name: str, batch: Any, size: int) -> None:
    layout = layout_of(batch, time_first=False)
    assert layout == Layout(size)
    part = take(batch, [0, 2], layout)
    assert layout_of(part, time_first=False) == Layout(2)
    assert type(part) is type(batch)


def test_views_are_cut_inside_and_lists_by_entry() -> None:
    part = take({"views": VIEWS, "name": list("abcdef")}, [4], Layout(6))
    assert [view.shape for view in part["views"]] == [(1, 3), (1, 3)]
    assert part["name"] == ["e"]


def test_what_has_no_samples_is_kept() -> None:
    batch = {"image": torch.zeros(6, 3), "temperature": torch.tensor(2.0), "mode": "train"}
    part = take(batch, [1], Layout(6))
    assert part["mode"] == "train"
    assert part["temperature"].ndim == 0


def test_no_samples_at_all() -> None:
    assert layout_of({"a": torch.tensor(1.0), "b": "x"}, time_first=False) is None


def test_the_samples_may_lie_along_the_second_dimension() -> None:
    batch = {"frames": torch.arange(30.0).reshape(5, 3, 2), "words": torch.tensor([1, 2, 3])}
    layout = layout_of(batch, time_first=False)
    assert layout is not None
    assert layout.size == 3
    assert torch.equal(take(batch, [2], layout)["frames"], batch["frames"][:, 2:])
    alone = torch.zeros(5, 3, 2)
    assert layout_of(alone, time_first=False) == Layout(5)
    assert layout_of(alone, time_first=True) == Layout(3, preferred=1)


def test_a_list_of_containers_may_be_views_or_samples() -> None:
    batch = {"targets": [{"x": torch.full((4,), float(n)), "w": torch.ones(4)} for n in range(6)]}
    first, second = layouts_of(batch, time_first=False)
    assert (first, second) == (Layout(4), Layout(6, listed=True))
    assert [one["x"].shape for one in take(batch, [0, 2], first)["targets"]] == [(2,)] * 6
    assert [one["x"][0] for one in take(batch, [5, 2], second)["targets"]] == [5, 2]


def test_a_list_of_samples_that_nobody_put_together() -> None:
    batch = [{"x": torch.full((4,), float(n)), "y": torch.tensor(n), "path": f"{n}.png"} for n in range(3)]
    layout = layout_of(batch, time_first=False)
    assert layout == Layout(3)
    assert [one["path"] for one in take(batch, [2, 0], layout)] == ["2.png", "0.png"]
    assert identity(batch, 1, 3) == "1.png"


@pytest.mark.parametrize(
    ("batch", "name"),
    [
        ({"caption": list("abc"), "image_path": ["x.png", "y.png", "z.png"]}, "y.png"),
        ({"image": torch.zeros(3), "id": torch.tensor([7, 8, 9])}, "8"),
        ((torch.zeros(3, 2), ["p", "q", "r"]), "q"),
        ({"image": torch.zeros(3, 2)}, None),
    ],
)
def test_identity(batch: Any, name: str | None) -> None:
    assert identity(batch, 1, 3) == name
