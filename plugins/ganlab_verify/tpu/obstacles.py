"""Obstacles to compiling a step, with the line of the user's code that each comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import tensorflow as tf

from ganlab.engine import has_kernel, op_source

NO_KERNEL = "XLA has no kernel for it"
_REFUSED = re.compile(r"(\w+) \(No registered '\w+' OpKernel for XLA")
_NODE = re.compile(r"\{\{node ([^}\s]+)\}\}")
_FRAME = "Failed getting HLO text: "
_LONGEST_REASON = 500


@dataclass(frozen=True)
class Obstacle:
    """Something that prevents compiling the step.

    Attributes:
        op: The TensorFlow operation's type, empty where it is not a single one.
        node: Its name in the graph, empty likewise.
        reason: What is wrong with it.
        line: The user's line that it comes from, if known.
    """

    op: str
    node: str
    reason: str
    line: op_source.Line | None


def of_lowering(graph: tf.Graph, error: Exception, *, whole: bool = True) -> list[Obstacle]:
    """Finds why XLA rejected a graph.

    Args:
        graph: The graph that was lowered.
        error: The error that TensorFlow raised.
        whole: Whether all of the graph was to be compiled: then its other operations without a kernel count too.

    Returns:
        At least one: every operation that XLA has no kernel for, at each line that makes one, or else the nodes that
        the error names.
    """
    message, operations = str(error), list(op_source.operations(graph))
    refused = set(_REFUSED.findall(message))
    if refused:
        refused |= {op.type for op in operations if whole and not has_kernel(op.type)}
        chosen = [(op, NO_KERNEL) for op in operations if op.type in refused]
    else:
        named = set(_NODE.findall(message))
        chosen = [(op, reason(message)) for op in operations if op.name in named]
    distinct = {(op.type, line): Obstacle(op.type, op.name, why, line) for op, why, line in _placed(chosen)}
    # One without a line, for example a gradient's within a branch, belongs to another that has one.
    found_lines = [obstacle for obstacle in distinct.values() if obstacle.line is not None]
    return found_lines or list(distinct.values()) or [Obstacle("", "", reason(message), None)]


def of_tracing(graphs: Sequence[tf.Graph], error: BaseException) -> Obstacle:
    """Finds why a step could not even be traced.

    Args:
        graphs: The graphs that had been started.
        error: The error that was raised.
    """
    missing = op_source.NO_GRADIENT.search(str(error))
    if missing:
        kind = missing["tape"] or missing["graph"]
        operations = [op for graph in graphs for op in op_source.operations(graph) if op.type == kind]
        for op, why, line in _placed([(op, "TensorFlow cannot differentiate it") for op in operations]):
            return Obstacle(op.type, op.name, why, line)
        return Obstacle(kind, "", "TensorFlow cannot differentiate it", op_source.raised_at(error.__traceback__))
    return Obstacle("", "", f"{type(error).__name__}: {reason(str(error))}", op_source.raised_at(error.__traceback__))


def reason(message: str) -> str:
    """The message of a TensorFlow error without what TensorFlow puts around it."""
    if message.startswith(_FRAME):
        message = message.removeprefix(_FRAME).strip("' ")
    for end in ("The op is created at", "Stack trace for op definition", "tf2xla conversion failed", "[[{{node"):
        message = message.partition(end)[0]
    return " ".join(message.split())[:_LONGEST_REASON]


def _placed(chosen: Iterable[tuple[tf.Operation, str]]) -> Iterator[tuple[tf.Operation, str, op_source.Line | None]]:
    for op, why in chosen:
        yield op, why, op_source.line_of(op)
