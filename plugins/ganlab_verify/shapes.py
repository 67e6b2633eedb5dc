"""Static shapes: a TPU compiles for fixed shapes, so every tensor in the step must have one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
    traced = tf.function(lambda number, data: strategy.run(step.iteration, args=(number, data)), autograph=False)
    graph = traced.get_concrete_function(tf.TensorSpec([], tf.int64), specs_of(experiment)).graph
    graphs = [graph, *(function.graph for function in graph._functions.values() if hasattr(function, "graph"))]
    return Step(tuple(tensor for inner in graphs for tensor in _unknown(inner)), step.communicates)


def _unknown(graph: Any) -> Iterator[str]:
    for operation in graph.get_operations():
        for output in operation.outputs:
            # Integers may be used to compute shapes, for example the axes that a gradient is summed over.
            if output.dtype.is_floating and not output.shape.is_fully_defined():
                frames = [(frame.filename, frame.lineno) for frame in operation.traceback or ()]
                yield f"{operation.type} of shape {output.shape}{line_of(frames)}"


def line_of(frames: Sequence[tuple[str, int]]) -> str:
    """The innermost line outside TensorFlow, Keras and the core, as " at FILE:LINE"; empty without one.

    Args:
        frames: Files and lines, outermost first.
    """
    line = op_source.innermost([(file, number, "") for file, number in frames])
    return f" at {line.file}:{line.number}" if line else ""
