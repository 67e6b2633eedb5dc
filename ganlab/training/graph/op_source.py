"""Finds the line of a user's code that an operation of a graph comes from."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import re
import sysconfig
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import keras
import tensorflow as tf

# How TensorFlow names an operation that it cannot differentiate: a tape its type alone, `tf.gradients` the name too.
NO_GRADIENT = re.compile(
    r"gradient registry has no entry for: (?P<tape>\w+)"
    r"|No gradient defined for operation ?'(?P<name>[^']*)' \(op type: (?P<graph>\w+)\)"
)
_GRADIENTS = "gradient_tape/"


@dataclass(frozen=True)
class Line:
    """A line of a user's or a plugin's code.

    Attributes:
        file: Its path, relative to the working directory if it lies inside.
        number: Its number.
        function: The function that it is in.
        code: Its text; empty if the file cannot be read.
    """

    file: str
    number: int
    function: str
    code: str


def operations(graph: tf.Graph) -> Iterator[tf.Operation]:
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


def line_of(op: tf.Operation) -> Line | None:
    """The line that made an operation, or else the nearest line that made one of its inputs.

    For a gradient it is the line of the forward operation, because the gradient is asked for elsewhere.
    """
    waiting, seen = deque([differentiated(op)]), {op.name}
    while waiting:
        current = waiting.popleft()
        line = own_line(current)
        if line is not None:
            return line
        for tensor in current.inputs:
            if tensor.op.name not in seen:
                seen.add(tensor.op.name)
                waiting.append(tensor.op)
    return None


def differentiated(op: tf.Operation) -> tf.Operation:
    """The forward operation if this one, by its name, belongs to a gradient; else itself."""
    scope, slash, _ = forward_name(op.name).rpartition("/")
    kind = op.type.partition("Grad")[0]
    for name in (f"{scope}{slash}{kind}", scope):
        if op.name.startswith(_GRADIENTS) and name != op.name:
            with contextlib.suppress(KeyError, ValueError):
                return op.graph.get_operation_by_name(name)
    return op


def forward_name(name: str) -> str:
    """The name of the forward operation: `a/b/c` for `gradient_tape/a/b_grad/c`."""
    while name.startswith(_GRADIENTS):
        name = name.removeprefix(_GRADIENTS)
    return re.sub(r"_grad(?=/)", "", re.sub(r"^gradients(_\d+)?/", "", name))


def lines(graph: tf.Graph) -> dict[str, Line]:
    """The user's lines by the names of the operations that have one."""
    placed = ((op.name, own_line(op)) for op in operations(graph))
    return {name: line for name, line in placed if line is not None}


def own_line(op: tf.Operation) -> Line | None:
    """The user's line that made an operation, or None."""
    frames = [(frame.filename, frame.lineno, frame.name) for frame in op.traceback or ()]
    return innermost(frames)


def raised_at(traceback: TracebackType | None) -> Line | None:
    """The user's innermost line in an error's traceback."""
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return innermost(frames)


def innermost(frames: Sequence[tuple[str, int, str]]) -> Line | None:
    """The innermost line that is the user's or a plugin's, of files, lines and functions, outermost first."""
    for file, number, function in reversed(frames):
        if _is_users(file):
            return Line(_short_path(file), int(number), function, linecache.getline(file, number).strip())
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


def _short_path(file: str) -> str:
    here = Path.cwd()
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else os.path.normpath(file)


_CORE = (*(Path(module.__file__).resolve().parent for module in (tf, keras)), Path(__file__).resolve().parents[2])
_STDLIB = Path(sysconfig.get_path("stdlib")).resolve()
_PACKAGES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib"))
