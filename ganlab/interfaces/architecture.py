"""The architecture role: a generator and a critic for samples of one shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ganlab.interfaces.optional_parameters import takes_optional

if TYPE_CHECKING:
    import keras
    import tensorflow as tf


class Architecture:
    """Makes a generator and a critic.

    The core calls both methods inside the strategy's scope, with the precision policy set and automatic layer names
    reset. Layers must be correct under replicas: no Keras Dropout or other layer with a seed of its own (use
    `ganlab.layers`), and BatchNormalization only with `synchronized=True`. Layers with losses of their own
    (regularizers, `add_loss`) are refused, and so is keras.layers.SpectralNormalization: use constraints instead.

    The inputs called `conditions` and `source` of both models get those of the row (`Dataset.conditions`,
    `experiment.source`), whichever else there are: `generator([z, conditions])`, `critic([x, source])`. A generator may
    take its source alone.

    Attributes:
        latent_dim: The length of the generator's input; 0 for a generator that takes no latent vector.
        conditional: Whether both networks take a label too: `generator([z, y])` and `critic([x, y])`. The core draws
            the labels. y is the class of each row, `(n,)` int64 in `[0, classes)`; if the model declares an input of
            shape `(classes,)` instead, it is one and zeros, `(n, classes)` float32, and `ganlab sample` can interpolate
            between classes.
        scheduled: Parameters that may follow a schedule, by the names of their attributes, for example `("alpha",)`.
            Each is a number that generator or critic takes as its last inputs, `keras.Input((), name="alpha")`,
            `(n,)` float32: the value in the step of training, or of the checkpoint that samples are drawn from.
        packing: How many rows that follow each other the critic scores together; rows of different packs are apart.
    """

    latent_dim: int
    conditional: bool = False
    scheduled: tuple[str, ...] = ()
    packing: int = 1

    @takes_optional
    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, latent_dim) -> (n, *sample_shape)`; images in [-1, 1].

        Optional parameters of both methods: `classes`, how many classes the dataset has, or None; `condition_shape` and
        `source_shape`, likewise.
        """
        raise NotImplementedError

    @takes_optional
    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, *sample_shape) -> (n, 1)` or `(n,)`, unbounded scores: no activation at the end.

        It may return a dict of outputs instead: `score`, of that shape, and others that a loss takes, by convention
        `logits` `(n, classes)` and `embedding` `(n, d)`. Constraints see the score. With a loss that has `scores`,
        its inputs may be others than examples.
        """
        raise NotImplementedError

    @takes_optional
    def networks(self, sample_shape: tuple[int, ...]) -> Mapping[str, Mapping[str, keras.Model]]:
        """Further networks, by the side that trains them and by name: `{"generator": {"encoder": model}}`.

        Those of the side "critic" are trained in the critic's updates, those of "generator" in the generator's. Losses
        and constraints call them by name, with what the model takes: a tensor, a list, or a dict by its inputs' names.
        Labels are inputs like any other. A model of the side "critic" whose output is `(n, 1)` or `(n,)`, or a dict
        with such a `score`, is a critic too. Optional parameters: those of `generator`.

        Returns:
            The models. Each knows its inputs, as a `keras.Model(inputs, outputs)` or a `keras.Sequential` with a
            `keras.Input` does, and no two of them share a variable.
        """
        return {}

    def latent(self, uniform: tf.Tensor, normal: tf.Tensor) -> tf.Tensor:
        """The latent vectors, for a prior that is not standard normal: uniform, or a mixture as in DeLiGAN.

        A pure function of uniform numbers in [0, 1) and independent normal ones, `(n, latent_dim)` float32 both, to
        latent vectors of that shape. Row i may depend only on row i. It is called wherever latent vectors are drawn: in
        training, for samples, in evaluation and in exports.
        """
        del uniform
        return normal

    def coupled(self, numbers: tf.Tensor, seed: int) -> tf.Tensor | None:
        """Samples that belong to the dataset's examples with these numbers, for a generator that is not trained.

        Optional. `ganlab certify --distance` bounds the distance from above by the mean cost of pairs. Where samples
        share the randomness of examples, pairs lie near each other.

        Args:
            numbers: int64, `(n,)`, the numbers of examples.
            seed: The experiment's seed.

        Returns:
            `(n, *sample_shape)` float32: a pure function of number and seed whose values, over numbers, are distributed
            as the generator's samples. None if there is no such relation.
        """
        del numbers, seed
        return None
