"""Small networks of many kinds, each with one layer left open, and a batch of the kind that it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.replay.family.case import Made, Step


class Layer(nn.Module):
    """Any function as a layer with a name of its own."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def labels(size: int, classes: int = 3, seed: int = 1) -> Tensor:
    return torch.randint(0, classes, (size,), generator=torch.Generator().manual_seed(seed))


class ConvNet(nn.Module):
    def __init__(self, middle: nn.Module) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.squeeze = middle
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.squeeze(self.stem(x).mean(dim=(2, 3))))


class Recurrent(nn.Module):
    """Time first: (time, batch, feature)."""

    def __init__(self, cell: type[nn.Module], middle: nn.Module) -> None:
        super().__init__()
        self.rnn = cell(4, 8)
        self.gate = middle
        self.out = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.gate(self.rnn(x)[0][-1]))


class Text(nn.Module):
    """A transformer over tokens; `pad` (batch, time) is True where there is no token."""

    def __init__(self, middle: nn.Module) -> None:
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.neck = middle
        self.cls = nn.Linear(8, 3)

    def forward(self, ids: Tensor, pad: Tensor) -> Tensor:
        return self.cls(self.neck(self.block(self.embed(ids), src_key_padding_mask=pad).mean(dim=1)))


class Autoencoder(nn.Module):
    def __init__(self, middle: nn.Module) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), middle)
        self.decoder = nn.Sequential(nn.Linear(8, 6))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x))


class Experts(nn.Module):
    """Soft mixture of two experts; the second one has the open layer."""

    def __init__(self, middle: nn.Module) -> None:
        super().__init__()
        self.router = nn.Linear(4, 2)
        self.experts = nn.ModuleDict({"a": nn.Linear(4, 8), "b": nn.Sequential(nn.Linear(4, 8), middle)})
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.router(x).softmax(dim=-1)
        return self.head(weights[:, :1] * self.experts["a"](x) + weights[:, 1:] * self.experts["b"](x))


class Policy(nn.Module):
    def __init__(self, middle: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), middle)
        self.actor, self.critic = nn.Linear(8, 3), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x)
        return self.actor(h), self.critic(h).squeeze(-1)


class Rollout(NamedTuple):
    observation: Tensor
    action: Tensor
    reward: Tensor


def classify(model: nn.Module, batch: Any) -> Tensor:
    return functional.cross_entropy(model(batch["x"]), batch["y"])


def rebuild(model: nn.Module, batch: Any) -> Tensor:
    return functional.mse_loss(model(batch), batch)


def read(model: nn.Module, batch: Any) -> Tensor:
    ids, pad, label = batch
    return functional.cross_entropy(model(ids, pad), label)


def reinforce(model: nn.Module, batch: Any) -> Tensor:
    logits, value = model(batch.observation)
    chosen = logits.log_softmax(-1).gather(1, batch.action[:, None]).squeeze(1)
    advantage = batch.reward - value
    return -(chosen * advantage.detach()).mean() + advantage.square().mean()


def contrast(model: nn.Module, batch: Any) -> Tensor:
    first, second = (model(view).tanh() for view in batch["views"])
    return functional.cross_entropy(first @ second.T, torch.arange(len(first)))


def tokens(size: int, time: int = 5) -> Tensor:
    return torch.randint(0, 12, (size, time), generator=torch.Generator().manual_seed(3))


def batch_for(kind: str, size: int = 6) -> Any:
    if kind == "conv":
        return {"x": draw(size, 3, 6, 6), "y": labels(size)}
    if kind in ("lstm", "gru"):
        return {"x": draw(7, size, 4), "y": labels(size)}
    if kind == "text":
        return (tokens(size), torch.zeros(size, 5, dtype=torch.bool), labels(size))
    if kind == "autoencoder":
        return draw(size, 6)
    if kind == "policy":
        return Rollout(draw(size, 5), labels(size), draw(size))
    if kind == "siamese":
        return {"views": [draw(size, 4), draw(size, 4, seed=1)]}
    return {"x": draw(size, 4), "y": labels(size)}


def network(kind: str, middle: nn.Module) -> Made:
    """A network of this kind around `middle`, whose input and output are (batch, 8)."""
    made: dict[str, Callable[[], tuple[nn.Module, Step]]] = {
        "mlp": lambda: (nn.Sequential(nn.Linear(4, 8), middle, nn.Linear(8, 3)), classify),
        "conv": lambda: (ConvNet(middle), classify),
        "lstm": lambda: (Recurrent(nn.LSTM, middle), classify),
        "gru": lambda: (Recurrent(nn.GRU, middle), classify),
        "text": lambda: (Text(middle), read),
        "autoencoder": lambda: (Autoencoder(middle), rebuild),
        "experts": lambda: (Experts(middle), classify),
        "policy": lambda: (Policy(middle), reinforce),
        "siamese": lambda: (nn.Sequential(nn.Linear(4, 8), middle, nn.Linear(8, 4)), contrast),
    }
    return made[kind]()


OPEN_LAYER = {
    "mlp": "1",
    "conv": "squeeze",
    "lstm": "gate",
    "gru": "gate",
    "text": "neck",
    "autoencoder": "encoder.2",
    "experts": "experts.b.1",
    "policy": "body.1",
    "siamese": "1",
}
