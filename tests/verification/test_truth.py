"""The check `gradients`: every kind of wrong derivative is found and its layer named; right ones pass."""

import keras
import pytest
import tensorflow as tf
from ganlab_verify import lab
from ganlab_verify.derivatives import Truth
from ganlab_verify.differences import Slope
from ganlab_verify.report import Row
from ganlab_verify.testing import parts
from ganlab_verify.truth import _row, of_recipe
from keras import layers
from right_constraints import FollowsTheWeights

import ganlab
from ganlab.functional import fixed, slopes
from ganlab.plugins.recipes import Recipe
from ganlab.training.graph import differentiation, stack

pytestmark = pytest.mark.usefixtures("cpus", "own_plugins")


def chained(shape, found):
    x = y = keras.Input(shape)
    for layer in found:
        y = layer(y)
    return keras.Model(x, y)


def dense(*between):
    """A dense critic with layers between its second and its third."""

    def critic():
        first, second = layers.Dense(8, activation="tanh", name="first"), layers.Dense(6, name="second")
        third = layers.Dense(5, activation="tanh", name="third")
        return [first, second, *(make() for make in between), layers.Activation("tanh"), third, layers.Dense(1)]

    return critic


def convolutional(*between):
    def critic():
        first = layers.Conv2D(4, 3, strides=2, padding="same", activation="tanh", name="first")
        last = [layers.Conv2D(4, 3, strides=2, activation="tanh", name="second"), layers.Flatten(), layers.Dense(1)]
        return [first, *(make() for make in between), *last]

    return critic


def row(critic, *constraints, images=False, **settings):
    given = {
        "dataset": parts.Images() if images else parts.Points(),
        "architecture": parts.Networks(lambda shape: chained(shape, critic())),
        "loss": parts.Wasserstein(),
        "critic_optimizer": lab.sgd(0.01),
        "generator_optimizer": lab.sgd(0.01),
        "constraints": list(constraints),
        "batch_size": 12,
    }
    return of_recipe(Recipe("", "experiment", {**given, **settings}))


@tf.custom_gradient
def one_percent_off(x):
    return tf.identity(x), lambda upstream: 1.01 * upstream


def off():
    return layers.Lambda(one_percent_off, name="off")


def normalized(variance):
    def call(x):
        mean = tf.reduce_mean(x, axis=1, keepdims=True)
        return (x - mean) / variance(tf.reduce_mean(tf.square(x - mean), axis=1, keepdims=True))

    return lambda: layers.Lambda(call, name="norm")


def moments():
    def call(x):
        mean, variance = tf.nn.moments(x, [1], keepdims=True)
        return (x - mean) / tf.sqrt(variance + 1e-3)

    return layers.Lambda(call, name="norm")


class Stretched(layers.Layer):
    """Resizes by an operation whose gradient cannot be differentiated."""

    def call(self, x):
        return tf.image.resize(x, (8, 8))


def test_an_activation_whose_gradient_is_off_by_a_hundredth_is_found():
    found = row(dense(off))
    assert (found.check, found.status, found.data["cause"]) == ("gradients", "failed", "wrong derivative")
    assert (found.data["role"], found.data["layers"]) == ("critic", ["off"])
    assert found.figure == pytest.approx(0.01, rel=0.2)
    assert "The layer 'off' (Lambda) has a derivative that is not its own." in found.detail
    # Gradients of layers before it are wrong; those of layers after it are right.
    assert {name.split("/")[2] for name in found.data["departures"]} == {"first", "second"}


def test_a_right_critic_passes():
    found = row(dense(normalized(lambda v: tf.sqrt(v + 1e-3))), parts.SlopePenalty(), parts.Companion())
    assert found.status == "passed", found.detail
    assert found.figure < found.limit < 1e-4
    assert set(found.data["worst"]) == {"critic", "generator"}


