"""The losses of adversarial games, one value per example.

Scores are what the critic gives, unbounded: no sigmoid goes before any of these. All values are `(n,)` float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab.lazy import tensorflow as tf

# The weights of a new estimate in the two averages of losses.patient.
_MEMORIES = {"short": 0.2, "long": 0.05}


class Wasserstein(ganlab.Loss):
    """The critic's scores alone: for a 1-Lipschitz critic their mean difference estimates W1 from below.

    Arjovsky, Chintala and Bottou, "Wasserstein GAN" (2017), equations 2 and 3. It needs a constraint: nothing in the
    loss keeps scores finite.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": (
            "Mean critic(fake) - mean critic(real), plus the penalty: minus the estimate critic/wasserstein. It "
            "is negative as long as the critic scores real examples higher than fake ones, which is its task, and "
            "rises toward 0 as the two become alike. Large and growing numbers mean that nothing holds the "
            "critic."
        ),
        "generator/loss": (
            "Minus the mean critic(fake). The critic's scores have no zero of their own, so that its sign and its "
            "drift mean nothing."
        ),
    }

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """`fake - real`, `(n,)`: example i pairs the i-th of both, whose mean is the difference of means."""
        return fake_scores - real_scores

    def generator(self, fake_scores: tf.Tensor) -> tf.Tensor:
        """`-fake`, `(n,)`."""
        return -fake_scores


class Patient(Wasserstein):
    """The Wasserstein losses, and a generator that moves only where the critic's estimate has stopped rising.

    Arjovsky, Chintala and Bottou, "Wasserstein GAN" (2017), section 3: "train the critic till optimality", for which
    they take a fixed number of updates. Here a short average of the estimate, the difference of mean scores over the
    global batch, is compared with a long one after each critic update.
    """

    def __init__(self, *, tolerance: Annotated[float, Ge(0)] = 0.05) -> None:
        """Sets the rule.

        Args:
            tolerance: By which part of the long average the short one may exceed it where the generator moves.
        """
        self.tolerance = tolerance

    def initial_state(self) -> Mapping[str, tf.Tensor]:
        """Both averages, zero: so the generator waits at first."""
        return {name: tf.zeros([]) for name in _MEMORIES}

    def advance(
        self, state: Mapping[str, tf.Tensor], real_scores: tf.Tensor, fake_scores: tf.Tensor, replica: ganlab.Replica
    ) -> Mapping[str, tf.Tensor]:
        """Both averages an update later."""
        estimate = replica.mean(tf.reduce_mean(real_scores - fake_scores))
        return {name: state[name] + weight * (estimate - state[name]) for name, weight in _MEMORIES.items()}

    def ready(self, state: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """`short - long <= tolerance * |long|`."""
        return state["short"] - state["long"] <= self.tolerance * tf.abs(state["long"])


class Hinge(ganlab.Loss):
    """Scores count until they pass a margin of one.

    Lim and Ye, "Geometric GAN" (2017); Miyato et al., "Spectral Normalization for Generative Adversarial Networks"
    (2018), equations 16 and 17.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": (
            "2 where the critic scores everything 0, and 0 where it scores real above 1 and fake below -1, plus "
            "the penalty."
        ),
        "generator/loss": "Minus the mean critic(fake).",
    }

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """`max(0, 1 - real) + max(0, 1 + fake)`, `(n,)`."""
        return tf.nn.relu(1.0 - real_scores) + tf.nn.relu(1.0 + fake_scores)

    def generator(self, fake_scores: tf.Tensor) -> tf.Tensor:
        """`-fake`, `(n,)`."""
        return -fake_scores


class NonSaturating(ganlab.Loss):
    """The first GAN's game with the generator's loss that keeps its gradient where the critic is sure.

    Goodfellow et al., "Generative Adversarial Nets" (2014), equation 1 and the end of section 3. With scores as logits,
    `-log sigmoid(s) = softplus(-s)` and `-log(1 - sigmoid(s)) = softplus(s)`, which do not overflow.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": (
            "2 log 2 = 1.386 where the critic knows nothing, 0 where it is sure and right, in nats, plus the penalty."
        ),
        "generator/loss": (
            "log 2 = 0.693 where the critic knows nothing, larger where it sees through the samples, in nats."
        ),
    }

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """`softplus(-real) + softplus(fake)`, `(n,)`, in nats."""
        return tf.nn.softplus(-real_scores) + tf.nn.softplus(fake_scores)

    def generator(self, fake_scores: tf.Tensor) -> tf.Tensor:
        """`softplus(-fake)`, `(n,)`, in nats."""
        return tf.nn.softplus(-fake_scores)


class LeastSquares(ganlab.Loss):
    """Scores are regressed to targets.

    Mao et al., "Least Squares Generative Adversarial Networks" (2017), equation 2; the defaults are its equation 9.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": (
            "Half the squared distances of scores from their targets b (real) and a (fake), plus the penalty: "
            "0.25 where the critic knows nothing, with a = 0 and b = 1."
        ),
        "generator/loss": "Half the squared distance of scores of fake examples from the target c.",
    }

    def __init__(
        self,
        *,
        a: Annotated[float, Lt(math.inf)] = 0.0,
        b: Annotated[float, Lt(math.inf)] = 1.0,
        c: Annotated[float, Lt(math.inf)] = 1.0,
    ) -> None:
        """Keeps the targets.

        Args:
            a: The critic's target for samples of the generator.
            b: The critic's target for data. With `b - c = 1` and `b - a = 2` the game minimizes a Pearson divergence.
            c: The generator's target for its samples.
        """
        if a == b:
            raise ganlab.ConfigError(
                f"losses.least_squares.a = {a!r} equals b: the critic would give data and samples one score. "
                "Use different targets, for example a = 0.0 and b = 1.0."
            )
        self.a, self.b, self.c = a, b, c

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """`((real - b)^2 + (fake - a)^2) / 2`, `(n,)`."""
        return 0.5 * (tf.square(real_scores - self.b) + tf.square(fake_scores - self.a))

    def generator(self, fake_scores: tf.Tensor) -> tf.Tensor:
        """`(fake - c)^2 / 2`, `(n,)`."""
        return 0.5 * tf.square(fake_scores - self.c)
