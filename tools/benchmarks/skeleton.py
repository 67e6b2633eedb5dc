"""The matrix products and convolutions of a graph without everything between them, to time them alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from ganlab_plan.counting import count, function_of, root, used_operations
from ganlab_plan.products import PRODUCTS

from ganlab.composition import Experiment
from ganlab.training.graph.trainer import Trainer

_CALLERS = ("While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase")
_CALLERS += ("PartitionedCall", "StatefulPartitionedCall")


@dataclass(frozen=True)
class Given:
    """A tensor that no product makes: a weight, or examples.

    Attributes:
        name: Its name; products that read one variable share it.
        shape: Its shape.
        dtype: Its dtype.
        weight: Whether it is a variable.
    """

    name: str
    shape: tuple[int, ...]
    dtype: tf.DType
    weight: bool

    def value(self) -> tf.Tensor:
        """Numbers that keep the size of what they are multiplied with: products run as fast on others of that kind."""
        random = np.random.default_rng(len(self.name))
        scale = np.prod(self.shape[:-1]) ** -0.5 if self.weight else 1.0
        return tf.cast(tf.constant(random.normal(0.0, scale, self.shape), tf.float32), self.dtype)


@dataclass(frozen=True)
class Product:
    """A product of the graph.

    Attributes:
        op: The operation, whose type and attributes are kept.
        inputs: For each input the number of the product whose result stands for it, a given tensor, or a constant.
        after: The numbers of the products that it waits for.
    """

    op: tf.Operation
    inputs: Sequence[int | Given | np.ndarray]
    after: frozenset[int]


def products_of(graph: tf.Graph) -> list[Product]:
    """The products of a function's graph that its results or effects need, in their order.

    Each waits for those that it waits for in the graph, through whatever lies between them. An input is the result of
    the last such product that is as large, as if nothing had been done to it on the way: it then lies in the same
    caches. A result stands for one tensor alone, because TensorFlow would make two equal products once. Other inputs
    are given.

    Raises:
        ValueError: Products are within a loop, a branch or a call of the graph.
    """
    found: list[Product] = []
    number: dict[str, int] = {}
    waits: dict[str, frozenset[int]] = {}  # by operation: the products that it needs, without those that these need
    needs: list[frozenset[int]] = []  # by product: every product before it
    stands: dict[int, str] = {}  # by product: the tensor that its result stands for
    for op in used_operations(graph):
        _check_flat(op)
        before = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
        nearest = frozenset().union(*(waits.get(one.name, frozenset()) for one in before))
        nearest -= frozenset().union(*(needs[i] for i in nearest))
        waits[op.name] = nearest
        if op.type in PRODUCTS:
            inputs = [_input(op, tensor, number, stands) for tensor in op.inputs]
            number[op.name] = len(found)
            found.append(Product(op, inputs, nearest))
            needs.append(nearest.union(*(needs[i] for i in nearest)))
            waits[op.name] = frozenset({number[op.name]})
    return found


def body_of(graph: tf.Graph) -> tf.Graph:
    """The body of a graph's only loop.

    Raises:
        ValueError: It has none, or several.
    """
    loops = [op for op in graph.get_operations() if op.type in ("While", "StatelessWhile")]
    if len(loops) != 1:
        raise ValueError(f"The graph has {len(loops)} loops; it must have one, whose body is an iteration.")
    return function_of(loops[0], loops[0].get_attr("body").name)


def iteration_of(experiment: Experiment) -> tf.Graph:
    """The graph of an iteration, flat: with a trace of its own for each update, where training calls one trace."""
    return body_of(Trainer(experiment, shared=False).graph())


class Alone:
    """Products in a loop of a graph, with nothing else: `alone(n)` runs them n times in one call."""

    def __init__(self, products: Sequence[Product]) -> None:
        """Takes them.

        Raises:
            ValueError: There are none.
        """
        if not products:
            raise ValueError("There are no products to run: name a graph that has some.")
        self._products = products
        given = [one for product in products for one in product.inputs if isinstance(one, Given)]
        self._values = {one: one.value() for one in given}
        self._run = tf.function(self._many, autograph=False)

    def __call__(self, count: int) -> float:
        """Runs all products that many times; returns a sum of some of the results."""
        return float(self._run(tf.constant(count)))

    def results(self) -> list[tf.Tensor]:
        """The results of all products, once, in a function; they wait for each other as in the graph."""
        made: list[tf.Tensor] = []
        for product in self._products:
            pairs = zip(product.inputs, product.op.inputs, strict=True)
            inputs = [self._tensor(one, made, tensor.shape) for one, tensor in pairs]
            names = [attribute.name for attribute in product.op.op_def.attr]
            attributes = {name: product.op.node_def.attr[name] for name in names}
            with tf.control_dependencies([made[i] for i in sorted(product.after)]):
                types = [tensor.dtype for tensor in product.op.outputs]
                graph = tf.compat.v1.get_default_graph()
                made.append(graph.create_op(product.op.type, inputs, types, attrs=attributes).outputs[0])
        return made

    def _tensor(self, one: int | Given | np.ndarray, made: Sequence[tf.Tensor], shape: tf.TensorShape) -> tf.Tensor:
        if isinstance(one, Given):
            return tf.convert_to_tensor(self._values[one])
        if not isinstance(one, int):
            return tf.constant(one)
        return made[one] if made[one].shape == shape else tf.reshape(made[one], shape)

    def _many(self, times: tf.Tensor) -> tf.Tensor:
        read = {one for product in self._products for one in product.inputs if isinstance(one, int)}

        def body(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            unread = [result for number, result in enumerate(self.results()) if number not in read]
            # One number of each is used; otherwise TensorFlow would leave out those that nothing reads.
            return i + 1, total + tf.add_n([_first(result) for result in unread])

        return tf.while_loop(lambda i, _: i < times, body, (tf.constant(0), tf.constant(0.0)))[1]


def _first(x: tf.Tensor) -> tf.Tensor:
    rank = x.shape.rank
    return tf.cast(tf.reshape(tf.slice(x, [0] * rank, [1] * rank), []), tf.float32)


def _check_flat(op: tf.Operation) -> None:
    if op.type not in _CALLERS:
        return
    names = ("body", "cond", "f", "then_branch", "else_branch")
    functions = [op.get_attr(name) for name in names if name in op.node_def.attr]
    functions += op.get_attr("branches") if "branches" in op.node_def.attr else []
    if any(count(function_of(op, function.name)).products for function in functions):
        raise ValueError(f"{op.type} {op.name} has products within; only those of a flat graph can be run alone.")


def _input(
    op: tf.Operation, tensor: tf.Tensor, number: dict[str, int], stands: dict[int, str]
) -> int | Given | np.ndarray:
    if tensor.dtype == tf.int32:  # the shape of the result, of a convolution's gradient
        return np.array(op.outputs[0].shape.as_list(), np.int32)
    waiting, seen, makers = [tensor], set(), []
    while waiting:
        one = waiting.pop()
        if one.name in seen:
            continue
        seen.add(one.name)
        if one.op.name not in number:
            waiting += one.op.inputs
        elif (one.shape.num_elements(), one.dtype) == (tensor.shape.num_elements(), tensor.dtype):
            makers.append(number[one.op.name])
    source = root(tensor)
    for maker in sorted(makers, reverse=True):
        if stands.setdefault(maker, source.name) == source.name:
            return maker
    while source.op.type == "Cast":  # of a weight that is kept in float32
        source = root(source.op.inputs[0])
    variable = source.op.type == "ReadVariableOp"
    name = source.op.inputs[0].name if variable else source.name
    return Given(f"{name} {tensor.dtype.name}", tuple(tensor.shape.as_list()), tensor.dtype, variable)
