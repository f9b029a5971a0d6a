"""The version, in a module that imports nothing: reports name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


__version__ = "0.1.0"
