"""Small models that fail in a known way, and captures of them in gradtrend's own format."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gradtrend.ingest.captures.find import read_capture
from gradtrend.model.replay import Replay
from gradtrend.replay import ReplayOptions, replay_captures
from gradtrend.replay.native import save_capture, snapshot_random_states

Step = Callable[[nn.Module, Any], Tensor]


def capture(
    path: Path,
    factory: Callable[..., Any],
    microbatches: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    change: Callable[[nn.Module], None] | None = None,
    rng_states: Mapping[str, Any] | None = None,
    **recorded: Any,
) -> Path:
    """Build the model, `change` its state, and save one step of it."""
    torch.manual_seed(0)
    made = factory(**(kwargs or {}))
    model = made[0] if isinstance(made, tuple) else made
    model.train()
    if change is not None:
        with torch.no_grad():
            change(model)
    return save_capture(
        path,
        model=model,
        factory=factory,
        kwargs=kwargs,
        microbatches=microbatches,
        rng_states=rng_states or snapshot_random_states(),
        **({"step": 7, "bad_parameters": ["some.weight"]} | recorded),
    )


def edited(path: Path, **changes: object) -> Path:
    """The capture with other fields."""
    contents = torch.load(path, weights_only=True)
    torch.save(contents | changes, path)
    return path


def replayed(*paths: Path, **options: Any) -> tuple[Replay, ...]:
    """The replays of these captures, trusted."""
    read = [(str(path), read_capture(path)) for path in paths]
    return replay_captures(read, ReplayOptions(**({"trust": True, "device": "cpu"} | options)))


def replayed_one(path: Path, **options: Any) -> Replay:
    (result,) = replayed(path, **options)
    return result


# --- models; each factory gives the model and how to get its loss ----------------------------------------------------


class Named(nn.Module):
    """Any function as a layer of its own, so that it has a name."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def network(middle: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), middle, nn.Linear(8, 2))


def mean_square(model: nn.Module, batch: Any) -> Tensor:
    x = batch["x"] if isinstance(batch, dict) else batch
    return model(x).square().mean()


def healthy() -> tuple[nn.Module, Step]:
    return network(nn.ReLU()), mean_square


def dropping() -> tuple[nn.Module, Step]:
    return network(nn.Dropout(0.5)), mean_square


def large() -> tuple[nn.Module, Step]:
    """Activations near 1e6: fine in float32 and bfloat16, beyond float16's 65504."""
    return network(Named(lambda x: x * 1e6)), lambda model, batch: model(batch["x"]).abs().log1p().mean()


def half_exp() -> tuple[nn.Module, Step]:
    """A layer that computes exp in half precision whatever the rest does."""
    return network(Named(lambda x: x.half().exp().float())), lambda model, batch: model(batch["x"]).abs().log1p().mean()


def gradient_of_thousands() -> tuple[nn.Module, Step]:
    """Gradients of about 100 inside the float16 part: finite in float16, not with a loss scale of 65536."""
    return network(nn.Tanh()), lambda model, batch: (model(batch["x"]).float() * 300).sum()


def log_of_zero() -> tuple[nn.Module, Step]:
    return network(Named(lambda x: (x * 0).log())), mean_square


class PerSampleNorm(nn.Module):
    """(x - mean) / std of each sample, without an epsilon: 0/0 for a constant one."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True)


def standardised() -> tuple[nn.Module, Step]:
    return nn.Sequential(PerSampleNorm(), nn.Linear(4, 2)), mean_square


def rooted() -> tuple[nn.Module, Step]:
    """sqrt of 0, where its slope is infinite."""
    return nn.Sequential(nn.ReLU(), nn.Linear(4, 4), Named(root_of_zero), nn.Linear(4, 2)), mean_square


def root_of_zero(x: Tensor) -> Tensor:
    return (x - x.detach()).square().sqrt()


def hidden_log() -> tuple[nn.Module, Step]:
    """log(0) masked by `where`: the loss is finite, the gradient is 0 * inf."""

    def masked(x: Tensor) -> Tensor:
        positive = x * (x > 0)
        return torch.where(positive > 0, positive.log(), torch.zeros_like(positive))

    return network(Named(masked)), mean_square


def normed() -> tuple[nn.Module, Step]:
    return network(nn.BatchNorm1d(8)), mean_square


def frozen_norm() -> tuple[nn.Module, Step]:
    """A BatchNorm that uses its running statistics in training too."""
    norm = nn.BatchNorm1d(8)
    norm.train = lambda mode=True: nn.Module.train(norm, False)  # type: ignore[method-assign]
    return network(norm), mean_square


class Attention(nn.Module):
    """Causal attention with a mask of -inf, which is meant to be there."""

    def __init__(self, after: nn.Module) -> None:
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.after = after
        self.register_buffer("mask", torch.full((3, 3), float("-inf")).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ x.transpose(-1, -2) + self.mask
        padded = scores.masked_fill(torch.zeros(3, 3, dtype=torch.bool), float("-inf"))
        return self.after(padded.softmax(-1) @ x)


def attending(broken: bool) -> tuple[nn.Module, Step]:
    after: nn.Module = Named(lambda x: (x * 0).log()) if broken else nn.Identity()
    return nn.Sequential(Attention(after), nn.Linear(4, 2)), mean_square


def nested() -> tuple[nn.Module, Step]:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        views, (targets, _) = batch["views"], batch["rest"]
        return sum(model(view["image"]).sum(dim=1).sub(targets).square().mean() for view in views)  # type: ignore[return-value]

    return standardised()[0], loss


class Flaky(nn.Module):
    """Overflows in every other run, by a number that no capture can restore."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        Flaky.calls += 1
        return x / 0 if Flaky.calls % 2 else x


