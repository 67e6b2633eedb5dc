"""The parts of a step that are functions of tensors alone: traced once for all updates, compiled by XLA where asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import IncompatibleError
from ganlab.plugins import scheduled
from ganlab.training.graph.arithmetic import on_gpu
from ganlab.training.graph.noise import Draw, draw
from ganlab.training.graph.parts import in_turn, summed
from ganlab.training.graph.replica import LOCAL_REDUCTIONS, Draws, Log, Metric
from ganlab.training.graph.values import Tensors, Values


class Result(NamedTuple):
    """The results of a part.

    Attributes:
        gradients: The gradient by each trained tensor.
        buffers: The new values of the buffers of each network that is trained, by role; none in microbatches.
        scores: The critic's scores that the part computed, each `(local_batch,)`.
        metrics: The metrics' values, `(metrics,)`.
    """

    gradients: list[tf.Tensor]
    buffers: dict[str, Tensors]
    scores: tuple[tf.Tensor, ...]
    metrics: tf.Tensor


# A part: (draws, log, values, data) -> (gradients, buffers, scores).
Part = Callable[[Draws, Log, Values, Tensors], tuple[list[tf.Tensor], dict[str, Tensors], tuple[tf.Tensor, ...]]]


class Gradients:
    """A part of the step without variables or communication, in microbatches where asked.

    A part that several updates of an iteration share is a function that is traced once on each device. XLA compiles it
    where asked; the random numbers of a compiled part are drawn outside and passed in, because XLA's would differ.

    Attributes:
        compiled: Whether XLA compiles this part; known once it has been traced.
        communicates: What communicates with other replicas in this part, as messages name it; empty if nothing does, or
            before the part is traced.
    """

    def __init__(
        self,
        part: Part,
        experiment: Experiment,
        trained: Callable[[Values], Sequence[tf.Tensor]],
        *,
        compiled: bool,
        shared: bool,
    ) -> None:
        """Takes the part, and what returns the tensors that its gradients belong to.

        XLA is to compile it if `compiled`; several calls in a graph share one trace if `shared`.
        """
        self._part, self._experiment, self._trained = part, experiment, trained
        self._compiled, self._shared = compiled, shared
        self._function: Callable[..., Any] | None = None
        self._spec: list[Draw] = []
        self._metrics: list[Metric] = []
        self.compiled, self.communicates = False, ""

    def __call__(self, values: Values, data: Tensors, draws: Draws) -> tuple[Result, list[Metric]]:
        """Runs the part for the rows of `data`; returns the result and the metrics."""
        parts = self._experiment.microbatches
        shared = self._shared and not tf.executing_eagerly()
        if self._function is None and (self._compiled or shared):
            self._prepare(values, {name: x[: x.shape[0] // parts] for name, x in data.items()})
        result = self._once(values, data, draws) if parts == 1 else self._in_parts(parts, values, data, draws)
        return result, self._metrics

    def _once(self, values: Values, data: Tensors, draws: Draws) -> Result:
        if self._function is None:
            # Of its own, as a traced part has: what was drawn before must not count.
            own = Draws(draws.seed, draws.local_batch, draws.step, draws.replica, draws.first, whole=draws.whole)
            result = self._run(own, values, data)
            self.communicates = own.collective
            return result
        given = [draw(spec, seed=draws.seed, step=draws.step, first=draws.start) for spec in self._spec]
        return self._function(values, data, draws.step, draws.replica, draws.start, scheduled.now(), given)

    def _in_parts(self, parts: int, values: Values, data: Tensors, draws: Draws) -> Result:
        """Sums the gradients of a replica's microbatches, one after another, so that they share memory."""
        rows = draws.local_batch // parts
        arrays = tf.TensorArray(tf.float32, size=parts), tf.TensorArray(tf.float32, size=parts)

        def body(i: tf.Tensor, gradients: list[tf.Tensor], metrics: Any, scores: Any) -> tuple[Any, ...]:
            piece = {name: rows_of(x, i, rows) for name, x in data.items()}
            # Tensors of this graph: a gradient by those of the graph around the loop would be zero.
            inner = tf.nest.map_structure(tf.identity, values)
            result = self._once(inner, piece, draws.part(i, rows))
            stacked = tf.stack(result.scores) if result.scores else tf.zeros([0, rows])
            written = metrics.write(i, result.metrics), scores.write(i, stacked)
            return i + 1, summed(gradients, result.gradients), *written

        zeros = [tf.zeros_like(tensor) for tensor in self._trained(values)]
        gradients, metrics, scores = in_turn(parts, body, (zeros, *arrays))
        by_part = tf.ensure_shape(metrics.stack(), [parts, len(self._metrics)])
        reduced = [LOCAL_REDUCTIONS[metric.reduce](by_part[:, i]) for i, metric in enumerate(self._metrics)]
        of_network = tf.reshape(tf.transpose(scores.stack(), [1, 0, 2]), [-1, draws.local_batch])
        split = tuple(of_network[i] for i in range(2)) if "fake" in data else ()
        return Result(gradients, {}, split, tf.stack(reduced))

    def _run(self, draws: Draws, values: Values, data: Tensors) -> Result:
        log = Log()
        gradients, buffers, scores = self._part(draws, log, values, data)
        self._metrics = log.metrics
        return Result(gradients, buffers, scores, tf.stack(log.values))

    def _prepare(self, values: Values, data: Tensors) -> None:
        """Traces the part once to record draws and communication between replicas; then decides what becomes of it."""
        seen: list[Draws] = []
        recording = tf.function(self._traced(seen), autograph=False)
        integers = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int64)
        specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), (values, data))
        recording.get_concrete_function(*specs, *integers, scheduled.now(), [])
        self.communicates = seen[-1].collective
        if self._compiled and may_compile(self._experiment, self.communicates):
            self._spec, self.compiled = seen[-1].recorded, True
            self._function = tf.function(self._traced(None), jit_compile=True, autograph=False)
        elif self._shared and not self._compiled and is_local(self._experiment, self.communicates):
            self._function = recording
        self._compiled = self._shared = False  # decided

    def _traced(self, seen: list[Draws] | None) -> Callable[..., Any]:
        """The part as a function of tensors; with `seen` it draws itself, makes no collective, and notes its draws."""
        seed, whole, steps = self._experiment.seed, self._experiment.microbatches == 1, self._experiment.steps

        def traced(
            values: Values,
            data: Tensors,
            update: tf.Tensor,
            replica: tf.Tensor,
            first: tf.Tensor,
            step: tf.Tensor,
            given: list[tf.Tensor],
        ) -> Any:
            rows = int(next(iter(data.values())).shape[0])
            draws = Draws(seed, rows, update, replica, first=first, whole=whole)
            if seen is None:
                draws.given = given
            else:
                draws.scratch = True
                seen.append(draws)
            # Of this graph: a step of the graph around would be that of its first trace.
            with scheduled.at(step, steps):
                return self._run(draws, values, data)

        return traced


