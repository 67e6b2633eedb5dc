"""A bench for an experiment: composed for replicas on a CPU, trained one iteration at a time, recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import keras
import numpy as np

import ganlab
from ganlab import Experiment
from ganlab.commands import Recipe, read_experiment, use_plugins
from ganlab.engine import build_networks, make
from ganlab_verify import lab
from ganlab_verify.recording import GeneratorWitness, Witness, recording
from ganlab_verify.report import Source
from ganlab_verify.trace import Arrays, Iteration, Trace, apart, norm

Optimizers = Literal["own", "sgd"]
PERTURBATION = 1e-7
# How far plain gradient descent moves a network in one update, relative to its weights: enough to exceed float32's
# rounding (6e-8), and so little that no experiment becomes chaotic by it.
_MOVE = 1e-3


def recipe_of(source: Source) -> Recipe:
    """Reads the recipe of a source, with the source's plugins in use."""
    use_plugins(source.no_plugin, Path(source.plugin_file) if source.plugin_file else None, source.gin_files[0])
    return read_experiment(source.gin_files, source.params)


def composed(recipe: Recipe, replicas: int, **settings: Any) -> Experiment:
    """The experiment of a recipe on `replicas` replicas instead of its own strategy, with other settings replaced."""
    parts = {name: make(value) for name, value in recipe.arguments.items() if name != "strategy"}
    return ganlab.experiment(**{**parts, "strategy": lab.strategy(replicas), **settings})


class Bench(lab.Training):
    """One experiment with its trainer, to be trained from its initial weights any number of times.

    Attributes:
        experiment: The experiment as it is trained: in float32, observed.
    """

    def __init__(
        self,
        recipe: Recipe,
        replicas: int,
        *,
        optimizers: Optimizers,
        rates: tuple[float, float] = (0.0, 0.0),
        jit: Literal["on", "off", "step"] = "off",
        **settings: Any,
    ) -> None:
        """Composes the experiment.

        Args:
            recipe: The experiment's recipe.
            replicas: How many logical CPUs to train on; 0 for one device without mirroring.
            optimizers: The experiment's own, or plain gradient descent.
            rates: Learning rates of gradient descent, for the critic and for the generator.
            jit: What XLA compiles, as experiment.jit: the gradients, nothing or the whole iteration.
            settings: Further settings that replace the experiment's own.
        """
        if isinstance(recipe.arguments.get("critic_steps"), Recipe):
            settings = {"critic_steps": 2, **settings}  # what is observed has the same updates in each iteration
        plain = composed(recipe, replicas, precision="float32", jit=jit, evaluators=(), diagnostics=(), **settings)
        observed = ("critic", "generator") if plain.has_critic else ("generator",)
        templates = {side: getattr(plain, f"{side}_optimizer") for side in observed}
        if optimizers == "sgd":
            given = dict(zip(("critic", "generator"), rates, strict=True))
            templates = {side: keras.optimizers.SGD(learning_rate=given[side]) for side in observed}
            plain = replace(plain, optimizers=None)  # those of further networks are then of their sides
        sides = {name: network.side for name, network in build_networks(plain).items()} if plain.optimizers else {}
        updates: dict[str, Any] = {"critic": plain.critic_steps, "generator": plain.generator_steps}
        kind, witness = (
            ("constraints", Witness()) if plain.has_critic else ("generator_constraints", GeneratorWitness())
        )
        own: dict[str, Any] = {
            f"{side}_optimizer": recording(templates[side], plain.strategy, updates[side]) for side in observed
        }
        own[kind] = (*getattr(plain, kind), witness)
        self.experiment: Experiment = replace(
            plain,
            **own,
            optimizers={
                name: recording(template, plain.strategy, updates[sides[name]])
                for name, template in (plain.optimizers or {}).items()
            },
        )
        self._witness = f"{kind}/{self.experiment.component_names(kind)[-1]}/"
        super().__init__(self.experiment)
        self._initial = {name: copies[0] for name, copies in self._copies().items()}

    @property
    def initial(self) -> dict[str, np.ndarray]:
        """The initial value of every variable."""
        return dict(self._initial)

    def begin(self, values: Arrays) -> None:
        """Changes the initial values of later trainings.

        Args:
            values: New initial values of some variables, by the names of `state.variables()`.
        """
        self._initial |= values

    def traced(self, iterations: int, *, perturbed: int | None = None) -> Trace:
        """Trains from the initial weights, and records every iteration.

        Args:
            iterations: How many iterations.
            perturbed: None, or the seed of a change of the initial weights by 1e-7 of each.

        Returns:
            The record of the training.
        """
        before = self._initial if perturbed is None else lab.perturbed(self._initial, perturbed, PERTURBATION)
        self.assign(before)
        done = [self._iteration() for _ in range(iterations)]
        count, metrics = self.experiment.replicas, self.trainer.metrics
        return Trace(
            replicas=count,
            tags=[metric.tag for metric in metrics],
            reductions=[metric.reduce for metric in metrics],
            witness=self._witness,
            before=before,
            iterations=done,
            lone=tuple(name for name, copies in self._copies().items() if len(copies) < count),
        )

    def find_rates(self) -> tuple[float, float]:
        """Sets the learning rates of gradient descent so that a first update moves each side by a thousandth."""
        first, rates = self.traced(1).iterations[0], []
        sides = [player.role.side for player in self.state.in_turn]
        for side in ("critic", "generator"):
            own = [each for each, of in zip(self.trained(), sides, strict=True) if of == side]
            weights = norm(self._initial[name] for _, names in own for name in names)
            gradient = norm(first.gradients[name][0] for _, names in own for name in names)
            rates.append(_MOVE * weights / gradient if gradient > 0 else _MOVE)
            for optimizer, _ in own:
                optimizer.learning_rate = rates[-1]
                (name,) = (n for n, v in self.state.variables().items() if v is optimizer.learning_rate.value)
                self._initial[name] = np.asarray(rates[-1], np.float32)
        return rates[0], rates[1]

    def trained(self) -> list[tuple[keras.optimizers.Optimizer, list[str]]]:
        """The networks' optimizers with the names of their variables, those of the critic's side first."""
        state = self.state
        names = {id(variable): name for name, variable in state.variables().items()}
        return [(player.optimizer, [names[id(v.value)] for v in player.trained]) for player in state.in_turn]

    def _iteration(self) -> Iteration:
        metrics = self.trainer.train(1)[0]
        given: dict[str, list[np.ndarray]] = {}
        applied: dict[str, list[np.ndarray]] = {}
        for optimizer, names in self.trained():
            given |= dict(zip(names, optimizer.notes.read(optimizer.notes.given), strict=True))
            applied |= dict(zip(names, optimizer.notes.read(optimizer.notes.applied), strict=True))
        copies = self._copies()
        return Iteration(
            metrics=metrics,
            gradients={name: np.stack(values).astype(np.float64).sum(axis=0) for name, values in given.items()},
            applied={name: values[0] for name, values in applied.items()},
            repeated=frozenset(name for name, values in given.items() if len(values) > 1 and not apart(values)),
            variables={name: values[0] for name, values in copies.items()},
            apart={name: size for name, values in copies.items() if (size := apart(values))},
            applied_apart={name: size for name, values in applied.items() if (size := apart(values))},
        )

    def _copies(self) -> dict[str, list[np.ndarray]]:
        """Every variable as each replica has it."""
        local = self.experiment.strategy.experimental_local_results
        return {name: [copy.numpy() for copy in local(v)] for name, v in self.state.variables().items()}
