"""Watch training steps, and keep the one that goes wrong."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

import torch

from gradtrend.recording.capture import rank_here, save_capture
from gradtrend.recording.factory import factory_path
from gradtrend.recording.outside import snapshot_outside
from gradtrend.recording.random_states import snapshot_random_states
from gradtrend.recording.trees import map_tensors
from gradtrend.recording.values import kept_microbatches

_REMEMBERED = 50  # steps whose gradient norms make the baseline: some tens, as a level that one spike does not move
_ENOUGH = 10  # steps before a norm can be called unusual
# A GradScaler skips a step that overflows and halves its scale: one or two in a row are its normal work.
_IN_A_ROW_WITH_SCALE = 3


@dataclass(slots=True)
class _Known:
    """What earlier steps of a model showed."""

    norms: deque[torch.Tensor] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    names: tuple[str, ...] = ()
    bad_in_a_row: int = 0
    written: int = 0
    changing: set[str] | None = None  # what steps themselves write to; None before the first


_KNOWN: WeakKeyDictionary[torch.nn.Module, _Known] = WeakKeyDictionary()


def capture_step(
    folder: str | Path,
    *,
    model: torch.nn.Module,
    factory: str | Callable[..., Any],
    microbatches: Sequence[Any],
    step: int,
    kwargs: Mapping[str, Any] | None = None,
    autocast: torch.dtype | str | None = None,
    loss_scale: float | None = None,
    loss_divisor: float | None = None,
    explosion: float | None = 100.0,
    limit: int = 3,
    rank: int | None = None,
) -> StepWatch:
    """A context manager around one step, forward and backward, which writes a capture where the step goes wrong.

    It goes wrong where a loss given to `watch.record(loss)` or a gradient is non-finite, where the block raises after
    that, or where the gradient norm is `explosion` times the median of the last 50 steps (None: never). With a
    `loss_scale` (`scaler.get_scale()`) the third bad step in a row is kept, since a scaler skips one or two of its own
    accord. At most `limit` files are written a model, as `folder/debug/step7-rank0.gradtrend.pt`; the path is
    `watch.path` afterwards.

    `factory`, `kwargs` and `loss_divisor` are those of `save_capture`. `optimizer.step()` stands behind the block:
    what it overwrites cannot be kept. Raises `TypeError` or `ValueError` at the first step for what a capture could not
    keep; where writing fails later, it warns, and training goes on.
    """
    known = _KNOWN.setdefault(model, _Known())
    if known.changing is None:
        factory_path(factory)
        kept_microbatches(microbatches)
    number_of_rank = rank_here() if rank is None else rank
    written = Path(folder) / "debug" / f"step{int(step)}-rank{number_of_rank}.gradtrend.pt"
    settings = {
        "factory": factory,
        "kwargs": kwargs,
        "step": step,
        "autocast": autocast,
        "loss_scale": loss_scale,
        "loss_divisor": loss_divisor,
        "rank": number_of_rank,
    }
    return StepWatch(model, known, written, list(microbatches), settings, explosion, limit)


class StepWatch:
    """One watched step. `bad` and `path` (of the capture, None where none was written) hold after the block."""

    def __init__(
        self,
        model: torch.nn.Module,
        known: _Known,
        path: Path,
        microbatches: list[Any],
        settings: Mapping[str, Any],
        explosion: float | None,
        limit: int,
    ) -> None:
        self.bad = False
        self.path: Path | None = None
        self._model, self._known, self._wanted, self._settings = model, known, path, settings
        self._explosion, self._limit = explosion, limit
        self._batches = microbatches
        self._losses: list[torch.Tensor] = []

    def record(self, loss: torch.Tensor) -> None:
        """A microbatch's loss, before it is divided or scaled."""
        self._losses.append(loss.detach())

    def __enter__(self) -> StepWatch:
        if self._known.written >= self._limit:
            return self
        self._batches = map_tensors(self._batches, torch.clone)  # a step may write to its batch
        self._random = snapshot_random_states(_device_of(self._model))
        self._versions = {name: tensor._version for name, tensor in _tensors(self._model)}
        self._outside = snapshot_outside(self._model, before=True)
        self._before = {
            name: tensor.detach().clone() for name, tensor in _tensors(self._model) if self._may_change(name, tensor)
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._known.written >= self._limit or (error is not None and not isinstance(error, Exception)):
            return
        seen = _seen(self._model, self._losses, self._settings["loss_scale"] or 1.0)
        baseline = self._baseline(seen.names)
        explodes = self._explosion is not None and bool(baseline) and seen.norm > self._explosion * baseline[""]
        self.bad = explodes or not seen.finite
        self._known.bad_in_a_row = 0 if seen.finite else self._known.bad_in_a_row + 1
        lost = self._lost(complain=error is None)
        scaled = self._settings["loss_scale"] is not None and math.isfinite(seen.loss or 0.0) and not explodes
        if not self.bad:
            self._remember(seen)
        elif not lost and (not scaled or self._known.bad_in_a_row >= _IN_A_ROW_WITH_SCALE):
            self._write(seen, baseline)

    def _may_change(self, name: str, tensor: torch.Tensor) -> bool:
        """Whether a step may write to this tensor: any buffer at first, then those that steps did write to."""
        changing = self._known.changing
        return not isinstance(tensor, torch.nn.Parameter) if changing is None else name in changing

    def _lost(self, complain: bool) -> bool:
        """Whether the step overwrote what cannot be had back; what it wrote to is kept from now on."""
        changed = {name for name, tensor in _tensors(self._model) if tensor._version != self._versions.get(name)}
        lost = changed - set(self._before)
        first = self._known.changing is None
        self._known.changing = (self._known.changing or set()) | changed
        trained = [name for name in lost if _is_trained(self._model, name)]
        if trained and first and complain:
            raise RuntimeError(
                f"{trained[0]} was changed inside capture_step: put optimizer.step() behind the block, since a capture "
                "holds the model as it was before the step"
            )
        return bool(lost)

    def _baseline(self, names: Sequence[str]) -> Mapping[str, float]:
        """The median norm of each parameter's gradient, and of all under the empty name; {} where too few are known."""
        if len(self._known.norms) < _ENOUGH or self._known.names != tuple(names):
            return {}
        table = torch.stack(list(self._known.norms))
        total = median(torch.linalg.vector_norm(table, dim=1).tolist())
        return {"": total, **dict(zip(names, table.median(dim=0).values.tolist(), strict=True))}

    def _remember(self, seen: _Seen) -> None:
        if self._known.names != seen.names:  # other parameters are trained now
            self._known.names = seen.names
            self._known.norms.clear()
        self._known.norms.append(seen.norms)

    def _write(self, seen: _Seen, baseline: Mapping[str, float]) -> None:
        state = dict(self._model.state_dict())
        state |= {name: tensor for name, tensor in self._before.items() if name in state}
        try:
            self.path = save_capture(
                self._wanted,
                model=self._model,
                microbatches=self._batches,
                model_state=state,
                rng_states=self._random,
                loss=seen.loss,
                gradient_norm=seen.norm,
                bad_parameters=seen.bad,
                baseline_norm=baseline.get(""),
                baseline_norms={name: value for name, value in baseline.items() if name},
                outside=self._outside,
                **self._settings,
            )
            self._known.written += 1
        except (OSError, TypeError, ValueError) as error:
            warnings.warn(f"the bad step {self._settings['step']} could not be captured: {error}", stacklevel=4)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a step left behind: the mean loss, and the gradient norms of the parameters that have one, unscaled."""

    loss: float | None
    names: tuple[str, ...]
    norms: torch.Tensor
    bad: tuple[str, ...]

    @property
    def norm(self) -> float:
        """That of all gradients; 0 where there is none."""
        return float(torch.linalg.vector_norm(self.norms))

    @property
    def finite(self) -> bool:
        """Whether the loss, every gradient and the norm are finite."""
        return not self.bad and math.isfinite(self.norm) and math.isfinite(self.loss or 0.0)


def _seen(model: torch.nn.Module, losses: Sequence[torch.Tensor], scale: float) -> _Seen:
    """Norms in float32, as training computes them; read from the device in one transfer."""
    found = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    dense = {name: grad.coalesce().values() if grad.is_sparse else grad for name, grad in found.items()}
    made = [torch.linalg.vector_norm(grad, dtype=torch.float32).to(_device_of(model)) for grad in dense.values()]
    norms = torch.stack(made).cpu().double() / scale if made else torch.zeros(0, dtype=torch.float64)
    doubtful = [name for name, norm in zip(dense, norms.tolist(), strict=True) if not math.isfinite(norm)]
    bad = tuple(name for name in doubtful if not bool(torch.isfinite(dense[name]).all()))
    loss = sum(float(loss) for loss in losses) / len(losses) if losses else None
    return _Seen(loss, tuple(dense), norms, bad)


def _tensors(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*model.named_parameters(), *model.named_buffers()]


def _device_of(model: torch.nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def _is_trained(model: torch.nn.Module, name: str) -> bool:
    return any(name == own and parameter.requires_grad for own, parameter in model.named_parameters())
