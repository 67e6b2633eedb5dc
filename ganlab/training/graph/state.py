"""The state of training: all variables that it changes, in the strategy's scope, under stable names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from ganlab.composition import Experiment, schedules
from ganlab.errors import IncompatibleError
from ganlab.plugins import scheduled
from ganlab.plugins.blame import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.augmenting import Augmentations
from ganlab.training.graph.learning_rate import Followed, fill_decay_steps
from ganlab.training.graph.networks import build_networks
from ganlab.training.graph.noise import MOST
from ganlab.training.graph.plugin_state import tensors
from ganlab.training.graph.stack import ConstraintStack
from ganlab.training.graph.values import Tensors, Values, collected

# Settings of Keras optimizers that act on each replica's own gradient, before the sum over replicas, or not at all.
_PER_REPLICA = ("clipnorm", "global_clipnorm", "clipvalue", "gradient_accumulation_steps")


class TrainingState:
    """The variables of a run.

    Attributes:
        generator: The generator.
        critic: The critic.
        stack: The critic's constraints.
        generator_stack: The generator's.
        augmentations: The augmentations.
        nest: Every variable that an update computes with.
        critic_optimizer: The critic's optimizer, built over its weights and its constraints' parameters.
        generator_optimizer: The generator's, likewise.
        average: The generator's averaged weights by name; empty without averaging.
        average_parameters: The averages of its constraints' parameters, a mapping each; empty mappings without.
        average_buffers: The averages of its buffers by name; empty unless `experiment.ema_buffers`.
        schedules: The schedules of parameters, by the tag that their values are logged under.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.schedules = schedules(experiment)
        self._steps, self._step = experiment.steps, 0
        # For functions outside the step, which are traced once and called after any number of updates.
        self._clock = tf.Variable(0, dtype=tf.int64, trainable=False) if self.schedules else None
        with self.timed():
            self._make(experiment)

    @property
    def step(self) -> int:
        """Generator updates done."""
        return self._step

    @step.setter
    def step(self, value: int) -> None:
        self._step = value
        if self._clock is not None:
            self._clock.assign(value)

    def timed(self) -> contextlib.AbstractContextManager[None]:
        """Context manager: scheduled parameters have the values of this state's step."""
        return contextlib.nullcontext() if self._clock is None else scheduled.at(self._clock, self._steps)

    def _make(self, experiment: Experiment) -> None:
        self.generator, self.critic = build_networks(experiment)
        self._names = {kind: experiment.component_names(kind) for kind in MOST}
        self.stack = ConstraintStack(experiment.constraints, self._names["constraints"])
        self.stack.prepare(self.critic.model)
        self.generator_stack = ConstraintStack(
            experiment.generator_constraints, self._names["generator_constraints"], "generator_constraints"
        )
        self.generator_stack.prepare(self.generator.model)
        self.augmentations = Augmentations(experiment.augmentations, self._names["augmentations"])
        with experiment.strategy.scope():
            parameters, states = _constrained(self.stack, self.critic.weights, "")
            generator_parameters, generator_states = _constrained(
                self.generator_stack, self.generator.weights, "generator_"
            )
            with plugin_code(selector_of(experiment.loss), "initial_state"):
                loss = tensors("The loss", "initial_state", experiment.loss.initial_state())
            self.nest = Values(
                critic=self.critic.weights,
                critic_buffers=self.critic.buffers,
                parameters=parameters,
                states=states,
                generator=self.generator.weights,
                generator_buffers=self.generator.buffers,
                generator_parameters=generator_parameters,
                generator_states=generator_states,
                loss={key: _variable(value) for key, value in loss.items()},
                augmentations=[
                    {key: _variable(value) for key, value in group.items()} for group in self.augmentations.initialize()
                ],
            )
            self.average: dict[str, tf.Variable] = {}
            self.average_parameters: list[dict[str, tf.Variable]] = [{} for _ in generator_parameters]
            self.average_buffers: dict[str, tf.Variable] = {}
            if experiment.averaging:
                self.average = {name: _variable(v) for name, v in read(self.generator.weights).items()}
                self.average_parameters = [
                    {name: _variable(v) for name, v in read(group).items()} for group in generator_parameters
                ]
            if experiment.ema_buffers:
                self.average_buffers = {name: _variable(v) for name, v in read(self.generator.buffers).items()}
            self.critic_optimizer = self._optimizer(experiment, "critic_optimizer", experiment.critic_steps)
            self.critic_optimizer.build(self.critic_variables)
            self.generator_optimizer = self._optimizer(experiment, "generator_optimizer", 1)
            self.generator_optimizer.build(self.generator_variables)

    def _optimizer(self, experiment: Experiment, part: str, updates: int) -> keras.optimizers.Optimizer:
        """This run's optimizer, with its number of updates in a step; its learning rate follows its schedule."""
        made = _optimizer(part, getattr(experiment, part), updates * experiment.steps)
        schedule = self.schedules.get(f"schedules/{part}/learning_rate")
        if schedule is not None:
            made.learning_rate = Followed(schedule, updates, experiment.steps)
        return made

    @property
    def critic_variables(self) -> list[keras.Variable]:
        """The variables that the critic's optimizer trains: its weights, then its constraints' parameters."""
        return self.nest.critic_trained

    @property
    def generator_variables(self) -> list[keras.Variable]:
        """The variables that the generator's optimizer trains, likewise."""
        return self.nest.generator_trained

    @property
    def parameters(self) -> list[dict[str, keras.Variable]]:
        """The trained parameters of the critic's constraints, a mapping each."""
        return self.nest.parameters

    @property
    def constraint_states(self) -> list[dict[str, tf.Variable]]:
        """The states of the critic's constraints, a mapping each."""
        return self.nest.states

    def variables(self) -> dict[str, tf.Variable]:
        """Every variable of the run under a stable name."""
        named = {name: v.value if _is_keras(v) else v for name, v in self.nest.named(self._names).items()}
        named |= {f"generator/average/{name}": v for name, v in self.average.items()}
        for name, group in zip(self._names["generator_constraints"], self.average_parameters, strict=True):
            named |= {f"generator_constraints/{name}/average/{key}": v for key, v in group.items()}
        named |= {f"generator/average_buffers/{name}": v for name, v in self.average_buffers.items()}
        # By position, not by path: an optimizer's paths contain names that Keras generates.
        for role, optimizer in (("critic", self.critic_optimizer), ("generator", self.generator_optimizer)):
            named |= {f"{role}/optimizer/{i:04d}": v.value for i, v in enumerate(optimizer.variables)}
        return named

    @contextlib.contextmanager
    def own_rates(self) -> Iterator[None]:
        """Context manager: learning rates that are variables keep their values, whatever is restored inside."""
        optimizers = (self.critic_optimizer, self.generator_optimizer)
        variables = [each._learning_rate for each in optimizers if isinstance(each._learning_rate, keras.Variable)]
        values = [keras.ops.convert_to_numpy(variable) for variable in variables]
        yield
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def values(self) -> Values:
        """The values of all variables that an update computes with, on this replica."""
        return tf.nest.map_structure(_value, self.nest)

    def collected(self, named: Mapping[str, Any]) -> Values:
        """The nest of `values()`, filled from a mapping by the names of `variables()`."""
        return collected(
            lambda prefix: {
                name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)
            },
            self._names,
        )

    def take_weights(self, values: Mapping[str, Any]) -> None:
        """Begins from other weights: projects them, and begins constraints and averages anew.

        Args:
            values: New values of some of the networks' variables, by the names of `variables()`.
        """
        variables = self.variables()
        for name, value in values.items():
            variables[name].assign(value)
        nest = self.nest
        with self.timed():
            _begin(self.stack, nest.critic, nest.parameters, nest.states)
            _begin(self.generator_stack, nest.generator, nest.generator_parameters, nest.generator_states)
        for average, followed in self.averaged():
            for name, variable in average.items():
                variable.assign(_value(followed[name]))

    def averaged(self) -> list[tuple[dict[str, tf.Variable], Mapping[str, Any]]]:
        """The averages that are kept, each mapping beside that of the variables that it follows."""
        parameters = zip(self.average_parameters, self.nest.generator_parameters, strict=True)
        return [(self.average, self.generator.weights), *parameters, (self.average_buffers, self.generator.buffers)]

    def sampling_weights(self) -> Tensors:
        """The weights that samples are drawn with: reparameterized, and averaged where there is an average."""
        averaged = bool(self.average)
        with self.timed():
            return self.generator_stack.effective(
                read(self.average if averaged else self.generator.weights),
                [read(group) for group in (self.average_parameters if averaged else self.nest.generator_parameters)],
                [read(group) for group in self.nest.generator_states],
            )

    def sampling_buffers(self) -> Tensors:
        """The moving statistics that samples are drawn with: averaged where there is such an average."""
        return read(self.average_buffers or self.generator.buffers)


