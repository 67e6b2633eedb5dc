"""Conformance of diagnostics: named, finite findings that depend on the critic alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ganlab import Architecture, Dataset, Diagnostic
from ganlab.engine import DiagnosticSchedule, TrainingState
from ganlab.errors import IncompatibleError
from ganlab_verify import lab
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import Conformance, check, fail


class DiagnosticConformance(Conformance):
    """Checks a diagnostic against its contract, on a small critic.

    It is one of points, or of images or labelled points if the diagnostic refuses the others.

    class TestMine(DiagnosticConformance):
        def make(self):
            return Mine()

    Attributes:
        sample_shape: The shape of an example; None for the first of (2,) and (8, 8, 1) that it accepts.
    """

    kind, role = "diagnostics", Diagnostic
    sample_shape: tuple[int, ...] | None = None

    def dataset(self) -> Dataset | None:
        """The dataset of the experiment, for diagnostics that need one of a kind; None for the kit's own.

        Of a dataset with classes, the critic is conditional.
        """
        return None

    def _cases(self) -> list[tuple[Dataset, Architecture | None]]:
        """Data to try in turn, each with conditional networks or, for None, with the kit's usual ones."""
        conditional = parts.LabelledNetworks(())
        own = self.dataset()
        if own is not None:
            return [(own, None)] if own.classes is None else [(own, conditional), (own, None)]
        if self.sample_shape:
            return [(parts.dataset(self.sample_shape), None)]
        return [(parts.dataset((2,)), None), (parts.dataset((8, 8, 1)), None), (parts.LabelledPoints(), conditional)]

    def _accepted(self) -> DiagnosticSchedule | str:
        said = ""
        for dataset, architecture in self._cases():
            given: dict[str, Any] = {} if architecture is None else {"architecture": architecture}
            experiment = lab.experiment(
                diagnostics=[self.make()], dataset=dataset, constraints=[parts.SlopePenalty()], **given
            )
            looks = DiagnosticSchedule(experiment, TrainingState(experiment))
            try:
                looks.check()
            except IncompatibleError as error:
                said = said or str(error)
                continue
            return looks
        return said

    def _looks(self) -> DiagnosticSchedule:
        looks = self.once("looks", self._accepted)
        if isinstance(looks, str):
            said = looks.rstrip(".")
            pytest.skip(f"It does not accept the kit's critics: {said}. Override dataset(self) with data it accepts.")
        return looks

    @check(first=True)
    def test_findings_have_names_and_are_finite(self) -> None:
        """`look` returns `ganlab.Findings`, whose figures are finite numbers under names."""
        findings = self._looks().check()
        for record in findings.records:
            if not np.isfinite(record.reduced):
                fail(f"look returned {record.tag} = {record.reduced!r}; it must be a finite number.")

    @check()
    def test_one_critic_gives_the_same_findings(self) -> None:
        """A second look at the critic gives the same figures: random numbers come from `critic.random()`."""
        looks = self._looks()
        one, other = ({r.tag: r.reduced for r in looks.check().records} for _ in range(2))
        if one != other:
            fail(f"One critic gave {one} and then {other}. Draw from critic.random(), and store nothing on self.")

    @check()
    def test_diagnose_answers_in_words(self) -> None:
        """`diagnose` takes the figures and returns a sentence or None."""
        figures = {r.tag.split("/", 2)[2]: float(r.reduced) for r in self._looks().check().records}
        answer = self.make().diagnose(figures)
        if answer is not None and not isinstance(answer, str):
            fail(f"diagnose returned {answer!r}; it must be a sentence, or None if all is well.")
