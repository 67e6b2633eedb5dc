"""Compiling the training step for a TPU that is not there."""

from ganlab_verify.tpu import chips, environment
from ganlab_verify.tpu.checking import check, check_topologies

__all__ = ["check", "check_topologies", "chips", "environment"]
