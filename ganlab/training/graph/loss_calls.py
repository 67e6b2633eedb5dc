"""The loss as the step calls it: with what it takes, checked, and its errors named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.interfaces import Batch, Loss
from ganlab.interfaces.loss import has_own
from ganlab.plugins import optional
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of, unique_names
from ganlab.training.graph import noise
from ganlab.training.graph.networks import SCORE, NetworkFunction, static_shape
from ganlab.training.graph.plugin_state import next_state
from ganlab.training.graph.replica import Draws, Log, ReplicaView
from ganlab.training.graph.roles import CRITIC
from ganlab.training.graph.values import Tensors


class LossCalls:
    """The methods of a loss."""

    def __init__(self, loss: Loss) -> None:
        self.loss, self._selector, (self._name,) = loss, selector_of(loss), unique_names([loss])

    def value(
        self,
        side: str,
        scores: Mapping[str, tf.Tensor],
        batch: Batch,
        state: Tensors,
        networks: Mapping[str, NetworkFunction],
        draws: Draws,
        log: Log,
    ) -> tf.Tensor:
        """A side's loss, `(local_batch,)`, from the scores of `real` and `fake`, of `fake` alone, or none."""
        order = ("real", "fake") if side == CRITIC else ("fake", "real")[: len(scores) and 1 + self.loss.pairs]
        optional_ones = {"batch": batch, "replica": self._view(side, draws, log), "state": dict(state)}
        with plugin_code(self._selector, side):
            function: Any = getattr(self.loss, side)
            given = optional.call(function, *map(scores.__getitem__, order), networks=dict(networks), **optional_ones)
            value = tf.convert_to_tensor(given)
        self._check_shape(side, value, draws)
        if not value.dtype.is_floating:
            raise ContractError(
                f"Loss {type(self.loss).__name__}.{side} returned the dtype {value.dtype.name}; it must be float32. "
                "Whole numbers have no gradient."
            )
        return tf.cast(value, tf.float32)

    def scores(
        self, side: str, batch: Batch, networks: Mapping[str, NetworkFunction], draws: Draws, log: Log
    ) -> dict[str, tf.Tensor] | None:
        """The scores of `real` and `fake` where the loss says how they are taken; None for those of the critic."""
        if not has_own(self.loss, "scores"):
            return None
        with plugin_code(self._selector, "scores"):
            given = optional.call(self.loss.scores, batch, networks, replica=self._view(side, draws, log))
            if given is None:
                return None
            real, fake = given
            taken = {"real": real, "fake": fake} if batch.real is not None else {"fake": fake}
            taken = {name: tf.cast(tf.convert_to_tensor(x), tf.float32) for name, x in taken.items()}
        for name, x in taken.items():
            self._check_shape("scores", x, draws, f" for {name} examples")
        return taken

    def judged(
        self, name: str, batch: Batch, networks: Mapping[str, NetworkFunction], draws: Draws
    ) -> tuple[tf.Tensor, tf.Tensor] | None:
        """The real and the fake rows of a further critic; None for the batch's examples and samples."""
        with plugin_code(self._selector, "judged"):
            given = optional.call(self.loss.judged, name, batch, networks, replica=self._view(CRITIC, draws, None))
            if given is None:
                return None
            real, fake = map(tf.convert_to_tensor, given)
        for x in (real, fake):
            if static_shape(x)[:1] != (draws.local_batch,):
                raise ContractError(
                    f"Loss {type(self.loss).__name__}.judged returned the shape {static_shape(x)} for {name!r}; it "
                    f"must have a row for each example, {draws.local_batch}."
                )
        return tf.stop_gradient(real), tf.stop_gradient(fake)

    def witness(self, batch: Batch, draws: Draws) -> Callable[[Mapping[str, tf.Tensor]], tf.Tensor] | None:
        """The loss's function of the critic's outputs in the place of the score; None for the score."""
        with plugin_code(self._selector, "witness"):
            given = optional.call(self.loss.witness, batch, replica=self._view(CRITIC, draws, None))
        if given is None:
            return None

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

    def advance(
        self,
        state: Tensors,
        scores: tuple[tf.Tensor, ...],
        batch: Batch,
        networks: Mapping[str, NetworkFunction],
        draws: Draws,
        log: Log,
    ) -> Tensors:
        """The loss's state after a critic update with these scores."""
        others = {"batch": batch, "replica": self._view(CRITIC, draws, log), "networks": networks}
        with plugin_code(self._selector, "advance"):
            given = optional.call(self.loss.advance, dict(state), *scores, **others)
            return next_state("The loss", given, state)

    def ready(self, state: Tensors) -> tf.Tensor:
        """Whether the generator moves, a bool scalar, by the state after the critic's updates of the step."""
        with plugin_code(self._selector, "ready"):
            given = tf.convert_to_tensor(self.loss.ready(dict(state)))
        if static_shape(given) != () or given.dtype != tf.bool:
            raise ContractError(
                f"Loss {type(self.loss).__name__}.ready returned the shape {static_shape(given)} and the dtype "
                f"{given.dtype.name}; it must be a bool scalar."
            )
        return given

    def _view(self, side: str, draws: Draws, log: Log | None) -> ReplicaView:
        stream = noise.CRITIC_LOSS if side == CRITIC else noise.GENERATOR_LOSS
        return ReplicaView(self._name, stream, draws, log, kind="losses")

    def _check_shape(self, method: str, value: tf.Tensor, draws: Draws, what: str = "") -> None:
        if static_shape(value) != (draws.local_batch,):
            raise ContractError(
                f"Loss {type(self.loss).__name__}.{method} returned the shape {static_shape(value)}{what}; it must be "
                f"one value per example, ({draws.local_batch},). Do not reduce over the batch: the core divides by the "
                "global batch size."
            )
