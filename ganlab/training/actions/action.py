"""The base class of actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

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
    """Base class: something that a session does at certain steps, with state that checkpoints keep.

    Attributes:
        name: The key of its state in checkpoints.
        every: Generator updates between two times; 0 for at the end alone.
        everywhere: Whether all of several workers do it, and not the chief alone.
        can_wait: Whether a stop or a failure leaves it to the run that resumes here: the checkpoint then owes it.
    """

    name: str = ""
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
        """Acts."""
        raise NotImplementedError

    @property
    def complaints(self) -> Sequence[str]:
        """The problems that it sees at present, in sentences that begin with the name of who reports them."""
        return ()

    def state(self) -> Any:
        """Its state as JSON has it; None for none."""
        return None

    def resume(self, state: Any) -> None:
        """Takes the state that a checkpoint kept."""
