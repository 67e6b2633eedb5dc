"""Mixtures of Gaussians in the plane: distributions whose modes are known, for mode coverage and pictures."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints, functional
from ganlab.bounds import Ge, Gt, Le
from ganlab.lazy import tensorflow as tf


class GaussianMixture(ganlab.Dataset):
    """Equally likely Gaussians in the plane, alike and round. A sample's class is its mode.

    Attributes:
        modes: Their means as sampled (after any scaling), float32, `(k, 2)`.
        std: Their standard deviation along each axis, as sampled.
    """

    sample_shape = (2,)

    def __init__(self, *, modes: np.ndarray, std: float) -> None:
        """Keeps the means `(k, 2)` and the standard deviation."""
        self.modes = np.asarray(modes, np.float32)
        self.std = float(std)
        self.classes = len(self.modes)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The samples with these numbers, `(n, 2)` float32: each number has a mode and a deviation of its own."""
        means = tf.gather(self.modes, self._modes_of(numbers, seed))
        return means + self.std * functional.example_normal(numbers, 2, seed, stream=1)

    def labels(self, numbers: tf.Tensor, seed: int = 0) -> tf.Tensor:
        """The modes of the samples with these numbers, `(n,)` int64."""
        return tf.cast(self._modes_of(numbers, seed), tf.int64)

    def _modes_of(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        uniform = functional.example_uniform(numbers, 1, seed, stream=0)[:, 0]
        return tf.cast(uniform * len(self.modes), tf.int32)

    def fingerprint(self) -> dict[str, Any]:
        """The parameters of the distribution: samples are functions of these and of the seed."""
        return {"modes": fingerprints.of_array(np.round(self.modes, 4)), "std": round(self.std, 6)}


class GaussianRing(GaussianMixture):
    """Gaussians evenly on a circle; with the defaults the 8 Gaussians of WGAN-GP (Gulrajani et al., 2017, fig. 2).

    Mode i is at angle 2 pi i / modes. Everything is divided by `scale` (the paper's code: 1.414), so that the
    defaults have radius 1.4144 and standard deviation 0.0141.
    """

    def __init__(
        self,
        *,
        modes: Annotated[int, Ge(1), Le(10**6)] = 8,
        radius: Annotated[float, Gt(0)] = 2.0,
        std: Annotated[float, Gt(0)] = 0.02,
        scale: Annotated[float, Gt(0)] = 1.414,
    ) -> None:
        """Places the modes.

        Args:
            modes: The number of modes.
            radius: The circle's radius before scaling.
            std: The standard deviation of each Gaussian along each axis, before scaling.
            scale: The divisor of samples.
        """
        angles = 2.0 * np.pi * np.arange(modes) / modes
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        super().__init__(modes=radius * circle / scale, std=std / scale)


class GaussianGrid(GaussianMixture):
    """Gaussians on a square grid; with the defaults the 25 Gaussians of WGAN-GP (Gulrajani et al., 2017, fig. 2).

    Before scaling the grid is centred at zero and its neighbours are `spacing` apart: -4, -2, 0, 2, 4 along each axis
    by default. Everything is divided by `scale` (the paper's code: 2.828).
    """

    def __init__(
        self,
        *,
        side: Annotated[int, Ge(1), Le(1000)] = 5,
        spacing: Annotated[float, Gt(0)] = 2.0,
        std: Annotated[float, Gt(0)] = 0.05,
        scale: Annotated[float, Gt(0)] = 2.828,
    ) -> None:
        """Places the modes.

        Args:
            side: Modes along each axis: there are `side` squared of them.
            spacing: The distance of neighbours before scaling.
            std: The standard deviation of each Gaussian along each axis, before scaling.
            scale: The divisor of samples.
        """
        axis = spacing * (np.arange(side) - (side - 1) / 2)
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        super().__init__(modes=grid / scale, std=std / scale)
