"""Games in which a side sees what its move does to the other side's gradient or next moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt, Le
from ganlab.errors import IncompatibleError
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.around_a_game import AroundAGame, selector
from ganlab_builtin.losses.games import NonSaturating

if TYPE_CHECKING:
    Weights = Mapping[str, tf.Tensor]


class _Foresight(AroundAGame):
    """A game whose losses can be computed with other weights of the networks, on the update's batch."""

    def __init__(self, game: ganlab.Loss | None) -> None:
        super().__init__(game or NonSaturating(), pairs=True)
        if type(self.game).scores is not ganlab.Loss.scores:
            raise IncompatibleError(
                f"{selector(self)} computes scores of examples with other weights of the critic, and "
                f"{selector(self.game)} takes scores otherwise (`scores`). Give it a game of examples alone."
            )

    def of_critic(self, critic: ganlab.Network, batch: ganlab.Batch, **given: Any) -> tf.Tensor:
        """The game's loss of a critic, `(n,)`."""
        real, fake = critic.outputs(batch.real), critic.outputs(batch.fake)
        batch = replace(batch, real_outputs=real, fake_outputs=fake)
        return AroundAGame.critic(self, real["score"], fake["score"], batch, **given)

    def of_generator(self, critic: ganlab.Network, fake: tf.Tensor, batch: ganlab.Batch, **given: Any) -> tf.Tensor:
        """The game's loss of a generator with these samples, `(n,)`."""
        of_real, of_fake = critic.outputs(batch.real), critic.outputs(fake)
        batch = replace(batch, fake=fake, real_outputs=of_real, fake_outputs=of_fake)
        return AroundAGame.generator(self, of_fake["score"], of_real["score"], batch=batch, **given)

    def gradient(
        self,
        loss: Callable[[ganlab.Network], tf.Tensor],
        network: ganlab.Network,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        **_: Any,
    ) -> dict[str, tf.Tensor]:
        """The gradient of the mean over the global batch of a loss of a network, by its weights; differentiable."""
        weights = dict(network.weights)
        with tf.GradientTape() as tape:
            tape.watch(weights)
            total = tf.reduce_sum(loss(network.at(weights))) / batch.size
        own = tape.gradient(total, weights, unconnected_gradients="zero")
        return {name: replica.sum(tf.convert_to_tensor(gradient)) for name, gradient in own.items()}


class Consensus(_Foresight):
    """Each side also lowers the gradients of both: half the squared norm of the game's gradient field.

    Mescheder, Nowozin and Geiger, "The numerics of GANs" (2017), equations 7 and 8: with v the critic's gradient of its
    loss beside the generator's gradient of its own, `gamma / 2 * ||v||^2` is added to the losses of both. The paper
    moves both at once, at one point; here they move in turn, each at the weights and the batch of its own update, where
    the term is exact. v is of the trained weights and of the game alone: without constraints' penalties and parameters,
    and the generator's part of it without augmentations.

    Logs `field`, the norm of v.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss and gamma / 2 times the squared norm of the gradient field, plus the penalty.",
        "generator/loss": "The game's loss and gamma / 2 times the squared norm of the gradient field.",
        "field": "The norm of the gradients of both sides together, in a generator's update; 0 at an equilibrium.",
    }

    def __init__(self, *, game: ganlab.Loss | None = None, gamma: Annotated[float, Gt(0)] = 10.0) -> None:
        """Chooses the game.

        Args:
            game: The loss; None for losses.non_saturating.
            gamma: The factor.
        """
        super().__init__(game)
        self.gamma = gamma

    def critic(
        self,
        real_scores: tf.Tensor,
        fake_scores: tf.Tensor,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        state: Weights,
        networks: Mapping[str, ganlab.Network] | None = None,
    ) -> tf.Tensor:
        """The game's loss and the term of the field, the same for every example, `(n,)`."""
        given: dict[str, Any] = {"replica": replica, "state": state, "networks": networks}
        return super().critic(real_scores, fake_scores, batch, **given) + self._term(
            batch, networks or {}, replica=replica, state=state
        )

    def generator(
        self,
        fake_scores: tf.Tensor,
        real_scores: tf.Tensor | None = None,
        *,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        state: Weights,
        networks: Mapping[str, ganlab.Network] | None = None,
    ) -> tf.Tensor:
        """The game's loss and the term of the field, the same for every sample, `(n,)`."""
        given: dict[str, Any] = {"replica": replica, "state": state, "networks": networks}
        term = self._term(batch, networks or {}, replica=replica, state=state)
        replica.log("field", tf.sqrt(2 * term / self.gamma))
        return super().generator(fake_scores, real_scores, batch=batch, **given) + term

    def _term(self, batch: ganlab.Batch, networks: Mapping[str, ganlab.Network], **given: Any) -> tf.Tensor:
        given["networks"] = networks
        critic, generator = networks["critic"], networks["generator"]
        here = critic.at(critic.weights)  # whose moving statistics are dropped

        def of_generator(function: ganlab.Network) -> tf.Tensor:
            return self.of_generator(here, function(batch.latent), batch, **given)

        by_critic = self.gradient(lambda function: self.of_critic(function, batch, **given), critic, batch, **given)
        by_generator = self.gradient(of_generator, generator, batch, **given)
        field = [*by_critic.values(), *by_generator.values()]
        return self.gamma / 2 * sum(tf.reduce_sum(tf.square(x)) for x in field)


class Unrolled(_Foresight):
    """The generator plays against the critic as some further steps of its own descent would leave it.

    Metz, Poole, Pfau and Sohl-Dickstein, "Unrolled generative adversarial networks" (2017), equations 6 to 9: the
    critic's weights take `steps` steps of plain gradient descent on the game's loss of this update's batch, and the
    generator's gradient goes through them. The critic itself trains as in the game. Its constraints wrap every step's
    critic; their penalties are not part of the steps.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss, plus the penalty.",
        "generator/loss": "The game's loss against the critic after the further steps.",
    }

    def __init__(
        self,
        *,
        game: ganlab.Loss | None = None,
        steps: Annotated[int, Ge(0), Le(1000)] = 5,
        learning_rate: Annotated[float, Gt(0)] = 1e-3,
    ) -> None:
        """Chooses the game and the steps.

        Args:
            game: The loss; None for losses.non_saturating.
            steps: How many further steps; 0 is the game itself. Each costs a gradient of the critic and its gradient.
            learning_rate: That of these steps, for example the critic's.
        """
        super().__init__(game)
        self.steps, self.learning_rate = steps, learning_rate

    def generator(
        self,
        fake_scores: tf.Tensor,
        real_scores: tf.Tensor | None = None,
        *,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        state: Weights,
        networks: Mapping[str, ganlab.Network] | None = None,
    ) -> tf.Tensor:
        """The game's loss against the later critic, `(n,)`."""
        given: dict[str, Any] = {"replica": replica, "state": state, "networks": networks}
        critic: Any = (networks or {})["critic"]
        for _ in range(self.steps):
            gradient = self.gradient(lambda later: self.of_critic(later, batch, **given), critic, batch, **given)
            critic = critic.at({name: w - self.learning_rate * gradient[name] for name, w in critic.weights.items()})
        return self.of_generator(critic, batch.fake, batch, **given)