def rows_of(x: tf.Tensor, part: tf.Tensor, rows: int) -> tf.Tensor:
    """The rows of one microbatch, `(rows, ...)`."""
    # Of a constant size: a TPU's compiler takes x[a:b] to have any number of rows up to all.
    return tf.slice(x, [part * rows, *(0 for _ in x.shape[1:])], [rows, *x.shape[1:]])


def is_local(experiment: Experiment, communicates: str) -> bool:
    """Whether a part needs no other replica, given the name of what communicates in it; empty for nothing."""
    # A single replica under a mirrored strategy communicates too, with itself; under one device there is nothing to do.
    return not communicates or isinstance(experiment.strategy, tf.distribute.OneDeviceStrategy)


def may_compile(experiment: Experiment, communicates: str) -> bool:
    """Whether a part can be compiled, given the name of what communicates with other replicas in it; empty for none."""
    if is_local(experiment, communicates):
        return True
    if experiment.jit == "on":
        raise IncompatibleError(
            f"{communicates} communicates between replicas, which cannot be compiled here, and experiment.jit is 'on'. "
            "Set experiment.jit = 'auto', or avoid it: a constraint can communicate in its advance method, and a "
            "network can normalize each example alone (ganlab.layers.LayerNormalization)."
        )
    return False


def compiles(experiment: Experiment) -> bool:
    """Whether XLA compiles the gradients: as the experiment asks, or with "auto" if it is known to be faster.

    On a CPU it is not, as docs/performance.md shows: dense networks take between 3% less and half as long again, by
    width and batch, because the kernels skip the same zeros, and convolutions seven times as long. A TPU compiles the
    whole step anyway.
    """
    if experiment.jit != "auto":
        return experiment.jit == "on"
    return on_gpu(experiment)
