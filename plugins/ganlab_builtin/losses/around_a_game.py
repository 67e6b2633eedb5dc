"""The base of losses that change or extend another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ganlab
from ganlab.functional import call
from ganlab.lazy import tensorflow as tf


class AroundAGame(ganlab.Loss):
    """Holds another loss, the game: what that one needs, this one needs; what it keeps, this one keeps.

    A subclass adds a term to the game's losses, or overrides them.
    """

    def __init__(
        self, game: ganlab.Loss, *, pairs: bool = False, labels: bool = False, outputs: tuple[str, ...] = ()
    ) -> None:
        """Takes the game, and what the loss around it needs itself."""
        if getattr(game.critic, "__func__", None) is ganlab.Loss.critic:
            raise ganlab.IncompatibleError(
                f"{selector(self)} extends a game of generator and critic, and {selector(game)} has no loss for a "
                "critic: it compares batches. Give it another game, for example @losses.hinge()."
            )
        self.game = game
        self.ready = game.ready  # type: ignore[method-assign]
        self.pairs, self.labels = pairs or game.pairs, labels or game.labels
        self.outputs = tuple(dict.fromkeys((*outputs, *game.outputs)))

    def scores(
        self, batch: ganlab.Batch, networks: Mapping[str, ganlab.Network], replica: ganlab.Replica
    ) -> tuple[tf.Tensor, tf.Tensor] | None:
        """The game's."""
        return call(self.game.scores, batch, networks, replica=replica)

    def judged(
        self, name: str, batch: ganlab.Batch, networks: Mapping[str, ganlab.Network], replica: ganlab.Replica
    ) -> tuple[tf.Tensor, tf.Tensor] | None:
        """The game's."""
        return call(self.game.judged, name, batch, networks, replica=replica)

    def witness(self, batch: ganlab.Batch, replica: ganlab.Replica) -> Callable[..., tf.Tensor] | None:
        """The game's."""
        return call(self.game.witness, batch, replica=replica)

    def initial_state(self) -> Mapping[str, tf.Tensor]:
        """The game's."""
        return self.game.initial_state()

    def advance(
        self,
        state: Mapping[str, tf.Tensor],
        real_scores: tf.Tensor,
        fake_scores: tf.Tensor,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        networks: Mapping[str, ganlab.Network] | None = None,
    ) -> Mapping[str, tf.Tensor]:
        """The game's."""
        given = {"batch": batch, "replica": replica, "networks": networks or {}}
        return call(self.game.advance, state, real_scores, fake_scores, **given)

    def critic(
        self,
        real_scores: tf.Tensor,
        fake_scores: tf.Tensor,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        state: Mapping[str, tf.Tensor],
        networks: Mapping[str, ganlab.Network] | None = None,
    ) -> tf.Tensor:
        """The game's loss of the critic, and the term, `(n,)`."""
        given = {"batch": batch, "replica": replica, "state": state, "networks": networks or {}}
        game = call(self.game.critic, real_scores, fake_scores, **given)
        term = self.critic_term(batch, replica, networks or {})
        return game if term is None else game + term

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
        """The game's loss of the generator, and the term, `(n,)`."""
        scores: list[Any] = [fake_scores, *([real_scores] if self.game.pairs else [])]
        given = {"batch": batch, "replica": replica, "state": state, "networks": networks or {}}
        game = call(self.game.generator, *scores, **given)
        term = self.generator_term(batch, replica, networks or {})
        return game if term is None else game + term

    def critic_term(
        self, batch: ganlab.Batch, replica: ganlab.Replica, networks: Mapping[str, ganlab.Network]
    ) -> tf.Tensor | None:
        """The term that is added to the critic's loss of the game, `(n,)`, or None."""
        return None

    def generator_term(
        self, batch: ganlab.Batch, replica: ganlab.Replica, networks: Mapping[str, ganlab.Network]
    ) -> tf.Tensor | None:
        """The term that is added to the generator's loss of the game, `(n,)`, or None."""
        return None


def selector(loss: ganlab.Loss) -> str:
    """The name of a loss in messages: that in experiment files, or its class if it is not one of this package."""
    from ganlab_builtin.losses import ganlab_losses  # type: ignore[attr-defined]  # its stub has components alone

    return next((f"losses.{name}" for name, own in ganlab_losses().items() if own is type(loss)), type(loss).__name__)