class Approaching(ganlab.Constraint):
    """A generator's penalty by a state that every update moves, and a projection of its weights."""

    def initial_state(self, weights):
        return {"average": tf.zeros([])}

    def advance(self, weights, state, batch, replica, generator):
        return {"average": 0.5 * state["average"] + 0.5 * replica.mean(tf.reduce_mean(generator(batch.latent)))}

    def generator_penalty(self, generator, critic, batch, state, replica):
        return tf.reduce_sum(tf.square(generator(batch.latent) - 1.0 - state["average"]), axis=1)

    def project(self, weights):
        return {name: 0.9 * weight for name, weight in weights.items()}


def test_the_generator_is_compared_as_its_update_found_it():
    # Its constraints' states advance once, and its weights are projected afterwards.
    found = row(dense(normalized(lambda v: tf.sqrt(v + 1e-3))), generator_constraints=[Approaching()])
    assert found.status == "passed", found.detail


CRITICS = {
    "a norm that is stopped": (
        dense(normalized(lambda v: tf.stop_gradient(tf.sqrt(v + 1e-3)))),
        "wrong derivative",
        "norm",
        {},
    ),
    "moments, twice": (dense(moments), "wrong second derivative", "norm", {}),
    "a resize, twice": (
        convolutional(lambda: Stretched(name="stretched")),
        "wrong second derivative",
        "stretched",
        {"images": True},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CRITICS)
def test_a_layer_with_a_wrong_derivative_is_named(case, monkeypatch):
    # The step refuses two of them by their operations; the check finds them without a list of operations.
    monkeypatch.setattr(differentiation, "check", lambda *_: None)
    critic, cause, layer, settings = CRITICS[case]
    found = row(critic, parts.SlopePenalty(), **settings)
    assert (found.status, found.data.get("cause"), found.data.get("layers")) == ("failed", cause, [layer]), found.detail
    assert f"The layer {layer!r} (" in found.detail
    assert found.figure > found.limit


@pytest.mark.slow
@pytest.mark.parametrize("case", ["moments, twice", "a resize, twice"])
def test_a_wrong_second_derivative_passes_where_only_the_first_is_used(case):
    critic, _, _, settings = CRITICS[case]
    found = row(critic, **settings)
    assert found.status == "passed", found.detail


@pytest.mark.slow
def test_a_state_that_leaks_into_the_gradient_is_found_and_named(monkeypatch):
    assert row(dense(), FollowsTheWeights()).status == "passed"

    def leaking(called, given, state, others=()):
        return {key: given[key] for key in state}

    monkeypatch.setattr(stack, "next_state", leaking)
    found = row(dense(), FollowsTheWeights())
    assert (found.status, found.data["cause"]) == ("failed", "state inside the gradient"), found.detail
    assert "the gradient goes through what advance returned" in found.detail


class Sharp(ganlab.Constraint):
    """A penalty on slopes, one factor of which is held fixed by the constraint's function."""

    def __init__(self, hold):
        self.hold = hold

    def penalty(self, critic, batch, state, replica):
        slope = slopes(critic, batch.real)
        return slope * self.hold(slope)


@pytest.mark.slow
def test_a_value_held_fixed_on_purpose_passes_and_a_stopped_gradient_fails():
    assert row(dense(), Sharp(fixed)).status == "passed"
    found = row(dense(), Sharp(tf.stop_gradient))
    assert (found.status, found.data["cause"]) == ("failed", "gradient unlike its loss")
    assert "Every layer is right by itself" in found.detail


class WithoutCritic(ganlab.Loss):
    """Compares means of examples, and leaves the critic alone."""

    pairs = True

    def critic(self, real_scores, fake_scores):
        return 0.0 * (real_scores + fake_scores)

    def generator(self, fake_scores, real_scores, batch):
        return tf.reduce_sum(tf.square(batch.fake - batch.real), axis=1)


@pytest.mark.slow
def test_a_critic_whose_loss_is_zero_has_the_right_gradient():
    found = row(dense(), loss=WithoutCritic())
    assert found.status == "passed", found.detail
    assert set(found.data["worst"]) == {"generator"}
    assert "The critic's loss is constant, and its gradient zero." in found.detail
    # With a penalty there is a gradient to compare.
    assert set(row(dense(), parts.SlopePenalty(), loss=WithoutCritic()).data["worst"]) == {"critic", "generator"}


def test_scheduled_parameters_have_their_first_value():
    weight = ganlab.component("schedules", "linear")(start=5.0, end=1.0)
    found = row(dense(), ganlab.component("constraints", "gradient_penalty")(weight=weight))
    assert found.status == "passed", found.detail


class Cut(ganlab.Constraint):
    """Takes a layer's weights out of a penalty's gradient, as an integer cast would."""

    def reparameterize(self, weights, state):
        return {name: tf.stop_gradient(w) + 0.0 if name == "second/kernel" else w for name, w in weights.items()}


@pytest.mark.slow
def test_a_missing_gradient_is_found_in_its_variable():
    found = row(dense(), Cut())
    assert (found.status, found.data["where"]) == ("failed", "critic/weights/second/kernel")
    assert (found.data["claimed"], found.data["departures"]) == (0.0, ["critic/weights/second/kernel"])


@pytest.mark.slow
def test_an_optimizer_that_receives_another_gradient_is_found(monkeypatch):
    from ganlab.training.graph.generator_update import GeneratorUpdate

    update = GeneratorUpdate.__call__

    def doubled(self, *given):
        apply = self.state.generator.optimizer.apply
        self.state.generator.optimizer.apply = lambda grads, variables: apply([2 * g for g in grads], variables)
        try:
            return update(self, *given)
        finally:
            self.state.generator.optimizer.apply = apply

    monkeypatch.setattr(GeneratorUpdate, "__call__", doubled)
    found = row(dense())
    assert (found.status, found.data["cause"], found.data["where"]) == (
        "failed",
        "another gradient applied",
        "generator",
    ), found.detail
    assert found.figure == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("departing", "status"), [((), "passed"), ((0,), "passed"), ((0, 1), "passed"), ((0, 1, 2), "failed")]
)
def test_an_applied_gradient_has_to_depart_from_every_start(departing, status, monkeypatch):
    # As where a rectifier lies between the roundings of two graphs; a mistake shows from each start.
    truth = Truth("critic", [Slope("", 1.0, 1.0, 1.0, 1e-9, 1e-5, False)], {}, 0.0, [], False, [])
    starts = []

    class Right:
        truths = staticmethod(lambda start, later: [truth, truth])

    def train(start):
        starts.append(start)
        return start

    def applied(truth):
        return Row("gradients", "failed", 1.0, 1e-4, "") if len(starts) - 1 in departing else None

    assert _row(Right(), {}, train, applied).status == status
    assert len(starts) == min(len(departing) + 1, 3)


