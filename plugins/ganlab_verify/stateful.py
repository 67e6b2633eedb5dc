"""Random numbers that a training step draws outside of the core, and tensors that outlive their trace."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from ganlab.engine import examples_of, op_source
from ganlab_verify.report import Row
from ganlab_verify.shapes import at

if TYPE_CHECKING:
    from ganlab import Experiment
    from ganlab_verify.trainings import Bench

_PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}
_RANDOM = ("Random", "Rng", "Multinomial", "TruncatedNormal", "ParameterizedTruncated")
KEPT = (
    "holds a tensor of a step that was traced, whose value no later update has. What is kept between updates is a "
    "state, which initial_state begins and advance continues."
)
# What is never a plugin's own.
_OTHERS = {"abc", "builtins", "ganlab", "keras", "tensorflow"}


def is_random(operation: tf.Operation) -> bool:
    """Whether an operation draws random numbers that differ each time it runs."""
    return bool(operation.type.startswith(_RANDOM) and operation.op_def.is_stateful)


def row(check: str, graph: tf.Graph) -> Row | None:
    """The row of a traced step that draws random numbers of its own, with the line; None if it draws none."""
    first = next(filter(is_random, op_source.operations(graph)), None)
    if first is None:
        return None
    operation = f"{first.type}{at(op_source.line_of(first))}"
    detail = (
        f"The training step draws random numbers of its own ({operation}), which differ between replicas, from run to "
        "run and after every resume. Draw from replica.uniform or replica.normal; for a fixed start, use "
        "tf.random.stateless_normal with a seed of its own."
    )
    return Row(check, "failed", None, None, detail, {"cause": "own random numbers", "operation": operation})


def of_python(check: str, bench: Bench) -> Row | None:
    """The row of Python code in a step or in a dataset that gives other numbers each time; None if there is none.

    The step is trained twice from the same weights on one device, where everything else repeats its bits.
    """
    experiment, numbers = bench.experiment, np.arange(bench.experiment.batch_size)
    numbers %= experiment.dataset.size or len(numbers)
    one, other = (examples_of(experiment.dataset, numbers, experiment.seed) for _ in range(2))
    where = "" if np.array_equal(one, other, equal_nan=True) else f"the examples of {type(experiment.dataset).__name__}"
    called = next((op for op in op_source.operations(bench.trainer.graph()) if op.type in _PYTHON), None)
    if called is not None and not where:
        first, again = (bench.traced(1).iterations[0] for _ in range(2))
        if any(not np.array_equal(x, again.gradients[name], equal_nan=True) for name, x in first.gradients.items()):
            where = f"Python code in the training step ({called.type}{at(op_source.line_of(called))})"
    if not where:
        return None
    detail = (
        f"Two computations of the same differ on one device: {where} gives other numbers each time, as numpy's and "
        "Python's random numbers do. They would differ between replicas and after every resume. Draw from "
        "replica.uniform or replica.normal; in a dataset, by ganlab.functional.example_normal."
    )
    return Row(check, "failed", None, None, detail, {"cause": "own random numbers", "operation": where})


def kept(check: str, experiment: Experiment) -> Row | None:
    """The row of a component that keeps a tensor of the step, which has been traced; None if there is none."""
    places = (place for _, component in experiment.components() for place in _held(component))
    if (place := next(places, None)) is None:
        return None
    return Row(check, "failed", None, None, f"{place} {KEPT}", {"cause": "kept tensor", "where": place})


@contextlib.contextmanager
def keeping(component: Any) -> Iterator[list[str]]:
    """Context manager: notes where a component, its classes and their modules then hold new tensors of a trace."""
    before, places = _held(component), list[str]()
    yield places
    places += [place for place, tensor in _held(component).items() if tensor is not before.get(place)]


def _held(component: Any) -> dict[str, tf.Tensor]:
    owners = {"self": vars(component) if hasattr(component, "__dict__") else {}}
    for kind in type(component).__mro__:
        if kind.__module__.partition(".")[0] not in _OTHERS:
            owners[kind.__name__] = vars(kind)
            owners[kind.__module__] = dict(getattr(sys.modules.get(kind.__module__), "__dict__", {}))
    values = {f"{owner}.{name}": value for owner, named in owners.items() for name, value in named.items()}
    return {place: tensor for place, value in values.items() if (tensor := _tensor(value)) is not None}


def _tensor(value: Any) -> tf.Tensor | None:
    """The first tensor of a trace in a value; None if there is none."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set):
        return next((tensor for item in value if (tensor := _tensor(item)) is not None), None)
    return value if tf.is_tensor(value) and tf.is_symbolic_tensor(value) else None
