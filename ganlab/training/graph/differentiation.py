"""Finds operations that TensorFlow differentiates wrongly or not at all, in the step's graph before it runs.

A penalty on slopes differentiates a gradient. For some operations TensorFlow has no second derivative and raises an
error. For others it silently takes the second derivative to be zero, or leaves a part of it out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops

from ganlab.errors import IncompatibleError
from ganlab.training.graph import networks, op_source
from ganlab.training.graph.networks import Network
from ganlab.training.graph.refusals import layers_of, named

# Without a derivative because it is zero, or because the user stopped it.
_ZERO = frozenset({"OnesLike", "StopGradient", "ZerosLike"})
# TensorFlow's bookkeeping of loops uses these; the values themselves take other paths.
_ACCOUNTS = ("TensorArray", "StackPush", "Assign", "Scatter")
_PYTHON = ("PyFunc", "PyFuncStateless")
_INSTEAD = {
    "Resize": "ganlab.functional.resize or ganlab.layers.Resizing, which are products of matrices",
    "ScaleAndTranslate": "ganlab.functional.resize or ganlab.layers.Resizing, which are products of matrices",
    "SquaredDifference": "ganlab.functional.moments, or a normalization of ganlab.layers",
    "CropAndResize": "slices and ganlab.functional.resize",
    "Softsign": "x / (1 + tf.abs(x)), which is the same function",
    "LRN": "tf.square, tf.nn.avg_pool and tf.pow",
    "CudnnRNN": "use_cudnn=False",
    "PyFunc": "TensorFlow's own operations",
}


@contextlib.contextmanager
def explaining(*used: Network) -> Iterator[None]:
    """Wraps a part of the step that differentiates networks: an operation without a gradient becomes one error.

    It names the layer and the line.
    """
    try:
        yield
    except Exception as error:
        missing = _missing(error)
        if missing is None:
            raise
        said = op_source.NO_GRADIENT.search(str(missing))
        assert said is not None
        kind, name = said["tape"] or said["graph"], said["name"]
        culprits = [op for op in _begun(missing.__traceback__) if op.type == kind and name in (None, op.name)]
        culprits.sort(key=lambda op: not _layer(op, used))
        line = op_source.raised_at(missing.__traceback__)
        where = _place(culprits[:1], used) if culprits else _at("The training step", line)
        raise IncompatibleError(_refusal(kind, where, silent=False)) from missing


def check(total: tf.Tensor, trained: Sequence[tf.Tensor], *used: Network) -> None:
    """Refuses operations between the trained tensors and a loss, of these networks, that silently cut the gradient off.

    Only a graph is checked.
    """
    if not tf.is_symbolic_tensor(total):
        return
    for path in _cuts([total], {id(tensor) for tensor in trained}):
        # Nobody expects a derivative of Python code in a constraint: it may count or print.
        if path[0].type in _PYTHON and not any(_layer(op, used) for op in path):
            continue
        raise IncompatibleError(_refusal(path[0].type, _place(path, used), silent=True))


def _missing(error: BaseException) -> LookupError | None:
    """TensorFlow's error for a missing gradient, also if a plugin's error wraps it."""
    for candidate in (error, error.__cause__):
        if isinstance(candidate, LookupError) and op_source.NO_GRADIENT.search(str(candidate)):
            return candidate
    return None


def _begun(traceback: TracebackType | None) -> Iterator[tf.Operation]:
    """The operations of every graph that was being built when an error was raised, the outermost graph first.

    The graph around a branch or a loop knows it only once it is complete; until then only its builder holds it.
    """
    seen: set[int] = set()
    graphs = [tf.compat.v1.get_default_graph()]
    while traceback is not None:
        graphs += [value for value in traceback.tb_frame.f_locals.values() if isinstance(value, tf.Graph)]
        traceback = traceback.tb_next
    for graph in graphs:
        for op in op_source.operations(graph):
            if id(op) not in seen:
                seen.add(id(op))
                yield op


def _refusal(kind: str, where: str, *, silent: bool) -> str:
    twice = "Grad" in kind or kind == "SquaredDifference"
    forward = kind.partition("Grad")[0]
    if kind == "SquaredDifference":
        why = (
            "takes a variance by tf.nn.moments, in which TensorFlow holds the mean fixed: that is right once, and "
            "wrong where a gradient is differentiated, as by a penalty on slopes"
        )
    elif silent:
        why = f"uses {forward}, whose {'second ' if twice else ''}derivative TensorFlow takes to be zero, silently"
    else:
        why = f"uses {forward}, which TensorFlow cannot differentiate{' twice' if twice else ''}"
    instead = next((text for start, text in _INSTEAD.items() if kind.startswith(start)), "")
    remedy = f"Use {instead}" if instead else "Write it with other operations, for example sums, products and powers"
    other = (
        "a constraint on weights, which takes no gradient by examples"
        if twice
        else "tf.stop_gradient around it where no gradient is meant to pass"
    )
    return f"{where} {why}. {remedy}; or {other}."


def _place(path: Sequence[tf.Operation], used: Sequence[Network]) -> str:
    """The layer and line of an operation; `path` is the operation and the function calls around it, innermost first."""
    op = op_source.differentiated(path[0])
    if op is path[0]:  # in a function that was differentiated as a whole; its operations are in another graph
        name, kind = op_source.forward_name(op.name), op.type.partition("Grad")[0]
        same = (o for o in op_source.operations(path[-1].graph) if o.type == kind and name.startswith(f"{o.name}/"))
        op = next(same, op)
    layer = _layer(path[0], used)
    line = _line(op) if layer else op_source.line_of(op)
    layer = layer or next((layer for call in path[1:] for layer in [_layer(call, used)] if layer), "")
    return _at(layer or "The training step", line)


def _at(what: str, line: op_source.Line | None) -> str:
    return f"{what} at {line.file}:{line.number}" if line else what


def _layer(op: tf.Operation, used: Sequence[Network]) -> str:
    """The innermost layer that an operation belongs to, as messages name it; empty if it belongs to none."""
    scopes = op_source.forward_name(op.name).split("/")[-2::-1]  # innermost first
    for network in used:
        layers = {layer.name: layer for layer in layers_of(network.model)}
        # A scope that is entered again gets a number as suffix, and so do some layers' names.
        model = [scope for scope in scopes if _is_scope_of(scope, network.model.name)]
        for scope in scopes if model else ():
            for name, layer in layers.items():
                if scope == name or _is_scope_of(scope, name):
                    return named(network.role, layer)
        if model:
            return f"The {network.role} {network.model.name!r}"
    return ""


def _is_scope_of(scope: str, name: str) -> bool:
    head, _, number = scope.rpartition("_")
    return scope == name or (head == name and number.isdigit())


def _line(op: tf.Operation) -> op_source.Line | None:
    """The line of a layer's own code that made an operation; None for a layer whose code is Keras'."""
    frames = [(frame.filename, frame.lineno, frame.name) for frame in op.traceback or ()]
    calls = [i for i, (file, _, name) in enumerate(frames) if file == networks.__file__ and name == "__call__"]
    return op_source.innermost(frames[calls[-1] :]) if calls else None


def _cuts(targets: Sequence[tf.Tensor], sources: set[int]) -> Iterator[list[tf.Operation]]:
    """Yields operations behind `targets` that a source reaches and that pass no gradient on, though they should.

    Each comes with the function calls around it, innermost first.
    """
    reached: set[int] = set()
    for op in _inputs_first([target.op for target in targets]):
        if op.type in _ZERO or op.type.startswith(_ACCOUNTS):
            continue
        inputs = [tensor for tensor in _followed(op) if id(tensor) in sources or id(tensor.op) in reached]
        if not inputs:
            continue
        cut = op if _is_cut(op) else _variance(op)
        if cut is not None:
            yield [cut]
            continue
        reached.add(id(op))
        for path in _within(op, inputs):
            yield [*path, op]


def _inputs_first(ends: Sequence[tf.Operation]) -> Iterator[tf.Operation]:
    """The operations that a gradient may flow back through, each after those that make its inputs."""
    waiting: list[tuple[tf.Operation, bool]] = [(op, False) for op in ends]
    seen: set[int] = set()
    while waiting:
        op, done = waiting.pop()
        if done:
            yield op
        elif id(op) not in seen:
            seen.add(id(op))
            waiting.append((op, True))
            if op.type not in _ZERO:
                waiting += [(tensor.op, False) for tensor in _followed(op)]


def _followed(op: tf.Operation) -> list[tf.Tensor]:
    """The inputs that may have a gradient."""
    inputs = [x for x in op.inputs if x.dtype.is_floating or x.dtype.is_complex or x.dtype == tf.variant]
    if op.type == "IdentityN" and _attribute(op, "_gradient_op_type") is not None:
        return _arguments(inputs)
    return inputs


def _arguments(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The arguments among the tensors of a tf.custom_gradient: nothing flows back through its results."""
    behind: set[int] = set()
    own = {id(tensor.op) for tensor in tensors}
    for tensor in tensors:
        waiting = [x.op for x in tensor.op.inputs]
        while waiting:
            op = waiting.pop()
            if id(op) in behind:
                continue
            behind.add(id(op))
            waiting += [] if id(op) in own else [x.op for x in op.inputs]
    arguments = [tensor for tensor in tensors if id(tensor.op) in behind]
    return arguments or list(tensors)