@pytest.mark.slow
def test_a_gradient_that_vanishes_is_compared_with_larger_kernels():
    def deep():
        small = keras.initializers.RandomUniform(-0.001, 0.001)
        hidden = [layers.Dense(16, activation="relu", kernel_initializer=small) for _ in range(8)]
        return [*hidden, layers.Dense(1, kernel_initializer=small)]

    found = row(deep)
    assert found.status == "passed", found.detail
    assert "too small beside the loss to compare, so kernels of He's size" in found.detail


class Halved(ganlab.Loss):
    """The game of losses.ali, without the part of a network's gradient that is to be missed."""

    pairs = True

    def __init__(self, *cut):
        self._cut, self._game = cut, ganlab.component("losses", "ali")()

    def scores(self, batch, networks, replica):
        def network(name):
            return lambda x: tf.nest.map_structure(self._held if name in self._cut else tf.identity, networks[name](x))

        return self._game.scores(batch, {name: network(name) for name in networks}, replica)

    def _held(self, x):
        return 0.5 * x + 0.5 * tf.stop_gradient(x)

    def critic(self, real_scores, fake_scores):
        return self._game.critic(real_scores, fake_scores)

    def generator(self, fake_scores, real_scores):
        return self._game.generator(fake_scores, real_scores)


@pytest.mark.slow
@pytest.mark.parametrize(("cut", "status"), [((), "passed"), (("encoder",), "failed")])
def test_the_gradient_of_a_further_network_is_compared(cut, status):
    architecture = ganlab.component("architectures", "ali")(width=6)
    found = row(None, architecture=architecture, loss=Halved(*cut))
    assert found.status == status, found
    if cut:
        assert "encoder/weights/" in str(found)
