"""The version, in a module that imports nothing: reports name it."""

__version__ = "0.1.0"
