"""Rewrites a graph in float64: the same operations on the same numbers, with fifteen digits instead of seven.

No Python is run again, so a cast to float32 in a plugin also becomes float64. Random numbers stay those of float32,
which are what the step draws. An operation without a float64 kernel stays in float32.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from ganlab.errors import ContractError

_FLOATS = (tf.float32.as_datatype_enum, tf.float16.as_datatype_enum, tf.bfloat16.as_datatype_enum)
_DOUBLE = tf.float64.as_datatype_enum
# Operations that return different numbers, or different bits, in another dtype.
_KEPT = re.compile(r"Random|Bitcast|PyFunc|Multinomial")


class Double:
    """A traced function in float64.

    Attributes:
        kept: The operations that stay in float32, because they have no float64 kernel.
        outputs: The names of the results, in their nest.
    """

    def __init__(self, function: Callable[..., Any], arguments: Any) -> None:
        """Traces a function.

        Args:
            function: A function from a nest of tensors to a nest of tensors.
            arguments: The argument, of which shapes and dtypes are used.
        """
        specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), arguments)
        self._single = tf.function(function, autograph=False).get_concrete_function(specs)
        self.kept: set[str] = set()
        self._open()

    def single(self, arguments: Any) -> Any:
        """Runs the function in float32, as it was traced."""
        return self._single(arguments)

    def __call__(self, arguments: Any, *, fetches: Any = None, given: Mapping[str, np.ndarray] | None = None) -> Any:
        """Runs the function in float64; returns numpy arrays.

        Args:
            arguments: The nest, of arrays.
            fetches: A nest of names of tensors to return; None for the results.
            given: Values by tensor name, used instead of the computed ones.
        """
        feeds = {x.name: np.asarray(v) for x, v in zip(self._single.inputs, self._values(arguments), strict=True)}
        feeds |= given or {}
        while True:
            wanted = self.outputs if fetches is None else fetches
            try:
                return self._session.run(wanted, feeds)
            except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, tf.errors.NotFoundError) as error:
                self._keep(error)

    def named(self, pattern: str) -> list[str]:
        """The names of the operations' first results in the outermost graph whose names contain the pattern."""
        return [op.outputs[0].name for op in self._session.graph.get_operations() if pattern in op.name and op.outputs]

    def _values(self, arguments: Any) -> list[Any]:
        if any(tensor.dtype == tf.resource for tensor, _ in self._single.graph.captures):
            raise ContractError(
                "The gradients cannot be computed in float64: they read a variable that is not one of the network's, "
                "nor a constraint's parameter or state. Declare state in initial_state and update it in advance."
            )
        return [*tf.nest.flatten(arguments), *(tensor for tensor, _ in self._single.graph.captures)]

    def _open(self) -> None:
        doubled = double(self._single.graph.as_graph_def(), self.kept)
        with tf.Graph().as_default() as graph:
            tf.graph_util.import_graph_def(doubled, name="")
        self._session = tf.compat.v1.Session(graph=graph)
        self.outputs = tf.nest.map_structure(lambda x: x.name, self._single.structured_outputs)

    def _keep(self, error: tf.errors.OpError) -> None:
        """Leaves an operation that lacks a float64 kernel in float32; raises the error if it has another reason."""
        named = re.findall(r"support Op '(\w+)'|No registered '(\w+)'|Op type '?(\w+)'?", str(error))
        operations = {name for names in named for name in names if name} - self.kept
        if not operations and error.op is not None and error.op.type not in self.kept:
            operations = {error.op.type}
        if not operations:
            raise error
        self.kept |= operations
        self._session.close()
        self._open()


def double(graph: Any, kept: set[str]) -> Any:
    """Returns a graph definition with float64 instead of every shorter float.

    Args:
        graph: The definition; it is not changed.
        kept: Operations to leave as they are, with casts around them. Operations whose definition excludes float64
            are added.
    """
    made = type(graph)()
    made.CopyFrom(graph)
    functions = {function.signature.name: function.signature for function in made.library.function}
    for function in made.library.function:
        for argument in (*function.signature.input_arg, *function.signature.output_arg):
            argument.type = _long(argument.type)
    rewriting = _Rewriting(functions, kept)
    rewriting.rewrite(made.node, {}, inside=False)
    for function in made.library.function:
        inputs = {argument.name: argument.type for argument in function.signature.input_arg}
        outputs = {argument.name: argument.type for argument in function.signature.output_arg}
        rewriting.rewrite(function.node_def, inputs, inside=True, returned=(function.ret, outputs))
    return made


