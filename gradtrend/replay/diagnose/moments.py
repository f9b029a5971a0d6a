"""Sums over tensors, each read once, a piece at a time that stays in the processor's cache."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch

from gradtrend.model.diagnosis import Moments

# Elements widened to float64 at a time: 2 MB, which a second-level cache holds, so that memory is read once although
# several sums are taken. Accelerators have no use for small pieces, and each is a launch.
_PIECE = 1 << 18
_PIECE_ELSEWHERE = 1 << 24


def sums_of(tensor: torch.Tensor) -> torch.Tensor:
    """Count, sum, sum of squares, largest magnitude, zeros, non-finite elements, on the tensor's device.

    A sparse tensor's values are its stored ones, the rest counts as zeros.
    """
    values, left_out = _plain(tensor.detach())
    wide = torch.float32 if values.device.type == "mps" else torch.float64
    total = torch.zeros(6, dtype=wide, device=values.device)
    for piece in values.split(_PIECE if values.device.type == "cpu" else _PIECE_ELSEWHERE):
        total = merged(total, _sums(piece.to(wide)))
    total[0] += left_out
    total[4] += left_out
    return total


def _plain(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The stored values in one dimension, and how many zeros are not stored."""
    left_out = 0
    if tensor.layout is not torch.strided:
        whole = math.prod(tensor.shape)
        tensor = tensor.coalesce().values() if tensor.is_sparse else tensor.to_dense()
        left_out = whole - tensor.numel()
    if tensor.is_complex():
        tensor, left_out = torch.view_as_real(tensor.resolve_conj()), 2 * left_out
    return tensor.reshape(-1), left_out


def _sums(piece: torch.Tensor) -> torch.Tensor:
    if not piece.numel():
        return piece.new_zeros(6)
    square = torch.dot(piece, piece)
    zeros = piece.numel() - torch.count_nonzero(piece)
    bad = torch.zeros_like(square)
    if piece.device.type != "cpu" or not bool(torch.isfinite(square)):  # elsewhere, asking would wait for the device
        finite = torch.isfinite(piece)
        bad = piece.numel() - torch.count_nonzero(finite).to(piece.dtype)
        piece = torch.where(finite, piece, 0.0)
        square = torch.dot(piece, piece)
    count = torch.full_like(square, float(piece.numel()))
    return torch.stack([count, piece.sum(), square, piece.abs().max(), zeros.to(piece.dtype), bad])


def merged(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The sums over both."""
    both = one + other
    both[3] = torch.maximum(one[3], other[3])
    return both


def all_moments(groups: Sequence[Sequence[torch.Tensor]]) -> list[Moments | None]:
    """For each group of sums the moments over its tensors, None for an empty one; fetched from the device at once."""
    joined = [_joined(group) for group in groups]
    fetched = iter(torch.stack([sums.to("cpu") for sums in joined if sums is not None]).tolist() if any(groups) else [])
    return [None if sums is None else _moments(*next(fetched)) for sums in joined]


def _joined(group: Iterable[torch.Tensor]) -> torch.Tensor | None:
    total: torch.Tensor | None = None
    for sums in group:
        total = sums if total is None else merged(total, sums.to(total.device))
    return total


def _moments(count: float, total: float, squares: float, largest: float, zeros: float, bad: float) -> Moments:
    finite = count - bad
    mean = total / finite if finite else 0.0
    variance = max(squares / finite - mean * mean, 0.0) if finite else 0.0
    share = zeros / count if count else 0.0
    return Moments(int(count), mean, math.sqrt(variance), largest, share, math.sqrt(squares), int(bad))
