"""The diagnostics of a run: when each looks, and their findings as records, histograms and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ganlab.composition import Experiment
from ganlab.errors import ContractError
from ganlab.interfaces import Diagnostic, Findings
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.telemetry import Record
from ganlab.training.diagnostics.view import CriticFunctions, View
from ganlab.training.graph.arithmetic import in_float32
from ganlab.training.graph.state import TrainingState
from ganlab.training.reports import Reports


@dataclass(frozen=True)
class Looked:
    """The findings at one step, by the tags that they are written under.

    Attributes:
        records: The figures.
        histograms: Arrays whose values are counted into bins.
        pictures: Encoded PNGs.
    """

    records: list[Record] = field(default_factory=list)
    histograms: dict[str, np.ndarray] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)


class DiagnosticSchedule(Reports):
    """Lets each diagnostic look when it is due."""

    def __init__(self, experiment: Experiment, state: TrainingState) -> None:
        """Takes the diagnostics; one whose `every` is invalid is a ContractError."""
        names = experiment.component_names("diagnostics")
        super().__init__(names)
        self._experiment, self._state = experiment, state
        self._diagnostics: dict[str, Diagnostic] = dict(zip(names, experiment.diagnostics, strict=True))
        for name, diagnostic in self._diagnostics.items():
            if type(diagnostic.every) is not int or diagnostic.every < 0:
                raise ContractError(
                    f"Diagnostic {name} has every = {diagnostic.every!r}; it must be a whole number of at least 0: the "
                    "generator updates between two looks, or 0 for each evaluation."
                )

    @property
    def everys(self) -> list[int]:
        """The steps between two looks of each diagnostic that does not wait for evaluations."""
        return [diagnostic.every for diagnostic in self._diagnostics.values() if diagnostic.every]

    @cached_property
    def _functions(self) -> CriticFunctions:
        return CriticFunctions(self._experiment, self._state)

    def check(self) -> Looked:
        """Lets all look once before training, so that what can never work fails now; their reports do not count."""
        looked, _ = self._look(0, self._diagnostics)
        return looked

    def __call__(self, step: int, *, evaluating: bool, last: bool) -> Looked | None:
        """Lets the diagnostics that are due look; None if neither a diagnostic nor an evaluation is due."""
        due = {
            name: diagnostic
            for name, diagnostic in self._diagnostics.items()
            if last or (step % diagnostic.every == 0 if diagnostic.every else evaluating)
        }
        if not (due or evaluating):
            return None
        looked, complaints = self._look(step, due)
        self._reports |= complaints
        return looked

    def _look(self, step: int, diagnostics: Mapping[str, Diagnostic]) -> tuple[Looked, dict[str, str | None]]:
        looked = Looked()
        complaints: dict[str, str | None] = {}
        if not diagnostics:  # making a view takes as long as some dozens of iterations
            return looked, complaints
        view = View(self._experiment, self._state, self._functions, step)
        for name, diagnostic in diagnostics.items():
            with plugin_code(f"diagnostics.{name}", "look"), in_float32(self._state.critic.network.model):
                findings = diagnostic.look(view)
            figures, replicas = _checked(name, findings, self._experiment.replicas)
            tag = f"diagnostics/{name}"
            looked.records.extend(
                Record(step, f"{tag}/{figure}", value, replicas.get(figure, ())) for figure, value in figures.items()
            )
            looked.histograms.update({f"{tag}/{key}": np.asarray(x) for key, x in findings.histograms.items()})
            looked.pictures.update({f"{tag}/{key}": png for key, png in findings.pictures.items()})
            with plugin_code(f"diagnostics.{name}", "diagnose"):
                complaints[name] = diagnostic.diagnose(figures)
        return looked, complaints


def _checked(name: str, findings: Any, count: int) -> tuple[dict[str, float], dict[str, tuple[float, ...]]]:
    """The figures, and the replicas' values of them, as plain numbers."""
    if not isinstance(findings, Findings):
        raise ContractError(f"Diagnostic {name} returned {findings!r} from look; it must return a ganlab.Findings.")
    try:
        figures = {str(key): float(value) for key, value in findings.figures.items()}
        replicas = {str(key): tuple(map(float, values)) for key, values in findings.replicas.items()}
    except (AttributeError, TypeError, ValueError):
        raise ContractError(
            f"Diagnostic {name} found the figures {findings.figures!r} and {findings.replicas!r}; they must be a dict "
            "of numbers, and one of a number for each replica."
        ) from None
    for key, values in replicas.items():
        if key not in figures or len(values) != count:
            raise ContractError(
                f"Diagnostic {name} found {len(values)} replicas' values of {key!r}; it must give {count}, one for "
                "each replica, under a name that is also in figures."
            )
    for key, array in findings.histograms.items():
        if np.asarray(array).dtype.kind not in "biuf":
            raise ContractError(f"Diagnostic {name} found the histogram {key!r} of {array!r:.60}; it must be numbers.")
    for key, png in findings.pictures.items():
        if not isinstance(png, bytes):
            raise ContractError(
                f"Diagnostic {name} found the picture {key!r} of {png!r:.60}; it must be a PNG's bytes."
            )
    return figures, replicas
