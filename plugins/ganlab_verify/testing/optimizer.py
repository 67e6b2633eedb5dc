"""Conformance of optimizers: rebuilt from their configuration, right on replicas, resumed."""

from __future__ import annotations

from typing import Any, ClassVar

import keras
import numpy as np

from ganlab.engine import TrainingState
from ganlab_verify import lab
from ganlab_verify.testing.conformance import check, fail
from ganlab_verify.testing.trained import TrainedConformance


class OptimizerConformance(TrainedConformance):
    """Checks an optimizer against its contract.

    class TestMine(OptimizerConformance):
        def make(self):
            return ganlab.component("optimizers", "mine")()
    """

    kind, role = "optimizers", keras.optimizers.Optimizer
    apart: ClassVar[float | None] = 0.02
    _cause: ClassVar[str] = (
        "it acts on each replica's own gradient before the sum. Override update_step, which gets the sum, not apply."
    )

    def _parts(self) -> dict[str, Any]:
        return {"critic_optimizer": self.make(), "generator_optimizer": self.make()}

    @check(first=True)
    def test_it_is_made_anew_from_its_configuration(self) -> None:
        """The copy that the core makes in the strategy's scope, from `get_config`, is equal to the original."""
        TrainingState(lab.experiment(**self._parts()))
        one = self.make()
        other = type(one).from_config(one.get_config())
        if other.get_config() != one.get_config():
            fail(
                f"Rebuilt from its configuration {one.get_config()}, it has {other.get_config()}. get_config must "
                "hold every argument of __init__."
            )

    @check()
    def test_it_descends(self) -> None:
        """Fifty updates by the gradient of |x|^2 lower it."""
        optimizer = self.make()
        rate = (config := optimizer.get_config()).get("learning_rate")
        if isinstance(rate, dict) and rate["config"].get("decay_steps", 0) is None:  # as the core fills it
            rate["config"]["decay_steps"] = 50
            optimizer = type(optimizer).from_config(config)
        point = keras.Variable(np.array([1.0, -2.0, 3.0], np.float32))
        before = float(np.sum(np.square(point.numpy())))
        optimizer.build([point])
        for _ in range(50):
            optimizer.apply([2.0 * point.value], [point])
        after = float(np.sum(np.square(point.numpy())))
        if not after < before:
            fail(f"From {before:g} on the bowl |x|^2, fifty updates lead to {after:g}, which is not down.")
