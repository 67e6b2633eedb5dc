"""Components that need settings or images, numbers near zero, and losses with statistics of the whole batch."""

import numpy as np
import pytest
import tensorflow as tf
from command_lines import command
from ganlab_verify.lab import FLOOR, _near
from ganlab_verify.testing import LossConformance, parts
from ganlab_verify.testing.settings import maker, settings
from ganlab_verify.testing.trials import Trials
from outcomes import conformance, outcomes

import ganlab
from ganlab.functional import slopes
from ganlab.plugins.manager import current

pytestmark = pytest.mark.usefixtures("cpus")


class Square(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        return slopes(critic, batch.real) ** 2


class LargeImages(Square):
    """Refuses all but images of 16 pixels and more."""

    def prepare(self, critic):
        if len(critic.input_shape) != 4 or critic.input_shape[1] < 16:
            raise ganlab.IncompatibleError("It wants images of 16 pixels.")


class Flipped(Square):
    """Fails on examples that are not images."""

    def penalty(self, critic, batch, state, replica):
        return slopes(critic, tf.image.flip_left_right(batch.real)) ** 2


class Failing(Square):
    def penalty(self, critic, batch, state, replica):
        raise RuntimeError("not written yet")


@pytest.mark.parametrize(
    ("constraint", "asked", "shape"),
    [
        (Square, None, (2,)),
        (LargeImages, None, (16, 16, 1)),
        (Flipped, None, (8, 8, 1)),
        (Square, (3,), (3,)),
        (Square, (8, 12, 2), (8, 12, 2)),
    ],
)
def test_the_bench_has_examples_that_the_constraint_accepts(constraint, asked, shape):
    trials = Trials(constraint, None, asked)
    assert tuple(trials.bench.batch.real.shape[1:]) == trials.shape == shape
    assert trials.experiment().dataset.sample_shape == shape


def test_a_constraint_that_fails_everywhere_is_reported():
    found = outcomes(conformance(Failing), only=("test_rows_are_independent",))
    assert "not written yet" in found["test_rows_are_independent"]


def test_a_constraint_for_images_alone_is_checked():
    only = ("test_rows_are_independent", "test_values_and_gradients_are_finite", "test_a_convolutional_critic")
    assert set(outcomes(conformance(LargeImages), only=only).values()) == {"passed"}


class Relative(parts.Wasserstein):
    """Compares scores with the mean over all replicas."""

    def critic(self, real_scores, fake_scores):
        return tf.nn.softplus(self.mean(fake_scores) - real_scores) + tf.nn.softplus(fake_scores)

    def mean(self, scores):
        context = tf.distribute.get_replica_context()
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.reduce_sum(scores))
        return total / (scores.shape[0] * context.num_replicas_in_sync)


class Local(Relative):
    """Compares scores with the mean over the replica alone."""

    def mean(self, scores):
        return tf.reduce_mean(scores)


@pytest.mark.slow
def test_a_loss_may_take_statistics_of_the_whole_batch():
    only = ("test_rows_are_independent", "test_two_replicas_train_as_one_device")
    found = outcomes(conformance(Relative, LossConformance), only=only)
    assert found["test_two_replicas_train_as_one_device"] == "passed"
    assert found["test_rows_are_independent"].startswith("skipped: critic takes statistics over the batch")
    found = outcomes(conformance(Local, LossConformance), only=only)
    assert "two replicas do not train as one device does" in found["test_rows_are_independent"]
    assert found["test_two_replicas_train_as_one_device"].startswith("On 2 replicas")


def test_rounding_near_zero_is_not_a_departure():
    zero = np.zeros(3)
    assert _near(zero, zero + 0.9 * FLOOR)
    assert not _near(zero, zero + 3 * FLOOR)
    assert not _near(np.full(3, 1e-3), np.full(3, 1.1e-3))


def components(*names):
    return [current().component(*name.split(".")) for name in names]


@pytest.mark.usefixtures("fresh_plugins")
def test_settings_are_read_like_experiment_files():
    checked = components("constraints.gradient_penalty", "evaluators.kid")
    names = ["gradient_penalty.weight=3", "evaluators.kid.features=@features.pixels()"]
    given = settings(checked, names)
    assert given["constraints.gradient_penalty"] == {"weight": 3}
    made = maker(checked[1], given["evaluators.kid"])
    assert made() is not made()
    assert settings(checked[:1], ["weight=3"]) == {"constraints.gradient_penalty": {"weight": 3}}


@pytest.mark.parametrize(
    ("name", "param", "message"),
    [
        ("losses.hinge", "margin", "--param 'margin': must have the form NAME=VALUE"),
        ("constraints.r1", "gama=3", "--param 'gama=3': constraints.r1 has no parameter 'gama'. Did you mean"),
        ("constraints.r1", "r1.gamma=much", "--param 'r1.gamma=much': constraints.r1.gamma"),
        ("constraints.r1", "r2.weight=1", "'r2' is not among the components to check."),
        ("ganlab_losses", "weight=1", "several components are checked. Name one, for example"),
    ],
)
@pytest.mark.usefixtures("fresh_plugins")
def test_an_invalid_setting_fails_before_anything_starts(name, param, message):
    assert message in command("plugins", "check", name, "--param", param, code=2)


@pytest.mark.parametrize("shape", ["x", "0", "2,2", "1,2,3,4", "-3"])
def test_an_invalid_shape_fails(shape):
    said = command("plugins", "check", "constraints.r1", f"--shape={shape}", code=2)
    assert "must be a length, for example 2, or height, width and channels" in said
