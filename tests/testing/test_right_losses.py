"""Losses that judge by examples, or by scores without a direction, and factories that make classes, pass the kit."""

import keras
import pytest
from ganlab_verify.testing import LossConformance, parts
from outcomes import conformance, outcomes

import ganlab
from ganlab.lazy import tensorflow as tf

pytestmark = pytest.mark.usefixtures("cpus")

HIGHER, ROUND_TRIP = "test_the_critic_wants_real_scores_higher", "test_gin_round_trip"


def sinkhorn():
    return ganlab.component("losses", "sinkhorn")(iterations=10)


class MaxSliced(ganlab.Loss):
    """The squared distance of sorted scores, which are the same with real and fake exchanged."""

    pairs = True

    def _gap(self, one, other, replica):
        one, other = (tf.sort(replica.gather(scores)) for scores in (one, other))
        return tf.reduce_mean(tf.square(one - other))

    def critic(self, real_scores, fake_scores, replica):
        return tf.fill(real_scores.shape, -self._gap(real_scores, fake_scores, replica))

    def generator(self, fake_scores, real_scores, replica):
        return tf.fill(fake_scores.shape, self._gap(real_scores, fake_scores, replica))


@pytest.mark.parametrize("made", [sinkhorn, MaxSliced])
def test_a_loss_without_a_direction_need_not_prefer_higher_scores(made):
    only = ["test_shapes_and_dtypes", HIGHER]
    found = outcomes(conformance(made, LossConformance), only=only)
    assert found["test_shapes_and_dtypes"] == "passed"
    assert found[HIGHER].startswith("skipped: Neither method prefers higher scores")


class Turned(parts.Wasserstein):
    """A critic without a direction, and a generator with the wrong one."""

    def critic(self, real_scores, fake_scores):
        return -tf.square(real_scores - fake_scores)

    def generator(self, fake_scores):
        return fake_scores


def test_a_direction_of_the_generator_alone_is_judged():
    assert "generator is not lower" in outcomes(conformance(Turned, LossConformance), only=[HIGHER])[HIGHER]


class Distances(parts.Wasserstein):
    """Compares images by their first axes, and latent vectors of five."""

    def critic(self, real_scores, fake_scores, batch):
        assert batch.real.shape[1:] == batch.fake.shape[1:] == (8, 8, 1)
        assert batch.latent.shape[1:] == (5,)
        return fake_scores - real_scores + 0.0 * tf.reduce_sum(batch.latent, axis=1)


def test_a_class_names_the_shapes_of_samples_and_latent_vectors():
    only = ["test_shapes_and_dtypes", "test_training_stays_finite"]
    kind = conformance(Distances, LossConformance, sample_shape=(8, 8, 1), latent_dim=5)
    assert set(outcomes(kind, only=only).values()) == {"passed"}


def scaled(scale: float = 2.0):
    class Scaled(parts.Wasserstein):
        def generator(self, fake_scores):
            return -scale * fake_scores

    return Scaled()


PLUGIN = """
import ganlab
from test_right_losses import scaled


@ganlab.hookimpl
def ganlab_losses():
    return {"scaled": scaled}
"""


@pytest.mark.usefixtures("fresh_plugins")
def test_a_factory_may_make_the_class_of_what_it_returns(tmp_path):
    found = outcomes(conformance(scaled, LossConformance), only=[ROUND_TRIP])[ROUND_TRIP]
    assert (
        "class that is made anew each time, which does not record how it was made. Make it by its registered factory"
        in found
    )
    (tmp_path / "own.py").write_text(PLUGIN)
    ganlab.use_plugin_file(tmp_path / "own.py")

    def made():
        return ganlab.component("losses", "scaled")(scale=3.0)

    assert outcomes(conformance(made, LossConformance), only=[ROUND_TRIP]) == {ROUND_TRIP: "passed"}


class Energies(parts.Points):
    """Points and three numbers each."""

    condition_shape = (3,)

    def conditions(self, numbers, seed):
        return ganlab.functional.example_normal(numbers, 3, seed, stream=5)


class OfEnergies(ganlab.Architecture):
    """A generator and a critic of conditions."""

    latent_dim = 2

    def _network(self, length, condition_shape, outputs):
        x, y = keras.Input((length,)), keras.Input(condition_shape, name="conditions")
        return keras.Model([x, y], keras.layers.Dense(outputs)(keras.layers.Concatenate()([x, y])))

    def generator(self, sample_shape, condition_shape):
        return self._network(self.latent_dim, condition_shape, *sample_shape)

    def critic(self, sample_shape, condition_shape):
        return self._network(*sample_shape, condition_shape, 1)


class CallsByName(parts.Wasserstein):
    """Scores points halfway to the samples, under the conditions of the real ones."""

    def critic(self, real_scores, fake_scores, batch, networks):
        halfway = networks["critic"](0.5 * (batch.real + batch.fake))
        return fake_scores - real_scores + 0.1 * tf.square(halfway)


def test_a_loss_is_tested_on_its_own_data_and_their_conditions():
    class Suite(conformance(CallsByName, LossConformance)):
        def architecture(self):
            return OfEnergies()

        def dataset(self):
            return Energies()

    only = ["test_shapes_and_dtypes", "test_rows_are_independent", HIGHER, "test_training_stays_finite"]
    assert set(outcomes(Suite, only=only).values()) == {"passed"}
