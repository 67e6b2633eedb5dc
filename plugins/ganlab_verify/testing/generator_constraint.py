"""Conformance of constraints that act on the generator alone: replicas, parts, XLA, resuming, true gradients."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from ganlab import Constraint
from ganlab.engine import Trainer, TrainingState
from ganlab.errors import IncompatibleError
from ganlab_verify.lab import distance, lasting_departure
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import check, fail
from ganlab_verify.testing.trained import TrainedConformance
from ganlab_verify.truth import of_state

# It must change the end of training by at least this part of the way: more than rounding.
_EFFECT = 1e-5


class GeneratorConstraintConformance(TrainedConformance):
    """Checks a constraint in `experiment.generator_constraints` against its contract.

    class TestMine(GeneratorConstraintConformance):
        def make(self):
            return Mine()

    Attributes:
        latent_dim: The length of the latent vectors; samples have two numbers.
    """

    latent_dim: ClassVar[int] = parts.LATENT
    kind, role = "constraints", Constraint
    _cause: ClassVar[str] = (
        "a row of generator_penalty may depend on its own latent vector alone; reduce what depends on the batch in "
        "advance, with replica.mean, sum or max, and draw from replica."
    )

    def _parts(self) -> dict[str, Any]:
        networks = parts.Networks(parts.critic, self.latent_dim)
        return {"generator_constraints": [self.make()], "architecture": networks}

    def _changed(self, **settings: Any) -> str | None:
        """The first difference that settings make; None if training is the same."""
        return lasting_departure(self._trainings.short, self._trainings.with_settings(**settings))

    @check(first=True)
    def test_shapes_and_dtypes(self) -> None:
        """The step can be traced: penalties, states and effective weights have the shapes that the contract asks."""
        Trainer(self._experiment()).trace()

    @check()
    def test_it_changes_training(self) -> None:
        """The generator is trained otherwise than without it."""
        without = self._trainings.with_settings(generator_constraints=[])
        if distance(self._trainings.short, without) < _EFFECT:
            fail("Training is the same without it: no method changes the generator, its gradient or its samples.")

    @check()
    def test_microbatches_train_as_the_whole(self) -> None:
        """Two parts of a batch, one after another, train as the whole does, or it refuses them by name."""
        try:
            departure = self._changed(microbatches=2)
        except IncompatibleError as refusal:
            pytest.skip(str(refusal))
        if departure:
            fail(f"In 2 microbatches {departure}: {self._cause}")

    @check()
    def test_compiled_training_is_the_same(self) -> None:
        """Compiled by XLA, it trains as TensorFlow's kernels do."""
        if departure := self._changed(jit="on"):
            fail(f"Compiled by XLA {departure}: draw random numbers from replica, which are passed in.")

    @check()
    def test_gradients_are_those_of_the_losses(self) -> None:
        """Critic and generator are trained along the gradients of their losses, by differences in float64."""
        experiment = self._experiment()
        row = of_state(experiment, TrainingState(experiment))
        if row.status == "failed":
            fail(row.detail)
