"""The replica as a plugin's function sees it: its randomness, its peers, its metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import tensorflow as tf

from ganlab.composition import Turn
from ganlab.errors import ContractError, IncompatibleError
from ganlab.training.graph.noise import Draw, Kind, draw
from ganlab.training.graph.roles import CRITIC

# A constraint's metric that is not logged by the constraint.
_BOUND = "lipschitz_bound"

Reduce = Literal["mean", "max", "min", "sum"]

LOCAL_REDUCTIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "mean": tf.reduce_mean,
    "max": tf.reduce_max,
    "min": tf.reduce_min,
    "sum": tf.reduce_sum,
}


@dataclass(frozen=True)
class Metric:
    """A figure that the training step reports.

    Attributes:
        tag: Its name in TensorBoard.
        reduce: How replicas, and the updates of one iteration, become one value.
        every: It is measured in every `every`-th update of its side; between those its value is a meaningless 0.
        side: The side.
        when: The tag of a metric of 0 and 1, if this one is measured only where that is 1; else empty.
    """

    tag: str
    reduce: Reduce = "mean"
    every: int = 1
    side: str = CRITIC
    when: str = ""

    def measured(self, iterations: np.ndarray, turn: Turn) -> np.ndarray:
        """A mask of the given iterations that have an update which measures it."""
        first, count = map(np.asarray, turn.updates(self.side, iterations))
        return -first % self.every < count


@dataclass
class Log:
    """The metrics of one traced function, in the order they were logged."""

    metrics: list[Metric] = field(default_factory=list)
    values: list[tf.Tensor] = field(default_factory=list)

    def add(self, tag: str, value: tf.Tensor, reduce: Reduce = "mean", every: int = 1) -> None:
        """Takes the local value of a metric, a float32 scalar."""
        self.metrics.append(Metric(tag, reduce, every))
        self.values.append(value)


@dataclass
class Draws:
    """The source of a function's random numbers, and what its trace revealed.

    A compiled function gets its numbers from outside, because XLA's generator and the kernels' give different numbers
    for one seed. So the function is first traced on a scratch graph that records its draws; then the draws are made
    outside and passed in.

    Attributes:
        seed: The experiment's seed.
        local_batch: Examples of this function: a replica's, or those of one microbatch.
        step: The update's number, an integer scalar tensor.
        replica: This replica's number, an integer scalar tensor.
        first: The place of the first example in the global batch, an integer scalar tensor; None if this is all of the
            replica's examples.
        recorded: The draws so far, in order.
        taken: Their numbers.
        given: The numbers to return instead of drawing, or None.
        scratch: Whether this is the scratch trace: collectives are recorded and not made.
        collective: The plugin that made a collective, once one has.
        whole: Whether these are all examples of the replica, so that a collective covers the global batch.
    """

    seed: int
    local_batch: int
    step: tf.Tensor
    replica: tf.Tensor
    first: tf.Tensor | None = None
    recorded: list[Draw] = field(default_factory=list)
    taken: list[tf.Tensor] = field(default_factory=list)
    given: Sequence[tf.Tensor] | None = None
    scratch: bool = False
    collective: str = ""
    whole: bool = True

    @property
    def start(self) -> tf.Tensor:
        """The place of the first example in the global batch, an int64 scalar tensor."""
        return tf.cast(self.replica, tf.int64) * self.local_batch if self.first is None else self.first

    def part(self, number: tf.Tensor, rows: int) -> Draws:
        """The source of one microbatch of these examples, given its number and its rows."""
        first = self.start + tf.cast(number, tf.int64) * rows
        return Draws(self.seed, rows, self.step, self.replica, first=first, whole=False)

    def take(self, kind: Kind, shape: Sequence[int], stream: int) -> tf.Tensor:
        """The next draw of a stream."""
        number = sum(spec.stream == stream for spec in self.recorded)
        self.recorded.append(Draw(kind, tuple(int(n) for n in shape), stream, number))
        if self.given is not None:
            self.taken.append(self.given[len(self.taken)])
        else:
            self.taken.append(draw(self.recorded[-1], seed=self.seed, step=self.step, first=self.start))
        return self.taken[-1]


class ReplicaView:
    """The `replica` of the constraint contract.

    Attributes:
        id: This replica's number, an integer scalar tensor.
        count: How many replicas train in step.
    """

    def __init__(
        self, name: str, stream: int, draws: Draws, log: Log | None, *, every: int = 1, kind: str = "constraints"
    ) -> None:
        self._kind = kind
        self._context = tf.distribute.get_replica_context()
        self.id, self.count = draws.replica, self._context.num_replicas_in_sync
        self._name, self._stream, self._draws, self._log, self._every = name, stream, draws, log, every
        self._graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()

    def uniform(self, shape: Sequence[int]) -> tf.Tensor:
        """Uniform numbers in [0, 1): this replica's rows of the global batch's."""
        return self._take("uniform", shape)

    def normal(self, shape: Sequence[int]) -> tf.Tensor:
        """Standard normal numbers: this replica's rows of the global batch's."""
        return self._take("normal", shape)

    def sum(self, x: tf.Tensor) -> tf.Tensor:
        """The sum over replicas."""
        return self._collective(x, lambda: self._context.all_reduce(tf.distribute.ReduceOp.SUM, x))

    def mean(self, x: tf.Tensor) -> tf.Tensor:
        """The mean over replicas."""
        return self._collective(x, lambda: self._context.all_reduce(tf.distribute.ReduceOp.MEAN, x))

    def max(self, x: tf.Tensor) -> tf.Tensor:
        """The elementwise maximum over replicas: a gather and a maximum, so that it is differentiable."""
        return self._collective(x, lambda: tf.reduce_max(self._context.all_gather(x[None], axis=0), axis=0))

    def gather(self, x: tf.Tensor) -> tf.Tensor:
        """The rows of all replicas, in the order of the global batch."""
        gathered = self._collective(x, lambda: self._context.all_gather(x, axis=0))
        return tf.tile(x, [self.count, *[1] * (len(x.shape) - 1)]) if self._draws.scratch else gathered

    def log(self, name: str, values: tf.Tensor, reduce: Reduce = "mean") -> None:
        """Logs `values` as `<kind>/<plugin>/<name>`."""
        if reduce not in LOCAL_REDUCTIONS:
            known = ", ".join(LOCAL_REDUCTIONS)
            raise ContractError(f"{self._name} logged {name!r} with reduce={reduce!r}; it must be one of {known}.")
        if name == _BOUND and "constraints" in self._kind:
            raise ContractError(
                f"{self._name} logged {name!r}, the name of what lipschitz_bound returns. Choose another one."
            )
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        if graph is not self._graph:
            raise ContractError(
                f"{self._name} logged {name!r} inside tf.cond, a loop or a nested tf.function: a value cannot leave it "
                "that way. Return the value and log it outside."
            )
        if self._log is not None:
            value = LOCAL_REDUCTIONS[reduce](tf.cast(tf.convert_to_tensor(values), tf.float32))
            self._log.add(f"{self._kind}/{self._name}/{name}", value, reduce)

    def _take(self, kind: Kind, shape: Sequence[int]) -> tf.Tensor:
        rows = self._draws.local_batch
        if len(shape) == 0 or shape[0] != rows:
            raise ContractError(
                f"{self._name} draws random numbers of shape {tuple(shape)}; the first axis must be the local batch, "
                f"{rows}, because numbers belong to examples. Other numbers would change with the number of replicas."
            )
        return self._draws.take(kind, shape, self._stream)

    def _collective(self, x: tf.Tensor, reduce: Callable[[], tf.Tensor]) -> tf.Tensor:
        what = f"The loss {self._name}" if self._kind == "losses" else f"The penalty of constraint {self._name}"
        if self._every > 1:
            raise IncompatibleError(
                f"{what} communicates between replicas, which it cannot do when it is "
                f"computed only once in {self._every} updates. Set its every = 1, or communicate in its advance method."
            )
        if not self._draws.whole:
            raise IncompatibleError(
                f"{what} takes statistics of the whole batch, which its parts do not know. Set experiment.microbatches "
                "= 1, or lower experiment.batch_size."
            )
        self._draws.collective = self._draws.collective or what
        if self._draws.scratch:
            return tf.identity(x)
        return reduce()
