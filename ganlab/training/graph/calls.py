"""Networks as functions of their input alone, with the row's label bound, as the contract has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.training.graph.networks import Network, NetworkFunction, as_outputs, as_scores
from ganlab.training.graph.refusals import of_whole_batch
from ganlab.training.graph.replica import Draws, ReplicaView
from ganlab.training.graph.values import SIDE, Tensors


class Calls:
    """A network with fixed weights, rows and noise, as a function of its input, before any constraint wraps it.

    One of scores gives `(n,)` float32; others give the network's output.

    Attributes:
        weights: The weights that it computes with.
        buffers: The values of its buffers after the calls so far.
        keeps_buffers: Whether further calls change them.
    """

    def __init__(
        self,
        network: Network,
        weights: Tensors,
        buffers: Tensors,
        data: Tensors,
        draws: Draws | None = None,
        stream: int = 0,
    ) -> None:
        """Takes network, rows and what else it computes with; without `draws` layers are as in inference."""
        self._network, self.weights, self._data, self._draws = network, weights, data, draws
        self._noise = None if draws is None else ReplicaView(network.role, stream, draws, None)
        self._before = self.buffers = buffers
        self.keeps_buffers = True
        self._last: tuple[Any, Any] | None = None

    def __call__(self, x: Any) -> Any:
        """The network's output for some rows; the scores of a critic."""
        y = self._called(x)
        return as_scores(y) if self._network.scores else y

    def outputs(self, x: Any, scores: tf.Tensor) -> Tensors:
        """Everything that a critic returns for these examples, with their scores after all constraints."""
        if self._last is None or self._last[0] is not x:  # a transform called it with other tensors
            self._called(x)
        return {**as_outputs(self._last[1]), "score": scores}  # type: ignore[index]

    def checked_buffers(self) -> Tensors:
        """The buffers after the calls so far.

        Raises:
            IncompatibleError: They are statistics of the whole batch, and a part of one has changed them.
        """
        changed = [name for name, value in self._before.items() if self.buffers[name] is not value]
        if changed and self._draws is not None and not self._draws.whole:
            raise of_whole_batch(f"The {self._network.role}'s {changed[0]!r}")
        return self.buffers

    def _called(self, x: Any) -> Any:
        given = given_to(self._network, self._data, x)
        training = self._noise is not None
        y, buffers = self._network(x, self.weights, self.buffers, given=given, noise=self._noise, training=training)
        if self.keeps_buffers:
            self.buffers = buffers
        self._last = x, y
        return y


class Deferred:
    """A network's function as every constraint wraps it, made anew in each call: one that is not called costs nothing.

    Attributes:
        at: Makes the function with other weights, given as a mapping.
        weights: Its trained weights by name, as no constraint has changed them.
    """

    def __init__(self, at: Callable[[Tensors], Wrapped], weights: Tensors) -> None:
        self.at, self.weights = at, weights

    def __call__(self, x: Any) -> Any:
        """The output for some rows, the scores of a critic."""
        return self.at(self.weights)(x)

    def outputs(self, x: Any) -> Tensors:
        """Everything that a critic returns for some rows, by name."""
        return self.at(self.weights).outputs(x)


class Wrapped(Deferred):
    """The same, made once.

    Attributes:
        plain: Its calls before any constraint.
    """

    def __init__(
        self, plain: Calls, wrapped: NetworkFunction, at: Callable[[Tensors], Wrapped], weights: Tensors
    ) -> None:
        super().__init__(at, weights)
        self.plain, self._wrapped = plain, wrapped

    def __call__(self, x: Any) -> Any:
        """The output for some rows, the scores of a critic."""
        return self._wrapped(x)

    def outputs(self, x: Any) -> Tensors:
        """Everything that a critic returns for some rows, by name."""
        return self.plain.outputs(x, self(x))

    def witnessed(self, witness: Callable[[Mapping[str, tf.Tensor]], tf.Tensor]) -> Wrapped:
        """The critic's function with a loss's witness in the place of the score."""
        own = self.plain, lambda x: witness(self.outputs(x))
        return Wrapped(*own, lambda weights: self.at(weights).witnessed(witness), self.weights)


def given_to(network: Network, data: Tensors, x: Any) -> Tensors:
    """The labels and other inputs that a network takes beside x; repeated if x has several batches in turn."""
    # A dict may leave out the latent vectors.
    names = ["labels"] * network.conditional + [*network.given] + ["latent"] * isinstance(x, Mapping)
    given = {name: data[at] for name in names for at in (name, SIDE + name) if at in data}
    if not given or not (network.conditional or network.given):
        return {}
    rows, known = tf.nest.flatten(x)[0].shape[0], next(iter(given.values())).shape[0]
    if rows == known:
        return given
    if not rows or not known or rows % known:
        what = "of a conditional architecture" if network.conditional else f"with {' and '.join(network.given)}"
        raise ContractError(
            f"The {network.role} {what} is called with {rows} rows where the batch has {known}: each row has what "
            "belongs to its example, for example its label, so call it with the batch's rows, or a multiple of them."
        )
    return {name: tf.tile(y, [rows // known, *[1] * (len(y.shape) - 1)]) for name, y in given.items()}
