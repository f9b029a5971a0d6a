"""Sees every operator of a step, forward and backward, and keeps the ones that first make a non-finite value.

A non-finite value need not be an accident (attention masks are -inf on purpose) nor matter (it may be masked away).
So the first one is not blamed as such: each producer gets a number, the number follows the values it spoils, and
the one that reaches the loss, or a parameter's gradient, is the origin.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gradtrend.model.replay import Magnitude, Origin
from gradtrend.replay.run import operators
from gradtrend.replay.run.following import ModuleStack
from gradtrend.replay.run.mode import OperatorMode

_GIVEN = 6  # inputs of the blamed operator whose range is reported: BatchNorm has five
_OWN = (str(torch.__path__[0]), str(Path(__file__).parents[1]))


@dataclass(frozen=True, slots=True)
class Producer:
    """An operator that made non-finite values. `deliberate`: it wrote a constant that it was told to write."""

    origin: Origin
    deliberate: bool


class OperatorWatch(OperatorMode):
    """Follows non-finite values through every operator while entered.

    `known` names the storages that were there before the step, by address: (role, name).
    """

    def __init__(self, model: torch.nn.Module, known: Mapping[int, tuple[str, str]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.microbatch = 0
        self.producers: list[Producer] = []
        self._known = known
        self._classes = {name: type(module).__name__ for name, module in model.named_modules()}
        self._stack = ModuleStack(model)
        self._spoilt: dict[int, int] = {}  # address of a storage -> number of the producer that spoilt it
        self._forward_of: dict[int, tuple[str, str]] = {}  # autograd's sequence number -> module, operator
        self._runs: dict[tuple[str, str], int] = {}  # module and operator -> how often it ran

    def __enter__(self) -> OperatorWatch:
        self._stack.attach()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._stack.close()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        node = torch._C._current_autograd_node()
        place = self._place(func, node)
        self.seen(place, args, kwargs)  # before it runs: it may overwrite what it is given
        overwritten = self._outside(_tensors(args, kwargs)) if operators.mutates(func) else None
        result = func(*args, **kwargs)
        if not self._in_backward(node):
            self._forward_of.setdefault(_sequence_number(), (self._module(), operators.short_name(func)))
        if not operators.makes_values(func):
            return result
        for output in operators.outputs_of(func, result):
            if not operators.can_be_checked(output) or operators.is_finite(output):
                self._clear(output)
            else:
                self._spoil(func, args, kwargs, output, node, place, overwritten)
        return result

    def seen(self, place: tuple[str, str, int], args: Any, kwargs: dict[str, Any]) -> None:
        """Called for every operator before it runs, with its module, its name and how often it ran there before."""

    def ranges_of(self, args: Any, kwargs: dict[str, Any]) -> tuple[Magnitude, ...]:
        """The ranges of the first tensors that an operator is given."""
        found = [part for part in operators.values_in([*args, *kwargs.values()]) if operators.has_range(part)]
        return tuple(self._range_of(part, index) for index, part in enumerate(found[:_GIVEN]))

    def _range_of(self, part: Any, index: int) -> Magnitude:
        if isinstance(part, torch.Tensor):
            return operators.magnitude(self._name_of(part, index), part)
        return operators.number_range(f"given[{index}]", part)

    def producer_of(self, tensor: torch.Tensor) -> Producer | None:
        """Who spoilt this tensor, if anyone did."""
        number = self._spoilt.get(_address(tensor))
        if number is None:
            return None
        found = self.producers[number]
        if found.origin.source in ("operator", "constant"):
            return found
        whence = (found.origin.source, found.origin.source_name)  # who read it first, forward, is where it starts
        return next(one for one in self.producers if (one.origin.source, one.origin.source_name) == whence)

    def _place(self, func: Any, node: Any) -> tuple[str, str, int]:
        module, operator = self._module(), operators.short_name(func)
        if self._in_backward(node):
            module, forward = self._forward_of.get(node._sequence_nr(), ("", ""))
            if isinstance(node, torch.autograd.function.BackwardCFunction):  # the user's own Function has a name
                forward = type(node).__name__.removesuffix("Backward")
            operator = f"{operator} (backward of {forward})" if forward else operator
        count = self._runs.get((module, operator), 0)
        self._runs[module, operator] = count + 1
        return module, operator, count

    def _in_backward(self, node: Any) -> bool:
        return node is not None and not self._stack.names  # a stack: checkpointing runs forward code again

    def _module(self) -> str:
        return self._stack.names[-1] if self._stack.names else ""

    def _clear(self, output: torch.Tensor) -> None:
        if not self._spoilt or output.layout is not torch.strided:
            return
        storage = output.untyped_storage()
        if storage.nbytes() == output.numel() * output.element_size():
            self._spoilt.pop(storage.data_ptr(), None)

    def _spoil(
        self,
        func: Any,
        args: Any,
        kwargs: dict[str, Any],
        output: torch.Tensor,
        node: Any,
        place: tuple[str, str, int],
        overwritten: torch.Tensor | None,
    ) -> None:
        inputs = _tensors(args, kwargs)
        numbers = [self._spoilt[_address(t)] for t in inputs if _address(t) in self._spoilt]
        accidents = [number for number in numbers if not self.producers[number].deliberate]
        if accidents:
            self._spoilt[_address(output)] = min(accidents)
            return
        if numbers and _hands_on(inputs, output):
            self._spoilt[_address(output)] = min(numbers)
            return
        origin = self._origin(func, args, kwargs, output, node, place)
        own = _address(output) if operators.mutates(func) else None  # already overwritten: tells nothing
        outside = overwritten if overwritten is not None else self._outside([t for t in inputs if _address(t) != own])
        outside = outside if outside is not None else self._negative_variance(inputs)
        source = self._source_of(outside) or self._inherited(numbers)
        if source is not None:
            origin = replace(origin, source=source[0], source_name=source[1])
        masked = source is not None and source[0] != "parameter" and operators.is_mask(output)
        masked = masked and (outside is None or operators.is_mask(outside))
        deliberate = masked or operators.fills_constant(func, [*args, *kwargs.values()])
        self._spoilt[_address(output)] = len(self.producers)
        self.producers.append(Producer(origin, deliberate))

    def _outside(self, inputs: list[torch.Tensor]) -> torch.Tensor | None:
        """A non-finite input that no operator of the step made; None when all inputs are finite."""
        made_elsewhere = (tensor for tensor in inputs if _address(tensor) not in self._spoilt)
        return next((tensor for tensor in made_elsewhere if not operators.is_finite(tensor)), None)

    def _negative_variance(self, inputs: list[torch.Tensor]) -> torch.Tensor | None:
        """A running variance below zero, which no statistics of a batch can be: its root is NaN."""
        for tensor in inputs:
            name = self._known.get(_address(tensor), ("", ""))[1]
            if name.endswith("running_var") and bool((tensor < 0).any()):
                return tensor
        return None

    def _source_of(self, outside: torch.Tensor | None) -> tuple[str, str | None] | None:
        return None if outside is None else self._known.get(_address(outside), ("constant", None))

    def _name_of(self, tensor: torch.Tensor, index: int) -> str:
        """`parameter conv.weight` for what was there before the step, else `given[0]`."""
        known = self._known.get(_address(tensor))
        return f"given[{index}]" if known is None else " ".join(known)

    def _inherited(self, numbers: list[int]) -> tuple[str, str | None] | None:
        """NaN made of a mask that the batch itself brought is the batch's doing."""
        origins = [self.producers[number].origin for number in numbers]
        return next(((origin.source, origin.source_name) for origin in origins if origin.source == "input"), None)

    def _origin(
        self, func: Any, args: Any, kwargs: dict[str, Any], output: torch.Tensor, node: Any, place: tuple[str, str, int]
    ) -> Origin:
        module, operator, occurrence = place
        backward = self._in_backward(node)
        nan, inf = operators.counts(output)
        return Origin(
            phase="backward" if backward else "forward",
            module=module,
            module_class=self._classes.get(module, ""),
            operator=operator,
            dtype=operators.dtype_name(output.dtype),
            source="operator",
            microbatch=self.microbatch,
            nan=nan,
            inf=inf,
            given=self.ranges_of(args, kwargs),
            needs=operators.largest_in_float64(func, args, kwargs),
            type_max=torch.finfo(output.dtype).max,
            where=None if backward else _user_line(),
            occurrence=occurrence,
        )


def _tensors(args: Any, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors of numbers that an operator is given."""
    return [t for t in operators.tensors_in([*args, *kwargs.values()]) if operators.can_be_checked(t)]


def _hands_on(inputs: list[torch.Tensor], output: torch.Tensor) -> bool:
    """Whether a mask is merely handed on: nothing is NaN, and no +inf is made of -inf."""
    if bool(torch.isnan(output).any()):
        return False
    return operators.is_mask(output) or any(bool(torch.isposinf(tensor).any()) for tensor in inputs)


def _address(tensor: torch.Tensor) -> int:
    values = tensor._values() if tensor.is_sparse else tensor  # a gradient of an embedding
    return int(values.untyped_storage().data_ptr())


def _sequence_number() -> int:
    """The number of the autograd node made last; the operator that is running belongs to it."""
    return int(torch.autograd._get_sequence_nr()) - 1  # type: ignore[attr-defined]


def _user_line() -> str | None:
    """`file:line` of the innermost frame that is neither torch's nor ours."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_OWN) and not path.startswith("<"):
            return f"{path}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return None