def flaky() -> tuple[nn.Module, Step]:
    return network(Flaky()), mean_square


class Wandering(nn.Module):
    """Gives another finite result in every run."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        Wandering.calls += 1
        return x * Wandering.calls


def wandering() -> tuple[nn.Module, Step]:
    return network(Wandering()), mean_square


def python_random() -> tuple[nn.Module, Step]:
    return network(Named(lambda x: x * random.random())), mean_square


def steep(factor: float) -> tuple[nn.Module, Step]:
    return network(nn.Identity()), lambda model, batch: (model(batch["x"]) * factor).sum()


def of_width(width: int) -> tuple[nn.Module, Step]:
    return nn.Linear(4, width), mean_square


def not_a_model() -> int:
    return 3


def failing_step() -> tuple[nn.Module, Step]:
    return network(nn.ReLU()), lambda model, batch: model(batch["absent"])


def asserting() -> tuple[nn.Module, Step]:
    """Raises an error without a word."""

    def loss(model: nn.Module, batch: Any) -> Tensor:
        raise AssertionError

    return healthy()[0], loss


def asserting_in_half() -> tuple[nn.Module, Step]:
    """Runs in float32 alone."""

    def loss(model: nn.Module, batch: Any) -> Tensor:
        if torch.is_autocast_enabled("cpu"):
            raise AssertionError
        return mean_square(model, batch)

    return healthy()[0], loss


def batch(size: int = 4, seed: int = 0, **more: Any) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    return {"x": torch.randn(size, 4, generator=generator), "path": [f"img_{i}.png" for i in range(size)], **more}


# --- a small ResNet, as in the tutorials ------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, channels: int, activation: nn.Module) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = activation
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + x)


class SmallResNet(nn.Module):
    def __init__(self, activation: nn.Module, first: nn.Module) -> None:
        super().__init__()
        self.first = first
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.layer1 = Block(8, nn.ReLU())
        self.layer2 = Block(8, activation)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer2(self.layer1(self.conv(self.first(x))))
        return self.head(x.mean(dim=(2, 3)))


class PerImageNorm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(dim=(1, 2, 3), keepdim=True)) / x.std(dim=(1, 2, 3), keepdim=True)


def resnet(kind: str) -> tuple[nn.Module, Step]:
    """`half-exp`, `sqrt`, `per-image` or `plain`."""
    activation: nn.Module = nn.ReLU()
    if kind == "half-exp":
        activation = Named(lambda x: (x * 10).half().exp().to(x.dtype))
    if kind == "sqrt":
        activation = Named(root_of_zero)
    first: nn.Module = PerImageNorm() if kind == "per-image" else nn.Identity()
    return SmallResNet(activation, first), lambda m, b: functional.cross_entropy(m(b["image"]), b["label"])


def images(size: int = 8, poisoned: int | None = None) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(3)
    image = torch.rand(size, 3, 8, 8, generator=generator)
    if poisoned is not None:
        image[poisoned] = 0.5
    label = torch.randint(0, 4, (size,), generator=generator)
    return {"image": image, "label": label, "image_path": [f"train/{i:04}.png" for i in range(size)]}


def talking() -> tuple[nn.Module, Step]:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        print("hello from the model")
        return mean_square(model, batch)

    return healthy()[0], loss


def writing_to_its_batch() -> tuple[nn.Module, Step]:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return model(batch.pop("x").mul_(2)).square().mean()

    return healthy()[0], loss


class Teacher(nn.Module):
    """Follows its student by a moving average, in the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Linear(4, 2)
        self.teacher = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.teacher.weight.lerp_(self.student.weight, 0.5)
        return self.student(x) - self.teacher(x).detach()


def following() -> tuple[nn.Module, Step]:
    return Teacher(), mean_square


def rarely_overflowing() -> tuple[nn.Module, Step]:
    """Fails where the first random number of a microbatch is small: it takes the right state to fail again."""

    def loss(model: nn.Module, batch: Any) -> Tensor:
        drawn = torch.rand(())
        return model(batch["x"]).square().mean() / (drawn > batch["below"])

    return healthy()[0], loss


def compiled() -> tuple[nn.Module, Step]:
    return torch.compile(log_of_zero()[0]), mean_square  # type: ignore[return-value]


def of_whole_batches() -> tuple[nn.Module, Step]:
    """Takes four samples and no other number."""
    return log_of_zero()[0], lambda model, batch: model(batch["x"].reshape(4, 4)).square().mean()
