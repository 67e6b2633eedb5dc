"""Side outputs of augmentations: one for each row, in the batch and for a critic that declares them."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify import lab
from small import Layers, assert_same

import ganlab
from ganlab.engine import noise
from ganlab.functional import slopes
from ganlab.testing import AugmentationConformance

pytestmark = pytest.mark.usefixtures("cpus")

SLOPE = np.array([3.0, 4.0], np.float32)


class Shift(ganlab.Augmentation):
    """Moves each example by a number of its own, which it tells."""

    def apply(self, x, state, replica):
        t = replica.uniform([x.shape[0]])
        return x + t[:, None], {"t": t}


class Replaced(ganlab.Augmentation):
    """Puts random numbers in the place of the examples, and tells that it did."""

    def apply(self, x, state, replica):
        return 0.0 * x + replica.normal(x.shape), {"t": tf.ones([x.shape[0]])}


class Networks(Layers):
    """A critic `(1 + t) (3, 4) x`, if its weights are left as they are, and a generator of points."""

    def critic(self, sample_shape):
        x, t = keras.Input(sample_shape), keras.Input((), name="t")
        y = keras.layers.Dense(1, use_bias=False, kernel_initializer=keras.initializers.Constant(SLOPE[:, None]))(x)
        return keras.Model([x, t], y * (1.0 + keras.layers.Reshape((1,))(t)))


class Slope(ganlab.Constraint):
    """Logs the critic's slope between real and fake of each row less what its side output makes of it."""

    def penalty(self, critic, batch, state, replica):
        a = replica.uniform([batch.real.shape[0]])[:, None]
        slope = slopes(critic, a * batch.real + (1.0 - a) * batch.fake)
        replica.log("slope", slope)
        replica.log("off", tf.abs(slope - 5.0 * (1.0 + batch.side["t"])), reduce="max")
        replica.log("apart", tf.abs(batch.real - batch.fake), reduce="max")
        return slope**2


def training(replicas=0, augmentations=(), **given):
    parts = {"architecture": Networks(), "constraints": [Slope()], "augmentations": list(augmentations)}
    return lab.Training(lab.experiment(replicas=replicas, **{**parts, **given}))


def test_a_penalty_differentiates_the_critic_with_the_side_output_fixed():
    """The slope of (1 + t) w x is (1 + t) |w|: t of each row as the first augmentation drew it."""
    t = noise.whole("uniform", (12,), seed=0, stream=noise.AUGMENTATIONS).numpy()
    found = training(augmentations=[Shift()]).train(1).reduced()
    np.testing.assert_allclose(found["constraints/slope/slope"], [5.0 * (1.0 + t.mean())], rtol=1e-6)
    assert found["constraints/slope/off"][0] < 1e-5
    # The generator's update has a t of its own for each row: minus its loss is the mean score.
    still = training(augmentations=[Shift()], constraints=[], rates=(0.0, 0.0)).train(1)
    z = noise.whole("normal", (12, 3), seed=0, stream=noise.LATENT)
    samples = still.trainer.state.generator.network.model(z).numpy()
    t = noise.whole("uniform", (12,), seed=0, stream=noise.AUGMENTATIONS + 2).numpy()
    expected = np.mean(-(1.0 + t) * ((samples + t[:, None]) @ SLOPE))
    np.testing.assert_allclose(still.reduced()["generator/loss"], [expected], rtol=1e-5, atol=1e-6)


def test_real_and_fake_rows_have_the_same_random_numbers():
    assert training(augmentations=[Replaced()]).train(1).reduced()["constraints/slope/apart"][0] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"replicas": 2}, {"microbatches": 3}, {"jit": "on"}, {"rematerialize": True}])
def test_every_way_of_training_gives_the_same(given):
    one = training(augmentations=[Shift()]).train(3).still()
    other = training(augmentations=[Shift()], **given).train(3).still()
    assert_same(one, other)


def test_a_critic_with_an_input_that_nothing_gives_is_refused():
    with pytest.raises(ganlab.IncompatibleError, match="takes 't' beside examples, and no augmentation gives it"):
        training(augmentations=[Still()]).train(1)
    with pytest.raises(ganlab.IncompatibleError, match="an augmentation that gives further inputs"):
        training()


class Still(ganlab.Augmentation):
    def apply(self, x, state, replica):
        return x


class Short(ganlab.Augmentation):
    """Tells one number for all rows."""

    def apply(self, x, state, replica):
        return x, {"t": tf.ones([])}


@pytest.mark.parametrize("wrong", [[Short()], [Shift(), Shift()]])
def test_a_side_output_has_a_row_for_each_example_and_a_name_of_its_own(wrong):
    with pytest.raises(ganlab.ContractError, match="returned side outputs, side/t, without a row for each"):
        training(augmentations=wrong).train(1)


@pytest.mark.parametrize("inside", ["ada", "consistency"])
def test_an_augmentation_with_side_outputs_is_refused_inside_another_component(inside):
    kind, name = ("augmentations", "ada") if inside == "ada" else ("constraints", "augmentation_consistency")
    outer = lab.Training(lab.experiment(**{kind: [ganlab.component(kind, name)(augmentation=Shift())]}))
    with pytest.raises(ganlab.IncompatibleError, match="has side outputs, which no critic gets from inside there"):
        outer.train(1)


@pytest.mark.conformance
class TestShift(AugmentationConformance):
    def make(self):
        return Shift()


class Measuring(ganlab.Augmentation):
    """Tells what the examples are."""

    def apply(self, x, state, replica):
        return x, {"mean": tf.reduce_mean(x, axis=1)}


def test_the_kit_finds_side_outputs_that_examples_decide():
    class Checked(AugmentationConformance):
        __test__ = False

        def make(self):
            return Measuring()

    with pytest.raises(pytest.fail.Exception, match="apply returns side/mean by what the examples are"):
        Checked().test_side_outputs_are_drawn()
