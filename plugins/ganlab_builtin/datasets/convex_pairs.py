"""Pairs of distributions in many dimensions whose optimal map of the squared distance is known."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints, functional
from ganlab.bounds import Ge, Local, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import arrays_of_file

_MODES = 3


class ConvexPairs(ganlab.Dataset):
    """A mixture of three Gaussians, its source, moved by the gradient of a convex network.

    Korotin et al., "Do neural optimal transport solvers work? A continuous Wasserstein-2 benchmark" (2021): such a
    gradient is the optimal map, by Brenier's theorem. The network is the sum of two published ones, moved and scaled
    so that moved points have mean zero and a mean variance of one: 100 times the `squared_error` of
    evaluators.reconstruction is the share of their variance that a map does not explain, L2-UVP.
    """

    def __init__(
        self, *, path: Annotated[str, Local()], dims: Annotated[int, Ge(1), Lt(2**12)] = 2, moved: bool = True
    ) -> None:
        """Reads the networks.

        Args:
            path: A `.npz` file as tools/w1bench/convex.npz; a relative path is from the working directory.
            dims: The dimension of the space: 2, 16 or 64 in that file.
            moved: False for the mixture as a dataset of its own.
        """
        first, last = 2 * max(2 * dims, 64), 2 * max(dims, 32)
        self._widths, width = [first, first, last], 2 * first + last
        shapes = {"centers": (_MODES, dims), "maps": (_MODES, dims, dims), "shift": (dims,), "scale": ()}
        shapes |= {"quadratic": (dims, width), "linear": (dims, width), "bias": (width,)}
        shapes |= {"convex_0": (first, first), "convex_1": (first, last), "final": (last,)}
        arrays = arrays_of_file("convex_pairs", path, {f"{k}_{dims}": v for k, v in shapes.items()}, "dims")
        self._arrays = {name: array.astype("float32") for name, array in zip(shapes, arrays, strict=True)}
        self.sample_shape = self.source_shape = (dims,)
        self.moved = moved

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The samples with these numbers, `(n, dims)` float32."""
        mixed = self.sources(numbers, seed)
        return self.transport(mixed) if self.moved else mixed

    def sources(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The mixture's points with these numbers, `(n, dims)` float32."""
        uniform = functional.example_uniform(numbers, 1, seed)[:, 0]
        mode = tf.minimum(tf.cast(_MODES * uniform, tf.int64), _MODES - 1)
        maps, centers = (tf.gather(self._arrays[name], mode) for name in ("maps", "centers"))
        return tf.linalg.matvec(maps, functional.example_normal(numbers, self.sample_shape[0], seed)) + centers

    def transport(self, x: tf.Tensor) -> tf.Tensor:
        """Where the optimal map moves points `(n, dims)` of the mixture."""
        w = self._arrays
        with tf.GradientTape() as tape:
            tape.watch(x)
            parts = tf.square(x @ w["quadratic"]) + x @ w["linear"] + w["bias"]
            first, second, third = tf.split(parts, self._widths, axis=1)
            hidden = tf.nn.elu(tf.nn.elu(first @ w["convex_0"] + second) @ w["convex_1"] + third)
            value = tf.linalg.matvec(hidden, w["final"]) + 0.01 * tf.reduce_sum(x * x, axis=1)
        return (tape.gradient(value, x) - w["shift"]) * w["scale"]

    def fingerprint(self) -> dict[str, Any]:
        """A hash of the network and the mixture, and the side."""
        values = np.concatenate([array.ravel() for array in self._arrays.values()])
        return {"moved": self.moved, "values": fingerprints.of_array(values)}
