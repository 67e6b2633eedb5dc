"""Checks that a constraint's methods are pure functions: calls them twice, traces them, compares the attributes."""

from __future__ import annotations

import contextlib
import copy
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab.engine import op_source
from ganlab.errors import ContractError
from ganlab_verify.stateful import is_random, keeping
from ganlab_verify.testing.critic_bench import Bench

_KEEP = (
    "State between updates belongs in initial_state and advance, trained values in parameters: the core makes the "
    "variables, keeps them equal on every replica and saves them."
)
_DRAW = (
    "Draw from replica.uniform or replica.normal, in advance or in penalty. For a fixed start, for example of a power "
    "iteration in initial_state, use tf.random.stateless_normal with a seed of its own."
)


class CreatedError(ContractError):
    """A method created a variable."""


def impurities(bench: Bench) -> Iterator[str]:
    """Checks a constraint's methods for side effects; yields one message for each.

    Args:
        bench: The constraint, prepared.
    """
    for method, call in _calls(bench).items():
        yield from _twice(bench, method, call)
    with keeping(bench.constraint) as places:
        yield from _operations(bench)
    for place in places:
        yield f"{place} holds a tensor of a step that was traced. {_KEEP}"


@contextlib.contextmanager
def no_variables(method: str) -> Iterator[None]:
    """Context manager: creating a variable raises an error that names the line and the remedy.

    Raises:
        CreatedError: A variable is created.
    """

    def refuse(create: Callable[..., Any], **arguments: Any) -> Any:
        raise CreatedError(f"{method} creates a variable{_line(traceback.extract_stack()[:-1])}. {_KEEP}")

    with tf.variable_creator_scope(refuse):
        yield


def _calls(bench: Bench) -> dict[str, Callable[[], Any]]:
    weights = ("parameters", "initial_state", "reparameterize", "weight_penalty", "project", "lipschitz_bound")
    calls: dict[str, Callable[[], Any]] = {name: partial(bench.on_weights, name) for name in weights}
    calls["advance"] = lambda: bench.advance(bench.draws())
    calls["transform"] = lambda: bench.transform(bench.draws())(bench.batch.real)
    calls["penalty"] = lambda: bench.penalty(bench.draws())
    return calls


def _twice(bench: Bench, method: str, call: Callable[[], Any]) -> Iterator[str]:
    before = _attributes(bench.constraint)
    given = {"weights": dict(bench.weights), "state": {**bench.initial}}
    with no_variables(method):
        results = [_flat(call()) for _ in range(2)]
    for name in _changed(before, _attributes(bench.constraint)):
        yield (
            f"{method} changes self.{name}. A method must be a pure function, because a compiled step runs its Python "
            f"code only once. {_KEEP}"
        )
    if _same(given["weights"], bench.weights) is False or _same(given["state"], bench.initial) is False:
        yield f"{method} changes the dict that it is given. Return a new one: {{**state, 'u': u}}."
    one, other = results
    if len(one) != len(other) or any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True)):
        yield (
            f"{method} returns different values when called again with the same inputs: it draws random numbers of its "
            f"own (Python's, numpy's, TensorFlow's), or counts its calls. {_DRAW}"
        )


def _operations(bench: Bench) -> Iterator[str]:
    """Searches the graph of every update for random numbers and variables of the plugin's own."""
    for method, call in _calls(bench).items():
        if method in ("parameters", "initial_state", "lipschitz_bound"):
            continue
        traced = tf.function(lambda call=call: [v for v in tf.nest.flatten(call()) if v is not None], autograph=False)
        with no_variables(method):
            graph = traced.get_concrete_function().graph
        for operation in op_source.operations(graph):
            kind = operation.type
            if is_random(operation):
                yield (
                    f"{method} draws random numbers of its own ({kind}{_line(operation.traceback)}), which differ "
                    f"between replicas and after every resume. {_DRAW}"
                )
                return
            if kind in ("PyFunc", "EagerPyFunc", "PyFuncStateless"):
                yield (
                    f"{method} runs Python in every update ({kind}{_line(operation.traceback)}), which works neither "
                    "under XLA nor on a TPU, and has no gradient. Use TensorFlow's operations."
                )
                return
            if kind.startswith(("Assign", "VarHandle", "ReadVariable", "ResourceApply", "ResourceScatter")):
                yield f"{method} uses a variable of its own ({kind}{_line(operation.traceback)}). {_KEEP}"
                return


def _line(frames: Sequence[Any]) -> str:
    """The deepest line of the plugin's own code in a traceback, `" at mine.py:9"`."""
    line = op_source.innermost([(frame.filename, frame.lineno, frame.name) for frame in frames])
    return f" at {Path(line.file).name}:{line.number}" if line else ""


def _attributes(constraint: Any) -> dict[str, Any]:
    """The attributes of an object; containers and arrays are copied, other values are not."""
    return {name: _copied(value) for name, value in getattr(constraint, "__dict__", {}).items()}


def _copied(value: Any) -> Any:
    if isinstance(value, tf.Variable | keras.Variable):
        return np.array(value)
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return type(value)([_copied(item) for item in value])
    return copy.copy(value) if isinstance(value, np.ndarray | bytearray) else value


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [n for n in {**before, **after} if n not in before or n not in after or not _same(before[n], after[n])]


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    try:
        return bool(one == other)
    except Exception:  # tensors and the like: a different object counts as a different value
        return False


def _flat(result: Any) -> list[np.ndarray]:
    return [np.asarray(value) for value in tf.nest.flatten(result) if value is not None]
