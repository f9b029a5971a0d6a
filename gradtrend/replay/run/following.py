"""Which module is running, also a scripted one, and what each gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

_Left = Callable[[str, torch.nn.Module, Any], None]


class ModuleStack:
    """The names of the modules that are running, the innermost last.

    Hooks that see every module keep it: a scripted one refuses hooks of its own. `left` is called with each module's
    name, itself and its output.
    """

    def __init__(self, model: torch.nn.Module, left: _Left | None = None) -> None:
        self.names: list[str] = []
        self._known = {id(module): name for name, module in model.named_modules()}
        self._left = left
        self._handles: list[Any] = []

    def attach(self) -> None:
        """Follow the model until `close`."""
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def close(self) -> None:
        """Stop following."""
        for handle in self._handles:
            handle.remove()
        self.names.clear()

    def _enter(self, module: torch.nn.Module, args: Any) -> None:
        name = self._known.get(id(module))
        if name is not None:
            self.names.append(name)

    def _leave(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        name = self._known.get(id(module))
        if name is None:
            return
        if self.names:
            self.names.pop()
        if self._left is not None:
            self._left(name, module, output)
