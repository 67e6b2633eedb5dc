"""Many iterations in one call of a compiled graph, with every metric of every replica in one tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import GanlabError, IncompatibleError, TrainingFailedError
from ganlab.support import xla_cache
from ganlab.training.graph.arithmetic import on_gpu, set_arithmetic, set_repeatable
from ganlab.training.graph.gathering import Gather
from ganlab.training.graph.gradients import compiles
from ganlab.training.graph.guards import Sums, check_finite, checksum, magnitude, not_finite, subject_and_verb
from ganlab.training.graph.inputs import Inputs
from ganlab.training.graph.parts import in_turn
from ganlab.training.graph.program import is_program, is_refusal, obstacle
from ganlab.training.graph.replica import Metric
from ganlab.training.graph.roles import CRITIC
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.step import TrainingStep
from ganlab.training.graph.tf_errors import translated_errors
from ganlab.training.graph.values import may_be_infinite
from ganlab.training.graph.variables import read

_BLOCK = 32  # iterations to a run of a program that makes its own examples


class Trainer:
    """Trains an experiment's state, a chunk of iterations at a time.

    Attributes:
        state: The trained state.
        turn: The updates of each step.
        sums: Sums over every variable on every replica after the last `train`, in the order of `state.variables()`.
    """

    def __init__(self, experiment: Experiment, state: TrainingState | None = None, *, shared: bool = True) -> None:
        """Takes the experiment.

        Args:
            experiment: The experiment.
            state: Its variables; None to make them.
            shared: Whether the critic's updates of an iteration may share a trace; False for a graph that is to be read
                operation by operation.
        """
        self.experiment, self._shared = experiment, shared
        set_repeatable(experiment)
        set_arithmetic(self.experiment.precision)
        self.state = state or TrainingState(experiment)
        self._inputs = Inputs(experiment)
        self._iterator: Iterator[Any] | None = None
        self._iterator_at = 0
        empty = np.zeros((experiment.replicas, 0))
        self.sums = Sums(empty, empty)
        self._infinite = {
            name
            for name, value in self.state.variables().items()
            if may_be_infinite(name) and np.isinf(tf.convert_to_tensor(value).numpy()).any()
        }
        self._gather = Gather(experiment.strategy)
        self._make(program=is_program(experiment))

    def _make(self, *, program: bool) -> None:
        """Makes the functions of the graph; as a program of XLA's, or of its gradients where it is to compile these."""
        experiment = self.experiment
        compiled = not program and compiles(experiment)
        switches = experiment.deterministic, experiment.precision
        self._kept = (program or compiled) and xla_cache.fill(*switches, on_gpu=on_gpu(experiment))
        self._step = TrainingStep(experiment, self.state, compiled=compiled, program=program, shared=self._shared)
        self.turn = self._step.turn
        if isinstance(experiment.strategy, tf.distribute.TPUStrategy):
            self.turn.check_static("A TPU, which compiles all of an iteration,", "Train on CPUs or GPUs.")
        # A loop is traced and optimized once for all critic updates. With several replicas it takes longer to run than
        # the unrolled updates, and a TPU compiles the whole iteration.
        alone = program or isinstance(experiment.strategy, tf.distribute.OneDeviceStrategy)
        several = self.turn.critic not in (0, 1) and self._shared and not self._step.looks_ahead
        self._loops = (alone and several) or bool(self.turn.varies)
        whole = self._block if self._inputs.computed() else self._whole
        self._program = tf.function(whole, jit_compile=True, autograph=False) if program else None
        self._chunk = tf.function(self._run, autograph=False)

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that `train` returns, in order; known after the first chunk."""
        return self._step.metrics

    @property
    def compiled(self) -> list[str]:
        """What XLA compiles: the gradients of "critic" and "generator", or "step"; known after `trace` or a chunk."""
        return self._step.compiled

    def trace(self) -> None:
        """Builds the graph without running it, so that an impossible experiment fails before anything is written.

        Also checks the examples of the next iteration.

        Raises:
            GanlabError: It cannot be trained, or the examples cannot be read or are not finite.
        """
        self._inputs.check(self.state.step)
        self.graph()
        operation = obstacle(self._inside) if self._program else ""
        if operation and self.experiment.jit == "step":
            raise IncompatibleError(
                f"XLA cannot compile {operation}, and experiment.jit = 'step' has it compile all of an iteration. Set "
                "experiment.jit = 'auto', or avoid it."
            )
        if operation:
            self._make(program=False)
            self.graph()

    def graph(self) -> tf.Graph:
        """The graph of a chunk, whose only loop's body is an iteration; built if it was not."""
        set_arithmetic(self.experiment.precision)
        start, length = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int32)
        return self._chunk.get_concrete_function(start, length, *self._iterators()).graph

    def agree(self, values: Sequence[float]) -> list[float]:
        """The largest of each value over all processes, so that they take the same decisions."""
        with translated_errors(self.experiment, self.state.step):
            return [float(value) for value in self._gather.extremes(values)[1]]

    def alike(self, values: Sequence[float]) -> bool:
        """Whether all processes have these values, by float32."""
        with translated_errors(self.experiment, self.state.step):
            smallest, largest = self._gather.extremes(values)
        return bool((smallest == largest).all())

    def train(self, count: int) -> np.ndarray:
        """Trains `count` iterations.

        Returns:
            The metrics of each, `(count, replicas, metrics)` float32.

        Raises:
            TrainingFailedError: An operation failed, for example because data is unreadable or memory is short.
        """
        set_arithmetic(self.experiment.precision)
        start, length = tf.constant(self.state.step, tf.int64), tf.constant(count, tf.int32)
        with translated_errors(self.experiment, self.state.step):
            rows, bits, magnitudes = self._compiled_chunk(start, length)
            self.sums = Sums(self._gather(bits[None])[0], self._gather(magnitudes[None])[0])
            gathered = self._gather(rows)
        if self._kept:
            xla_cache.keep()
            self._kept = False
        self._check_data(gathered, count)
        self.state.step += count
        self._iterator_at += count
        return gathered

    def _compiled_chunk(self, start: tf.Tensor, length: tf.Tensor) -> Any:
        try:
            return self._chunk(start, length, *self._iterators())
        except tf.errors.OpError as error:
            if self._program is None or self.experiment.jit == "step" or not is_refusal(error):
                raise
        self._make(program=False)
        self._iterator = None  # may have moved on
        return self._chunk(start, length, *self._iterators())

    def not_finite(self) -> list[str]:
        """The names of the variables that are not finite after the last `train`; empty if all are finite."""
        if np.isfinite(self.sums.magnitudes).all():
            return []
        return not_finite(self.state.variables(), self.sums, self._infinite)

    def _check_data(self, values: np.ndarray, count: int) -> None:
        """Raises an error if broken data caused values that are not finite; divergence looks the same in metrics."""
        good, variables = check_finite(values), self.not_finite()
        if good is None and not variables:
            return
        # Bad data of one iteration may show only in the next: a rectifier in the critic turns NaN into 0 in the scores.
        fault = self._data_fault(self.state.step, count if good is None else good + 1)
        if self.agree([float(bool(fault))]) != [1.0]:  # in no process
            return
        reason = fault or "The examples of another worker are not finite; its message names them."
        last = self.state.step + count
        since = f" After iteration {last} {subject_and_verb(variables)} not finite." if variables else ""
        raise TrainingFailedError(f"{reason}{since} Earlier checkpoints are kept.")

    def _data_fault(self, start: int, count: int) -> str:
        """A sentence about bad examples of this process in some iterations; empty if there are none."""
        at = start
        try:
            with translated_errors(self.experiment, start):
                bad = self._inputs.first_not_finite(start, count)
                if bad is not None:
                    at = bad
                    self._inputs.check(bad)
        except (GanlabError, TrainingFailedError) as error:
            return f"In iteration {at + 1}: {error}"
        return ""

    def _iterators(self) -> tuple[Iterator[Any], ...]:
        """The input's iterator at the state's step, if the examples come from an iterator."""
        if not self._inputs.on_host:
            return ()
        if self._iterator is None or self._iterator_at != self.state.step:
            self._iterator, self._iterator_at = self._inputs.iterator(self.state.step), self.state.step
        return (self._iterator,)

    def _run(
        self, start: tf.Tensor, count: tf.Tensor, iterator: Iterator[Any] | None = None
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        strategy, inputs, program = self.experiment.strategy, self._inputs, self._program
        in_blocks = program and inputs.computed()
        if self._kept:
            xla_cache.number_functions()

        def body(i: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            with tf.device("CPU:0"):  # a GPU's step would be copied back for the examples, after all that it has to do
                step = start + tf.cast(i, tf.int64)
            if program and in_blocks:
                return i + _BLOCK, rows.write(i // _BLOCK, program(step, tf.minimum(count - i, _BLOCK)))
            real = inputs.per_replica(step) if iterator is None else inputs.distribute(next(iterator))
            return i + 1, rows.write(i, (program or self._iteration)(step, real))

        rows = tf.TensorArray(tf.float32, size=-(-count // _BLOCK) if in_blocks else count)
        _, rows = tf.while_loop(lambda i, _: i < count, body, (tf.constant(0), rows))
        # Once a chunk, to notice replicas that drift apart: each would continue to train a network of its own.
        bits, magnitudes = (strategy.experimental_local_results(sums) for sums in strategy.run(self._sums))
        return rows.concat()[:count] if in_blocks else rows.stack(), tf.stack(bits), tf.stack(magnitudes)

    def _whole(self, step: tf.Tensor, examples: Any) -> tf.Tensor:
        self._inside = tf.compat.v1.get_default_graph()
        return self._iteration(step, examples)

    def _block(self, start: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        """Trains for `count` steps; returns `(_BLOCK, replicas, metrics)`, of which the first `count` are theirs.

        Within one run of a program the buffers stay where they are, so that a GPU repeats what it recorded.
        """
        self._inside = tf.compat.v1.get_default_graph()

        def body(i: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            step = start + tf.cast(i, tf.int64)
            return i + 1, rows.write(i, self._iteration(step, self._inputs.in_program(step)))

        rows = tf.TensorArray(tf.float32, size=_BLOCK)
        _, rows = tf.while_loop(lambda i, _: i < count, body, (tf.constant(0), rows))
        return rows.stack()

    def _iteration(self, step: tf.Tensor, examples: Any) -> tf.Tensor:
        """Trains for one step; returns the metrics of this process's replicas, `(replicas, metrics)`."""
        if not self._loops:
            return self._on_replicas(self._step.iteration, step, examples)

        def body(k: tf.Tensor, values: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            metrics = self._on_replicas(self._step.critic_update, step, tf.cast(k, tf.int64), examples)
            return k + 1, values.write(k, metrics)

        updates = self.turn.critic or tf.cast(self.turn.updates(CRITIC, step)[1], tf.int32)
        (values,) = in_turn(updates, body, (tf.TensorArray(tf.float32, size=updates),))
        of_critic = tf.ensure_shape(values.stack(), [self.turn.critic, None, None])

        def of_generator() -> list[tf.Tensor]:
            each = range(self.turn.generator)
            return [self._on_replicas(self._step.generator_update, step, j, examples) for j in each]

        if not self.turn.waits:
            return self._step.reduced(step, of_critic, of_generator())
        ready = self._on_replicas(self._step.generator.ready)
        made = tf.cond(ready[0], of_generator, lambda: self._step.waiting(ready.shape[0]))
        return self._step.reduced(step, of_critic, made, ready)

    def _on_replicas(self, function: Callable[..., tf.Tensor], *arguments: Any) -> tf.Tensor:
        """The results of a function on this process's replicas, one below the other."""
        strategy = self.experiment.strategy
        values = strategy.run(tf.autograph.experimental.do_not_convert(function), args=arguments)
        return tf.stack(strategy.experimental_local_results(values))

    def _sums(self) -> tuple[tf.Tensor, tf.Tensor]:
        values = read(self.state.variables()).values()
        several = self.experiment.replicas > 1  # tracing the sums takes as long as tracing a critic's update
        bits = tf.stack([checksum(value) for value in values]) if several else tf.zeros([len(values)], tf.int64)
        return bits, tf.stack([magnitude(value) for value in values])
