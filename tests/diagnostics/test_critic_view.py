"""The view that diagnostics receive: the critic of training, compared with numpy and with training itself."""

import keras
import numpy as np
import pytest
from small import Layers, Points
from views import Views, component

import ganlab
from ganlab.lazy import tensorflow as tf

pytestmark = pytest.mark.usefixtures("cpus")


class Spy(ganlab.Constraint):
    """Logs what identifies a replica's examples."""

    def penalty(self, critic, batch, state, replica):
        columns = tf.range(1, batch.real.shape[0] + 1, dtype=tf.float32)[:, None] * [[1.0, 7.0]]
        for name in ("real", "fake"):
            replica.log(name, tf.reduce_sum(getattr(batch, name) * columns))
        return tf.zeros([batch.real.shape[0]])


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_the_batch_is_the_one_that_each_replica_sees_next(replicas):
    views = Views(replicas, constraints=[Spy()], critic_steps=1)
    views.trainer.train(3)
    view = views(3)
    real, fake = view.real, view.fake
    assert real.shape == fake.shape == (12, 2)
    rows = views.trainer.train(1)[0]
    tags = [metric.tag for metric in views.trainer.metrics]
    local = 12 // replicas
    columns = np.arange(1, local + 1)[:, None] * [1.0, 7.0]
    for i in range(replicas):
        assert view.share(i) == slice(i * local, (i + 1) * local)
        for name, x in (("real", real), ("fake", fake)):
            seen = rows[i, tags.index(f"constraints/spy/{name}")]
            assert seen == pytest.approx(np.sum(x[view.share(i)] * columns), rel=1e-5, abs=1e-5)


def test_it_is_the_first_of_several_updates_of_an_iteration():
    several, one = Views(2, critic_steps=3), Views(2, critic_steps=1)
    # Not to the last bit: kernels round the rows of longer and shorter batches in groups of their own.
    np.testing.assert_allclose(several(2).real, one(6).real, rtol=1e-6)
    np.testing.assert_allclose(several(2).fake, one(6).fake, rtol=1e-5)
    assert np.abs(several(2).real - one(7).real).max() > 0.1


def backpropagated(weights, real, fake):
    """The Wasserstein critic's loss and its gradients by hand, float64: tanh layers, then a linear one."""
    kernels = [weights[f"{name}/kernel"].astype(np.float64) for name in ("hidden_1", "hidden_2", "score")]
    biases = [weights[f"{name}/bias"].astype(np.float64) for name in ("hidden_1", "hidden_2", "score")]
    x, n = np.concatenate([real, fake]).astype(np.float64), len(real)
    before = [x @ kernels[0] + biases[0]]
    after = [np.tanh(before[0])]
    before.append(after[0] @ kernels[1] + biases[1])
    after.append(np.tanh(before[1]))
    by_score = np.concatenate([-np.ones((n, 1)), np.ones((n, 1))])  # of fake - real
    by_after = [None, by_score @ kernels[2].T]
    by_before = [None, by_after[1] * (1 - after[1] ** 2)]
    by_after[0] = by_before[1] @ kernels[1].T
    by_before[0] = by_after[0] * (1 - after[0] ** 2)
    activations = {
        "hidden_1": by_before[0],
        "activation_1": by_after[0],
        "hidden_2": by_before[1],
        "activation_2": by_after[1],
        "score": by_score,
    }
    by_weights = {}
    for name, given, by in (
        ("hidden_1", x, by_before[0]),
        ("hidden_2", after[0], by_before[1]),
        ("score", after[1], by_score),
    ):
        by_weights[f"{name}/kernel"], by_weights[f"{name}/bias"] = given.T @ by / n, by.sum(axis=0) / n
    return activations, by_weights


def test_gradients_of_a_share_are_those_of_backpropagation_by_hand():
    view = Views(2)(1)
    for i in range(2):
        share = view.share(i)
        activations, weights = backpropagated(view.weights, view.real[share], view.fake[share])
        found = view.gradients(i)
        assert found.activations.keys() == activations.keys()
        for name, expected in activations.items():
            np.testing.assert_allclose(found.activations[name], expected, rtol=2e-5, atol=1e-6, err_msg=name)
        assert found.weights.keys() == weights.keys()
        for name, expected in weights.items():
            np.testing.assert_allclose(found.weights[name], expected, rtol=2e-5, atol=1e-6, err_msg=name)


