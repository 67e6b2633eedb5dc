"""Real examples for each iteration and replica, as a pure function of the step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment, Rows
from ganlab.errors import ContractError
from ganlab.plugins import optional
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.examples import check_finite_examples
from ganlab.training.graph.networks import static_shape
from ganlab.training.graph.op_source import operations
from ganlab.training.graph.program import obstacle
from ganlab.training.graph.roles import CRITIC, GENERATOR
from ganlab.training.graph.values import Tensors

# The prefix of what the generator's update needs, in the examples of an iteration.
OF_GENERATOR = "generator/"
# Sequences of example numbers: of critic updates, of generator updates, and the same for a source of its own.
_SEQUENCE, _OF_SOURCE = {CRITIC: 0, GENERATOR: 1}, 2
# Where each begins in an endless set, far beyond the one before.
_FAR = 2**48
_OF_HOST = {"PyFunc", "EagerPyFunc", "PyFuncStateless", "ReadFile"}
# Of a constant's elements: a program with a table takes long to compile.
_LARGE = 2**12


class Inputs:
    """The examples of an experiment.

    Update u of replica r sees examples `u * batch_size + r * local_batch` onward of an endless sequence. For a finite
    set the sequence is one epoch after another, each in an order of its own; for an endless set numbers never repeat.

    The generator's updates have a sequence of their own, in another order, of which they need labels, conditions and
    sources, and the examples where the loss compares pairs. `experiment.source` has two sequences likewise.

    Attributes:
        on_host: Whether the examples need Python or files, so that `tf.data` prepares them ahead; others are made
            inside the training loop, which costs less than handing them over.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment, self._dataset, self._seed = experiment, experiment.dataset, experiment.seed
        self._turn, self._sizes = experiment.turn, _sizes(experiment)
        self._strategy = strategy = experiment.strategy
        own = strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(context.replica_id_in_sync_group)
        )
        # Those that this process runs, by their numbers in the whole group.
        self._replicas = [int(number) for number in strategy.experimental_local_results(own)]
        # Traced once for all replicas.
        spec = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int32)
        self._made = tf.function(self.of, autograph=False).get_concrete_function(*spec)
        self.on_host = any(op.type in _OF_HOST for op in operations(self._made.graph))

    def numbers(self, step: tf.Tensor, replica: int | tf.Tensor, side: str = CRITIC) -> tf.Tensor:
        """Example numbers of a side's updates in an iteration of a replica, int64 `(updates * rows,)`."""
        return self._numbers(_real(self._experiment), self._positions(side, step, replica), side)

    def _numbers(self, rows: Rows, position: tf.Tensor, side: str) -> tf.Tensor:
        return numbers_at(position, rows.dataset.size, self._seed, _SEQUENCE[side] + _OF_SOURCE * rows.own)

    def _positions(self, side: str, step: tf.Tensor, replica: int | tf.Tensor) -> tf.Tensor:
        (batch, local), (update, count) = self._sizes[side], self._turn.updates(side, step)
        updates = update + tf.range(count, dtype=tf.int64) if self._turn.axis(side) else update
        first, own = updates * batch + tf.cast(replica, tf.int64) * local, tf.range(local, dtype=tf.int64)
        return tf.reshape(first[:, None] + own[None, :], [-1]) if self._turn.axis(side) else first + own

    def of(self, step: tf.Tensor, replica: int | tf.Tensor) -> Tensors:
        """Everything that one replica's iteration needs.

        Returns:
            `real`, float32 `(critic_steps, local_batch, *sample_shape)`; as far as the experiment has them `labels`,
            int64, `conditions` and `source`, float32, likewise; and the same under `generator/` for the generator's
            update, `(local_generator_batch, ...)`, of `real` where the loss compares pairs. With several
            `generator_steps` these have them as a first axis; without a critic there are no others.
        """
        return {name: self.rows(rows, step, replica, side) for name, rows, side in _kinds(self._experiment)}

    def examples(self, step: tf.Tensor, replica: int | tf.Tensor, side: str = CRITIC) -> tf.Tensor:
        """One replica's examples of an iteration, float32 `(critic_steps, local_batch, *sample_shape)`."""
        return self.rows(_real(self._experiment), step, replica, side)

    def rows(self, rows: Rows, step: tf.Tensor, replica: int | tf.Tensor, side: str = CRITIC) -> tf.Tensor:
        """One replica's rows of a kind for a side's updates of an iteration, `(updates, local_batch, ...)`."""
        count, (_, local), positions = self._turn.of(side), self._sizes[side], self._positions(side, step, replica)

        def of(position: tf.Tensor) -> tf.Tensor:
            return self._rows(rows, position, side)

        if count is None:  # a dataset is asked for a constant number of examples
            of_one = tf.TensorSpec([local, *rows.shape], rows.dtype)
            return tf.map_fn(of, tf.reshape(positions, [-1, local]), fn_output_signature=of_one)
        made, axis = of(tf.ensure_shape(positions, [count * local])), self._turn.axis(side)
        return tf.reshape(made, [*axis, local, *rows.shape]) if axis else made

    def _rows(self, rows: Rows, position: tf.Tensor, side: str) -> tf.Tensor:
        dataset, count, shape = rows.dataset, position.shape[0], rows.shape
        epochs = tf.zeros_like(position) if dataset.size is None else position // dataset.size
        with plugin_code(selector_of(dataset), rows.method):
            made = called(rows, self._numbers(rows, position, side), self._seed, epochs=epochs)
        returned = f"Dataset {type(dataset).__name__} returned {rows.method} of shape {static_shape(made)} and dtype "
        if rows.method == "labels":
            if static_shape(made) not in ((count,), (None,), "unknown") or not made.dtype.is_integer:
                raise ContractError(f"{returned}{made.dtype.name} for {count} numbers; they must be ({count},), int64.")
            return tf.ensure_shape(tf.cast(made, tf.int64), [count])
        if static_shape(made) != (count, *shape) or made.dtype != tf.float32:
            raise ContractError(
                f"{returned}{made.dtype.name} for {count} numbers; they must be {(count, *shape)}, float32. Values "
                "from Python have an unknown shape until tf.ensure_shape sets it."
            )
        return made

    def check(self, step: int) -> None:
        """Checks this process's examples of one iteration.

        Raises:
            ContractError: One of them has a value that is not a finite number.
            PluginError: They cannot be read.
        """
        for replica in self._replicas:
            at = tf.constant(step, tf.int64)
            with plugin_code(selector_of(self._dataset), "examples"):
                made = {name: x.numpy() for name, x in self._made(at, tf.constant(replica)).items()}
            for name, rows, side in _kinds(self._experiment):
                if rows.method != "labels":
                    numbers = self._numbers(rows, self._positions(side, at, replica), side).numpy()
                    check_finite_examples(rows.dataset, numbers, made[name].reshape(len(numbers), -1))

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
        made = [x for replica in self._replicas for x in self.of(step, replica).values() if x.dtype.is_floating]
        return tf.reduce_all([tf.reduce_all(tf.math.is_finite(values)) for values in made])

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
    leading = {side: [*experiment.turn.axis(side), local] for side, (_, local) in _sizes(experiment).items()}
    return {name: tf.TensorSpec([*leading[side], *rows.shape], rows.dtype) for name, rows, side in _kinds(experiment)}


