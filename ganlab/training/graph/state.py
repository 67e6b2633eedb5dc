"""The state of training: all variables that it changes, in the strategy's scope, under stable names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import keras
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import IncompatibleError
from ganlab.plugins.blame import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.networks import Tensors, build_networks
from ganlab.training.graph.stack import ConstraintStack

# Settings of Keras optimizers that act on each replica's own gradient, before the sum over replicas, or not at all.
_PER_REPLICA = ("clipnorm", "global_clipnorm", "clipvalue", "gradient_accumulation_steps")


class TrainingState:
    """The variables of a run.

    Attributes:
        generator: The generator.
        critic: The critic.
        stack: The constraints.
        critic_optimizer: The critic's optimizer, built over its weights and the constraints' parameters.
        generator_optimizer: The generator's.
        average: The generator's averaged weights by name; empty without averaging.
        parameters: The constraints' trainable parameters, a mapping a constraint.
        constraint_states: Their states, likewise.
        step: Generator updates done.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.generator, self.critic = build_networks(experiment)
        self.stack = ConstraintStack(experiment.constraints, experiment.component_names("constraints"))
        self.stack.prepare(self.critic.model)
        self.step = 0
        with experiment.strategy.scope():
            weights = read(self.critic.weights)
            projected = self.stack.project(weights)
            for name, variable in self.critic.weights.items():
                if projected[name] is not weights[name]:
                    variable.assign(projected[name])
            parameters, states = self.stack.initialize(projected)
            self.parameters = [
                {key: keras.Variable(value, name=f"parameter_{i}_{j}") for j, (key, value) in enumerate(group.items())}
                for i, group in enumerate(parameters)
            ]
            self.constraint_states = [{key: _variable(value) for key, value in group.items()} for group in states]
            self.average: dict[str, tf.Variable] = {}
            if experiment.ema_decay:
                self.average = {name: _variable(v) for name, v in read(self.generator.weights).items()}
            updates = experiment.steps
            self.critic_optimizer = _optimizer(
                "critic_optimizer", experiment.critic_optimizer, updates * experiment.critic_steps
            )
            self.critic_optimizer.build(self.critic_variables)
            self.generator_optimizer = _optimizer("generator_optimizer", experiment.generator_optimizer, updates)
            self.generator_optimizer.build(list(self.generator.weights.values()))

    @property
    def critic_variables(self) -> list[keras.Variable]:
        """The variables that the critic's optimizer trains: its weights, then the constraints' parameters."""
        return [*self.critic.weights.values(), *(v for group in self.parameters for v in group.values())]

    def variables(self) -> dict[str, tf.Variable]:
        """Every variable of the run under a stable name."""
        named: dict[str, Any] = {}
        for role, network in (("generator", self.generator), ("critic", self.critic)):
            named |= {f"{role}/weights/{name}": v.value for name, v in network.weights.items()}
            named |= {f"{role}/buffers/{name}": v.value for name, v in network.buffers.items()}
        named |= {f"generator/average/{name}": v for name, v in self.average.items()}
        for i, name in enumerate(self.stack.names):
            named |= {f"constraints/{name}/parameters/{k}": v.value for k, v in self.parameters[i].items()}
            named |= {f"constraints/{name}/state/{k}": v for k, v in self.constraint_states[i].items()}
        # By position, not by path: an optimizer's paths contain names that Keras generates.
        for role, optimizer in (("critic", self.critic_optimizer), ("generator", self.generator_optimizer)):
            named |= {f"{role}/optimizer/{i:04d}": v.value for i, v in enumerate(optimizer.variables)}
        return named

    def sampling_weights(self) -> Mapping[str, Any]:
        """The generator's weights that samples are drawn with: the average where there is one."""
        return self.average or self.generator.weights


def read(variables: Mapping[str, Any]) -> Tensors:
    """The values of variables (Keras' or TensorFlow's) on this replica."""
    return {name: tf.convert_to_tensor(getattr(v, "value", v) if _is_keras(v) else v) for name, v in variables.items()}


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
    schedule = config.get("learning_rate")
    if isinstance(schedule, dict) and schedule["config"].get("decay_steps", 0) is None:
        schedule["config"]["decay_steps"] = updates
    with plugin_code(selector_of(template), "from_config"):
        return type(template).from_config(config)
