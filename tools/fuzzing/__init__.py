"""Fuzz targets for every reader of files: only ganlab's own errors may be raised, and results must be true."""

from fuzzing.targets import TARGETS, Target, examples

__all__ = ["TARGETS", "Target", "examples"]