def numbers_at(position: tf.Tensor, size: int | None, seed: int, sequence: int) -> tf.Tensor:
    """The example numbers at positions of a sequence, int64: each epoch of a finite set has an order of its own."""
    if size is None:
        return position + sequence * _FAR
    # The stateless shuffle behind tf.random.experimental.index_shuffle, whose wrapper takes one seed for all, and four
    # rounds: too few for small seeds, of which 0 then left two thirds of 48 examples in place.
    epoch, order = position // size, tf.fill(tf.shape(position), tf.constant(sequence, tf.int64))
    seeds = tf.stack([tf.fill(tf.shape(position), tf.constant(seed, tf.int64)), epoch, order], axis=1)
    return tf.raw_ops.RandomIndexShuffle(
        index=position % size,
        seed=tf.cast(seeds, tf.uint32),
        max_index=tf.constant(size - 1, tf.int64),
        rounds=16,
    )


def called(rows: Rows, numbers: tf.Tensor, seed: int, **optional_ones: Any) -> tf.Tensor:
    """The rows with these numbers, as their dataset gives them."""
    method = getattr(rows.dataset, rows.method)
    if rows.method == "labels":
        return tf.convert_to_tensor(optional.call(method, numbers, seed=seed))
    return tf.convert_to_tensor(optional.call(method, numbers, seed, **optional_ones))


def _kinds(experiment: Experiment) -> Iterator[tuple[str, Rows, str]]:
    """What an iteration needs of data: the name, where it comes from, and in whose updates."""
    kinds = {"real": _real(experiment), **experiment.given}
    for name, rows in kinds.items():
        if experiment.has_critic:
            yield name, rows, CRITIC
        if name != "real" or experiment.loss.pairs:
            yield f"{OF_GENERATOR}{name}", rows, GENERATOR


def _real(experiment: Experiment) -> Rows:
    return Rows(experiment.dataset, "examples", tuple(experiment.dataset.sample_shape))
