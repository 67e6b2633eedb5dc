"""Static shapes: a TPU compiles for fixed shapes, so every tensor in the step must have one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import tensorflow as tf

from ganlab import Experiment
from ganlab.engine import TrainingState, TrainingStep, op_source, specs_of


@dataclass(frozen=True)
class Step:
    """Properties of the traced training step.

    Attributes:
        unknown: Its floating-point tensors without a full static shape, each in words: the operation, its shape and the
            line of a plugin's code that it comes from.
        communicates: What communicates with other replicas in a part that could be compiled; empty where nothing does.
    """

    unknown: tuple[str, ...]
    communicates: str


def look(experiment: Experiment, state: TrainingState) -> Step:
    """Traces the training step by itself and inspects the graph."""
    step = TrainingStep(experiment, state, compiled=False)
    strategy = experiment.strategy

    def updates(number: tf.Tensor, data: dict[str, tf.Tensor]) -> tf.Tensor:
        step.critic_update(number, tf.constant(0, tf.int64), data)
        return step.generator_update(number, 0, data)

    one = updates if step.turn.varies else step.iteration
    traced = tf.function(lambda number, data: strategy.run(one, args=(number, data)), autograph=False)
    graph = traced.get_concrete_function(tf.TensorSpec([], tf.int64), specs_of(experiment)).graph
    return Step(tuple(_unknown(graph)), step.communicates)


def _unknown(graph: tf.Graph) -> Iterator[str]:
    for operation in op_source.operations(graph):
        for output in operation.outputs:
            # Integers may be used to compute shapes, for example the axes that a gradient is summed over.
            # TensorFlow leaves the condition of a loop arguments that nothing takes.
            taken = operation.type != "Placeholder" or output.consumers()
            if taken and output.dtype.is_floating and not output.shape.is_fully_defined():
                yield f"{operation.type} of shape {output.shape}{at(op_source.own_line(operation))}"


def at(line: op_source.Line | None) -> str:
    """A line as " at FILE:LINE"; empty without one."""
    return f" at {line.file}:{line.number}" if line else ""
