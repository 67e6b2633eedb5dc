"""Compiling the training step for a TPU that is not there."""

from ganlab.verification.tpu.checking import check

__all__ = ["check"]
