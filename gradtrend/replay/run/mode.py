"""What watches every operator of a run, without torch's compiler."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class OperatorMode(TorchDispatchMode):
    """A dispatch mode whose first operator does not load torch's compiler, which takes seconds more than torch itself.

    torch wraps every mode in a function that keeps the compiler out of it; a replay compiles nothing.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
