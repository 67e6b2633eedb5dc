"""Conformance of strategies: they train as one device does."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ganlab import Experiment
from ganlab_verify import lab
from ganlab_verify.lab import Training, departures, differing, resumed
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import Conformance, check, fail
from ganlab_verify.testing.trials import AFTER, BEFORE, Trainings


class StrategyConformance(Conformance):
    """Checks a strategy against its contract: the same weights as on one device, on every replica.

    class TestMine(StrategyConformance):
        def make(self):
            return ganlab.component("strategies", "mine")(replicas=2)
    """

    kind, role = "strategies", tf.distribute.Strategy

    def _experiment(self, **settings: Any) -> Experiment:
        replicas = int(self.once("strategy", self.make).num_replicas_in_sync)
        batch = parts.BATCH if parts.BATCH % replicas == 0 else 2 * replicas
        return lab.experiment(batch_size=batch, constraints=[parts.Companion()], **settings)

    @property
    def _trainings(self) -> Trainings:
        return self.once("trainings", lambda: Trainings(self._experiment))

    def _its_own(self) -> Training:
        strategy = self.once("strategy", self.make)
        return self.once("training", lambda: self._trainings.with_settings(strategy=strategy))

    @check(first=True)
    def test_it_trains_as_one_device(self) -> None:
        """Weights, states and metrics after updates by gradient descent are those of one device."""
        for departure in departures(self._trainings.with_settings(), self._its_own()):
            fail(
                f"Under this strategy {departure}. It must reduce sums over all its replicas, number the replicas from "
                "0, and keep variables mirrored."
            )

    @check()
    def test_replicas_hold_the_same_state(self) -> None:
        """Every variable has the same bits on every replica."""
        if names := self._its_own().unequal():
            fail(f"{names[:3]} differ between replicas: variables must be mirrored and updated together.")

    @check()
    def test_resuming_equals_never_stopping(self) -> None:
        """Training resumed from a checkpoint gives the same bits as uninterrupted training."""
        training = self._its_own()
        if names := differing(*resumed(training, BEFORE, AFTER)):
            fail(f"After restoring a checkpoint, training gives different values for {names[:3]}.")
