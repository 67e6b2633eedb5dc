"""Static shapes: a TPU compiles for the shapes that it is told, so every number in the step must have one."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.training.state import TrainingState
from ganlab.training.step import TrainingStep

_PACKAGES = ("tensorflow", "keras", "ganlab")


@dataclass(frozen=True)
class Step:
    """What the traced training step is like.

    Attributes:
        unknown: Its floating-point tensors without a full static shape, each in words: the operation, its shape and the
            line of a plugin's code that it comes from.
        communicates: The constraint whose penalty talks to other replicas; empty where none does.
    """

    unknown: tuple[str, ...]
    communicates: str


def look(experiment: Experiment, state: TrainingState) -> Step:
    """Traces the training step by itself and looks at the graph."""
    step = TrainingStep(experiment, state, compiled=False)
    strategy = experiment.strategy
    shape = (experiment.critic_steps, experiment.local_batch, *experiment.dataset.sample_shape)
    traced = tf.function(lambda number, real: strategy.run(step.iteration, args=(number, real)), autograph=False)
    graph = traced.get_concrete_function(tf.TensorSpec([], tf.int64), tf.TensorSpec(shape, tf.float32)).graph
    graphs = [graph, *(function.graph for function in graph._functions.values() if hasattr(function, "graph"))]
    return Step(tuple(found for inner in graphs for found in _unknown(inner)), step.communicates)


def _unknown(graph: Any) -> Iterator[str]:
    for operation in graph.get_operations():
        for output in operation.outputs:
            # Whole numbers may be shapes in the making, such as the axes that a gradient is summed over.
            if output.dtype.is_floating and not output.shape.is_fully_defined():
                frames = [(frame.filename, frame.lineno) for frame in operation.traceback or ()]
                yield f"{operation.type} of shape {output.shape}{line_of(frames)}"


def line_of(frames: Sequence[tuple[str, int]]) -> str:
    """The innermost line that is neither TensorFlow's, Keras' nor the core's, as " at FILE:LINE"; empty without one.

    Args:
        frames: Files and lines, outermost first.
    """
    for name, line in reversed(frames):
        parts = Path(name).parts
        # A module of these packages lies in a folder of that name; so does a plugin of a checkout called ganlab, hence
        # the look at what the folder holds.
        if not any(part in _PACKAGES and _is_package(Path(*parts[: i + 1])) for i, part in enumerate(parts)):
            return f" at {name}:{line}"
    return ""


@functools.cache
def _is_package(folder: Path) -> bool:
    # XLA drops the first slash of a path.
    return any((root / "__init__.py").is_file() for root in (folder, Path("/") / folder))
