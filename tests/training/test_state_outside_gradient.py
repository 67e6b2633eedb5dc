"""No gradient flows through what `advance` returned: in a graph, compiled, eagerly, and when the penalty is lazy."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from small import Layers, small, values

import ganlab
from ganlab.training.graph import noise
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

RATE = 0.25


class FollowsTheWeights(ganlab.Constraint):
    """Weighs the scores of the data by the square of the weights, which `advance` computed, and a gain by its own."""

    def __init__(self, every=1):
        self.every = every

    def parameters(self, weights):
        return {"gain": tf.constant(3.0)}

    def initial_state(self, weights):
        return {"squared": tf.zeros([]), "gain squared": tf.zeros([]), "updates": tf.zeros([], tf.int32)}

    def advance(self, weights, state, batch, replica):
        squared = sum(tf.reduce_sum(tf.square(w)) for w in weights.values())
        return {"squared": squared, "gain squared": state["gain"] ** 2, "updates": state["updates"] + 1}

    def penalty(self, critic, batch, state, replica):
        return state["squared"] * critic(batch.real) + state["gain squared"] * state["gain"]


class Rescaled(ganlab.Constraint):
    """Divides kernels by their norm, which `advance` measured: the division is linear in the kernel."""

    def initial_state(self, weights):
        return {name: tf.norm(w) for name, w in weights.items() if len(w.shape) == 2}

    def advance(self, weights, state, batch, replica):
        return {name: tf.norm(weights[name]) for name in state}

    def reparameterize(self, weights, state):
        return {name: w / state[name] if name in state else w for name, w in weights.items()}


def score(x):
    return keras.layers.Dense(1, name="score", bias_initializer=keras.initializers.Constant(0.5))(x)


def sample(x):
    return keras.layers.Dense(2, name="sample")(x)


def trainer(*constraints, replicas=0, jit="off"):
    return Trainer(
        small(
            replicas,
            architecture=Layers(generator=sample, critic=score),
            constraints=list(constraints),
            jit=jit,
            critic_optimizer=keras.optimizers.SGD(RATE),
            generator_optimizer=keras.optimizers.SGD(RATE),
        )
    )


def after_one(given):
    """The values before and after an iteration, and the means of the real and of the generated examples."""
    before = values(given.state)
    given.train(1)
    kernel, bias = (before[f"generator/weights/sample/{name}"] for name in ("kernel", "bias"))
    fake = noise.whole("normal", (12, 3), seed=0, stream=noise.FAKE_LATENT).numpy() @ kernel + bias
    real = ganlab.component("datasets", "gaussian_ring")().examples(tf.range(12, dtype=tf.int64), 0).numpy()
    return before, values(given.state), real.mean(axis=0), fake.mean(axis=0)


@pytest.fixture
def eagerly():
    def run(wanted):
        tf.config.run_functions_eagerly(wanted)

    yield run
    tf.config.run_functions_eagerly(False)


MODES = {"graph": {}, "compiled": {"jit": "on"}, "eager": {}, "replicas": {"replicas": 2}}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_penalty_over_a_state_of_the_weights(eagerly, mode, every):
    eagerly(mode == "eager")
    before, after, real, fake = after_one(trainer(FollowsTheWeights(every), **MODES[mode]))

    # With s = |w|^2 + b^2 and q = gain^2 held fixed the loss is
    #   w.(fake - real) + every * (s * (w.real + b) + q * gain).
    w, b = before["critic/weights/score/kernel"][:, 0], before["critic/weights/score/bias"][0]
    squared = w @ w + b * b
    expected = {
        "critic/weights/score/kernel": (w - RATE * (fake - real + every * squared * real))[:, None],
        "critic/weights/score/bias": [b - RATE * every * squared],
        "/parameters/gain": 3.0 - RATE * every * 9.0,
        "/state/squared": squared,
        "/state/updates": 1,
    }
    for end, value in expected.items():
        (name,) = (name for name in after if name.endswith(end))
        np.testing.assert_allclose(after[name], value, rtol=2e-5, atol=1e-6, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_reparameterization_by_a_state_of_the_weights(eagerly, mode):
    eagerly(mode == "eager")
    before, after, real, fake = after_one(trainer(Rescaled(), **MODES[mode]))

    w = before["critic/weights/score/kernel"]
    moved = w - RATE * (fake - real)[:, None] / np.linalg.norm(w)
    np.testing.assert_allclose(after["critic/weights/score/kernel"], moved, rtol=2e-5, atol=1e-6)


@pytest.mark.slow
def test_a_later_constraint_over_the_weights_that_an_earlier_one_makes(eagerly):
    found = {}
    for mode, parts in MODES.items():
        eagerly(mode == "eager")
        given = trainer(Rescaled(), FollowsTheWeights(), **parts)
        given.train(5)
        found[mode] = values(given.state)
    for mode, one in found.items():
        for name, value in one.items():
            np.testing.assert_allclose(value, found["graph"][name], rtol=1e-5, atol=1e-6, err_msg=f"{mode}: {name}")
