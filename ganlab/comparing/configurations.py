"""Configurations: runs whose settings are equal but for the seed, and the settings in which they differ."""

from __future__ import annotations

from dataclasses import dataclass

from ganlab.comparing.reading import RunSummary, Scalar


@dataclass(frozen=True)
class Configuration:
    """Runs of equal settings, one a seed.

    Attributes:
        label: What sets it apart, in few words; unique in a comparison.
        settings: The settings that differ between configurations, by full name; those it does not have are absent.
        runs: Its runs, by seed.
    """

    label: str
    settings: dict[str, Scalar]
    runs: tuple[RunSummary, ...]

    @property
    def wall_seconds(self) -> float | None:
        """The runs' mean training time in seconds; None where none is known."""
        return _mean([run.wall_seconds for run in self.runs])

    @property
    def steps_per_second(self) -> float | None:
        """The runs' mean speed in generator updates a second; None where none is known."""
        return _mean([run.steps_per_second for run in self.runs])


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
