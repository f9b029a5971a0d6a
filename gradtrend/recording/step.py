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

from gradtrend.recording.around import Before, Seen, before, look
from gradtrend.recording.capture import check_settings, rank_here, save_capture
from gradtrend.recording.factory import factory_path
from gradtrend.recording.values import kept_microbatches

_REMEMBERED = 50  # steps whose gradient norms make the baseline: some tens, as a level that one spike does not move
_ENOUGH = 10  # steps before a norm can be called unusual: of fewer, a median may be the warm-up's
# A GradScaler skips a step that overflows and halves its scale: one or two in a row are its normal work.
_IN_A_ROW_WITH_SCALE = 3


@dataclass(slots=True)
class _Known:
    """What earlier steps of a model showed; `changing` are the frozen parameters that they wrote to, None before."""

    norms: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    by_parameter: dict[str, deque[float]] = field(default_factory=dict)
    bad_in_a_row: int = 0
    written: int = 0
    changing: set[str] | None = None
    complained: bool = False

    def baseline(self) -> dict[str, float]:
        """The median gradient norm of all under the empty name, and by parameter; {} where too few steps are known."""
        if len(self.norms) < _ENOUGH or not median(self.norms):
            return {}
        return {"": median(self.norms), **{name: median(norms) for name, norms in self.by_parameter.items()}}

    def remember(self, seen: Seen) -> None:
        """Keep the norms of a finite step; the median copes with the few that are large."""
        self.norms.append(seen.norm)
        for name, norm in seen.norms.items():
            self.by_parameter.setdefault(name, deque(maxlen=_REMEMBERED)).append(norm)


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

    It goes wrong where a loss given to `watch.record(loss)` or a gradient is non-finite, or where the gradient norm is
    `explosion` times the median of the last 50 steps (None: never). With a
    `loss_scale` (`scaler.get_scale()`) the third bad step in a row is kept, since a scaler skips one or two of its own
    accord. At most `limit` files are written a model, as `folder/debug/step7-rank0.gradtrend.pt`; the path is
    `watch.path` afterwards.

    `factory`, `kwargs` and `loss_divisor` are those of `save_capture`. Unscaling, clipping and `optimizer.step()`
    stand behind the block: what the last overwrites cannot be kept, and the norms are those before clipping. Raises
    `TypeError` or `ValueError` at the first step for what a capture could not keep; where writing fails later, it
    warns, and training goes on.
    """
    known = _KNOWN.setdefault(model, _Known())
    if known.changing is None:
        factory_path(factory)
        kept_microbatches(microbatches)
        check_settings(kwargs, autocast, loss_scale, loss_divisor)
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
        self._before: Before | None = None

    def record(self, loss: torch.Tensor | float) -> None:
        """A microbatch's loss, before it is divided or scaled. Raises `TypeError` for what is no number."""
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            self._losses.append(loss.detach().reshape(()))
        elif isinstance(loss, int | float):
            self._losses.append(torch.tensor(float(loss)))
        else:
            raise TypeError(f"record takes one loss, a number or a tensor of one, not {type(loss).__name__}")

    def __enter__(self) -> StepWatch:
        if self._known.written < self._limit:
            try:
                self._before = before(self._model, self._batches, self._known.changing)
            except Exception as error:  # of a model of any kind: training goes on
                self._warn(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            return
        seen = look(self._model, self._losses, self._settings["loss_scale"] or 1.0)
        baseline = self._known.baseline()
        explodes = self._explosion is not None and bool(baseline) and seen.norm > self._explosion * baseline[""]
        self.bad = explodes or not seen.finite
        self._known.bad_in_a_row = 0 if seen.finite else self._known.bad_in_a_row + 1
        if self._before is not None:
            lost = self._lost(self._before, complain=error is None)
            scaled = self._settings["loss_scale"] is not None and math.isfinite(seen.loss or 0.0) and not explodes
            if self.bad and (not scaled or self._known.bad_in_a_row >= _IN_A_ROW_WITH_SCALE):
                self._write(self._before, seen, baseline, lost)
        if error is None and seen.finite and seen.norms:
            self._known.remember(seen)
        self._before, self._batches = None, []

    def _lost(self, kept: Before, complain: bool) -> list[str]:
        """The parameters that the step overwrote and that were not kept; those that it may write to are from now on."""
        changed = kept.changed(self._model)
        lost = sorted(changed - set(kept.tensors))
        self._known.changing = (self._known.changing or set()) | changed
        trained = [name for name, p in self._model.named_parameters() if p.requires_grad and name in lost]
        if trained and complain and not self._known.complained:
            self._known.complained = True
            raise RuntimeError(
                f"{trained[0]} of {type(self._model).__name__} was changed inside capture_step: put optimizer.step() "
                "behind the block, since a capture holds the model as it was before the step"
            )
        return lost

    def _write(self, kept: Before, seen: Seen, baseline: Mapping[str, float], lost: list[str]) -> None:
        if lost:
            return self._warn(f"it overwrote {lost[0]}")
        try:
            state = dict(self._model.state_dict())
            self.path = save_capture(
                self._wanted,
                model=self._model,
                microbatches=kept.batches,
                model_state=state | {name: tensor for name, tensor in kept.tensors.items() if name in state},
                rng_states=kept.random_states,
                loss=seen.loss,
                gradient_norm=seen.norm,
                bad_parameters=seen.bad,
                baseline_norm=baseline.get(""),
                baseline_norms={name: value for name, value in baseline.items() if name},
                outside=kept.outside,
                **self._settings,
            )
            self._known.written += 1
        except Exception as error:  # a full disk, extra state of any class: training goes on
            self._warn(error)
        return None

    def _warn(self, why: object) -> None:
        warnings.warn(f"step {self._settings['step']} could not be captured: {why}", stacklevel=4)
