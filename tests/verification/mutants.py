"""Ways to train wrongly on several replicas, as changes of the core.

Each is a function of `patch(target, name, value)`. In a plugin file that is `setattr`, so that `--plugin-file` brings
the mistake into the processes of `ganlab verify`. Each leaves training on one replica unchanged, so it is a mistake of
distribution.
"""

from dataclasses import asdict
from unittest import mock

import keras
import tensorflow as tf
from ganlab_verify import Source
from ganlab_verify.replicas import check

import ganlab
from ganlab.training.graph import critic_update, gradients, networks, noise, players, replica, state
from ganlab.training.graph.stack import ConstraintStack

MUTANTS = {}


def mutant(change):
    MUTANTS[change.__name__] = change
    return change


def context():
    return tf.distribute.get_replica_context()


@mutant
def mean_instead_of_sum(patch):
    reduce = keras.optimizers.Optimizer._all_reduce_sum_gradients

    def averaged(self, pairs):
        count = context().num_replicas_in_sync
        return [(gradient / count, variable) for gradient, variable in reduce(self, pairs)]

    patch(keras.optimizers.Optimizer, "_all_reduce_sum_gradients", averaged)


@mutant
def loss_over_the_local_batch(patch):
    part = critic_update.CriticUpdate.part

    def local(self, *arguments):
        gradients, *others = part(self, *arguments)
        return [gradient * self.experiment.replicas for gradient in gradients], *others

    patch(critic_update.CriticUpdate, "part", local)


@mutant
def double_all_reduce(patch):
    """Gradients are summed before the optimizer sums them."""
    build = players.own_optimizer

    def twice(*arguments):
        optimizer = build(*arguments)
        apply = optimizer.apply
        optimizer.apply = lambda grads, variables: apply(
            context().all_reduce(tf.distribute.ReduceOp.SUM, list(grads)), variables
        )
        return optimizer

    patch(players, "own_optimizer", twice)


@mutant
def penalty_averaged_per_replica(patch):
    """The penalty is divided by the local batch, the loss by the global one."""
    penalties = ConstraintStack.penalties

    def averaged(self, *arguments, **networks):
        value = penalties(self, *arguments, **networks)
        return None if value is None else value * context().num_replicas_in_sync

    patch(ConstraintStack, "penalties", averaged)


@mutant
def penalty_of_a_statistic(patch):
    """A penalty uses the mean over the replica's own examples instead of that of the batch."""
    kind = ganlab.component("constraints", "gradient_penalty").make
    penalty = kind.penalty

    def squared_mean(self, critic, batch, state, replica):
        value = penalty(self, critic, batch, state, replica)
        return tf.fill([batch.real.shape[0]], tf.square(tf.reduce_mean(value)))

    patch(kind, "penalty", squared_mean)


@mutant
def optimizer_outside_the_scope(patch):
    make = state.TrainingState.__init__

    def outside(self, experiment):
        make(self, experiment)
        self.critic.optimizer = players.own_optimizer(self.critic.role, experiment, None)
        self.critic.optimizer.build(self.critic.trained)

    patch(state.TrainingState, "__init__", outside)


@mutant
def unsynchronized_batch_normalization(patch):
    """Batch normalization by each replica's own examples is accepted."""
    patch(networks, "check_layers", lambda *arguments, **keywords: None)


@mutant
def noise_by_replica(patch):
    """The seed of a draw contains the replica instead of the example."""

    def by_replica(spec, *, seed, step, first):
        number = tf.cast(first, tf.int64) // spec.shape[0] + 1
        return noise.draw(spec, seed=seed, step=step * 64 + number, first=tf.zeros_like(first))

    for module in (replica, gradients):
        patch(module, "draw", by_replica)


@mutant
def same_noise(patch):
    def same(spec, *, seed, step, first):
        return noise.draw(spec, seed=seed, step=step, first=tf.zeros_like(first))

    for module in (replica, gradients):
        patch(module, "draw", same)


@mutant
def clipping_on_one_replica(patch):
    kind = ganlab.component("constraints", "weight_clipping").make
    project = kind.project

    def on_first(self, weights):
        clipped = project(self, weights)
        if context() is None:  # before training
            return clipped
        first = tf.equal(tf.convert_to_tensor(context().replica_id_in_sync_group), 0)
        return {name: tf.where(first, clipped[name], weights[name]) for name in weights}

    patch(kind, "project", on_first)


@mutant
def power_iteration_on_one_replica(patch):
    kind = ganlab.component("constraints", "spectral_norm").make
    advance = kind.advance

    def on_first(self, weights, state, batch, replica):
        moved = advance(self, weights, state, batch, replica)
        first = tf.equal(replica.id, 0)
        return {name: tf.where(first, moved[name], state[name]) for name in state}

    patch(kind, "advance", on_first)


class Unsynchronized(ganlab.Architecture):
    """A generator with batch normalization by each replica's own examples."""

    latent_dim = 3

    def generator(self, sample_shape):
        x = keras.Input((self.latent_dim,))
        y = keras.layers.BatchNormalization()(keras.layers.Dense(8)(x))
        return keras.Model(x, keras.layers.Dense(2)(keras.layers.Activation("tanh")(y)))

    def critic(self, sample_shape):
        x = keras.Input(sample_shape)
        return keras.Model(x, keras.layers.Dense(1)(keras.layers.Dense(8, activation="tanh")(x)))


@ganlab.hookimpl
def ganlab_architectures():
    return {"unsynchronized": Unsynchronized}


def rows(source, *, sources, replicas, iterations):
    """Checks several experiments in one process, each with its mistake; returns rows by the experiments' names.

    Args:
        source: Unused; a process of `ganlab verify` passes one.
        sources: By name, the mistake (or None) and the fields of the experiment's source.
        replicas: As in the check.
        iterations: As in the check.
    """
    found = {}
    for name, (change, fields) in sources.items():
        patches = []

        def patch(target, attribute, value, patches=patches):
            patches.append(mock.patch.object(target, attribute, value))
            patches[-1].start()

        one = Source(tuple(fields["gin_files"]), tuple(fields["params"]), plugin_file=fields["plugin_file"])
        if change is not None:
            ganlab.plugins.manager.use(ganlab.plugins.manager.discover())
            MUTANTS[change](patch)
        try:
            found[name] = asdict(check(one, replicas=replicas, iterations=iterations, optimizers="sgd"))
        finally:
            for one_patch in reversed(patches):
                one_patch.stop()
    return found
