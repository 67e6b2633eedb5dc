"""The version of ganlab: the one place that states it."""

__version__ = "0.1.0"
