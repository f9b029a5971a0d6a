"""How the gradient changes along depth: even, vanishing or growing toward the input, from which layer on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gradtrend.model.diagnosis import DepthTrend, Flow, LayerFlow

_Levels = npt.NDArray[np.float64]

_FEWEST = 4  # layers: through three any line goes
# Decades from one end of the stretch to the other. Measured at initialisation on 36 sound networks and 13 sick ones,
# nearly all with three seeds. Sound: ReLU MLPs with He's initialisation 0.6 at most (8 to 50 layers), with PyTorch's
# own 1.7 (5 layers), 2.8 (8) and 3.3 (10); CNNs without norm 1.8 (5) and 2.9 (12), an autoencoder 3.2, stacked LSTMs
# 2.3 (4) and 3.3 (6); transformers of 6 to 24 blocks, ViTs and a Mixer 0.95 either way. Toward growing: ResNets 1.8
# (their stages widen), MobileNet 1.6, CNNs 1.5 and MLPs 1.7 with BatchNorm. Sick: sigmoid MLPs 4.3 (5) and 6.8 (8), a
# tanh MLP 3.8 (20), PyTorch's ReLU MLP of 20 layers 6.6, He's weights times 0.3 9.1; toward growing: tanh with
# weights ten times too large 3.3, an MLP of 50 layers with BatchNorm 4.2 (known to grow by 1.21 a layer: Yang et al.
# 2019).
_VANISHING = 3.5
_GROWING = 2.5
_BROKEN = 1e-4  # neighbours of the sound networks above differ by less than a hundredfold
_PAIRED = 400  # layers that pairs are made of: 80,000 pairs are enough for a median
_KINKS = 40  # places tried for the ends of the stretch that changes: every layer of most networks
_BETTER = 0.5  # what is left unexplained, beside one line through all, for a shorter stretch to be believed


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Layers first to last, with the slope of their levels in decades a layer."""

    first: int
    last: int
    slope: float


def depth_trend(layers: Sequence[LayerFlow]) -> DepthTrend:
    """The trend over `layers`, which are in the order of the forward pass and hold matrices alone."""
    sized = [layer for layer in layers if layer.size and math.isfinite(layer.size)]
    if len(sized) < _FEWEST:
        return DepthTrend(Flow.UNKNOWN, layers=len(sized))
    levels = np.log10([layer.size or 1.0 for layer in sized])
    stretch = _stretch(levels)
    decades = stretch.slope * (stretch.last - stretch.first)
    flow = Flow.EVEN
    if not -_GROWING < decades < _VANISHING:
        flow = Flow.VANISHING if decades > 0 else Flow.GROWING
    else:
        stretch = _Stretch(0, len(levels) - 1, theil_sen(levels))
    return DepthTrend(
        flow=flow,
        slope=stretch.slope,
        factor=10.0**-stretch.slope,
        layers=stretch.last - stretch.first + 1,
        first=sized[stretch.first].layer,
        last=sized[stretch.last].layer,
    )


def broken_layers(layers: Sequence[LayerFlow]) -> tuple[int, ...]:
    """Places of layers whose gradient's size is below `_BROKEN` of both neighbours': the chain rule passes through a
    layer, so that what reaches the one before it has come through it.
    """
    places = [place for place, layer in enumerate(layers) if layer.gradient is not None and layer.size is not None]
    sizes = [layers[place].size or 0.0 for place in places]
    return tuple(
        places[i]
        for i in range(1, len(places) - 1)
        if min(sizes[i - 1], sizes[i + 1]) > 0 and sizes[i] < _BROKEN * min(sizes[i - 1], sizes[i + 1])
    )


def theil_sen(levels: _Levels) -> float:
    """The median of the slopes between all pairs (Theil 1950, Sen 1968): a few layers off the line do not move it."""
    places = np.unique(np.linspace(0, len(levels) - 1, min(len(levels), _PAIRED)).astype(int))
    first, last = np.triu_indices(len(places), k=1)
    return float(np.median((levels[places[last]] - levels[places[first]]) / (places[last] - places[first])))


def _stretch(levels: _Levels) -> _Stretch:
    """The layers along which the level changes: all, or those between two kinks, where that fits far better."""
    count = len(levels)
    places = np.unique(np.linspace(0, count - 1, min(count, _KINKS)).astype(int))
    whole = _unexplained(levels, 0, count - 1)
    fits = [
        (_unexplained(levels, int(first), int(last)), int(first), int(last))
        for index, first in enumerate(places)
        for last in places[index + _FEWEST - 1 :]
    ]
    left, first, last = min(fits)
    if left > _BETTER * whole:
        first, last = 0, count - 1
    return _Stretch(first, last, theil_sen(levels[first : last + 1]))


def _unexplained(levels: _Levels, first: int, last: int) -> float:
    """What is left of the levels' variance beside flat, a line from `first` to `last`, flat (least absolute would be
    as good and slower).
    """
    x = np.clip(np.arange(len(levels), dtype=np.float64), first, last)
    x -= x.mean()
    y = levels - levels.mean()
    slope = float(x @ y) / float(x @ x)
    rest = y - slope * x
    return float(rest @ rest)
