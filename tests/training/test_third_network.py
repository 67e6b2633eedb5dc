"""A third network: an encoder that is trained with the generator, for a penalty that takes it.

Nothing in the core names it: a role is all that a run needs. To make it a part of the contract for plugins, three files
change: ganlab/interfaces/architecture.py (the method that makes it), ganlab/training/graph/roles.py (the roles of an
experiment, from its architecture) and ganlab/composition/experiments.py (its optimizer, where it has one of its own).
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from small import Layers, constraint, sgd, small, values

import ganlab
from ganlab.training.checkpoints import Checkpoints, restore
from ganlab.training.graph import noise
from ganlab.training.graph.roles import GENERATOR, ROLES, Role
from ganlab.training.graph.sampling import sampler
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.trainer import Trainer

ROLES_OF_THREE = {**ROLES, "encoder": Role("encoder", GENERATOR, "generator_optimizer")}
RATE = 0.05


class Encoding(Layers):
    """Generator, critic, and a linear map from samples to latent vectors."""

    def encoder(self, sample_shape):
        x = keras.Input(sample_shape)
        return keras.Model(x, keras.layers.Dense(self.latent_dim, use_bias=False, name="code")(x))


class Recovered(ganlab.Constraint):
    """The squared distance of each latent vector from the code of its sample."""

    def generator_penalty(self, generator, critic, batch, state, replica, encoder):
        replica.log("distance", ganlab.functional.example_norm(encoder(batch.fake) - batch.latent))
        return tf.reduce_sum((encoder(batch.fake) - batch.latent) ** 2, axis=1)


def experiment(replicas=0, **parts):
    given = {"architecture": Encoding(), "generator_constraints": [Recovered()], "generator_optimizer": sgd(RATE)}
    return small(replicas, **{**given, **parts})


def three(replicas=0, **parts):
    made = experiment(replicas, **parts)
    return Trainer(made, TrainingState(made, ROLES_OF_THREE))


def of_encoder(named):
    return {name: value for name, value in named.items() if name.startswith("encoder/")}


def test_its_update_is_the_gradient_by_hand():
    trainer = three()
    latent = noise.whole("normal", (12, 3), seed=0, stream=noise.LATENT).numpy()
    samples = sampler(trainer.experiment, trainer.state).from_latents(latent)
    before = values(trainer.state)["encoder/weights/code/kernel"]
    trainer.train(1)
    gradient = 2 / 12 * samples.T @ (samples @ before - latent)
    after = values(trainer.state)["encoder/weights/code/kernel"]
    np.testing.assert_allclose(before - after, RATE * gradient, rtol=1e-4, atol=1e-7)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize(
    ("replicas", "parts"),
    [
        (2, {}),
        (0, {"microbatches": 3}),
        pytest.param(0, {"jit": "on"}, marks=pytest.mark.slow),
        pytest.param(0, {"jit": "step"}, marks=pytest.mark.slow),
    ],
)
def test_it_trains_the_same_however_it_is_computed(cpus, replicas, parts):
    one, other = three(), three(replicas, **parts)
    rows = [trainer.train(5).mean(axis=1) for trainer in (one, other)]
    np.testing.assert_allclose(rows[1], rows[0], rtol=1e-4, atol=1e-6)
    for name, value in values(one.state).items():
        np.testing.assert_allclose(values(other.state)[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_checkpoint_has_its_weights_and_its_optimizer(tmp_path):
    adam = ganlab.component("optimizers", "adam")
    parts = {
        "generator_optimizer": adam(learning_rate=0.01),
        "ema_decay": 0.5,
        "constraints": [constraint("spectral_norm")],
    }
    whole = three(**parts)
    whole.train(4)
    saved = Checkpoints(tmp_path).save(
        4, whole.state.variables(), np.zeros((0, 1, 1), np.float32), metrics=whole.metrics, replicas=1
    )
    whole.train(2)
    assert saved.damage() is None
    resumed = three(**parts)
    restore(saved, resumed.state.variables())
    resumed.state.step = 4
    resumed.train(2)
    after = values(resumed.state)
    for name, value in values(whole.state).items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    # Iterations, learning rate, and two moments of its one weight.
    assert list(of_encoder(after)) == ["encoder/weights/code/kernel", *(f"encoder/optimizer/{i:04d}" for i in range(4))]


def test_the_other_two_are_as_they_are_without_it():
    two, both = TrainingState(experiment()), three().state
    alone, together = values(two), values(both)
    assert list(alone) == [name for name in together if not name.startswith("encoder/")]
    for name, value in alone.items():
        np.testing.assert_array_equal(together[name], value, err_msg=name)


def test_a_constraint_that_takes_it_fails_by_name_where_there_is_none():
    with pytest.raises(ganlab.PluginError, match="encoder"):
        Trainer(experiment()).train(1)
