"""Sine waves of random phase and frequency: series whose spectrum is known."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import functional
from ganlab.bounds import Ge, Gt, Lt
from ganlab.lazy import tensorflow as tf


class Sines(ganlab.Dataset):
    """Series `x_t = sin(2 pi (f t / length + u))`, t from 0, with f uniform in [low, high) and u uniform in [0, 1).

    So two values k steps apart have the covariance `E cos(2 pi f k / length) / 2`, which decides the spectrum.

    Attributes:
        covariance: That of values 0, 1, ... steps apart, `(length,)` float64.
        spectrum: The mean of `|X_j|^2 / length` over the series, X their discrete Fourier transform, for j from 0 to
            half the length, float64.
    """

    def __init__(
        self,
        *,
        length: Annotated[int, Ge(2), Lt(2**15)] = 64,
        low: Annotated[float, Ge(0)] = 2.0,
        high: Annotated[float, Gt(0)] = 6.0,
    ) -> None:
        """Sets the series.

        Args:
            length: How many values each has.
            low: The least frequency, in waves a series.
            high: The largest frequency.

        Raises:
            ConfigError: The frequencies are not in order, or above half the length, where others look like them.
        """
        if not low < high <= length / 2:
            raise ganlab.ConfigError(
                f"datasets.sines.high = {high!r} must be above low = {low!r} and at most half of length = {length}, "
                "because series of higher frequencies have the values of lower ones. Change one of the three."
            )
        self.sample_shape, self._low, self._high = (length,), low, high
        apart = np.arange(length)
        ends = [f * np.sinc(2.0 * f * apart / length) for f in (high, low)]  # the integral of the cosine from 0 to f
        self.covariance = 0.5 * (ends[0] - ends[1]) / (high - low)
        # The sum over all pairs of values: length - k of them are k steps apart, in each order.
        weighted = self.covariance * (1.0 - apart / length) * np.where(apart == 0, 1.0, 2.0)
        waves = np.arange(length // 2 + 1)
        self.spectrum = np.cos(2.0 * math.pi * np.outer(waves, apart) / length) @ weighted

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The series with these numbers, `(n, length)` float32."""
        f, u = tf.split(functional.example_uniform(numbers, 2, seed), 2, axis=1)
        (length,) = self.sample_shape
        waves = (self._low + (self._high - self._low) * f) / length
        return tf.sin(2.0 * math.pi * (waves * tf.range(length, dtype=tf.float32) + u))

    def show(self, x: np.ndarray) -> np.ndarray:
        """The series as lines, all of one scale."""
        from ganlab import pictures

        return pictures.series(x)

    def fingerprint(self) -> dict[str, Any]:
        """The parameters of the distribution: series are functions of these and of the seed."""
        return {"length": self.sample_shape[0], "low": self._low, "high": self._high}
