"""The trainings that the tests of one component share, and for a constraint its bench too; each is made once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab import Constraint, Experiment
from ganlab.engine import TrainingState
from ganlab.errors import GanlabError, IncompatibleError, PluginError
from ganlab_verify import lab
from ganlab_verify.lab import Training, resumed
from ganlab_verify.testing import parts
from ganlab_verify.testing.critic_bench import Bench, scoring, steepest

# Iterations: enough to notice a wrong replica, and for a slope to fall.
BEFORE, AFTER, LONG = 2, 2, 40
SHORT = BEFORE + AFTER
# Shapes of an example, in the order in which they are tried.
SHAPES: tuple[tuple[int, ...], ...] = ((2,), (8, 8, 1), (8, 8, 3), (16, 16, 1), (16, 16, 3), (32, 32, 3))

CriticMaker = Callable[[tuple[int, ...]], keras.Model]


class Trainings:
    """Trainings of one experiment, each made when a test first needs it."""

    def __init__(self, experiment: Callable[..., Experiment]) -> None:
        """Takes a function that makes the experiment on one device, with the settings that it is given."""
        self.experiment = experiment

    @cached_property
    def rates(self) -> tuple[float, float]:
        """The learning rates of all its trainings."""
        experiment = self.experiment()
        return Bench(experiment).rates() if experiment.has_critic else (0.0, 0.01)

    @cached_property
    def one(self) -> Training:
        """A training on one device, before its first iteration."""
        return Training(self.experiment(rates=self.rates))

    @cached_property
    def resumed(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The variables on one device after `SHORT` iterations, uninterrupted and after restoring a checkpoint."""
        return resumed(self.one, BEFORE, AFTER)

    @cached_property
    def short(self) -> Training:
        """The training on one device, as it was after `SHORT` iterations."""
        straight, _ = self.resumed
        return self.one.still(straight)

    def with_settings(self, **settings: Any) -> Training:
        """A new training with other settings, after `SHORT` iterations."""
        return Training(self.experiment(rates=self.rates, **settings)).train(SHORT)


class Trials(Trainings):
    """A constraint's bench and trainings.

    Attributes:
        critic: Makes the critic to constrain.
        shape: The shape of an example.
    """

    def __init__(
        self, make: Callable[[], Constraint], critic: CriticMaker | None, shape: tuple[int, ...] | None = None
    ) -> None:
        """Takes the constraint and the options.

        Args:
            make: Makes the constraint.
            critic: Makes the critic; None for the first of the kit's that the constraint does not refuse.
            shape: The shape of an example; None for points in the plane or, if the constraint refuses those, the
                first of some sizes of images.
        """
        self.make, self._own, self._shape = make, critic, shape
        self.shape = shape or SHAPES[0]
        self.critic: CriticMaker = critic or parts.critic
        self._replicated: dict[int, Training] = {}
        super().__init__(self._made)

    def _made(self, **settings: Any) -> Experiment:
        """The kit's experiment under the constraint, with other settings."""
        own = {"architecture": parts.Networks(self.critic), "dataset": parts.dataset(self.shape)}
        return lab.experiment(**{"constraints": settings.get("constraints") or [self.make()], **own, **settings})

    @cached_property
    def bench(self) -> Bench:
        """The bench, on one device.

        Raises:
            IncompatibleError: The constraint refuses every critic.
        """
        refusal: GanlabError | None = None
        critics = [self._own] if self._own else [parts.critic, parts.noisy_critic]
        for shape, critic in itertools.product([self._shape] if self._shape else SHAPES, critics):
            self.shape, self.critic = shape, critic
            try:
                return self._tried()
            except (IncompatibleError, PluginError) as error:
                refusal = refusal or error
        self.shape, self.critic = self._shape or SHAPES[0], self._own or parts.critic
        if isinstance(refusal, PluginError):
            return Bench(self.experiment())  # its tests report the failure
        raise IncompatibleError(
            f"It refuses the critic of the test: {refusal} Override critic(self, sample_shape) with one that it can "
            "constrain."
        )

    def _tried(self) -> Bench:
        """A bench whose penalty, which depends on the examples' shape, has run once.

        Raises:
            IncompatibleError: The constraint refuses the critic.
            PluginError: The constraint fails.
        """
        bench = Bench(self.experiment())
        bench.penalty(bench.draws())
        return bench

    @cached_property
    def rates(self) -> tuple[float, float]:
        """The learning rates of all its trainings."""
        return self.bench.rates()

    @cached_property
    def long(self) -> Training:
        """The training on one device after `LONG` iterations; the same object as `one`."""
        self.short  # noqa: B018 (recorded before training continues)
        return self.one.train(LONG - SHORT)

    @cached_property
    def compiled(self) -> Training:
        """A training compiled by XLA, after `SHORT` iterations."""
        return self.with_settings(jit="on")

    def on(self, replicas: int) -> Training:
        """A training on `replicas` replicas, after `SHORT` iterations."""
        if replicas not in self._replicated:
            self._replicated[replicas] = self.with_settings(replicas=replicas)
        return self._replicated[replicas]

    def stacked(self, constraints: Sequence[Constraint]) -> Training:
        """A training under several constraints, after one iteration; eager, which is faster than tracing for one."""
        tf.config.run_functions_eagerly(True)
        try:
            return Training(self.experiment(constraints=constraints, rates=self.rates)).train(1)
        finally:
            tf.config.run_functions_eagerly(False)

    def control(self) -> Training:
        """A training of the same critic without a constraint, after `LONG` iterations at the same rates."""
        control = _control(self.critic, self.shape)
        control.assign(control.start)
        control.state.critic.optimizer.learning_rate = self.rates[0]
        control.state.generator.optimizer.learning_rate = self.rates[1]
        return control.train(LONG)


@lru_cache(maxsize=4)
def _control(critic: CriticMaker, shape: tuple[int, ...]) -> Training:
    """One training for all constraints, because its graph is the same."""
    return Training(lab.experiment(architecture=parts.Networks(critic), dataset=parts.dataset(shape)))


def slope(state: TrainingState, experiment: Experiment) -> float:
    """The steepest slope found for a state's critic."""
    data = experiment.dataset.examples(tf.range(256, dtype=tf.int64), 0)
    return steepest(scoring(state), np.asarray(data))
