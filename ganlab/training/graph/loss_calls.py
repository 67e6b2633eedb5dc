"""The loss as the step calls it: with what it takes, checked, and its errors named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.interfaces import Batch, Loss
from ganlab.plugins import optional
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of, unique_names
from ganlab.training.graph import noise
from ganlab.training.graph.networks import SCORE, static_shape
from ganlab.training.graph.plugin_state import next_state
from ganlab.training.graph.replica import Draws, Log, ReplicaView
from ganlab.training.graph.values import Tensors


class LossCalls:
    """The methods of a loss."""

    def __init__(self, loss: Loss) -> None:
        self.loss, self._selector, (self._name,) = loss, selector_of(loss), unique_names([loss])

    def critic(
        self, real: tf.Tensor, fake: tf.Tensor, batch: Batch, state: Tensors, draws: Draws, log: Log
    ) -> tf.Tensor:
        """The critic's loss, `(local_batch,)`."""
        return self._call("critic", [real, fake], batch, state, draws, log, noise.CRITIC_LOSS)

    def generator(
        self, fake: tf.Tensor, real: tf.Tensor | None, batch: Batch, state: Tensors, draws: Draws, log: Log
    ) -> tf.Tensor:
        """The generator's loss, `(local_batch,)`."""
        scores = [fake] if real is None else [fake, real]
        return self._call("generator", scores, batch, state, draws, log, noise.GENERATOR_LOSS)

    def witness(self, batch: Batch, draws: Draws) -> Callable[[Mapping[str, tf.Tensor]], tf.Tensor] | None:
        """The loss's function of the critic's outputs in the place of the score; None for the score."""
        view = ReplicaView(self._name, noise.CRITIC_LOSS, draws, None, kind="losses")
        with plugin_code(self._selector, "witness"):
            given = optional.call(self.loss.witness, batch, replica=view)
        return None if given is None else self._checked(given)

    def _checked(
        self, given: Callable[[Mapping[str, tf.Tensor]], tf.Tensor]
    ) -> Callable[[Mapping[str, tf.Tensor]], tf.Tensor]:
        def witness(outputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
            with plugin_code(self._selector, "witness"):
                scores = tf.convert_to_tensor(given(outputs))
            if static_shape(scores) != static_shape(outputs[SCORE]):
                raise ContractError(
                    f"The witness of loss {type(self.loss).__name__} returned the shape {static_shape(scores)}; it "
                    f"must be one value per example, {static_shape(outputs[SCORE])}."
                )
            return scores

        return witness

    def advance(self, state: Tensors, scores: tuple[tf.Tensor, ...], batch: Batch, draws: Draws, log: Log) -> Tensors:
        """The loss's state after a critic update with these scores."""
        view = ReplicaView(self._name, noise.CRITIC_LOSS, draws, log, kind="losses")
        with plugin_code(self._selector, "advance"):
            given = optional.call(self.loss.advance, dict(state), *scores, batch=batch, replica=view)
            return next_state("The loss", given, state)

    def _call(
        self,
        method: str,
        scores: list[tf.Tensor],
        batch: Batch,
        state: Tensors,
        draws: Draws,
        log: Log,
        stream: int,
    ) -> tf.Tensor:
        view = ReplicaView(self._name, stream, draws, log, kind="losses")
        function: Any = getattr(self.loss, method)
        with plugin_code(self._selector, method):
            given = optional.call(function, *scores, batch=batch, replica=view, state=dict(state))
            value = tf.convert_to_tensor(given)
        if static_shape(value) != (draws.local_batch,):
            raise ContractError(
                f"Loss {type(self.loss).__name__}.{method} returned the shape {static_shape(value)}; it must be one "
                f"value per example, ({draws.local_batch},). Do not reduce over the batch: the core divides by the "
                "global batch size."
            )
        if not value.dtype.is_floating:
            raise ContractError(
                f"Loss {type(self.loss).__name__}.{method} returned the dtype {value.dtype.name}; it must be float32. "
                "Whole numbers have no gradient."
            )
        return tf.cast(value, tf.float32)
