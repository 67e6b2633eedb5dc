"""Mistakes in plugins, also those that would train without effect, and failures in training: one sentence each."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify.testing.parts import Wasserstein
from small import Layers, Points, broken, constraint, small

import ganlab
from ganlab import ContractError, GanlabError, PluginError, TrainingFailedError, layers
from ganlab.training.graph.sampling import Scorer, first_examples
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


def fails(*_, **__):
    raise ValueError("mine")


def mine(role, **methods):
    return type("Mine", (role,), methods)


@pytest.mark.parametrize(
    "method",
    ["prepare", "parameters", "initial_state", "advance", "reparameterize", "penalty", "weight_penalty", "project"],
)
def test_a_constraint_is_named(method):
    said = rf"^constraints\.broken failed in {method}: ValueError: mine \(test_failures\.py:\d+\)$"
    with pytest.raises(PluginError, match=said) as caught:
        Trainer(small(0, constraints=[constraint("spectral_norm"), broken(**{method: fails})])).trace()
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("replicas", [0, 2])
@pytest.mark.parametrize("method", ["build", "update_step"])
def test_an_optimizer_is_named(method, replicas):
    kind = type("Broken", (keras.optimizers.SGD,), {method: fails})
    said = rf"^Broken failed in {method}: ValueError: mine \(test_failures\.py:\d+\)$"
    with pytest.raises(PluginError, match=said) as caught:
        Trainer(small(replicas, critic_optimizer=kind(0.1))).trace()
    assert isinstance(caught.value.__cause__, ValueError)


class LogsTwice(ganlab.Loss):
    def critic(self, real_scores, fake_scores, replica):
        replica.log("own", fake_scores)
        return fake_scores - real_scores

    def generator(self, fake_scores, replica):
        replica.log("own", fake_scores)
        return -fake_scores


def test_a_metric_of_both_losses_is_named_with_both():
    said = "'losses/LogsTwice/own' was logged both in the critic's update and in the generator's"
    with pytest.raises(ContractError, match=re.compile(said, re.IGNORECASE)):
        Trainer(small(0, loss=LogsTwice())).trace()


class TakesFew(ganlab.Loss):
    def critic(self, real_scores, replica):
        return real_scores

    def generator(self, fake_scores):
        return -fake_scores


class TakesNetwork(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica, network=None):
        return critic(batch.real)


class TakesOthers(ganlab.Constraint):
    def penalty(self, batch, critic, state, replica):
        return critic(batch.real)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"loss": TakesFew()}, r"it takes \(real_scores, replica\), and must take \(real_scores, fake_scores\)"),
        ({"constraints": [TakesNetwork()]}, "its parameter 'network' is never passed. Did you mean 'networks'?"),
        (
            {"constraints": [TakesOthers()]},
            r"it takes \(batch, critic, state, replica\), and must take \(critic, batch, state, replica\)",
        ),
    ],
)
def test_wrong_parameters_of_a_method_are_named_with_the_right_ones(parts, said):
    with pytest.raises(PluginError, match=rf"TypeError: {said}"):
        Trainer(small(0, **parts)).trace()


@pytest.mark.parametrize("jit", ["on", "off"])
@pytest.mark.parametrize("replicas", [0, 2])
@pytest.mark.parametrize("method", ["penalty", "prepare"])
def test_a_variable_of_a_constraints_own_is_named(method, replicas, jit):
    def creates(self, critic, *_):
        self.layer = keras.layers.Dense(2)
        self.layer.build((None, 2))

    said = rf"^constraints\.broken failed in {method}: ValueError: a variable is created, which nobody would save"
    with pytest.raises(PluginError, match=said):
        Trainer(small(replicas, jit=jit, constraints=[broken(**{method: creates})])).trace()


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ({"transform": fails}, "transform: ValueError: mine"),
        ({"transform": lambda self, critic: fails}, "transform: ValueError: mine"),
        ({"penalty": lambda *_: {"a": 1.0}}, "penalty: TypeError: Failed to convert"),
    ],
    ids=["wrapping", "wrapped", "no tensor"],
)
def test_a_transform_and_a_penalty_that_is_no_tensor_are_named(methods, said):
    with pytest.raises(PluginError, match=rf"^constraints\.broken failed in {said}"):
        Trainer(small(2, constraints=[broken(**methods)])).trace()


def test_a_bound_is_named():
    with pytest.raises(PluginError, match=r"^constraints\.broken failed in lipschitz_bound: ValueError: mine"):
        Scorer(Trainer(small(0, constraints=[broken(lipschitz_bound=fails)])).state).bounds()


OddData = mine(ganlab.Dataset, sample_shape=(2,), examples=fails)


class Subclassed(keras.Model):
    """A model that is not a functional one, and may fail when it is called in training."""

    def __init__(self, units, *, fails=False):
        super().__init__()
        self.hidden, self.last, self.fails = keras.layers.Dense(8), keras.layers.Dense(units), fails

    def call(self, x, training=False):
        if self.fails and training:
            raise ValueError("mine")
        return self.last(tf.tanh(self.hidden(x)))


class Models(ganlab.Architecture):
    latent_dim = 3

    def __init__(self, generator, critic):
        self.generator, self.critic = (lambda shape: generator()), (lambda shape: critic())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (lambda: {"loss": mine(Wasserstein, generator=fails)()}, "Mine failed in generator: ValueError: mine"),
        (lambda: {"dataset": OddData()}, "Mine failed in examples: ValueError: mine"),
        (
            lambda: {"critic_optimizer": mine(keras.optimizers.SGD, from_config=classmethod(fails))()},
            "Mine failed in from_config: ValueError: mine",
        ),
        (lambda: {"architecture": Models(fails, fails)}, "Models failed in generator: ValueError: mine"),
        (
            lambda: {"architecture": Models(lambda: Subclassed(2), lambda: Subclassed(1, fails=True))},
            "Models failed in its critic: ValueError: mine",
        ),
        (
            lambda: {"architecture": Models(lambda: Subclassed(2), lambda: [Subclassed(1)])},
            r"Models returned \[.*\] as its critic; it must return a keras.Model",
        ),
        (
            lambda: {"architecture": Models(lambda: Subclassed(3), lambda: Subclassed(1))},
            r"generator .* returns the shape \(None, 3\); it must be \(None, 2\)",
        ),
        (lambda: {"architecture": Layers(critic=lambda x: x)}, r"critic .*\(None, 2\); it must be \(None, 1\)"),
    ],
    ids=["loss", "data", "optimizer", "architecture", "model", "no model", "another shape", "examples for scores"],
)
def test_every_other_part_is_named(parts, message):
    with pytest.raises(GanlabError, match=f"{message}") as caught:
        Trainer(small(0, **parts())).trace()
    if "ValueError" in message:
        assert re.search(r" \(test_failures\.py:\d+\)$", str(caught.value))


def test_a_subclassed_model_trains():
    models = Models(lambda: Subclassed(2), lambda: Subclassed(1))
    trainer = Trainer(small(0, architecture=models, constraints=[constraint("spectral_norm")]))
    assert np.isfinite(trainer.train(2)).all()
    assert len(trainer.state.critic.weights) == 4


def test_data_that_fails_outside_training_is_named():
    with pytest.raises(PluginError, match=r"^Mine failed in examples: ValueError: mine"):
        first_examples(OddData(), 3, seed=0)


def test_noise_on_folded_rows_states_the_rule():
    def folding(x):
        pairs = layers.Dropout(0.5)(keras.layers.Lambda(lambda y: tf.reshape(y, [-1, 1]), (1,))(x))
        return keras.layers.Dense(1)(keras.layers.Lambda(lambda y: tf.reshape(y, [-1, 2]), (2,))(pairs))

    with pytest.raises(ContractError) as caught:
        Trainer(small(0, architecture=Layers(critic=folding))).trace()
    assert str(caught.value).startswith(
        "critic draws random numbers of shape (24, 1); the first axis must be the local"
    )


class Torn(Points):
    """Points; the second cannot be read."""

    def __init__(self, how):
        super().__init__(np.zeros((40, 2)))
        self._how = how

    def examples(self, numbers, seed):
        if self._how == "python":

            def read(chosen):
                if 1 in chosen:
                    raise OSError("no point 1")
                return self._points[chosen]

            return tf.ensure_shape(tf.numpy_function(read, [numbers], tf.float32), (numbers.shape[0], 2))
        unreadable = tf.reduce_any(numbers == 1)
        with tf.control_dependencies([tf.debugging.Assert(~unreadable, ["Torn: no point 1"])]):
            return tf.gather(self._points, numbers)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("python", r"Training failed after step \d: Torn: OSError: no point 1"),
        ("graph", r"Training failed after step \d: Torn: no point 1 \(test_failures\.py:\d+\)"),
    ],
)
def test_unreadable_data_in_training_fails_the_run(how, message):
    trainer = Trainer(small(2, dataset=Torn(how)))
    with pytest.raises(TrainingFailedError, match=message) as caught:
        trainer.train(4)  # 48 numbers of 40 points: the second is among them
    assert isinstance(caught.value.__cause__, tf.errors.OpError)
    assert "\n" not in str(caught.value)


def test_out_of_memory_is_one_sentence(monkeypatch):
    # Simulated, because TensorFlow waits ten seconds for memory before it gives up.
    def exhausted(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[7,7] on GPU:0")

    trainer = Trainer(small(2))
    monkeypatch.setattr(trainer, "_chunk", exhausted)
    with pytest.raises(TrainingFailedError) as caught:
        trainer.train(1)
    assert str(caught.value) == (
        "Training failed after step 0: OOM when allocating tensor with shape[7,7] on GPU:0. There is not enough memory "
        "for experiment.batch_size = 12, 6 examples on each replica: lower it, use smaller networks, or spread the "
        "batch over more devices."
    )


def test_assertion_in_a_constraint_is_not_blamed_on_the_data():
    def penalty(self, critic, batch, state, replica):
        with tf.control_dependencies([tf.debugging.Assert(batch.step < 1, ["one update is enough"])]):
            return tf.zeros([batch.real.shape[0]])

    trainer = Trainer(small(0, constraints=[broken(penalty=penalty)]))
    trainer.train(1)
    with pytest.raises(TrainingFailedError, match=r"^Training failed after step 1: one update is enough \(test_f"):
        trainer.train(1)


def refused(error, **parts):
    with pytest.raises(error) as raised:
        Trainer(small(2, **parts)).trace()
    return str(raised.value)


def test_an_attribute_may_not_hide_a_method():
    class Weighted(ganlab.Constraint):
        def __init__(self):
            self.penalty = 10.0

    said = refused(ContractError, constraints=[Weighted()])
    assert said == (
        "Weighted sets self.penalty = 10.0, which hides its method penalty. Give the attribute another name, for "
        "example self._penalty."
    )


def test_a_method_that_is_missing_is_named():
    half = mine(ganlab.Loss, critic=Wasserstein.critic)()
    assert refused(PluginError, loss=half).startswith("Mine has no method generator, which it must have")
    asks = mine(Wasserstein, critic=lambda self, real, fake: ganlab.Dataset().conditions(real, 0))()
    assert refused(PluginError, loss=asks).startswith("Mine failed in critic: conditions is not implemented (")


@pytest.mark.slow
def test_a_loss_in_float64_is_that_in_float32_and_one_of_whole_numbers_is_refused():
    wide = mine(
        Wasserstein, critic=lambda self, real, fake: tf.cast(Wasserstein.critic(self, real, fake), tf.float64)
    )()
    one, other = (Trainer(small(2, loss=loss)).train(3) for loss in (Wasserstein(), wide))
    np.testing.assert_array_equal(one, other)
    whole = mine(Wasserstein, critic=lambda self, real, fake: tf.cast(real, tf.int32))()
    assert "Mine.critic returned the dtype int32; it must be float32." in refused(ContractError, loss=whole)


def look(**findings):
    return {"diagnostics": [mine(ganlab.Diagnostic, look=lambda self, critic: ganlab.Findings(**findings))()]}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (look(histograms={"h": [1, "x"]}), "Diagnostic mine found the histogram 'h' of [1, 'x']; it must be numbers."),
        (look(pictures={"p": "png"}), "Diagnostic mine found the picture 'p' of 'png'; it must be a PNG's bytes."),
        (
            {"evaluators": [mine(ganlab.Evaluator, evaluate=lambda *_: 0.5)()]},
            "Evaluator mine returned 0.5; it must return a dict of named",
        ),
        ({"constraints": [broken(penalty=lambda *_: 0.0)]}, "Constraint broken returned a penalty of shape ()"),
    ],
    ids=["histogram", "picture", "evaluator", "constraint"],
)
def test_what_a_part_may_not_return_is_named_and_leaves_no_run(parts, said, tmp_path):
    with pytest.raises(ContractError) as raised:
        ganlab.train(small(0, steps=2, **parts), tmp_path / "group" / "run")
    assert str(raised.value).startswith(said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["three", [3.0], {}])
def test_a_bound_must_be_a_number(value):
    bound = mine(ganlab.Constraint, lipschitz_bound=lambda self, weights: value)()
    state = Trainer(small(0, constraints=[bound], dataset=Points(np.zeros((4, 2))))).state
    with pytest.raises(ContractError, match=r"returned the Lipschitz bound .*; it must be one number"):
        Scorer(state).bounds()
