"""The only place that prints, exits or knows click. One file a command."""

from gradtrend.cli.main import main

__all__ = ["main"]
