"""Input that nobody would write, for every reader of files: only ganlab's own errors may come out, and no lies."""

from fuzzing.targets import TARGETS, Target, examples

__all__ = ["TARGETS", "Target", "examples"]
