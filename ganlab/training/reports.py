"""The problems that components report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Reports:
    """The last report of each of some components, None where one reports nothing.

    It is part of a checkpoint, so that a resumed run's health is the same.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._reports = names, dict[str, str | None]()

    @property
    def complaints(self) -> list[str]:
        """The problems at present, each with the name of the component."""
        return [f"{name}: {said}" for name, said in self._reports.items() if said]

    def state(self) -> dict[str, str | None]:
        """The last reports."""
        return dict(self._reports)

    def resume(self, state: Mapping[str, str | None]) -> None:
        """Restores the reports of those components that the experiment still has."""
        self._reports |= {name: said and str(said) for name, said in state.items() if name in self._names}
