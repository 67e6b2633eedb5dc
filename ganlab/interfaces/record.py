"""One metric at one step, and the base class of all writers of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Record:
    """A metric over the iterations since the row before it.

    Attributes:
        step: Generator updates done.
        tag: Its name, for example `critic/loss`.
        reduced: The value over all replicas.
        replicas: The value on each replica, in replica order; empty for a figure of the whole run.
    """

    step: int
    tag: str
    reduced: float
    replicas: tuple[float, ...] = ()


class Writer:
    """Base class of what stores or shows metrics, pictures and texts. Calls come with rising steps, from one thread."""

    def scalars(self, records: Sequence[Record]) -> None:
        """Takes the metrics of one step."""

    def image(self, step: int, tag: str, png: bytes) -> None:
        """Takes one picture, an encoded PNG."""

    def histogram(self, step: int, tag: str, values: np.ndarray) -> None:
        """Takes an array of any shape, whose values are counted into bins."""

    def text(self, step: int, tag: str, markdown: str) -> None:
        """Takes one text, in Markdown."""

    def flush(self) -> None:
        """Makes everything taken so far visible to readers."""

    def close(self) -> None:
        """Flushes and closes. No call follows."""
