"""The base class of actions."""

from __future__ import annotations

from dataclasses import dataclass, field

from ganlab.telemetry import Record


@dataclass
class Moment:
    """The end of a chunk of iterations.

    Attributes:
        step: Generator updates done.
        last: Whether training ends here.
        row: The metrics of this step, if a row is due.
        found: The figures of evaluations and diagnostics at this step, which join the row.
    """

    step: int
    last: bool
    row: list[Record]
    found: list[Record] = field(default_factory=list)


class Action:
    """Base class: something that a session does at certain steps.

    Attributes:
        every: Generator updates between two times; 0 for at the end alone.
        everywhere: Whether all of several workers do it, and not the chief alone.
        can_wait: Whether a stop or a failure leaves it to the run that resumes here.
    """

    every: int = 0
    everywhere: bool = False
    can_wait: bool = False

    def next(self, step: int) -> int | None:
        """The next step after this one at which it is due; None for the end of training alone."""
        return step + self.every - step % self.every if self.every else None

    def due(self, now: Moment) -> bool:
        """Whether it is due."""
        return now.last or (self.every > 0 and now.step % self.every == 0)

    def look(self) -> None:
        """Does what may be done after any chunk."""

    def __call__(self, now: Moment) -> None:
        """Does it."""
        raise NotImplementedError
