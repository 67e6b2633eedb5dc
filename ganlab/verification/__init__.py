"""Checks that an experiment trains the same everywhere: on any number of replicas, compiled, resumed, and on a TPU."""

from ganlab.verification.checks import CHECKS, Options, run
from ganlab.verification.report import Row, Source

__all__ = ["CHECKS", "Options", "Row", "Source", "run"]
