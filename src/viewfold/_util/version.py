"""The version, where every module can see it."""

__version__ = "0.1.0"
