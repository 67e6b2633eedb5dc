"""Several writers as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ganlab.interfaces.record import Record, Writer

if TYPE_CHECKING:
    import numpy as np


class MultiWriter(Writer):
    """Hands everything to each of its writers, in order."""

    def __init__(self, writers: Sequence[Writer]) -> None:
        """Takes the writers.

        Args:
            writers: The writers; may be empty.
        """
        self._writers = tuple(writers)

    def scalars(self, records: Sequence[Record]) -> None:
        """Takes the metrics of one step."""
        for writer in self._writers:
            writer.scalars(records)

    def image(self, step: int, tag: str, png: bytes) -> None:
        """Takes one picture, an encoded PNG."""
        for writer in self._writers:
            writer.image(step, tag, png)

    def histogram(self, step: int, tag: str, values: np.ndarray) -> None:
        """Takes an array of any shape, whose values are counted into bins."""
        for writer in self._writers:
            writer.histogram(step, tag, values)

    def text(self, step: int, tag: str, markdown: str) -> None:
        """Takes one text, in Markdown."""
        for writer in self._writers:
            writer.text(step, tag, markdown)

    def flush(self) -> None:
        """Makes everything taken so far visible to readers."""
        for writer in self._writers:
            writer.flush()

    def close(self) -> None:
        """Closes every writer, even if one fails; the first failure is raised at the end."""
        failures = []
        for writer in self._writers:
            try:
                writer.close()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