def _constrained(
    stack: ConstraintStack, trained: Mapping[str, keras.Variable], prefix: str
) -> tuple[list[dict[str, keras.Variable]], list[dict[str, tf.Variable]]]:
    """Projects a network's weights, and makes the variables of its constraints: their parameters and states."""
    parameters, states = _initial(stack, trained)
    return [
        {key: keras.Variable(value, name=f"{prefix}parameter_{i}_{j}") for j, (key, value) in enumerate(group.items())}
        for i, group in enumerate(parameters)
    ], [{key: _variable(value) for key, value in group.items()} for group in states]


def _initial(stack: ConstraintStack, trained: Mapping[str, keras.Variable]) -> tuple[list[Tensors], list[Tensors]]:
    """Projects a network's weights, and computes the first parameters and states of its constraints."""
    weights = read(trained)
    projected = stack.project(weights)
    for name, variable in trained.items():
        if projected[name] is not weights[name]:
            variable.assign(projected[name])
    return stack.initialize(projected)


def _begin(stack: ConstraintStack, trained: Any, parameters: Any, states: Any) -> None:
    """Projects a network's weights, and begins its constraints anew in the variables that there are."""
    for groups, values in zip((parameters, states), _initial(stack, trained), strict=True):
        for group, value in zip(groups, values, strict=True):
            for key, variable in group.items():
                variable.assign(value[key])


