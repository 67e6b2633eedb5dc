"""Conformance of strategies: they train as one device does."""

from __future__ import annotations

import tensorflow as tf

from ganlab import Experiment
from ganlab_verify import lab
from ganlab_verify.lab import Training, departures, differing, resumed
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import Conformance, check, fail
from ganlab_verify.testing.critic_bench import Bench

_BEFORE, _AFTER = 2, 2


class StrategyConformance(Conformance):
    """Checks a strategy against its contract: the same weights as on one device, on every replica.

    class TestMine(StrategyConformance):
        def make(self):
            return ganlab.component("strategies", "mine")(replicas=2)
    """

    kind, role = "strategies", tf.distribute.Strategy

    def _training(self, strategy: tf.distribute.Strategy) -> Training:
        replicas = int(self.once("strategy", self.make).num_replicas_in_sync)
        batch = parts.BATCH if parts.BATCH % replicas == 0 else 2 * replicas
        rates = self.once("rates", lambda: Bench(_experiment(lab.strategy(0), batch)).rates())
        return Training(_experiment(strategy, batch, rates))

    def _its_own(self) -> Training:
        return self.once("training", lambda: self._training(self.once("strategy", self.make)).train(_BEFORE + _AFTER))

    @check(first=True)
    def test_it_trains_as_one_device(self) -> None:
        """Weights, states and metrics after updates by gradient descent are those of one device."""
        one = self._training(lab.strategy(0)).train(_BEFORE + _AFTER)
        for departure in departures(one, self._its_own()):
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
        if names := differing(*resumed(training, _BEFORE, _AFTER)):
            fail(f"After restoring a checkpoint, training gives different values for {names[:3]}.")


def _experiment(strategy: tf.distribute.Strategy, batch: int, rates: tuple[float, float] = (0.01, 0.01)) -> Experiment:
    return lab.experiment(strategy=strategy, batch_size=batch, constraints=[parts.Companion()], rates=rates)
