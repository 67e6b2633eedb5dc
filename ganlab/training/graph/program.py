"""Iterations that XLA compiles whole: networks, optimizers, states and random numbers as one program."""

from __future__ import annotations

import functools

import tensorflow as tf
from tensorflow.python.framework import kernels

from ganlab.composition import Experiment
from ganlab.errors import IncompatibleError
from ganlab.training.graph.arithmetic import on_gpu
from ganlab.training.graph.op_source import line_of, operations

_XLA = "XLA_CPU_JIT"  # where this TensorFlow registers XLA's kernels; a TPU's are in builds for TPUs
# Parts of TensorFlow's errors about programs that XLA cannot compile, which come before the program runs.
_REFUSED = ("tf2xla conversion failed", "XLA compilation", "on XLA_", "No registered")


def is_program(experiment: Experiment) -> bool:
    """Whether XLA is to compile the iteration whole: as the experiment asks, or with "auto" on a single GPU.

    There it saves launching every operation; on a CPU it gains nothing (docs/performance.md). Several replicas would
    have to communicate, and steps must have the same updates.
    """
    alone = experiment.replicas == 1 and isinstance(
        experiment.strategy, (tf.distribute.OneDeviceStrategy, tf.distribute.MirroredStrategy)
    )
    if experiment.jit == "step" and not alone:
        raise IncompatibleError(
            "experiment.jit = 'step' compiles the iteration of one replica on one CPU or GPU, and "
            f"{type(experiment.strategy).__name__} trains {experiment.replicas}. Set experiment.jit = 'auto', or use "
            "strategies.one_device."
        )
    turn = experiment.turn
    if experiment.jit == "step":
        turn.check_static("experiment.jit = 'step'", "Set experiment.jit = 'auto'.")
    return alone and not turn.varies and (experiment.jit == "step" or (experiment.jit == "auto" and on_gpu(experiment)))


@functools.cache
def has_kernel(kind: str) -> bool:
    """Whether XLA knows a type of operation."""
    known = kernels.get_registered_kernels_for_op(kind).kernel
    return kind == "Placeholder" or any(kernel.device_type == _XLA for kernel in known)


def obstacle(graph: tf.Graph) -> str:
    """The operation of a graph that XLA has no kernel for, and whose line it is, in words; empty if there is none."""
    for op in operations(graph):
        if not has_kernel(op.type) and op.type not in {"NoOp", "PartitionedCall", "StatefulPartitionedCall"}:
            line = line_of(op)
            return f"the operation {op.type}" + (f" ({line.file}:{line.number}, {line.code})" if line else "")
    return ""


def is_refusal(error: Exception) -> bool:
    """Whether an error is about a program that XLA could not compile, so that nothing has run."""
    return isinstance(error, tf.errors.OpError) and any(part in str(error) for part in _REFUSED)
