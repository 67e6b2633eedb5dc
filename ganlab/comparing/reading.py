"""Runs read for comparing: what each was, how it ended, what it reached. Data alone: nothing of a run is executed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

Scalar = bool | int | float | str


@dataclass(frozen=True)
class RunSummary:
    """One run, as far as comparing needs it.

    Attributes:
        path: The run's directory.
        name: The last two parts of the path, which name a run among others.
        settings: Every setting by its full name, defaults included, the seed too.
        seed: The experiment's seed; None where run.json does not tell.
        status: As in run.json: `running`, `completed`, `interrupted`, `failed` or `diverged`.
        step: Generator updates done.
        steps: Generator updates that were asked for.
        wall_seconds: How long it trained, resumed parts included; None where run.json does not tell.
        last: The last value of each metric by its tag, as in metrics.jsonl. May hold values that are not finite.
        best: The best finite value of each metric that has a direction, over all logged rows.
    """

    path: Path
    name: str
    settings: dict[str, Scalar]
    seed: int | None
    status: str
    step: int
    steps: int
    wall_seconds: float | None
    last: dict[str, float] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)

    @property
    def steps_per_second(self) -> float | None:
        """Generator updates a second of training; None where nothing is known."""
        return self.step / self.wall_seconds if self.wall_seconds and self.step else None
