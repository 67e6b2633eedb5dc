"""This machine's CPU: measured peaks, and the time of an iteration, of which each kernel is measured alone."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from ganlab_verify import Source, recipe_of

from ganlab_plan import tracing
from ganlab_plan.counting import Kernel, count
from ganlab_plan.products import PRODUCTS

# Seconds for each measurement; a machine that other work shares is measured in several short pieces.
_PIECE, _PIECES = 0.01, 5
# How many operations more one call has than another, to tell the time of one; and the time below which so few would
# drown in the noise of the calls, and more are taken.
_MORE, _MANY, _QUICK = 8, 128, 2e-5
# Updates of variables by an optimizer, each an operation.
_UPDATE = "ResourceApply"
# Kernels that are measured at their own shapes: products, and whatever moves more bytes than this.
_LARGE = 2**16
_RESOURCES = (tf.resource, tf.variant, tf.string)


@dataclass(frozen=True)
class Peaks:
    """Rates of this machine, in units per second.

    Attributes:
        matmul: Floating-point operations of square float32 matrix products.
        convolution: Those of a float32 convolution.
        copy: Bytes read and written in sums of arrays that no cache holds.
    """

    matmul: float
    convolution: float
    copy: float


def predicted(source: Source, *, replicas: int) -> dict[str, Any]:
    """Predicts the time of an iteration on this machine.

    Replicas are parts of the same CPU, so that their times add up.

    Args:
        source: The experiment.
        replicas: The number of replicas of its strategy.

    Returns:
        `tracing.facts`, with `peaks`, `product_seconds`, `other_seconds`, `capacity` and `load`, all of this machine.

    Raises:
        GanlabError: The experiment is invalid.
    """
    # Operations that nothing needs are measured, too.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    experiment, state, graph = tracing.traced(recipe_of(source), replicas)
    found = tracing.facts(experiment, state, graph)
    kernels = count(graph).kernels
    load = os.getloadavg()[0]
    products, others = seconds(kernels)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        **found,
        "peaks": asdict(peaks()),
        "product_seconds": products * replicas,
        "other_seconds": others * replicas,
        "input_seconds": found["input_seconds"] * replicas,
        "capacity": pages,
        "load": load,
        "cores": os.cpu_count(),
    }


def peaks() -> Peaks:
    """Measures the peaks; about a second."""
    a = tf.random.stateless_uniform([1536, 1536], [1, 2])
    image, weights = tf.random.stateless_uniform([32, 28, 28, 64], [1, 2]), tf.ones([3, 3, 64, 64])
    large = tf.random.stateless_uniform([2**24], [3, 4])
    matmul = _typical(tf.function(lambda: a @ a))
    convolution = _typical(tf.function(lambda: tf.nn.conv2d(image, weights, 1, "VALID")))
    copy = _typical(tf.function(lambda: large + 1.0))
    return Peaks(2 * 1536**3 / matmul, 2 * 32 * 26 * 26 * 9 * 64 * 64 / convolution, 2 * 4 * 2**24 / copy)


def seconds(kernels: Sequence[Kernel]) -> tuple[float, float]:
    """Seconds of all kernels, one after another: those of products, and those of everything else.

    Products, optimizers' updates and large operations are measured at their shapes; small ones are estimated by their
    bytes.
    """
    groups: dict[Any, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        groups[_signature(kernel.op)].append(kernel)
    curve = _curve()
    totals = [0.0, 0.0]
    for alike in groups.values():
        first = alike[0]
        spent = None
        if first.op.type in PRODUCTS or first.op.type.startswith(_UPDATE) or first.accessed >= _LARGE:
            spent = _measured(first.op)
        if spent is None:
            spent = float(np.interp(np.log(max(first.accessed, 1.0)), *curve))
        totals[first.op.type not in PRODUCTS] += spent * sum(kernel.times for kernel in alike)
    return totals[0], totals[1]


def _signature(op: tf.Operation) -> Any:
    attributes = {name: str(value) for name, value in op.node_def.attr.items() if not name.startswith("_")}
    shapes = tuple(str(tensor.shape) for tensor in op.inputs)
    return op.type, shapes, tuple(sorted(attributes.items()))


def _curve() -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of bytes, and the seconds of an elementwise operation on so many."""
    sizes = [2**power for power in (4, 10, 14, 17, 20, 23, 25)]
    spent = []
    for n in sizes:
        x = tf.zeros([n])
        spent.append(_chained(lambda x=x: tf.raw_ops.AddV2(x=x, y=1.0)))  # type: ignore[misc]
    # Fewer bytes never take longer; where they seem to, other work came between.
    return np.log([8.0 * n for n in sizes]), np.minimum.accumulate(spent[::-1])[::-1]


