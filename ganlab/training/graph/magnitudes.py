"""Signs that a run is failing whatever its constraints are: losses that explode, a critic that has vanished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_LOSSES = {"critic/loss": "critic's", "generator/loss": "generator's"}
_ESTIMATE = "critic/wasserstein"

# The tags that are watched.
MAGNITUDES = (*_LOSSES, _ESTIMATE)

# A loss this many times larger than in the run's first rows has exploded.
_FIRST_ROWS, _EXPLODED = 10, 1_000.0

# An absolute limit, because a run that explodes in its first rows has no sound ones to compare with. Float32 rounds
# scores of this size to sixteenths: the differences between examples, which the critic is for, are lost.
_ENORMOUS = 1e6

# Real and generated examples whose mean scores differ by less are scored alike. Scores have the size of distances
# between examples, which are about one; float32 rounds those to 1e-7, and means over a row to less.
_ALIKE = 1e-4
_ALIKE_ROWS = 3


class Magnitudes:
    """Watches the losses and the critic's estimate over the rows of a run.

    Attributes:
        complaints: The problem in the last row by tag; None for a tag without one.
    """

    def __init__(self, *, constrained: bool) -> None:
        """Begins with no rows; a remedy depends on whether the critic has a constraint."""
        self._remedy = (
            "Lower the learning rates, or constrain the critic more."
            if constrained
            else "Lower the learning rates, or constrain the critic: experiment.constraints is empty."
        )
        self._rows, self._alike = 0, 0
        self._largest: dict[str, float] = {}
        self.complaints: dict[str, str | None] = {}

    def state(self) -> dict[str, Any]:
        """Its state as plain values."""
        return {"rows": self._rows, "alike": self._alike, "largest": self._largest, "sizes": self.complaints}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Restores the state from a checkpoint."""
        self._largest = {str(tag): float(value) for tag, value in state["largest"].items()}
        self._rows, self._alike = int(state["rows"]), int(state["alike"])
        self.complaints = {str(tag): said and str(said) for tag, said in state["sizes"].items()}

    def row(self, step: int, reduced: Mapping[str, float]) -> Iterator[tuple[str, str, bool]]:
        """Takes one logged row.

        Yields:
            For each problem the tag, the complaint, and whether to report it at once: a loss that explodes is
            reported at once, an estimate that may recover is not.
        """
        self._rows += 1
        for tag, whose in _LOSSES.items():
            if tag in reduced:
                self.complaints[tag] = self._of_loss(tag, whose, step, abs(reduced[tag]))
        if _ESTIMATE in reduced:
            self._alike = self._alike + 1 if abs(reduced[_ESTIMATE]) < _ALIKE else 0
            flat = self._alike >= min(_ALIKE_ROWS, self._rows)
            self.complaints[_ESTIMATE] = _vanished(step, reduced[_ESTIMATE]) if flat else None
        for tag, said in self.complaints.items():
            if said:
                yield tag, said, tag != _ESTIMATE

    def _of_loss(self, tag: str, whose: str, step: int, loss: float) -> str | None:
        first = self._largest.get(tag, max(loss, 1.0))
        if loss > _EXPLODED * first:
            return (
                f"The {whose} loss is {loss:.3g} at step {step}, {loss / first:.4g} times the largest of the run's "
                f"first rows. {self._remedy}"
            )
        if self._rows <= _FIRST_ROWS:
            self._largest[tag] = max(first, loss)
        if loss > _ENORMOUS:
            return (
                f"The {whose} loss is {loss:.3g} at step {step}: scores beyond {_ENORMOUS:.0e} are rounded by more "
                f"than examples differ. {self._remedy}"
            )
        return None


def _vanished(step: int, estimate: float) -> str:
    return (
        f"The critic scores real and generated examples alike: the means differ by {abs(estimate):.1e} at step {step}. "
        "If the samples are not perfect, the critic has vanished and teaches the generator nothing. Allow it steeper "
        "slopes (a smaller penalty, a larger limit or target), or raise the learning rate of "
        "experiment.critic_optimizer."
    )