def read(variables: Mapping[str, Any]) -> Tensors:
    """The values of variables (Keras' or TensorFlow's) on this replica."""
    return {name: _value(v) for name, v in variables.items()}


def assign(variables: Iterable[Any], values: Iterable[tf.Tensor]) -> None:
    """Assigns values that are the same on every replica; each replica assigns its own copy, without communication.

    Called in a replica's context.
    """
    targets = [v.value if _is_keras(v) else v for v in variables]
    if not targets:
        return

    def update(strategy: tf.distribute.Strategy, *given: tf.Tensor) -> None:
        for variable, value in zip(targets, given, strict=True):
            strategy.extended.update(variable, lambda v, x: v.assign(x), args=(value,), group=False)

    tf.distribute.get_replica_context().merge_call(update, args=tuple(values))


def _value(variable: Any) -> tf.Tensor:
    return tf.convert_to_tensor(variable.value if _is_keras(variable) else variable)


def _is_keras(variable: Any) -> bool:
    return isinstance(variable, keras.Variable)


def _variable(value: tf.Tensor) -> tf.Variable:
    return tf.Variable(value, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


def _optimizer(part: str, template: keras.optimizers.Optimizer, updates: int) -> keras.optimizers.Optimizer:
    """Makes this run's own optimizer in scope: one made elsewhere would silently let replicas drift apart."""
    if isinstance(template, keras.optimizers.LossScaleOptimizer):
        raise IncompatibleError(
            f"experiment.{part} is a LossScaleOptimizer, for float16, which ganlab does not train in: losses are not "
            "scaled. Pass the optimizer inside it."
        )
    with plugin_code(selector_of(template), "get_config"):
        config = template.get_config()
    for setting in _PER_REPLICA:
        if config.get(setting):
            raise IncompatibleError(
                f"experiment.{part} sets {setting} = {config[setting]!r}, which acts on each replica's own gradient "
                "before these are summed, so that the result would depend on the number of replicas. Leave it out."
            )
    if config.get("use_ema"):
        raise IncompatibleError(f"experiment.{part} sets use_ema. Use experiment.ema_decay, which ganlab samples from.")
    if config.get("loss_scale_factor"):
        raise IncompatibleError(
            f"experiment.{part} sets loss_scale_factor = {config['loss_scale_factor']!r}. Gradients would be divided "
            "by it, but losses are not scaled. Leave it out."
        )
    fill_decay_steps(config, updates)
    with plugin_code(selector_of(template), "from_config"):
        return type(template).from_config(config)
