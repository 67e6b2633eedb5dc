"""Networks whose latent vectors begin with a code that a network reads off samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.architectures.around import Around
from ganlab_builtin.architectures.mlp import MLP
from ganlab_builtin.architectures.parts import heads_of, with_heads


class InfoGAN(Around):
    """Another architecture with a latent code, and the network Q that reads it off a sample.

    Chen et al., "InfoGAN" (2016), section 5: a category, equally likely each, as one and zeros, then continuous
    numbers, uniform in [-1, 1], then noise, here normal. Q shares all layers but the last with the critic, as in the
    paper, or is a network of its own. losses.info trains it.
    """

    def __init__(
        self,
        *,
        architecture: ganlab.Architecture | None = None,
        categories: Annotated[int, Ge(0)] = 10,
        continuous: Annotated[int, Ge(0)] = 2,
        shared: bool = True,
    ) -> None:
        """Chooses the networks and the code.

        Args:
            architecture: The architecture of generator and critic, whose latent vectors have room for the code; None
                for architectures.mlp with 32 latent numbers more than the code has.
            categories: The values of the category; 0 for none.
            continuous: How many continuous numbers the code has.
            shared: Whether Q is outputs of the critic, `category` and `continuous`, trained with the critic too; else
                it is the network "code" of the generator's side, with the layers of a critic.
        """
        code = categories + continuous
        super().__init__(architecture or MLP(latent_dim=code + 32, depth=2, width=256, activation="leaky_relu"))
        if not 0 < code <= self.latent_dim or (categories and continuous >= self.latent_dim):
            raise ganlab.ConfigError(
                f"architectures.infogan has a code of {code} numbers, categories = {categories} and continuous = "
                f"{continuous}, in latent vectors of {self.latent_dim}. It must have at least one, and fit: set these, "
                "or the latent_dim of architectures.infogan.architecture."
            )
        self.categories, self.continuous, self.shared = categories, continuous, shared
        self._heads = {name: n for name, n in (("category", categories), ("continuous", continuous)) if n}

    def latent(self, uniform: tf.Tensor, normal: tf.Tensor) -> tf.Tensor:
        """The category as one and zeros, the continuous numbers, and noise, `(n, latent_dim)`."""
        parts, first = [normal[:, self.categories + self.continuous :]], 1 if self.categories else 0
        if self.continuous:
            parts.insert(0, 2.0 * uniform[:, first : first + self.continuous] - 1.0)
        if self.categories:
            which = tf.minimum(tf.cast(uniform[:, 0] * self.categories, tf.int32), self.categories - 1)
            parts.insert(0, tf.one_hot(which, self.categories))
        return tf.concat(parts, axis=1)

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """The architecture's critic, with the outputs of Q if it is shared."""
        critic = super().critic(sample_shape, classes)
        return with_heads(critic, self._heads) if self.shared else critic

    def networks(
        self, sample_shape: tuple[int, ...], classes: int | None = None
    ) -> Mapping[str, Mapping[str, keras.Model]]:
        """Q, if it is a network of its own, and the architecture's further networks."""
        further = {side: dict(models) for side, models in super().networks(sample_shape, classes).items()}
        if not self.shared:
            body = super().critic(sample_shape, classes)
            further.setdefault("generator", {})["code"] = keras.Model(
                body.input, heads_of(body, self._heads), name="code"
            )
        return further