class Third(ganlab.Constraint):
    """The critic with a third of its weights, times five."""

    def reparameterize(self, weights, state):
        return {name: weight / 3 for name, weight in weights.items()}

    def transform(self, critic):
        return lambda x: 5 * critic(x)

    def lipschitz_bound(self, weights):
        return 5 * tf.norm(weights["line/kernel"])


def linear(x):
    return keras.layers.Dense(1, name="line", bias_initializer="ones")(x)


def test_a_linear_critic_as_the_constraints_make_it():
    view = Views(constraints=[Third()], architecture=Layers(critic=linear))()
    w, b = view.weights["line/kernel"], view.weights["line/bias"]
    np.testing.assert_allclose(view.effective["line/kernel"], w / 3, rtol=1e-6)
    x = np.random.default_rng(0).normal(size=(2500, 2)).astype(np.float32)  # more than are computed in one piece
    np.testing.assert_allclose(view.scores(x), 5 * (x @ w / 3 + b / 3)[:, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(view.slopes(x), np.full(2500, 5 * np.linalg.norm(w) / 3), rtol=1e-5)
    assert view.bounds == {"third": pytest.approx(5 * np.linalg.norm(w) / 3, rel=1e-5)}
    # By the raw weights: the mean of fake - real, times 5/3.
    expected = 5 / 3 * (view.fake.mean(axis=0) - view.real.mean(axis=0))
    np.testing.assert_allclose(view.gradients(0).weights["line/kernel"][:, 0], expected, rtol=1e-4, atol=1e-6)
    # By the layer's output, which the transform multiplies: the real half, then the generated one.
    assert view.gradients(0).activations["line"].ravel().tolist() == [-5.0] * 12 + [5.0] * 12


class Tiny(ganlab.Constraint):
    def reparameterize(self, weights, state):
        return {name: 1e-25 * weight for name, weight in weights.items()}


def test_slopes_whose_squares_underflow_are_reported():
    view = Views(constraints=[Tiny()], architecture=Layers(critic=linear))()
    expected = 1e-25 * np.linalg.norm(view.weights["line/kernel"].astype(np.float64))
    np.testing.assert_allclose(view.slopes(view.real), np.full(12, expected), rtol=1e-5)


class Own(keras.Model):
    """A model that is not a graph of layers, with a layer that holds others and one that is called twice."""

    def __init__(self):
        super().__init__(name="own")
        self.end = keras.layers.Dense(1, name="end")
        self.block = keras.Sequential(
            [keras.layers.Dense(4, name="inner", activation="relu"), keras.layers.LeakyReLU(name="leak")], name="block"
        )
        self.twice = keras.layers.Dense(2, name="twice")

    def call(self, x, training=None):
        return self.end(self.block(self.twice(self.twice(x))))


def test_layers_are_in_order_for_any_model_and_activations_are_theirs():
    class Owning(Layers):
        def critic(self, sample_shape):
            return Own()

    view = Views(architecture=Owning())()
    assert [(layer.name, layer.kind, layer.activation) for layer in view.layers] == [
        ("twice", "Dense", ""),
        ("inner", "Dense", "relu"),
        ("leak", "LeakyReLU", "leaky_relu"),
        ("end", "Dense", ""),
    ]
    assert [len(layer.weights) for layer in view.layers] == [2, 2, 0, 2]
    assert set(view.weights) == {name for layer in view.layers for name in layer.weights}
    x = np.random.default_rng(1).normal(size=(5, 2)).astype(np.float32)
    found = view.activations(x)
    kernel, bias = (view.weights[name] for name in view.layers[0].weights)
    first = x @ kernel + bias
    np.testing.assert_allclose(found["twice"], first, rtol=1e-5, atol=1e-6)
    kernel_2, bias_2 = (view.weights[name] for name in view.layers[1].weights)
    inner = np.maximum((first @ kernel + bias) @ kernel_2 + bias_2, 0)
    np.testing.assert_allclose(found["inner"], inner, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["end"][:, 0], view.scores(x), rtol=1e-5, atol=1e-6)
    # Looking leaves the model unchanged.
    assert not any("call" in vars(inner) for inner in view._state.critic.network.model._flatten_layers())


def convolutional(x):
    x = keras.layers.Conv2D(3, 3, strides=2, padding="same", activation="tanh", name="first")(x)
    return keras.layers.Dense(1, name="score")(keras.layers.Flatten(name="flat")(x))


def pictures(z):
    return keras.layers.Reshape((6, 6, 1))(keras.layers.Dense(36)(z))


def test_images_and_a_constraint_that_normalizes_slopes():
    pixels = np.random.default_rng(0).uniform(-1, 1, size=(20, 6, 6, 1)).astype(np.float32)

    class Normalized(ganlab.Constraint):
        def transform(self, critic):
            def transformed(x):
                gradient, scores = ganlab.functional.input_gradient(critic, x)
                return scores / (ganlab.functional.example_norm(gradient) + tf.abs(scores))

            return transformed

    networks = Layers(generator=pictures, critic=convolutional)
    view = Views(dataset=Points(pixels), architecture=networks, constraints=[Normalized()])()
    assert [layer.name for layer in view.layers] == ["first", "flat", "score"]
    assert view.activations(view.real)["first"].shape == (12, 3, 3, 3)
    assert view.gradients(0).activations["first"].shape == (24, 3, 3, 3)
    real, fake = view.more(30)
    np.testing.assert_array_equal(real, pixels)  # all there are
    assert fake.shape == (30, 6, 6, 1)
    assert np.abs(view.scores(fake)).max() < 1


def test_a_spectrally_normalized_kernel_has_a_gradient_across_itself():
    view = Views(constraints=[component("constraints", "spectral_norm")])()
    # W / sigma(W) does not change along W, so neither does the loss.
    for name in ("hidden_1/kernel", "hidden_2/kernel", "score/kernel"):
        weight, gradient = view.weights[name], view.gradients(0).weights[name]
        along = np.sum(weight * gradient) / np.linalg.norm(weight) / np.linalg.norm(gradient)
        assert abs(along) < 1e-3, name
        assert np.linalg.norm(gradient) > 1e-3, name
        assert np.linalg.norm(view.effective[name], 2) == pytest.approx(1, rel=1e-3)


def everything(view):
    real, fake = view.more(1500)
    view.scores(real), view.slopes(fake), view.activations(view.real), view.slopes(view.fake)
    return view.layers, view.effective, [view.gradients(i) for i in range(view.replicas)]


@pytest.mark.slow
def test_nothing_is_traced_anew_at_later_steps_and_nothing_that_is_not_asked_for():
    views = Views(2)
    functions = ("scores", "slopes", "outputs", "gradients", "effective", "real", "latent", "generated")

    def traces():
        return [getattr(views.functions, name).experimental_get_tracing_count() for name in functions]

    assert views().weights
    assert traces() == [0] * 8
    everything(views())
    before = traces()
    # Slopes of a share and of many points, like samples.
    assert before == [1, 2, 1, 1, 1, 1, 1, 2]
    views.trainer.train(2)
    everything(views(2))
    assert traces() == before


def test_a_view_follows_training_and_repeats_itself():
    views = Views(2)
    before = views(0)
    first = before.scores(before.real)
    np.testing.assert_array_equal(views(0).scores(before.real), first)
    views.trainer.train(2)
    later = views(2)
    assert np.abs(later.scores(before.real) - first).max() > 1e-4
    assert not np.array_equal(later.real, before.real)
    assert later.random().random() == views(2).random().random()
    assert later.random().random() != before.random().random()
    for changed, fixed in zip(later.more(5), before.more(5), strict=True):
        assert changed.shape == fixed.shape == (5, 2)
    np.testing.assert_array_equal(later.more(5)[0], before.more(5)[0])


def attentive(x):
    """A critic with a weight that is a single number."""
    x = ganlab.layers.SelfAttention(name="attention")(keras.layers.Reshape((1, 2, 1))(x))
    return keras.layers.Dense(1, name="score")(keras.layers.Flatten()(x))


def test_arrays_shared_between_diagnostics_are_read_only():
    view = Views(architecture=Layers(critic=attentive))()
    assert view.weights["attention/gamma"].shape == ()
    gradients = view.gradients(0)
    for array in (view.real, view.fake, *view.weights.values(), *view.effective.values(), *gradients.weights.values()):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("shape", [(4, 3), (0, 2)])
def test_points_of_another_shape_are_refused(shape):
    with pytest.raises(ganlab.ContractError, match=r"asked about \(\d, \d\); it takes at least one example of shape"):
        Views()().scores(np.zeros(shape))
