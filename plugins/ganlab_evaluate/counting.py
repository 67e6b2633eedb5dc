"""Reports how far a long measurement is, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable

from ganlab.commands import in_time

_SECONDS = 10.0  # between two reports


class Counting:
    """Counts images, and reports at most every ten seconds.

    Attributes:
        done: The images so far.
    """

    def __init__(
        self, what: str, total: int | None, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begins to count at the first image.

        Args:
            what: The kind of images, for the report.
            total: How many there will be, None if unknown.
            report: Takes a line.
            clock: Seconds.
        """
        self._what, self._total, self._report, self._clock = what, total, report, clock
        self._began: float | None = None
        self._reported = 0.0
        self.done = 0

    def add(self, count: int) -> None:
        """Call before so many further images are measured: all earlier ones are done by then."""
        now = self._clock()
        if self._began is None:
            self._began = self._reported = now
        elif now - self._reported >= _SECONDS:
            self._reported = now
            text = f"{self._what}: {self.done:,}"
            if self._total is not None and self._total >= self.done > 0:
                left = in_time((now - self._began) * (self._total - self.done) / self.done)
                text += f" of {self._total:,} ({100 * self.done // self._total}%), {left} left"
            self._report(text)
        self.done += count
