"""Features of many examples in bounded memory: their moments, and their rows in a file."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np


class Moments:
    """Mean and covariance of rows that come in parts, in float64.

    Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979): as
    accurate as two passes over all rows.

    Attributes:
        count: Rows so far.
        mean: `(d,)`.
    """

    def __init__(self) -> None:
        self.count, self.mean = 0, np.zeros(0)
        self._squares = np.zeros((0, 0))

    def add(self, rows: np.ndarray) -> None:
        """Takes a part, `(n, d)`."""
        rows = np.asarray(rows, np.float64)
        if not len(rows):
            return
        mean = rows.mean(axis=0)
        centred = rows - mean
        squares = centred.T @ centred
        if not self.count:
            self.count, self.mean, self._squares = len(rows), mean, squares
            return
        total = self.count + len(rows)
        shift = mean - self.mean
        self._squares += squares
        self._squares += np.outer(shift, shift * (self.count * len(rows) / total))
        self.mean = self.mean + shift * (len(rows) / total)
        self.count = total

    def covariance(self) -> np.ndarray:
        """The unbiased covariance, `(d, d)`; of one row NaN."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._squares / np.float64(self.count - 1)


class Rows:
    """Rows of float32 numbers in a temporary file.

    Attributes:
        count: How many.
    """

    def __init__(self, file: Any) -> None:
        self._file, self._width, self.count = file, 0, 0

    def add(self, rows: np.ndarray) -> None:
        """Appends a part, `(n, d)`."""
        rows = np.ascontiguousarray(rows, np.float32)
        self._file.seek(0, 2)
        self._file.write(rows.tobytes())
        self._width, self.count = rows.shape[1], self.count + len(rows)

    def take(self, numbers: Iterable[int]) -> np.ndarray:
        """The rows with these numbers, float64 `(n, d)`."""
        length = 4 * self._width
        parts = []
        for number in numbers:
            self._file.seek(int(number) * length)
            parts.append(self._file.read(length))
        return np.frombuffer(b"".join(parts), np.float32).reshape(-1, self._width).astype(np.float64)


@contextlib.contextmanager
def rows_in_a_file() -> Iterator[Rows]:
    """Context manager: rows that vanish at its end."""
    with tempfile.TemporaryFile() as file:
        yield Rows(file)
