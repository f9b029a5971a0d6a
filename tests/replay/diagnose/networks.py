"""Networks as people build them, with a batch and a step each; sound ones at initialisation, and sick ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Made = tuple[nn.Module, Any, Callable[[nn.Module, Any], Tensor]]


def classify(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def predict(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def vectors(count: int = 64) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 32), torch.randint(0, 10, (count,))


def images(count: int = 8) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 3, 32, 32), torch.randint(0, 10, (count,))


def tokens(count: int = 8) -> tuple[Tensor, Tensor]:
    return torch.randint(0, 100, (count, 16)), torch.randint(0, 100, (count, 16))


def mlp(
    depth: int, activation: Callable[[], nn.Module] = nn.ReLU, norm: bool = False, width: int = 64
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for place in range(depth):
        layers += [nn.Linear(width if place else 32, width), *([nn.BatchNorm1d(width)] if norm else []), activation()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def he(model: nn.Module, gain: float = 1.0) -> Any:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            module.weight.data.mul_(gain)
    return model


class Block(nn.Module):
    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(given, width, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.short = nn.Sequential(nn.Conv2d(given, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.second_norm(self.second(self.relu(self.first_norm(self.first(x)))))
        return self.relu(y + self.short(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        widths = (8, 8, 16, 16, 32, 32, 64, 64)
        pairs = zip((8, *widths), widths, strict=False)
        self.blocks = nn.Sequential(*(Block(a, b, 2 if b > a else 1) for a, b in pairs))
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def cnn(depth: int = 8, norm: bool = True) -> nn.Sequential:
    layers: list[nn.Module] = []
    given = 3
    for place in range(depth):
        width = 16 * 2 ** (place // 3)
        layers += [nn.Conv2d(given, width, 3, 2 if place % 3 == 2 else 1, 1)]
        layers += [*([nn.BatchNorm2d(width)] if norm else []), nn.ReLU()]
        given = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, 10))


class Language(nn.Module):
    def __init__(self, blocks: int = 4, pre: bool = True, tied: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 256, 0.1, batch_first=True, norm_first=pre)
        self.body = nn.TransformerEncoder(layer, blocks, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 100, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.norm(self.body(self.embed(x), mask=mask)))


class Vision(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 64))
        layer = nn.TransformerEncoderLayer(64, 4, 256, 0.0, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.body(torch.cat([self.token.expand(len(x), -1, -1), x], 1))[:, 0])


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module] = nn.LSTM, layers: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.cells = nn.ModuleList([kind(32, 32, batch_first=True) for _ in range(layers)])
        self.head = nn.Linear(32, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for cell in self.cells:
            x, _ = cell(x)
        return self.head(x)


def autoencoder() -> nn.Sequential:
    down = [nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1)]
    up = [nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*down, nn.ReLU(), *up, nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Sigmoid())


def wide_tanh() -> nn.Sequential:
    """Weights ten times too large: nearly all units at -1 or 1."""
    model = mlp(10, nn.Tanh)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, 10 / math.sqrt(module.in_features))
    return model


SOUND: dict[str, Callable[[], Made]] = {
    "ReLU MLP, PyTorch's initialisation": lambda: (mlp(5), vectors(), classify),
    "ReLU MLP, He, 8 layers": lambda: (he(mlp(8)), vectors(), classify),
    "ReLU MLP, He, 30 layers": lambda: (he(mlp(30, width=128)), vectors(), classify),
    "MLP with BatchNorm": lambda: (mlp(12, norm=True), vectors(), classify),
    "SELU MLP": lambda: (mlp(8, nn.SELU), vectors(), classify),
    "ResNet": lambda: (ResNet(), images(), classify),
    "CNN with BatchNorm": lambda: (cnn(), images(), classify),
    "CNN without norm, He": lambda: (he(cnn(norm=False)), images(), classify),
    "transformer, norm first": lambda: (Language(), tokens(), predict),
    "transformer, norm last": lambda: (Language(pre=False), tokens(), predict),
    "ViT": lambda: (Vision(), images(), classify),
    "LSTM": lambda: (Recurrent(layers=4), tokens(), predict),
    "GRU": lambda: (Recurrent(nn.GRU), tokens(), predict),
    "autoencoder": lambda: (autoencoder(), torch.rand(8, 3, 32, 32), lambda m, x: functional.mse_loss(m(x), x)),
}
VANISHING: dict[str, Callable[[], Made]] = {
    "sigmoid MLP": lambda: (mlp(8, nn.Sigmoid), vectors(), classify),
    "tanh MLP, PyTorch's initialisation, 24 layers": lambda: (mlp(24, nn.Tanh), vectors(), classify),
    "ReLU MLP, PyTorch's initialisation, 20 layers": lambda: (mlp(20), vectors(), classify),
    "ReLU MLP, weights too small": lambda: (he(mlp(20), 0.3), vectors(), classify),
}
