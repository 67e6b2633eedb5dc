"""A game whose generator's gradient has a size of its own, whatever the critic's slopes are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt, Lt
from ganlab.errors import IncompatibleError
from ganlab.functional import call, fixed
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.around_a_game import AroundAGame, selector
from ganlab_builtin.losses.relative import Relativistic

SQUARE = "squared_gradient"


class NormalizedGradient(AroundAGame):
    """A game whose gradient by samples is divided by a moving average of its size, for the generator alone.

    The gradient normalization of Lin, Yang, Lin, Chen and Fan, "Adversarial flow models" (2025), with which the weight
    of a further term, for example of constraints.transport_cost, means the same for every critic. As in the authors'
    code (ByteDance-Seed/Adversarial-Flow-Models 519601d, grad_norm.py:40): with g_i the gradient of sample i's loss by
    the sample, of d numbers, `square <- decay square + (1 - decay) d mean_i |g_i|^2` from zero, and each gradient is
    multiplied by `scale / (sqrt(square) + 1e-8)`. Constraints' penalties are not.

    The authors take the average on the way of the generator's own gradient, that of its batch included. Here it moves
    after each critic update, by that update's samples and critic, for one more pass through the critic. The value of
    the loss stays the game's. Samples are as the critic sees them, augmented.

    Logs `factor`, by which the gradient is multiplied.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss, plus the penalty.",
        "generator/loss": "The game's loss; its gradient is another.",
        "factor": "What the gradient of the generator's loss by samples is multiplied by; large where it is small.",
    }

    def __init__(
        self,
        *,
        game: ganlab.Loss | None = None,
        scale: Annotated[float, Gt(0)] = 1.0,
        decay: Annotated[float, Ge(0), Lt(1)] = 0.9,
    ) -> None:
        """Chooses the game.

        Args:
            game: The loss; None for losses.relativistic, the authors'.
            scale: The root mean square of a sample's gradient afterwards, times the root of the number of its numbers;
                the authors' 1.
            decay: The decay of the average in one critic update; the authors' 0.9, in one generator update.
        """
        super().__init__(game or Relativistic())
        if type(self.game).scores is not ganlab.Loss.scores:
            raise IncompatibleError(
                f"{selector(self)} takes the gradient of scores by samples, and {selector(self.game)} takes scores of "
                "its own (`scores`). Give it a game of examples alone."
            )
        self.scale, self.decay = scale, decay

    def initial_state(self) -> Mapping[str, tf.Tensor]:
        """The game's, and the average."""
        return {**self.game.initial_state(), SQUARE: tf.zeros([])}

    def advance(
        self,
        state: Mapping[str, tf.Tensor],
        real_scores: tf.Tensor,
        fake_scores: tf.Tensor,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        networks: Mapping[str, ganlab.Network] | None = None,
    ) -> Mapping[str, tf.Tensor]:
        """The game's next state, and the average moved to the square over the global batch."""
        critic, fake = (networks or {})["critic"], batch.fake
        with tf.GradientTape() as tape:
            tape.watch(fake)
            of_real, of_fake = critic.outputs(batch.real), critic.outputs(fake)
            seen = replace(batch, real_outputs=of_real, fake_outputs=of_fake)
            scores = [of_fake["score"], *([of_real["score"]] if self.game.pairs else [])]
            given = {"batch": seen, "replica": replica, "state": state, "networks": networks}
            total = tf.reduce_sum(call(self.game.generator, *scores, **given))
        slopes = tape.gradient(total, fake, unconnected_gradients="zero")
        squares = tf.reduce_sum(tf.square(tf.reshape(slopes, [fake.shape[0], -1])), axis=1)
        square = math.prod(fake.shape[1:]) * replica.mean(tf.reduce_mean(squares))
        own = {name: value for name, value in state.items() if name != SQUARE}
        own = dict(super().advance(own, real_scores, fake_scores, batch, replica, networks))
        return {**own, SQUARE: self.decay * state[SQUARE] + (1.0 - self.decay) * square}

    def generator(
        self,
        fake_scores: tf.Tensor,
        real_scores: tf.Tensor | None = None,
        *,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        state: Mapping[str, tf.Tensor],
        networks: Mapping[str, ganlab.Network] | None = None,
    ) -> tf.Tensor:
        """The game's loss of the generator, `(n,)`, with its gradient multiplied."""
        losses = super().generator(
            fake_scores, real_scores, batch=batch, replica=replica, state=state, networks=networks
        )
        factor = self.scale / (tf.sqrt(state[SQUARE]) + 1e-8)
        replica.log("factor", factor)
        return fixed(losses) + factor * (losses - fixed(losses))
