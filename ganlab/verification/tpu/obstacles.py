"""What stops a step from being compiled, and the line of the user's code that it comes from."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import re
import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.framework import kernels

import ganlab

_XLA = (
    "XLA_CPU_JIT"  # where this TensorFlow registers what XLA can do; the registrations of a TPU are in its own builds
)
_NO_KERNEL = re.compile(r"(\w+) \(No registered '\w+' OpKernel for XLA")
# As a tape says it, and as `tf.gradients` does.
_NO_GRADIENT = re.compile(
    r"gradient registry has no entry for: (?P<tape>\w+)|No gradient defined .*\(op type: (?P<graph>\w+)\)"
)
_NODE = re.compile(r"\{\{node ([^}\s]+)\}\}")
_FRAME = "Failed getting HLO text: "
_GRADIENTS = "gradient_tape/"
_LONGEST_REASON = 500


@dataclass(frozen=True)
class Line:
    """A line of somebody's code.

    Attributes:
        file: Its path, relative to the working directory where it lies inside.
        number: Its number.
        function: The function that it is in.
        code: What it says; empty where the file cannot be read.
    """

    file: str
    number: int
    function: str
    code: str


@dataclass(frozen=True)
class Obstacle:
    """Something that stops the step from being compiled.

    Attributes:
        op: The TensorFlow operation's type, empty where it is no single one.
        node: Its name in the graph, empty likewise.
        reason: What is wrong with it.
        line: Where the user wrote it, if that is known.
    """

    op: str
    node: str
    reason: str
    line: Line | None


def of_lowering(graph: tf.Graph, error: Exception) -> list[Obstacle]:
    """Why XLA would not take a graph.

    Args:
        graph: The graph that was lowered.
        error: What TensorFlow raised.

    Returns:
        At least one: every operation that XLA has no kernel for, at each line that makes one, or else the nodes that
        the error names.
    """
    message, found = str(error), list(_operations(graph))
    refused = set(_NO_KERNEL.findall(message))
    if refused:
        refused |= {op.type for op in found if not _has_kernel(op.type)}
        chosen = [(op, "XLA has no kernel for it") for op in found if op.type in refused]
    else:
        named = set(_NODE.findall(message))
        chosen = [(op, reason(message)) for op in found if op.name in named]
    distinct = {(op.type, line): Obstacle(op.type, op.name, why, line) for op, why, line in _placed(chosen)}
    # One without a line, such as a gradient's within a branch, goes with another that has one.
    found_lines = [obstacle for obstacle in distinct.values() if obstacle.line is not None]
    return found_lines or list(distinct.values()) or [Obstacle("", "", reason(message), None)]


def of_tracing(graphs: Sequence[tf.Graph], error: BaseException) -> Obstacle:
    """Why a step could not even be traced.

    Args:
        graphs: Those that had been begun.
        error: What was raised.
    """
    missing = _NO_GRADIENT.search(str(error))
    if missing:
        kind = missing["tape"] or missing["graph"]
        found = [op for graph in graphs for op in _operations(graph) if op.type == kind]
        for op, why, line in _placed([(op, "TensorFlow cannot differentiate it") for op in found]):
            return Obstacle(op.type, op.name, why, line)
        return Obstacle(kind, "", "TensorFlow cannot differentiate it", _raised_at(error.__traceback__))
    return Obstacle("", "", f"{type(error).__name__}: {reason(str(error))}", _raised_at(error.__traceback__))


def lines(graph: tf.Graph) -> dict[str, Line]:
    """The user's line for the name of every operation that has one."""
    placed = ((op.name, _own_line(op)) for op in _operations(graph))
    return {name: line for name, line in placed if line is not None}


def reason(message: str) -> str:
    """What an error of TensorFlow says, without the frame that it is sent in."""
    if message.startswith(_FRAME):
        message = message.removeprefix(_FRAME).strip("' ")
    for end in ("The op is created at", "Stack trace for op definition", "tf2xla conversion failed", "[[{{node"):
        message = message.partition(end)[0]
    return " ".join(message.split())[:_LONGEST_REASON]


def _operations(graph: tf.Graph) -> Iterator[tf.Operation]:
    """Every operation of a graph, of its branches and of the functions that it calls."""
    waiting, seen = deque([graph]), {id(graph)}
    while waiting:
        current = waiting.popleft()
        yield from current.get_operations()
        for function in current._functions.values():
            inner = getattr(function, "graph", None)
            if inner is not None and id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)


def _has_kernel(kind: str) -> bool:
    known = kernels.get_registered_kernels_for_op(kind).kernel
    return kind == "Placeholder" or any(kernel.device_type == _XLA for kernel in known)


def _placed(chosen: Iterable[tuple[tf.Operation, str]]) -> Iterator[tuple[tf.Operation, str, Line | None]]:
    for op, why in chosen:
        yield op, why, _line(op)


def _line(op: tf.Operation) -> Line | None:
    """The line that made an operation, or the nearest one behind what it takes in.

    For the gradient of an operation it is that operation's: the user wrote the one and asked for the other elsewhere.
    """
    waiting, seen = deque([_differentiated(op)]), {op.name}
    while waiting:
        current = waiting.popleft()
        line = _own_line(current)
        if line is not None:
            return line
        for tensor in current.inputs:
            if tensor.op.name not in seen:
                seen.add(tensor.op.name)
                waiting.append(tensor.op)
    return None


def _differentiated(op: tf.Operation) -> tf.Operation:
    """The operation that this one is the gradient of, as far as its name tells; else itself."""
    scope, slash, _ = op.name.removeprefix(_GRADIENTS).rpartition("/")
    if op.name.startswith(_GRADIENTS) and op.type.endswith("Grad"):
        with contextlib.suppress(KeyError):
            return op.graph.get_operation_by_name(f"{scope}{slash}{op.type.removesuffix('Grad')}")
    return op


def _own_line(op: tf.Operation) -> Line | None:
    frames = [(frame.filename, frame.lineno, frame.name) for frame in op.traceback or ()]
    return _innermost(frames)


def _raised_at(traceback: TracebackType | None) -> Line | None:
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return _innermost(frames)


def _innermost(frames: Sequence[tuple[str, int, str]]) -> Line | None:
    for file, number, function in reversed(frames):
        if _is_users(file):
            return Line(_shown(file), int(number), function, linecache.getline(file, number).strip())
    return None


@functools.cache
def _is_users(file: str) -> bool:
    """Whether a file is the user's or a plugin's, and not TensorFlow's, Keras', ganlab's or Python's own."""
    if file.startswith("<"):
        return False
    path = Path(file).resolve()
    if any(path.is_relative_to(root) for root in _CORE):
        return False
    return not path.is_relative_to(_STDLIB) or any(path.is_relative_to(root) for root in _PACKAGES)


def _shown(file: str) -> str:
    here = Path.cwd()
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else os.path.normpath(file)


def _folder(module: Any) -> Path:
    return Path(module.__file__).resolve().parent


_CORE = tuple(_folder(module) for module in (tf, keras, ganlab))
_STDLIB = Path(sysconfig.get_path("stdlib")).resolve()
_PACKAGES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib"))
