"""Real examples for each iteration and replica, as a pure function of the step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import ContractError
from ganlab.plugins import optional
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.examples import check_finite_examples
from ganlab.training.graph.networks import static_shape
from ganlab.training.graph.op_source import operations
from ganlab.training.graph.program import obstacle
from ganlab.training.graph.roles import CRITIC, GENERATOR
from ganlab.training.graph.turn import Turn
from ganlab.training.graph.values import Tensors

# The prefix of what the generator's update needs, in the examples of an iteration.
OF_GENERATOR = "generator/"
# Where the examples of generator updates begin in an endless set, far beyond those of the critic's.
_FAR = 2**48
_OF_HOST = {"PyFunc", "EagerPyFunc", "PyFuncStateless", "ReadFile"}
# Of a constant's elements: a program with a table takes long to compile.
_LARGE = 2**12


class Inputs:
    """The examples of an experiment.

    Update u of replica r sees examples `u * batch_size + r * local_batch` onward of an endless sequence. For a finite
    set the sequence is one epoch after another, each in an order of its own; for an endless set numbers never repeat.

    The generator's updates have a sequence of their own, in another order, of which they need the labels, and the
    examples where the loss compares pairs.

    Attributes:
        on_host: Whether the examples need Python or files, so that `tf.data` prepares them ahead; others are made
            inside the training loop, which costs less than handing them over.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._dataset, self._seed = experiment.dataset, experiment.seed
        self._turn, self._sizes = Turn.made(experiment), _sizes(experiment)
        self._pairs, self._labelled = experiment.loss.pairs, experiment.dataset.classes is not None
        self._seen = CRITIC if experiment.has_critic else GENERATOR  # whose real examples are checked
        self._strategy = experiment.strategy
        self._replicas = _local_replicas(experiment.strategy)
        # Traced once for all replicas.
        spec = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int32)
        self._made = tf.function(self.of, autograph=False).get_concrete_function(*spec)
        self.on_host = any(op.type in _OF_HOST for op in operations(self._made.graph))

    def numbers(self, step: tf.Tensor, replica: int | tf.Tensor, side: str = CRITIC) -> tf.Tensor:
        """Example numbers of a side's updates in an iteration of a replica, int64 `(updates * rows,)`."""
        return self._in_order(self._positions(side, step, replica), side)

    def _positions(self, side: str, step: tf.Tensor, replica: int | tf.Tensor) -> tf.Tensor:
        (batch, local), (update, count) = self._sizes[side], self._turn.updates(side, step)
        updates = update + tf.range(count, dtype=tf.int64) if self._turn.axis(side) else update
        first, own = updates * batch + tf.cast(replica, tf.int64) * local, tf.range(local, dtype=tf.int64)
        return tf.reshape(first[:, None] + own[None, :], [-1]) if self._turn.axis(side) else first + own

    def _epochs(self, position: tf.Tensor) -> tf.Tensor:
        """How often all examples were seen before those at these positions of a sequence."""
        size = self._dataset.size
        return tf.zeros_like(position) if size is None else position // size

    def _in_order(self, position: tf.Tensor, side: str) -> tf.Tensor:
        size, sequence = self._dataset.size, int(side == GENERATOR)
        if size is None:
            return position + sequence * _FAR
        # The stateless shuffle behind tf.random.experimental.index_shuffle, whose wrapper takes one seed for all.
        epoch, order = position // size, tf.fill(tf.shape(position), tf.constant(sequence, tf.int64))
        seeds = tf.stack([tf.fill(tf.shape(position), tf.constant(self._seed, tf.int64)), epoch, order], axis=1)
        return tf.raw_ops.RandomIndexShuffle(
            index=position % size,
            seed=tf.cast(seeds, tf.uint32),
            max_index=tf.constant(size - 1, tf.int64),
            rounds=4,
        )

    def of(self, step: tf.Tensor, replica: int | tf.Tensor) -> Tensors:
        """Everything that one replica's iteration needs.

        Returns:
            `real`, float32 `(critic_steps, local_batch, *sample_shape)`; where the dataset has classes `labels`, int64
            `(critic_steps, local_batch)`, and `generator/labels`, `(local_generator_batch,)`; where the loss compares
            pairs `generator/real`, `(local_generator_batch, *sample_shape)`. With several `generator_steps` the latter
            two have them as a first axis.
        """
        tensors = {"real": self.examples(step, replica)} if self._seen == CRITIC else {}
        if self._pairs:
            tensors[f"{OF_GENERATOR}real"] = self.examples(step, replica, GENERATOR)
        if self._labelled:
            tensors |= {"labels": self.labels(step, replica)} if self._seen == CRITIC else {}
            tensors[f"{OF_GENERATOR}labels"] = self.labels(step, replica, GENERATOR)
        return tensors

    def examples(self, step: tf.Tensor, replica: int | tf.Tensor, side: str = CRITIC) -> tf.Tensor:
        """One replica's examples of an iteration, float32 `(critic_steps, local_batch, *sample_shape)`."""

        def of(position: tf.Tensor) -> tf.Tensor:
            return self._examples(self._in_order(position, side), self._epochs(position))

        return self._of_updates(side, step, replica, of, tuple(self._dataset.sample_shape), tf.float32)

    def labels(self, step: tf.Tensor, replica: int | tf.Tensor, side: str = CRITIC) -> tf.Tensor:
        """The classes of those examples, int64 `(critic_steps, local_batch)`."""

        def of(position: tf.Tensor) -> tf.Tensor:
            return self._labels(self._in_order(position, side))

        return self._of_updates(side, step, replica, of, (), tf.int64)

    def _of_updates(self, side: str, step: tf.Tensor, replica: Any, of: Any, shape: Any, dtype: tf.DType) -> tf.Tensor:
        """Rows of a side's updates, `(updates, local batch, *shape)`, made from their positions in its sequence."""
        count, (_, local), positions = self._turn.of(side), self._sizes[side], self._positions(side, step, replica)
        if count is None:  # a dataset is asked for a constant number of examples
            of_one = tf.TensorSpec([local, *shape], dtype)
            return tf.map_fn(of, tf.reshape(positions, [-1, local]), fn_output_signature=of_one)
        rows, axis = of(tf.ensure_shape(positions, [count * local])), self._turn.axis(side)
        return tf.reshape(rows, [*axis, local, *shape]) if axis else rows

    def _labels(self, numbers: tf.Tensor) -> tf.Tensor:
        count, name = numbers.shape[0], selector_of(self._dataset)
        with plugin_code(name, "labels"):
            labels = tf.convert_to_tensor(optional.call(self._dataset.labels, numbers, seed=self._seed))
        if static_shape(labels) not in ((count,), (None,), "unknown") or not labels.dtype.is_integer:
            raise ContractError(
                f"Dataset {type(self._dataset).__name__} returned labels of shape {static_shape(labels)} and dtype "
                f"{labels.dtype.name} for {count} numbers; they must be ({count},), int64."
            )
        return tf.ensure_shape(tf.cast(labels, tf.int64), [count])

    def _examples(self, numbers: tf.Tensor, epochs: tf.Tensor) -> tf.Tensor:
        count, shape = numbers.shape[0], tuple(self._dataset.sample_shape)
        with plugin_code(selector_of(self._dataset), "examples"):
            examples = tf.convert_to_tensor(optional.call(self._dataset.examples, numbers, self._seed, epochs=epochs))
        if static_shape(examples) != (count, *shape) or examples.dtype != tf.float32:
            raise ContractError(
                f"Dataset {type(self._dataset).__name__} returned examples of shape {static_shape(examples)} and dtype "
                f"{examples.dtype.name} for {count} numbers; they must be {(count, *shape)}, float32. Values from "
                "Python have an unknown shape until tf.ensure_shape sets it."
            )
        return examples

    def check(self, step: int) -> None:
        """Checks this process's examples of one iteration.

        Raises:
            ContractError: One of them has a value that is not a finite number.
            PluginError: They cannot be read.
        """
        for replica in self._replicas:
            at = tf.constant(step, tf.int64)
            with plugin_code(selector_of(self._dataset), "examples"):
                made = self._made(at, tf.constant(replica))
                examples = made["real" if self._seen == CRITIC else f"{OF_GENERATOR}real"].numpy()
            numbers = self.numbers(at, replica, self._seen).numpy()
            check_finite_examples(self._dataset, numbers, examples.reshape(len(numbers), -1))

    def first_not_finite(self, start: int, count: int) -> int | None:
        """Finds the first iteration in which this process has an example with a value that is not finite.

        Args:
            start: Generator updates done before the first iteration to check.
            count: How many iterations to check.

        Returns:
            Generator updates done before the iteration found, or None if all are finite.
        """
        steps = tf.data.Dataset.range(start, start + count).map(self._are_finite, num_parallel_calls=tf.data.AUTOTUNE)
        return next((start + i for i, sound in enumerate(steps.as_numpy_iterator()) if not sound), None)

    def _are_finite(self, step: tf.Tensor) -> tf.Tensor:
        examples = [self.examples(step, replica, self._seen) for replica in self._replicas]
        return tf.reduce_all([tf.reduce_all(tf.math.is_finite(values)) for values in examples])

    def per_replica(self, step: tf.Tensor) -> Any:
        """Examples of this process's replicas, made here and now: for use inside the training loop."""
        with tf.device("CPU:0"):
            made = [self._made(step, tf.constant(replica)) for replica in self._replicas]
        return self.distribute(made)

    def computed(self) -> bool:
        """Whether XLA's program may make the examples: arithmetic of their numbers, equal there but for rounding."""
        return not self._made.captured_inputs and _is_arithmetic(self._made.graph)

    def in_program(self, step: tf.Tensor) -> Any:
        """The only replica's examples, made in a program that XLA compiles."""
        return self.distribute([self._made(step, tf.constant(0))])

    def distribute(self, examples: Any) -> Any:
        """The results of `of` for each local replica as distributed values."""
        return {name: self._distributed([made[name] for made in examples]) for name in examples[0]}

    def _distributed(self, values: list[tf.Tensor]) -> Any:
        return self._strategy.experimental_distribute_values_from_function(lambda context: values.pop(0))

    def iterator(self, start: int) -> Iterator[Any]:
        """A `tf.data` iterator over iterations from `start`: each element has the examples by local replica."""
        steps = tf.data.Dataset.range(start, np.iinfo(np.int64).max)
        elements = steps.map(
            lambda step: tuple(self._made(step, tf.constant(replica)) for replica in self._replicas),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return iter(elements.prefetch(2))


def _is_arithmetic(graph: tf.Graph) -> bool:
    """Whether XLA can compile a graph, quickly, and makes the same of it: random operations give others there."""
    tables = (op for op in operations(graph) if op.type == "Const" and op.outputs[0].shape.num_elements() > _LARGE)
    return not obstacle(graph) and not any("Random" in op.type for op in operations(graph)) and not any(tables)


def _sizes(experiment: Experiment) -> dict[str, tuple[int, int]]:
    """The rows of each side's batch over all replicas, and of a replica's."""
    return {
        CRITIC: (experiment.batch_size, experiment.local_batch),
        GENERATOR: (experiment.generator_batch, experiment.local_generator_batch),
    }


def specs_of(experiment: Experiment) -> dict[str, tf.TensorSpec]:
    """The shapes and dtypes of what `Inputs.of` returns for an experiment."""
    turn, shape = Turn.made(experiment), tuple(experiment.dataset.sample_shape)
    leading = {side: [*turn.axis(side), local] for side, (_, local) in _sizes(experiment).items()}
    specs = {"real": tf.TensorSpec([*leading[CRITIC], *shape], tf.float32)} if experiment.has_critic else {}
    if experiment.loss.pairs:
        specs[f"{OF_GENERATOR}real"] = tf.TensorSpec([*leading[GENERATOR], *shape], tf.float32)
    if experiment.dataset.classes is not None:
        specs |= {"labels": tf.TensorSpec(leading[CRITIC], tf.int64)} if experiment.has_critic else {}
        specs[f"{OF_GENERATOR}labels"] = tf.TensorSpec(leading[GENERATOR], tf.int64)
    return specs


def _local_replicas(strategy: tf.distribute.Strategy) -> list[int]:
    """The replicas that this process runs, by their numbers in the whole group."""
    own = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(context.replica_id_in_sync_group)
    )
    return [int(number) for number in strategy.experimental_local_results(own)]
