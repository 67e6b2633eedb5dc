"""Generator and critic as functions of their input alone, with the row's label bound, as the contract has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.training.graph.networks import CriticFunction, Network, as_outputs, as_scores
from ganlab.training.graph.replica import Draws, ReplicaView
from ganlab.training.graph.values import Tensors


class NetworkCalls:
    """A network with fixed weights, labels and noise, as a function of its input.

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
        labels: tf.Tensor | None,
        draws: Draws | None = None,
        stream: int = 0,
    ) -> None:
        """Takes the network and what it computes with.

        Args:
            network: The network.
            weights: The weights, reparameterized.
            buffers: The values of its buffers.
            labels: The class of each row of a batch, for a conditional network.
            draws: The source of random numbers in training; None for layers as in inference.
            stream: The stream of these numbers.
        """
        self._network, self.weights, self._labels = network, weights, labels
        self._noise = None if draws is None else ReplicaView(network.role, stream, draws, None)
        self.buffers, self.keeps_buffers = buffers, True

    def _called(self, x: tf.Tensor) -> Any:
        labels = labels_of_rows(self._network, self._labels, x)
        training = self._noise is not None
        y, buffers = self._network(x, self.weights, self.buffers, labels=labels, noise=self._noise, training=training)
        if self.keeps_buffers:
            self.buffers = buffers
        return y


class GeneratorCalls(NetworkCalls):
    """The generator: `(n, latent_dim) -> (n, *sample_shape)` float32."""

    def __call__(self, latent: tf.Tensor) -> tf.Tensor:
        """Samples of latent vectors."""
        return self._called(latent)


class CriticCalls(NetworkCalls):
    """The critic before any constraint wraps it: `(n, *sample_shape) -> (n,)` float32."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._last: tuple[tf.Tensor, Any] | None = None

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Scores of examples."""
        self._last = x, self._called(x)
        return as_scores(self._last[1])

    def outputs(self, x: tf.Tensor, scores: tf.Tensor) -> Tensors:
        """Everything that the critic returns for these examples, with their scores after all constraints."""
        if self._last is None or self._last[0] is not x:  # a transform called it with other tensors
            self._last = x, self._called(x)
        return {**as_outputs(self._last[1]), "score": scores}


class WrappedCritic:
    """A critic's function as every constraint wraps it.

    Attributes:
        plain: Its calls before any constraint.
    """

    def __init__(self, plain: CriticCalls, wrapped: CriticFunction) -> None:
        self.plain, self._wrapped = plain, wrapped

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Scores of examples."""
        return self._wrapped(x)


def witnessing(
    witness: Callable[[Mapping[str, tf.Tensor]], tf.Tensor], plain: CriticCalls, critic: CriticFunction
) -> CriticFunction:
    """The critic's function with a loss's witness in the place of the score."""

    def scores(x: tf.Tensor) -> tf.Tensor:
        return witness(plain.outputs(x, critic(x)))

    return scores


def labels_of_rows(network: Network, labels: tf.Tensor | None, x: tf.Tensor) -> tf.Tensor | None:
    """The labels of the rows of an input: the batch's, repeated if it has several batches below each other.

    Raises:
        ContractError: The number of rows is not a multiple of the batch.
    """
    if labels is None or not network.conditional:
        return None
    rows, known = x.shape[0], labels.shape[0]
    if rows == known:
        return labels
    if not rows or not known or rows % known:
        raise ContractError(
            f"The {network.role} of a conditional architecture is called with {rows} rows where the batch has {known}: "
            "each row has its example's label, so call it with the batch's rows, or a multiple of them."
        )
    return tf.tile(labels, [rows // known])
