"""The networks of one update, as their constraints make them."""

from __future__ import annotations

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.interfaces import Batch
from ganlab.training.graph.calls import CriticCalls, GeneratorCalls, WrappedCritic
from ganlab.training.graph.networks import CriticFunction
from ganlab.training.graph.replica import Draws
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.values import Tensors, Values


class Constrained:
    """Critic and generator of a state in training, reparameterized and wrapped by their constraints."""

    def __init__(self, state: TrainingState) -> None:
        self._state = state

    def critic(self, draws: Draws, values: Values, data: Tensors, stream: int) -> WrappedCritic:
        """The critic of rows with the labels of `data`; its layers draw from that stream."""
        stack = self._state.stack
        effective = stack.effective(values.critic, values.parameters, values.states)
        model = CriticCalls(self._state.critic, effective, values.critic_buffers, data.get("labels"), draws, stream)
        return WrappedCritic(model, stack.transform(model, draws))

    def generator(
        self, draws: Draws, values: Values, data: Tensors, stream: int
    ) -> tuple[CriticFunction, GeneratorCalls]:
        """The generator of rows with the labels of `data`, and its calls before any constraint wraps it."""
        stack = self._state.generator_stack
        effective = stack.effective(values.generator, values.generator_parameters, values.generator_states)
        network, buffers = self._state.generator, values.generator_buffers
        calls = GeneratorCalls(network, effective, buffers, data.get("labels"), draws, stream)
        return stack.transform(calls, draws, critic=lambda x: self.critic(draws, values, data, stream)(x)), calls


def draws_of(experiment: Experiment, update: tf.Tensor, rows: int) -> Draws:
    """The random numbers of an update of that many rows; called in a replica's context."""
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    return Draws(experiment.seed, rows, update, tf.convert_to_tensor(replica, tf.int32))


def batch_of(data: Tensors, size: int, draws: Draws) -> Batch:
    """The batch of an update, as constraints and losses get it; `size` is that of the global batch."""
    return Batch(
        real=data.get("real"),
        fake=data.get("fake"),
        labels=data.get("labels"),
        size=size,
        step=draws.step,
        latent=data["latent"],
    )
