"""Checks that an experiment trains the same everywhere: on any number of replicas, compiled, resumed, and on a TPU."""

from ganlab.verification.checks import CHECKS, Options, run
from ganlab.verification.report import Row, Source
from ganlab.verification.verifying import shipped_experiments, started, verify

__all__ = ["CHECKS", "Options", "Row", "Source", "run", "shipped_experiments", "started", "verify"]
