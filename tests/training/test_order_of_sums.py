"""Sums have one order, whichever of their terms is in use elsewhere when they are computed."""

import hashlib

import pytest
import tensorflow as tf
from ganlab_verify import lab
from small import constraint, small, values

import ganlab
from ganlab.training.graph.collectives import own_all_reduces
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


class Centered(ganlab.Loss):
    """Its state follows a sum of two means, which the step also logs."""

    def initial_state(self):
        return {"center": tf.constant(0.0)}

    def advance(self, state, real_scores, fake_scores, replica):
        middle = replica.mean(tf.reduce_mean(real_scores) + tf.reduce_mean(fake_scores)) / 2
        return {"center": 0.9 * state["center"] + 0.1 * middle}

    def critic(self, real_scores, fake_scores, state):
        center = state["center"]
        return tf.nn.softplus(1.0 - real_scores + center) + tf.nn.softplus(1.0 + fake_scores - center)

    def generator(self, fake_scores):
        return -fake_scores


# A loss that is free to choose its order gave four results in these eight trainings, on 2 replicas.
@pytest.mark.parametrize("replicas", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_same_training_has_the_same_bits_every_time(replicas):
    adam = ganlab.component("optimizers", "adam")(learning_rate=1e-4, beta_1=0.5)
    experiment = small(
        replicas,
        loss=Centered(),
        architecture=ganlab.component("architectures", "mlp")(width=32),
        constraints=[constraint("gradient_penalty")],
        critic_optimizer=adam,
        generator_optimizer=adam,
        critic_steps=5,
        batch_size=256,
    )
    trainer = Trainer(experiment)
    first, found = values(trainer.state), []
    for _ in range(8):
        trainer.state.step = 0
        with experiment.strategy.scope():
            for name, variable in trainer.state.variables().items():
                variable.assign(first[name])
        rows = b"".join(trainer.train(count).tobytes() for count in (1, 9, 10, 20))
        found.append(hashlib.sha256(rows).hexdigest()[:8])
    assert found == found[:1] * len(found)


def test_what_four_replicas_sum_is_used_by_nothing_else():
    strategy = lab.strategy(4)

    def run(x):
        with own_all_reduces():
            return tf.distribute.get_replica_context().all_reduce("MEAN", x) + tf.cos(x)

    traced = tf.function(lambda x: strategy.run(run, args=(x,)), autograph=False)
    sums = [op for op in traced.get_concrete_function(tf.constant(1.0)).graph.get_operations() if op.type == "AddN"]
    inputs = [tensor for op in sums for tensor in op.inputs]
    assert len(inputs) >= 4
    assert {tensor.op.type for tensor in inputs} == {"Snapshot"}
    # The custom gradient's identity passes them on, unused, and TensorFlow prunes that before the graph runs.
    assert {consumer.type for tensor in inputs for consumer in tensor.consumers()} == {"AddN", "IdentityN"}