class _Rewriting:
    """Rewrites a definition's nodes, given the signatures of its functions."""

    def __init__(self, functions: Mapping[str, Any], kept: set[str]) -> None:
        self._functions, self._kept = functions, kept

    def rewrite(
        self,
        nodes: Any,
        inputs: Mapping[str, int],
        *,
        inside: bool,
        returned: tuple[Any, Mapping[str, int]] | None = None,
    ) -> None:
        """Rewrites a list of nodes in place.

        Args:
            nodes: The nodes of a graph or of a function.
            inputs: The dtypes of a function's arguments by name.
            inside: Whether this is a function, whose nodes refer to results as `node:argument:number`.
            returned: A function's results: the reference and the dtype of each.
        """
        for node in nodes:
            if not self._stays(node):
                _lengthen(node)
        produced = dict(inputs)
        for node in nodes:
            produced |= self._results(node, inside)
        casts: dict[tuple[str, int], str] = {}
        added: list[Any] = []

        def cast(reference: str, dtype: int) -> str:
            key = reference if inside or ":" in reference else f"{reference}:0"
            if produced.get(key, dtype) == dtype:
                return reference
            if (key, dtype) not in casts:
                node = tf.compat.v1.NodeDef(
                    name=f"ganlab_cast_{len(casts)}_{re.sub(r'[^A-Za-z0-9_]', '_', key)}", op="Cast", input=[reference]
                )
                node.attr["SrcT"].type, node.attr["DstT"].type = produced[key], dtype
                added.append(node)
                casts[key, dtype] = f"{node.name}:y:0" if inside else node.name
            return casts[key, dtype]

        for node in nodes:
            wanted = [dtype for _, dtypes in self._arguments(node, "input_arg") for dtype in dtypes]
            for i, dtype in enumerate(wanted):
                if dtype in (*_FLOATS, _DOUBLE):
                    node.input[i] = cast(node.input[i], dtype)
        if returned is not None:
            for name, dtype in returned[1].items():
                returned[0][name] = cast(returned[0][name], dtype)
        nodes.extend(added)

    def _stays(self, node: Any) -> bool:
        if node.op in self._kept or _KEPT.search(node.op):
            return True
        definition = op_def_registry.get(node.op)
        if definition is None:
            return False
        if any(argument.type in _FLOATS for argument in (*definition.input_arg, *definition.output_arg)):
            self._kept.add(node.op)
            return True
        for attribute in definition.attr:
            allowed = attribute.allowed_values.list.type
            value = node.attr[attribute.name]
            short = value.type in _FLOATS or any(t in _FLOATS for t in value.list.type)
            if attribute.type in ("type", "list(type)") and allowed and _DOUBLE not in allowed and short:
                self._kept.add(node.op)
                return True
        return False

    def _results(self, node: Any, inside: bool) -> Iterator[tuple[str, int]]:
        number = 0
        for name, dtypes in self._arguments(node, "output_arg"):
            for i, dtype in enumerate(dtypes):
                yield (f"{node.name}:{name}:{i}" if inside else f"{node.name}:{number}"), dtype
                number += 1

    def _arguments(self, node: Any, which: str) -> Iterator[tuple[str, Sequence[int]]]:
        definition = self._functions.get(node.op) or op_def_registry.get(node.op)
        if definition is None:
            return
        defaults = {attribute.name: attribute.default_value for attribute in definition.attr}

        def value(name: str) -> Any:
            return node.attr[name] if name in node.attr else defaults[name]

        for argument in getattr(definition, which):
            if argument.type_list_attr:
                yield argument.name, list(value(argument.type_list_attr).list.type)
                continue
            dtype = value(argument.type_attr).type if argument.type_attr else argument.type
            yield argument.name, [dtype] * (value(argument.number_attr).i if argument.number_attr else 1)


def _lengthen(node: Any) -> None:
    for value in node.attr.values():
        if value.HasField("type"):
            value.type = _long(value.type)
        elif value.HasField("tensor") and value.tensor.dtype in _FLOATS:
            value.tensor.CopyFrom(tf.make_tensor_proto(tf.make_ndarray(value.tensor).astype(np.float64)))
        elif value.HasField("list"):
            value.list.type[:] = [_long(dtype) for dtype in value.list.type]


def _long(dtype: int) -> int:
    return _DOUBLE if dtype in _FLOATS else dtype
