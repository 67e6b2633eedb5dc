"""Pairs of distributions of images, or of any examples, whose Wasserstein-1 distance and optimal critic are known."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints
from ganlab.bounds import Ge, Le, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.around import AroundADataset
from ganlab_builtin.datasets.checks import refusal
from ganlab_builtin.datasets.funnels import Funnels

# Examples whose moves are measured for the distance, and how many at once.
_MEASURED, _PIECE = 2**16, 2**10
# Numbers of the centres in an endless dataset, which training does not reach.
_CENTERS = 2**42


class MovedExamples(AroundADataset):
    """Examples of another dataset, its counterpart, each moved towards the nearest of some centres.

    The construction of Korotin, Kolesov and Burnaev, "Kantorovich strikes back! Wasserstein GANs are not optimal
    transport?" (2022), section 4, over examples in place of a cube: `u(x) = min_n |x - a_n|` has slope one along the
    way from a point to its nearest centre, so that `-u` is an optimal critic and the distance is the mean length of the
    moves. Centres are examples themselves, and a move is the same share of every way. Images stay images.
    """

    def __init__(
        self,
        *,
        dataset: ganlab.Dataset,
        funnels: Annotated[int, Ge(1), Lt(2**16)] = 16,
        share: Annotated[float, Ge(0), Le(1)] = 0.5,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
    ) -> None:
        """Takes the examples.

        Args:
            dataset: Whose examples move.
            funnels: How many centres. Of a finite dataset examples at equal intervals are taken.
            share: How far points go on their way to the centre: 0 none, 1 all.
            seed: Decides the centres of an endless dataset; the experiment's seed decides the points.

        Raises:
            ConfigError: A value is out of its range, or the dataset has fewer examples than there are centres.
        """
        if dataset.size is not None and dataset.size < funnels:
            rule = f"must be at most the number of examples, {dataset.size}."
            raise refusal("moved_examples", "funnels", funnels, rule)
        super().__init__(dataset)
        self.share, self._count, self._seed = share, funnels, seed

    @functools.cached_property
    def _funnels(self) -> Funnels:
        numbers = np.arange(_CENTERS, _CENTERS + self._count)
        if self.size is not None:
            numbers = np.arange(self._count) * self.size // self._count
        with tf.init_scope():
            centers = np.asarray(self.dataset.examples(tf.constant(numbers, tf.int64), self._seed))
        return Funnels(centers.reshape(self._count, -1), np.zeros(self._count))

    @functools.cached_property
    def wasserstein(self) -> float:
        """The mean length of the moves, of all examples or of 65,536."""
        count = _MEASURED if self.size is None else min(self.size, _MEASURED)
        total = 0.0
        for start in range(0, count, _PIECE):
            points = self.counterpart(tf.range(start, min(start + _PIECE, count), dtype=tf.int64), self._seed)
            total -= float(np.sum(np.asarray(self.potential(points)), dtype=np.float64))
        return self.share * total / count

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The examples with these numbers, moved: `(n, *sample_shape)` float32."""
        points = self._flat(self.counterpart(numbers, seed))
        centers = tf.gather(self._funnels.centers, self._funnels.chosen(points))
        return tf.reshape(points + self.share * (centers - points), [-1, *self.sample_shape])

    def counterpart(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The examples where they were: those of the other dataset."""
        return self.dataset.examples(numbers, seed)

    def potential(self, x: tf.Tensor) -> tf.Tensor:
        """The optimal critic `-u` at `(n, *sample_shape)`: `(n,)`."""
        return self._funnels.potential(self._flat(x))

    def potential_gradient(self, x: tf.Tensor) -> tf.Tensor:
        """The optimal critic's gradient at `(n, *sample_shape)`, of that shape and of length one."""
        return tf.reshape(self._funnels.gradient(self._flat(x)), [-1, *self.sample_shape])

    def fingerprint(self) -> dict[str, Any]:
        """That of the other dataset, a hash of the centres, and how far points move."""
        facts = {"centers": fingerprints.of_array(self._funnels.centers), "share": self.share}
        return {**self.dataset.fingerprint(), **facts}

    def _flat(self, x: tf.Tensor) -> tf.Tensor:
        return tf.reshape(x, [-1, math.prod(self.sample_shape)])
