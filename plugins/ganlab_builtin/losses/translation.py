"""Games whose generator makes examples from a source: unpaired, paired, and as optimal transport."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf


class Cycle(ganlab.Loss):
    """Two least-squares games, there and back, and the way there and back again, which must end where it began.

    Zhu et al., "Unpaired image-to-image translation using cycle-consistent adversarial networks" (2017), equation 3:
    equation 1 for G with D_Y and for F with D_X, in the form of section 4 (squares in place of the logarithms), and
    `weight` times equation 2, `|F(G(x)) - x| + |G(F(y)) - y|`, where a norm is the mean over an example's values. It
    needs the networks "back", which is F, and "source_critic", D_X, as architectures.cyclegan has them.
    """

    pairs = True
    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "1 where neither critic can tell examples from what is made, 0 if both always can.",
        "generator/loss": "0.5 where neither critic can tell them apart, plus the cycles' error times its weight.",
        "cycle": "How far values are on average from where they began after the way there and back, of both ways.",
    }

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 10.0) -> None:
        """Sets the weight.

        Args:
            weight: The factor of the cycles' error.
        """
        self.weight = weight

    def critic(
        self,
        real_scores: tf.Tensor,
        fake_scores: tf.Tensor,
        batch: ganlab.Batch,
        networks: Mapping[str, ganlab.Network],
    ) -> tf.Tensor:
        """Both critics' squares, `(n,)`."""
        of_sources, made = networks["source_critic"](batch.source), networks["source_critic"](_back(networks, batch))
        return (real_scores - 1.0) ** 2 + fake_scores**2 + (of_sources - 1.0) ** 2 + made**2

    def judged(
        self, name: str, batch: ganlab.Batch, networks: Mapping[str, ganlab.Network]
    ) -> tuple[tf.Tensor, tf.Tensor] | None:
        """Sources and what is made of examples, for their critic."""
        return (batch.source, _back(networks, batch)) if name == "source_critic" else None

    def generator(
        self,
        fake_scores: tf.Tensor,
        real_scores: tf.Tensor,
        batch: ganlab.Batch,
        networks: Mapping[str, ganlab.Network],
        replica: ganlab.Replica,
    ) -> tf.Tensor:
        """Both generators' squares and the cycles' error, `(n,)`."""
        source = _back(networks, batch)
        there = _apart(networks["back"](batch.fake), batch.source)
        back = _apart(networks["generator"]({"source": source}), batch.real)
        replica.log("cycle", 0.5 * (there + back))
        games = (fake_scores - 1.0) ** 2 + (networks["source_critic"](source) - 1.0) ** 2
        return games + self.weight * (there + back)


class Pix2Pix(ganlab.Loss):
    """The game of pairs, patch by patch, and the distance of a sample from the example that belongs to its source.

    Isola et al., "Image-to-image translation with conditional adversarial networks" (2017), equation 4: equation 1,
    where the generator minimizes `-log D(x, G(x))` and the critic half of its objective (section 3.3), with the mean
    over `patches` (section 3.2.2), and `weight` times equation 3, whose norm is the mean over an example's values.
    """

    pairs, outputs = True, ("patches",)
    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "log 2 = 0.693 where the critic cannot tell pairs apart, 0 if it always can.",
        "generator/loss": "log 2 = 0.693 where the critic cannot tell pairs apart, plus the distance times its weight.",
        "distance": "The mean absolute difference of a sample's values from those of its example.",
    }

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 100.0) -> None:
        """Sets the weight.

        Args:
            weight: The factor of the distance.
        """
        self.weight = weight

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor, batch: ganlab.Batch) -> tf.Tensor:
        """Half of `softplus(-real) + softplus(fake)`, of patches, `(n,)`."""
        real, fake = batch.real_outputs["patches"], batch.fake_outputs["patches"]
        return 0.5 * _mean(tf.nn.softplus(-real)) + 0.5 * _mean(tf.nn.softplus(fake))

    def generator(
        self, fake_scores: tf.Tensor, real_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica
    ) -> tf.Tensor:
        """`softplus(-fake)` of patches, and the distance, `(n,)`."""
        distance = _apart(batch.fake, batch.real)
        replica.log("distance", distance)
        return _mean(tf.nn.softplus(-batch.fake_outputs["patches"])) + self.weight * distance


class NeuralOT(ganlab.Loss):
    """The map that moves the source onto the data at the least cost, `c(x, y) = ||x - y||^power / power`.

    Korotin, Selikhanovych and Burnaev, "Neural optimal transport" (2023), algorithm 1 for a cost of single points: the
    critic is the potential f and minimizes `f(T(x)) - f(y)`, the generator is the map T and minimizes
    `c(x, T(x)) - f(T(x))`. It needs no constraint. Source and examples have one shape. With power 1 it
    is the solver of three players in tools/w1bench.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "Mean f(T(x)) - mean f(y).",
        "generator/loss": "The cost less mean f(T(x)).",
        "cost": "Mean c of a source and its sample: at the end the cost of transport.",
    }

    def __init__(self, *, power: Annotated[float, Ge(1)] = 2.0) -> None:
        """Sets the cost.

        Args:
            power: The power of the Euclidean distance: 2 in the paper, 1 for Wasserstein-1.
        """
        self.power = power

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """`fake - real`, `(n,)`."""
        return fake_scores - real_scores

    def generator(self, fake_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica) -> tf.Tensor:
        """The cost less the potential, `(n,)`."""
        moved = tf.reshape(batch.fake - batch.source, [batch.fake.shape[0], -1])
        squares = tf.reduce_sum(moved**2, axis=1)
        # A point that stays has no gradient, which that of a root would not say.
        cost = 0.5 * squares if self.power == 2 else tf.maximum(squares, 1e-20) ** (0.5 * self.power) / self.power
        replica.log("cost", cost)
        return cost - fake_scores


def _back(networks: Mapping[str, ganlab.Network], batch: ganlab.Batch) -> tf.Tensor:
    source: tf.Tensor = networks["back"](batch.real)
    return source


def _apart(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return _mean(tf.abs(x - y))


def _mean(x: tf.Tensor) -> tf.Tensor:
    """The mean over all values of each row, `(n,)`."""
    return tf.reduce_mean(tf.reshape(x, [x.shape[0], -1]), axis=1)
