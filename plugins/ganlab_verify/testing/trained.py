"""Tests for every kind of component that takes part in training: on two replicas, and after a resume."""

from __future__ import annotations

from typing import Any, ClassVar

from ganlab import Experiment
from ganlab_verify import lab, stateful
from ganlab_verify.lab import differing, distance, lasting_departure
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import Conformance, check, fail
from ganlab_verify.testing.trials import SHORT, Trainings


class TrainedConformance(Conformance):
    """The base of the classes for architectures, datasets, losses and optimizers.

    Attributes:
        apart: How far two replicas may end from one device, as a fraction of the distance moved; None for rounding
            alone. Set it if rounding is magnified, for example by an optimizer that divides by a gradient's size.
    """

    apart: ClassVar[float | None] = None

    def _parts(self) -> dict[str, Any]:
        """The parts that replace those of the kit's experiment."""
        raise NotImplementedError

    def _experiment(self, **settings: Any) -> Experiment:
        constraints = [] if settings.pop("plain", False) else [parts.SlopePenalty()]
        return lab.experiment(**{"constraints": constraints, **self._parts(), **settings})

    @property
    def _trainings(self) -> Trainings:
        return self.once("trainings", lambda: Trainings(self._experiment))

    @check()
    def test_two_replicas_train_as_one_device(self) -> None:
        """Weights and metrics after updates by gradient descent are those of one device."""
        if departure := self._on_two():
            fail(f"On 2 replicas {departure}: {self._cause}")

    def _on_two(self) -> str | None:
        """The first difference between two replicas and one device; None if there is none."""
        return self.once("on two", self._departure)

    def _departure(self) -> str | None:
        one, two = self._trainings.short, self._trainings.with_settings(replicas=2)
        if self.apart is None:
            return lasting_departure(one, two)
        apart = distance(one, two)
        return None if apart <= self.apart else f"training ends {apart:.2g} of its way from where one device ends"

    @check()
    def test_it_draws_and_keeps_nothing_of_its_own(self) -> None:
        """The traced step draws all its random numbers from the core, and leaves no tensor in an object or a module."""
        experiment = self._experiment()
        problem = stateful.row("", lab.Training(experiment).trainer.graph()) or stateful.kept("", experiment)
        if problem is not None:
            fail(problem.detail)

    @check()
    def test_resuming_equals_never_stopping(self) -> None:
        """Training resumed from a checkpoint gives the same bits as uninterrupted training."""
        if names := differing(*self._trainings.resumed):
            fail(
                f"After restoring a checkpoint, training gives different values for {names[:3]}: something is kept "
                "outside the checkpoint, for example an attribute of self or a counter."
            )

    @check()
    def test_training_stays_finite(self) -> None:
        """After a few updates every variable and every metric is finite."""
        if bad := self._trainings.short.not_finite():
            fail(f"After {SHORT} iterations, {bad[:3]} are not finite.")

    _cause: ClassVar[str] = (
        "something is taken from the replica's own part of the batch, or drawn on each replica alone."
    )
