"""Proofs that an experiment trains the same everywhere: on any number of replicas, compiled, resumed, and on a TPU."""

from ganlab.verification.report import Row, Source

__all__ = ["Row", "Source"]