def _measured(op: tf.Operation) -> float | None:
    """Seconds of one operation with other numbers; None if it cannot run alone."""
    updates = op.type.startswith(_UPDATE)
    if op.op_def.is_stateful and not updates:
        return None
    given: list[Any] = []
    variables: list[tf.Variable] = []
    for tensor in op.inputs:
        if updates and tensor.dtype == tf.resource:  # of the gradient's shape
            numbers = [one for one in op.inputs if one.dtype != tf.resource]
            largest = max(numbers, key=lambda one: one.shape.num_elements() or 0)
            variables.append(tf.Variable(tf.zeros(largest.shape, largest.dtype)))
            given.append(variables[-1].handle)
            continue
        value = tf.get_static_value(tensor)
        if tensor.dtype in _RESOURCES or (value is None and not tensor.shape.is_fully_defined()):
            return None
        if value is not None:
            given.append(tf.constant(value, tensor.dtype))
        elif tensor.dtype.is_floating:
            drawn = np.random.default_rng(0).uniform(0.1, 0.9, tensor.shape.as_list())
            given.append(tf.cast(tf.constant(drawn, tf.float32), tensor.dtype))
        elif op.type in PRODUCTS:  # the shape of the result, of a convolution's gradient
            given.append(tf.constant(op.outputs[0].shape.as_list(), tensor.dtype))
        else:
            given.append(tf.zeros(tensor.shape, tensor.dtype))
    if not op.outputs and not updates:
        return None
    attributes = {name: value for name, value in op.node_def.attr.items() if not name.startswith("_")}
    types = [tensor.dtype for tensor in op.outputs]

    def once() -> Any:
        graph = tf.compat.v1.get_default_graph()
        inputs = [tf.convert_to_tensor(value) for value in given]
        made = graph.create_op(op.type, inputs, types, attrs=attributes)
        return made if updates else made.outputs[0]

    try:
        return _chained(once)
    except (tf.errors.OpError, ValueError, TypeError):
        return None


def _chained(make: Callable[[], Any]) -> float:
    """Seconds of an operation, from several one after another in one call of a graph."""

    def many(times: int) -> Callable[[], Any]:
        def run() -> Any:
            made = None
            for _ in range(times):
                with tf.control_dependencies([made] if made is not None else []):
                    made = make()
            with tf.control_dependencies([made]):
                return tf.constant(0)

        return tf.function(run, autograph=False)

    few = many(2)
    for extra in (_MORE, _MANY):
        each = _difference(few, many(2 + extra)) / extra
        if each > _QUICK:
            break
    return max(1e-7, each)


def _difference(few: Callable[[], Any], more: Callable[[], Any]) -> float:
    """How much longer one call takes than another: the median of a few turns of both, as the machine is loaded now."""
    few()
    more()
    return float(np.median([_once(more) - _once(few) for _ in range(_PIECES)]))


def _typical(function: Callable[[], Any]) -> float:
    """The median of a few times of a call, as the machine is loaded now."""
    function()
    return float(np.median([_once(function) for _ in range(_PIECES)]))


def _once(function: Callable[[], Any]) -> float:
    """Seconds of a call, from as many as fit into a short piece of time."""
    begun, calls = time.perf_counter(), 0
    while calls < 2 or time.perf_counter() - begun < _PIECE:
        function()
        calls += 1
    return (time.perf_counter() - begun) / calls
