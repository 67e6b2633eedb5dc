"""Conformance of constraints: the contract, method by method, and training on replicas, compiled, resumed, stacked."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from ganlab import Constraint
from ganlab.engine import Scorer, TrainingState
from ganlab.errors import IncompatibleError
from ganlab_verify.lab import departures, differing
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import Conformance, check, fail
from ganlab_verify.testing.critic_bench import Bench
from ganlab_verify.testing.explanations import explained
from ganlab_verify.testing.finite import at_slope, at_zero_gradient, gradients
from ganlab_verify.testing.purity import impurities, no_variables
from ganlab_verify.testing.rows import unruly
from ganlab_verify.testing.trials import LONG, Trials, slope
from ganlab_verify.truth import of_state

# A constraint must lower the steepest slope by at least this part of the slope without it: more than rounding.
_EFFECT = 1e-5
# Where a bound is met exactly, float32 may round the slope above it by this part.
_ROUNDING = 1e-4


class ConstraintConformance(Conformance):
    """Checks a constraint against its contract.

    Write `make`; the tests use a small dense critic of two inputs and a small convolutional one:

        class TestMine(ConstraintConformance):
            def make(self):
                return Mine(weight=10.0)

    Attributes:
        penalty_at_slope_one: The penalty of an example if the critic's slope is 1 everywhere, as for a critic that is
            just 1-Lipschitz: 0.0 for a gradient penalty, weight / 2 for R1. None if it is only known to be at most
            the penalty at slope 10.
        lowers_slopes: Whether a critic trained under it becomes less steep than one trained without. False for
            constraints with another purpose; None if that is not known, as in checks by name: then it must have some
            effect on slopes.
        sample_shape: The shape of an example; None for points in the plane or, if the constraint refuses or fails on
            those, the first of some sizes of images.
    """

    kind, role = "constraints", Constraint
    penalty_at_slope_one: float | None = None
    lowers_slopes: bool | None = True
    sample_shape: tuple[int, ...] | None = None

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """The critic to constrain, `(n, *sample_shape) -> (n, 1)`; override it to use special layers.

        By default a dense critic for `(2,)` and a convolutional one for `(8, 8, 1)`. If the constraint refuses these
        and this method is not overridden, the same with noisy layers (`ganlab.layers.Dropout`).
        """
        return parts.critic(sample_shape)

    @property
    def _trials(self) -> Trials:
        own = self.critic if type(self).critic is not ConstraintConformance.critic else None
        return self.once("trials", lambda: Trials(self.make, own, self.sample_shape))

    @check(first=True)
    def test_methods_are_pure_functions(self) -> None:
        """Same inputs, same outputs; no variables, no own random numbers, nothing stored on self except by prepare."""
        with no_variables("The constructor"):
            fresh = self.make()
        bench = self._trials.bench
        with no_variables("prepare"):
            fresh.prepare(bench.state.critic.network.model)
        for problem in impurities(bench):
            fail(problem)

    @check(first=True)
    def test_shapes_and_dtypes(self) -> None:
        """A float32 penalty for each example, a float32 scalar of the weights, states that keep their shape."""
        bench = self._trials.bench
        values = {"penalty": bench.penalty(bench.draws()), "weight_penalty": bench.on_weights("weight_penalty")}
        for method, value in values.items():
            dtype = getattr(value, "dtype", tf.float32)
            if dtype != tf.float32:
                fail(f"{method} returns {dtype.name}; it must be float32 whatever the precision: tf.cast it.")
        self._trials.one.trainer.trace()

    @check()
    def test_rows_are_independent(self) -> None:
        """Each row of a penalty, and of the scores after a transform, depends on its own example alone."""
        for problem in unruly(self._trials.bench):
            fail(problem)

    @check()
    def test_values_and_gradients_are_finite(self) -> None:
        """The critic's and the generator's first updates have finite gradients that reach weights and samples."""
        for problem in gradients(self._trials.bench):
            fail(problem)

    @check()
    def test_gradients_are_those_of_the_losses(self) -> None:
        """Critic and generator are trained along the gradients of their losses, by differences in float64."""
        bench = self._trials.bench
        row = of_state(bench.experiment, bench.state)
        if row.status == "failed":
            fail(row.detail)

    @check()
    def test_finite_where_the_gradient_is_zero(self) -> None:
        """A constant critic, whose gradient is zero everywhere, gives finite values and finite gradients."""
        for problem in at_zero_gradient(self._trials.bench):
            fail(problem)

    @check()
    def test_finite_in_mixed_bfloat16(self) -> None:
        """A critic that computes in bfloat16 gives finite values and gradients, and a float32 penalty."""
        self._trials.bench  # noqa: B018 (decides the critic)
        bench = Bench(self._trials.experiment(precision="mixed_bfloat16"))
        value = bench.penalty(bench.draws())
        if value is not None and value.dtype != tf.float32:
            fail(f"In mixed_bfloat16 penalty returns {value.dtype.name}; penalties are float32: tf.cast what you sum.")
        for problem in gradients(bench):
            fail(f"In mixed_bfloat16: {problem}")

    @check()
    def test_a_critic_of_slope_one(self) -> None:
        """A critic that is just 1-Lipschitz costs `penalty_at_slope_one`, or no more than a steep one."""
        at_flat, at_one, at_ten = (at_slope(self._trials.bench, steepness) for steepness in (0.1, 1.0, 10.0))
        if at_flat is None or at_one is None or at_ten is None:
            pytest.skip("It has no penalty on examples.")
        expected = self.penalty_at_slope_one
        if expected is None:
            if not at_one.mean() <= at_ten.mean():
                fail(
                    f"The penalty is {at_one.mean():.6g} where the critic's slope is 1 and {at_ten.mean():.6g} where "
                    "it is 10: it rewards steepness. Check its sign: a penalty is added to the loss that the critic "
                    "minimizes."
                )
        elif not np.allclose(at_one, expected, rtol=1e-3, atol=1e-4):
            fail(
                f"Where the critic's slope is 1 everywhere the penalty is {at_one.mean():.6g} (from {at_one.min():.6g} "
                f"to {at_one.max():.6g}), but penalty_at_slope_one is {expected:.6g}. Change the one that is wrong."
            )
        if self.lowers_slopes is not False and at_flat.mean() > max(at_one.mean(), at_ten.mean()):
            fail(
                f"The penalty is {at_flat.mean():.6g} where the critic's slope is 0.1, {at_one.mean():.6g} where it is "
                f"1 and {at_ten.mean():.6g} where it is 10: it is highest for a flat critic. Is it on the wrong side, "
                "relu(1 - slope) for relu(slope - 1)? If its purpose is to keep slopes up, set lowers_slopes = False."
            )

    @check()
    def test_two_replicas_train_as_one_device(self) -> None:
        """Weights, states and metrics after updates by gradient descent are those of one device."""
        self._compare_with_one(2)

    @check()
    def test_four_replicas_train_as_one_device(self) -> None:
        """The same on four replicas."""
        self._compare_with_one(4)

    @check()
    def test_replicas_hold_the_same_state(self) -> None:
        """Every variable, the constraint's state included, has the same bits on every replica."""
        for replicas in (2, 4):
            names = self._trials.on(replicas).unequal()
            own = [name.rpartition("/")[2] for name in names if name.startswith("constraints/")]
            if own:
                fail(
                    f"On {replicas} replicas the state {own} differs: advance takes something from the replica's own "
                    "examples. Reduce statistics of the data (moments, not deviations) with replica.mean(x), "
                    "replica.sum(x) or replica.max(x). A state must not depend on replica.id."
                )
            if names:
                fail(
                    f"On {replicas} replicas {names[:3]} differ: project or reparameterize depends on the replica. "
                    "They must be functions of the weights and the state alone."
                )

    @check()
    def test_graph_and_xla_agree(self) -> None:
        """Compiled by XLA, it trains as it does uncompiled."""
        for departure in departures(self._trials.short, self._trials.compiled):
            fail(
                f"Compiled by XLA, {departure}. XLA's random numbers differ for the same seed: only those from replica "
                "are drawn outside. Otherwise an operation has another meaning or precision in XLA."
            )

    @check()
    def test_resuming_equals_never_stopping(self) -> None:
        """Training resumed from a checkpoint gives the same bits as uninterrupted training."""
        names = differing(*self._trials.resumed)
        if names:
            fail(
                f"After restoring a checkpoint, training gives different values for {names[:3]}: something is kept "
                "outside the checkpoint, for example an attribute of self or a tf.Variable. Return it from "
                "initial_state, and its next value from advance: the core makes the variables and saves them."
            )

    @check()
    def test_stacks_with_another_constraint(self) -> None:
        """It trains, and stays finite, before and after a constraint that uses every method."""
        self._trials.bench  # noqa: B018 (decides the critic)
        for where, constraints in (
            ("before", [self.make(), parts.Companion()]),
            ("after", [parts.Companion(), self.make()]),
        ):
            if bad := self._trials.stacked(constraints).not_finite():
                fail(
                    f"Stacked {where} another constraint, {bad[:3]} are not finite. A later constraint receives the "
                    "weights and the critic as changed by the earlier one."
                )

    @check()
    def test_it_lowers_slopes(self) -> None:
        """A critic that starts steep ends less steep than one trained as long without the constraint."""
        if self.lowers_slopes is False:
            pytest.skip("lowers_slopes is False.")
        trained, control = self._trials.long, self._trials.control()
        with_it, free = (slope(t.state, t.trainer.experiment) for t in (trained, control))
        if not np.isfinite(with_it):
            fail(
                f"Within {LONG} iterations of gradient descent, of which the first moves the weights by two "
                "hundredths, the critic is no longer finite."
            )
        if with_it < free * (1 - _EFFECT):
            return
        comparison = (
            f"After {LONG} iterations the critic's steepest slope is {with_it:.6g}, and {free:.6g} without the "
            "constraint: it does not lower slopes"
        )
        if self.lowers_slopes is None and with_it > free * (1 + _EFFECT):
            pytest.skip(f"{comparison}, which is right if it has another purpose.")
        fail(
            f"{comparison}. Is its weight too small, a gradient stopped, or its sign wrong? If its purpose is not to "
            "lower slopes, set lowers_slopes = False."
        )

    @check()
    def test_the_generator_is_trained_through_it(self) -> None:
        """The generator's update goes through the reparameterized, transformed critic, and moves the generator."""
        training = self._trials.short
        values = training.values
        weights = [name for name in values if name.startswith("generator/weights")]
        if not any(np.any(values[name] != training.start[name]) for name in weights):
            fail(
                "The generator does not move: no gradient reaches the samples through transform or reparameterize. Do "
                "not stop gradients (tf.stop_gradient, .numpy(), integer casts) between samples and scores."
            )
        if bad := training.not_finite():
            fail(f"After {len(training.rows)} iterations, {bad[:3]} are not finite.")

    @check()
    def test_a_convolutional_critic(self) -> None:
        """It constrains a convolutional critic of images too, or refuses it in prepare."""
        self._trials.bench  # noqa: B018 (decides the critic)
        shape = self._trials.shape if len(self._trials.shape) == 3 else parts.Images.sample_shape
        try:
            bench = Bench(self._trials.experiment(dataset=parts.dataset(shape)))
        except IncompatibleError as error:
            pytest.skip(f"It refuses convolutional critics: {error}")
        for problem in gradients(bench):
            fail(f"With a convolutional critic: {problem}")
        bench.on_weights("project")
        self._check_bound(bench.state, slope(bench.state, bench.experiment), "For a convolutional critic")

    @check()
    def test_lipschitz_bound_holds(self) -> None:
        """Its bound is above the critic's slope between 1000 random pairs, at first and after training."""
        bench, trained = self._trials.bench, self._trials.long
        if not Scorer(bench.state).bounds():
            pytest.skip("It has no bound.")
        self._check_bound(bench.state, slope(bench.state, bench.experiment), "At first")
        self._check_bound(trained.state, slope(trained.state, bench.experiment), f"After {LONG} iterations")

    @check()
    def test_diagnose_answers_in_words(self) -> None:
        """`diagnose` takes what it logged and returns a sentence or None."""
        training = self._trials.short
        prefix = f"constraints/{training.state.critic.stack.names[0]}/"
        metrics = {t.removeprefix(prefix): float(v[-1]) for t, v in training.reduced().items() if t.startswith(prefix)}
        answer = training.state.critic.stack.constraints[0].diagnose(metrics)
        if answer is not None and not isinstance(answer, str):
            fail(f"diagnose returned {answer!r}; it must be a sentence, or None if all is well.")

    def _compare_with_one(self, replicas: int) -> None:
        one, other = self._trials.short, self._trials.on(replicas)
        for departure in departures(one, other):
            fail(explained(one, other, departure))

    def _check_bound(self, state: TrainingState, steepest: float, when: str) -> None:
        for bound in Scorer(state).bounds().values():
            if not steepest <= bound * (1 + _ROUNDING):
                fail(
                    f"{when} lipschitz_bound is {bound:.6g}, and the critic's slope is {steepest:.6g} between two "
                    "points: it is not an upper bound. It must count every layer, its activation, and the effective "
                    "weights that it is given; return None if any of these is unknown."
                )
