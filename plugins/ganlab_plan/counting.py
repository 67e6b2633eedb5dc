"""Counts the operations, bytes, kernels and all-reduces of a traced step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import tensorflow as tf

from ganlab_plan.products import PRODUCTS, flops

_LOOPS, _BRANCHES = ("While", "StatelessWhile"), ("If", "StatelessIf", "Case", "StatelessCase")
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
# These give a tensor another name or shape, or exist before the step begins.
_FREE = (
    *("Const", "Placeholder", "Identity", "IdentityN", "Reshape", "Squeeze", "ExpandDims", "StopGradient", "NoOp"),
    *("ReadVariableOp", "Shape", "ShapeN", "Rank", "Size", "EnsureShape", "PreventGradient", "CheckNumerics"),
    *("BroadcastGradientArgs", "XlaReplicaId", "Assert", "VarHandleOp", "PlaceholderWithDefault", "GuaranteeConst"),
)
_ALL_REDUCE = "XlaAllReduce"
# Their result is written to memory, but what they read can be computed on the way.
_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "BiasAddGrad", "ArgMax", "ArgMin", "L2Loss", "AddN")
# Kernels of their own: their inputs and results lie in memory.
_ALONE = (
    *PRODUCTS,
    *("Einsum", "TopKV2", "Sort", "Svd", "Qr", "Cholesky", "MatrixInverse", "MatrixSolve", "FFT", "Cumsum", "Softmax"),
    *("MaxPool", "AvgPool", "MaxPoolGrad", "AvgPoolGrad", "FusedBatchNormV3", "FusedBatchNormGradV3", "GatherV2"),
    *("ResourceGather", "StatelessRandomNormalV2", "StatelessRandomUniformV2", "UnsortedSegmentSum", "ScatterNd"),
)
# Optimizers' updates, and other writing of variables.
_UPDATE = "ResourceApply"
_ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
_FEW = 256  # bytes: scalars and short vectors are constants of a kernel


@dataclass
class Counts:
    """The counts of an iteration on one replica.

    Attributes:
        flops: Floating-point operations in all: two for each multiplication of a product, one for each other result.
        products: The operations of products by the dtype of their factors.
        fused: Bytes read and written where elementwise operations are fused with those around them, as XLA does.
        launches: Kernels after that.
        all_reduces: The messages of all-reduces: TensorFlow sends what is reduced in one call together, by dtype.
        reduced: Bytes in all of them.
        peak: Bytes of tensors at their highest, in the order of the program, without variables and arguments.
        notes: What could not be counted, in sentences.
    """

    flops: float = 0.0
    products: dict[str, float] = field(default_factory=dict)
    fused: float = 0.0
    launches: float = 0.0
    all_reduces: float = 0.0
    reduced: float = 0.0
    peak: float = 0.0
    notes: set[str] = field(default_factory=set)

    def add(self, other: Counts, times: float) -> None:
        """Adds the counts of a function that is called a number of times."""
        self.flops += other.flops * times
        for dtype, work in other.products.items():
            self.products[dtype] = self.products.get(dtype, 0.0) + work * times
        self.fused += other.fused * times
        self.launches += other.launches * times
        self.all_reduces += other.all_reduces * times
        self.reduced += other.reduced * times
        self.peak = max(self.peak, other.peak)
        self.notes |= other.notes


def count(graph: tf.Graph, *, once: bool = False) -> Counts:
    """Counts a function's graph with the functions that it calls.

    A loop counts as often as its condition allows, where that is a constant; of branches the costliest counts.

    Args:
        graph: The function's graph.
        once: Whether the body of a loop counts once, as it does in XLA's cost analysis.
    """
    used = used_operations(graph)
    counts = Counts()
    inner: dict[str, Counts] = {}
    messages: set[tuple[str, tf.DType]] = set()
    for op in used:
        if op.type in (*_LOOPS, *_BRANCHES, *_CALLS):
            inner[op.name] = _called(op, once)
            counts.add(inner[op.name], 1.0)
        elif op.type == _ALL_REDUCE:
            scope = op.name.rpartition("/")[0]  # the compile-only strategy has one for what is reduced in one call
            is_shared = scope.rpartition("/")[2].startswith("message")
            messages.add((scope if is_shared else op.name, op.outputs[0].dtype))
            counts.reduced += size(op.outputs[0])
        elif op.type not in _FREE:
            work = _flops(op)
            counts.flops += work
            if op.type in PRODUCTS:
                dtype = op.outputs[0].dtype.name
                counts.products[dtype] = counts.products.get(dtype, 0.0) + work
    counts.all_reduces += len(messages)
    fused, launches = _fused(used, graph)
    counts.fused += fused
    counts.launches += launches
    counts.peak = _peak(used, graph, inner)
    return counts


def size(tensor: tf.Tensor) -> float:
    """Bytes of a tensor; 0 for resources and for shapes that are unknown."""
    known = tensor.shape.num_elements() if tensor.shape.rank is not None else None
    return 0.0 if known is None or tensor.dtype in (tf.resource, tf.variant, tf.string) else known * tensor.dtype.size


def _flops(op: tf.Operation) -> float:
    if op.type in PRODUCTS:
        return flops(op)
    if op.type.startswith(_UPDATE):  # of variables, each of the gradient's shape
        return 3.0 * sum(tensor.dtype == tf.resource for tensor in op.inputs) * max(map(size, op.inputs)) / 4
    if op.type in _ASSIGNMENTS:
        return 0.0
    results = sum(_elements(op.outputs))
    return float(max([results, *_elements(op.inputs)]) if op.type in _REDUCTIONS else results)


def _elements(tensors: Sequence[tf.Tensor]) -> list[int]:
    return [tensor.shape.num_elements() or 0 for tensor in tensors if tensor.shape.rank is not None]


def _accessed(op: tf.Operation) -> float:
    """Bytes that an operation reads and writes as a kernel of its own."""
    read, written = sum(map(size, op.inputs)), sum(map(size, op.outputs))
    if op.type.startswith(_UPDATE):
        return (2 * sum(tensor.dtype == tf.resource for tensor in op.inputs) + 1) * max(map(size, op.inputs))
    return 2 * read if op.type in _ASSIGNMENTS else read + written


def _called(op: tf.Operation, once: bool) -> Counts:
    def within(name: str) -> Counts:
        return count(function_of(op, name), once=once)

    total = Counts()
    if op.type in _LOOPS:
        trips = _trips(function_of(op, op.get_attr("cond").name))
        if trips is None:
            total.notes.add("A loop whose length is unknown before it runs was counted once.")
        total.add(within(op.get_attr("body").name), 1 if once else trips or 1)
    elif op.type in _CALLS:
        total.add(within(op.get_attr("f").name), 1)
    else:
        is_if = op.type.endswith("If")
        sides = [op.get_attr("then_branch"), op.get_attr("else_branch")] if is_if else op.get_attr("branches")
        total.add(max((within(side.name) for side in sides), key=lambda counts: counts.flops), 1)
        total.notes.add(
            "Of a branch, for example a penalty that is not computed in every update, the costlier side counts."
        )
    return total


def function_of(op: tf.Operation, name: str) -> tf.Graph:
    """The graph of a function that an operation calls, by its name there.

    Raises:
        LookupError: No graph around the operation has it.
    """
    graph = op.graph
    while graph is not None:
        called = getattr(graph._functions.get(name), "graph", None)
        if called is not None:
            return called
        graph = getattr(graph, "outer_graph", None)
    raise LookupError(f"{op.type} {op.name}: its function {name} has no graph")


def _trips(condition: tf.Graph) -> int | None:
    """How often a loop over `i < n` runs, for a constant n."""
    for op in condition.get_operations():
        if op.type == "Less":
            value = tf.get_static_value(op.inputs[1])
            if value is not None and value.ndim == 0:
                return int(value)
    return None


def used_operations(graph: tf.Graph) -> list[tf.Operation]:
    """The operations that the results or the effects of a function need, in the order in which they were made."""
    waiting = [tensor.op for tensor in getattr(graph, "outputs", ())]
    waiting += list(getattr(graph, "control_outputs", ()))
    waiting += [op for op in graph.get_operations() if op.op_def is not None and op.op_def.is_stateful]
    seen: set[str] = set()
    while waiting:
        op = waiting.pop()
        if op.name not in seen:
            seen.add(op.name)
            waiting += [tensor.op for tensor in op.inputs]
            waiting += op.control_inputs
    return [op for op in graph.get_operations() if op.name in seen]


def root(tensor: tf.Tensor) -> tf.Tensor:
    """The tensor that one stands for: reshaping and naming copy nothing."""
    while tensor.op.type in _FREE and tensor.op.inputs and tensor.op.type != "ReadVariableOp":
        index = tensor.value_index if tensor.op.type == "IdentityN" else 0
        tensor = tensor.op.inputs[index]
    return tensor


def _is_alone(op: tf.Operation) -> bool:
    calls = (*_LOOPS, *_BRANCHES, *_CALLS, _ALL_REDUCE)
    return op.type in _ALONE or op.type in calls or op.op_def.is_stateful


def _fused(used: Sequence[tf.Operation], graph: tf.Graph) -> tuple[float, int]:
    """Bytes and kernels where everything that need not lie in memory is computed where it is used."""
    stored = {root(tensor).name for tensor in getattr(graph, "outputs", ())}
    for op in used:
        if op.type in _FREE:
            stored |= {tensor.name for tensor in op.outputs if not op.inputs or op.type == "ReadVariableOp"}
        elif _is_alone(op):
            stored |= {tensor.name for tensor in op.outputs} | {root(tensor).name for tensor in op.inputs}
        elif op.type in _REDUCTIONS:
            stored |= {tensor.name for tensor in op.outputs}
    total, kernels = 0.0, 0
    for op in used:
        if op.type in (*_FREE, *_LOOPS, *_BRANCHES, *_CALLS):
            continue
        if _is_alone(op):
            total += _accessed(op)
            kernels += 1
            continue
        written = [tensor for tensor in op.outputs if tensor.name in stored]
        if written:
            total += sum(map(size, written)) + sum(map(size, _read_by(op, stored)))
            kernels += any(size(tensor) > _FEW for tensor in (*written, *op.inputs))
    return total, kernels


def _read_by(op: tf.Operation, stored: set[str]) -> Iterator[tf.Tensor]:
    """The tensors in memory that a fused kernel reads to make the results of an operation."""
    waiting, seen = [root(tensor) for tensor in op.inputs], set()
    while waiting:
        tensor = waiting.pop()
        if tensor.name in seen:
            continue
        seen.add(tensor.name)
        if tensor.name in stored:
            yield tensor
        else:
            waiting += [root(source) for source in tensor.op.inputs]


def _peak(used: Sequence[tf.Operation], graph: tf.Graph, inner: dict[str, Counts]) -> float:
    """The most bytes of tensors at once, each kept from its operation until its last use."""
    last: dict[str, int] = {}
    for position, op in enumerate(used):
        if op.type not in _FREE:  # to name a tensor is not to use it
            last |= {root(tensor).name: position for tensor in op.inputs}
    end = len(used)
    last |= {root(tensor).name: end for tensor in getattr(graph, "outputs", ())}
    ending: dict[int, list[tf.Tensor]] = {}
    live = highest = 0.0
    for position, op in enumerate(used):
        if op.type in ("Const", "ReadVariableOp", "VarHandleOp", "Placeholder") or (op.type in _FREE and op.inputs):
            continue
        outputs = [tensor for tensor in op.outputs if tensor.name in last]
        freed = sum(map(size, ending.pop(position, ())))
        # An elementwise operation may write over what it was the last to read.
        in_place = 0.0 if _is_alone(op) or op.type in _REDUCTIONS else freed
        live += sum(map(size, outputs)) - in_place
        called = inner.get(op.name)
        highest = max(highest, live + (called.peak if called else 0.0))
        live -= freed - in_place
        for tensor in outputs:
            ending.setdefault(last[tensor.name], []).append(tensor)
    return highest
