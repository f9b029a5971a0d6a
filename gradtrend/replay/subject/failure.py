"""What the user's code and torch raise, in one line."""

from __future__ import annotations

_SHOWN = 200  # characters of a message


def first_line(error: BaseException) -> str:
    """The first line of an error's message; the class alone where there is none, as of a bare assert."""
    return _first_line(error) or type(error).__name__


def named(error: BaseException) -> str:
    """The class and the first line of an error."""
    line = _first_line(error)
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:_SHOWN] if lines else ""


_NO_KERNEL = "not implemented for"
_OUT_OF_RANGE = ("index out of range", "out of bounds", "out of range")


def hint_for(error: BaseException) -> str:
    """What to do about an error of the model's own code."""
    text = str(error)
    if "out of memory" in text.lower():
        return "There is too little memory on this device: try --device cpu."
    if _NO_KERNEL in text or "CUDA error" in text or isinstance(error, NotImplementedError):
        return "An operator does not run in this type on this device: try another --precision, or --device cpu."
    if isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError):
        return "The model's own code needs that file: replay where it lies, in the folder that training ran in."
    if isinstance(error, IndexError) or any(words in text for words in _OUT_OF_RANGE):
        return "A label or an index of the batch is out of the model's range: look at it, and at the number of classes."
    if isinstance(error, TypeError) and "forward()" in text:
        return (
            "The batch is not what the model's forward takes: let the factory give (model, step), where "
            "step(model, microbatch) gives the loss."
        )
    if isinstance(error, KeyError | AttributeError | TypeError):
        return (
            "The step asks the batch for what it does not hold in that form: capture the batch as the step takes it, "
            "or let the factory give (model, step) that does."
        )
    return "The message is from the model's own code: run its step with this batch by itself to see where it raises."
