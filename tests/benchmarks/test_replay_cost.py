"""What locating costs beside the step itself: time as a ratio within one run, and peak memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gradtrend.recording.random_states import present_states
from gradtrend.replay.run.step import run_step
from gradtrend.replay.search.locate import locate
from gradtrend.replay.subject.subject import Subject
from tests.places import ROOT
from tests.processes import SOURCE, python

pytestmark = pytest.mark.benchmark

MAX_RATIO = 1.5
ROUNDS = 5  # of each; the fastest counts, as the others were disturbed


class BasicBlock(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.down = nn.Identity() if inside == outside else nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(out)) + self.down(x))


def resnet18() -> tuple[nn.Module, Any]:
    stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    widths = [block for stage in stages for block in (stage, (stage[1], stage[1], 1))]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        *(BasicBlock(*width) for width in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    return model, torch.rand(8, 3, 96, 96)


def transformer() -> tuple[nn.Module, Any]:
    layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.1, batch_first=True)
    return nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), torch.rand(8, 128, 256)


def subject_of(make: Callable[[], tuple[nn.Module, Any]]) -> Subject:
    torch.manual_seed(0)
    model, batch = make()
    device = torch.device("cpu")
    loss = lambda b, i: model(b).square().mean()  # noqa: E731
    subject = Subject(model, loss, lambda: None, [batch], device, present_states(device), 1.0)
    subject.remember()
    return subject


def fastest(*works: Callable[[], object]) -> list[float]:
    """The least processor time of each, taken in turn and on one thread: other load must not count."""
    torch.set_num_threads(1)
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, taken in zip(works, times, strict=True):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    return [min(taken) for taken in times]


def plain_step(subject: Subject) -> None:
    """Forward and backward and nothing else."""
    subject.model.zero_grad(set_to_none=True)
    subject.compute_loss(subject.batches[0], 0).backward()


@pytest.mark.parametrize("make", [transformer, resnet18])
def test_locating_costs_at_most_half_a_step_more(make: Callable[[], tuple[nn.Module, Any]]) -> None:
    """The step is healthy, so that all of it is watched to its end: the longest there is."""
    subject = subject_of(make)
    subject.reset()
    plain_step(subject)
    plain, located = fastest(lambda: plain_step(subject), lambda: locate(subject, "float32"))
    print(f"{make.__name__}: plain {plain * 1000:.0f} ms, located {located * 1000:.0f} ms, ratio {located / plain:.2f}")
    assert located <= MAX_RATIO * plain


def test_locating_needs_no_more_memory_than_a_step() -> None:
    """Peak resident memory of a process that locates, beside one that only runs the step."""
    peaks = {kind: peak_of(kind) for kind in ("step", "locate")}
    print(f"peak KiB: {peaks}")
    assert peaks["locate"] <= 1.1 * peaks["step"]


def peak_of(kind: str) -> int:
    done = python(__file__, kind, finds=(SOURCE, ROOT))
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


if __name__ == "__main__":
    step_subject = subject_of(transformer)
    if sys.argv[1] == "step":
        run_step(step_subject, "float32")
    else:
        locate(step_subject, "float32")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
