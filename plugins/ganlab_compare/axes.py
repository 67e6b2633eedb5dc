"""Scales of charts: the range of an axis, linear or logarithmic, and its ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Positive values that span this many decades are drawn on a logarithmic axis.
_DECADES = 2.0
_MARGIN = 0.04
# No metric is so large, or as small without being zero: beyond these, margins and ticks could over- and underflow.
_BEYOND = 1e250


@dataclass(frozen=True)
class Scale:
    """A range of numbers mapped to an interval of a drawing.

    Attributes:
        low: The smallest number.
        high: The largest, above `low`.
        start: The position of the smallest.
        end: The position of the largest.
        logarithmic: Whether equal factors are drawn as equal lengths; then `low` is positive.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def place(self, values: npt.ArrayLike) -> np.ndarray:
        """The positions of numbers, float64 of the same shape; those beyond the range are at its ends, NaN is NaN."""
        low, high = self._moved(self.low), self._moved(self.high)
        inside = np.clip(np.asarray(values, np.float64), self.low, self.high)
        part = (self._moved(inside) - low) / (high - low)
        return self.start + (self.end - self.start) * part

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Round numbers within the range with their texts, about `most` at most."""
        if not self.logarithmic:
            return _linear_ticks(self.low, self.high, most)
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        stride = max(1, math.ceil((last - first + 1) / most))
        return [(10.0**power, _decade(power)) for power in range(first, last + 1, stride)]

    def _moved(self, values: npt.ArrayLike) -> np.ndarray:
        return np.log10(values) if self.logarithmic else np.asarray(values, np.float64)


def scale_of(
    values: npt.ArrayLike, start: float, end: float, *, bands: npt.ArrayLike = (), tight: bool = False
) -> Scale:
    """The scale for the values to be drawn.

    Args:
        values: The values of lines; those that are not finite do not count.
        start: The position of the smallest.
        end: The position of the largest.
        bands: The edges of bands around the lines. They widen the range, but do not decide whether it is logarithmic.
        tight: Without a margin, and never logarithmic.

    Returns:
        A logarithmic scale if all values are positive and span at least two decades, else a linear one.
    """
    lines, edges = _drawable(values), _drawable(bands)
    if not len(lines):
        return Scale(0.0, 1.0, start, end)
    low, high = float(lines.min()), float(lines.max())
    logarithmic = not tight and low > 1 / _BEYOND and math.log10(high) - math.log10(low) >= _DECADES
    if logarithmic:
        edges = edges[edges > low / 10]
    low, high = min([low, *edges]), max([high, *edges])
    if logarithmic:
        room = _MARGIN * (math.log10(high) - math.log10(low))
        return Scale(low / 10**room, high * 10**room, start, end, True)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        half = 0.5 * abs(low) or 0.5
        return Scale(low - half, high + half, start, end)
    room = 0.0 if tight else _MARGIN * (high - low)
    return Scale(low - room, high + room, start, end)


def _drawable(values: npt.ArrayLike) -> np.ndarray:
    array = np.asarray(values, np.float64).ravel()
    array = array[np.abs(array) < _BEYOND]
    return np.where(np.abs(array) > 1 / _BEYOND, array, 0.0)


def _linear_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [(number * step, text) for number, text in zip(numbers, _texts(numbers, step), strict=True)]


def _texts(numbers: Iterable[int], step: float) -> list[str]:
    values = [number * step for number in numbers]
    largest = max(map(abs, values), default=0.0)
    if largest >= 1e9 or largest < 1e-3:
        return [f"{value:.3g}" for value in values]
    for unit, letter, smallest in ((1e6, "M", 1e6), (1e3, "k", 1e4)):
        if step >= unit / 10 and largest >= smallest:
            return [f"{value / unit:g}{letter if value else ''}" for value in values]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value:.{decimals}f}" for value in values]


def _decade(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 4 else f"1e{power}"