def _within(op: tf.Operation, inputs: Sequence[tf.Tensor]) -> Iterator[list[tf.Operation]]:
    """The cuts inside the branches, the loop's body or the function that an operation calls."""
    for body in _bodies(op):
        offset = len(op.inputs) - len(body.inputs)
        given = {id(tensor) for tensor in inputs}
        if "While" in op.type:  # the outputs of one turn are the inputs of the next
            sources = {id(x) for x in body.inputs}
        else:
            sources = {id(x) for i, x in enumerate(body.inputs) if id(op.inputs[i + offset]) in given}
        yield from _cuts([x for x in body.outputs if x.dtype.is_floating or x.dtype == tf.variant], sources)


def _bodies(op: tf.Operation) -> list[Any]:
    names = []
    for attribute in ("then_branch", "else_branch", "body", "f"):
        value = _attribute(op, attribute)
        names += [value.name] if value is not None and hasattr(value, "name") else []
    branches = _attribute(op, "branches")
    names += [branch.name for branch in branches or ()]
    functions = [op.graph._functions.get(name) for name in names]
    return [function.graph for function in functions if getattr(function, "graph", None) is not None]


def _attribute(op: tf.Operation, name: str) -> Any:
    try:
        return op.get_attr(name)
    except ValueError:
        return None


def _is_cut(op: tf.Operation) -> bool:
    """Whether an operation is registered with TensorFlow as one without a derivative."""
    try:
        return ops.get_gradient_function(op) is None and not _bodies(op)
    except LookupError:
        return False  # TensorFlow raises its own error if a gradient reaches it


def _variance(op: tf.Operation) -> tf.Operation | None:
    """The variance of tf.nn.moments whose gradient this is: deviations with the mean held fixed; else None."""
    if op.type != "Sub":
        return None
    x, stopped = op.inputs
    mean = stopped.op.inputs[0].op if stopped.op.type == "StopGradient" else None
    if mean is None or mean.type != "Mean" or mean.inputs[0] is not x:
        return None
    for other in stopped.consumers():
        if other.type == "SquaredDifference" and other.inputs[0] is x and other.inputs[1] is stopped:
            return other
    return None
