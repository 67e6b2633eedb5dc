"""The fixed generator: examples of the data plus noise of a known size, and nothing to train."""

import numpy as np
import pytest
import tensorflow as tf

import ganlab
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


def made(**arguments):
    dataset = ganlab.component("datasets", "gaussian_ring")()
    critic = ganlab.component("architectures", "mlp")(width=8, depth=2)
    return ganlab.component("architectures", "data_plus_noise")(**{"dataset": dataset, "critic": critic, **arguments})


def latent(n, width):
    return np.random.default_rng(0).normal(size=(n, width)).astype(np.float32)


def test_without_noise_it_gives_each_example_equally_often():
    architecture = made(std=0.0, examples=50)
    table = architecture.dataset.examples(tf.range(50, dtype=tf.int64), 0).numpy()
    drawn = architecture.generator((2,))(latent(20_000, 3)).numpy()
    which = np.linalg.norm(drawn[:, None] - table[None], axis=2)
    np.testing.assert_array_equal(which.min(axis=1), 0.0)
    # 400 of each of 50 are expected, with a standard deviation of 20.
    counts = np.bincount(which.argmin(axis=1), minlength=50)
    assert 300 < counts.min() <= counts.max() < 500


def test_the_noise_has_the_given_deviation():
    quiet, loud = made(std=0.0).generator((2,)), made(std=0.5).generator((2,))
    z = latent(20_000, 3)
    difference = (loud(z) - quiet(z)).numpy()
    np.testing.assert_allclose(difference, 0.5 * z[:, 1:], atol=1e-6)


def test_only_the_critic_is_trained_and_alike_on_two_replicas():
    sgd = ganlab.component("optimizers", "sgd")(learning_rate=0.01)

    def trained(replicas):
        experiment = ganlab.experiment(
            dataset=ganlab.component("datasets", "gaussian_ring")(),
            architecture=made(),
            loss=ganlab.component("losses", "wasserstein")(),
            strategy=ganlab.component("strategies", "mirrored")(virtual_replicas=replicas),
            critic_optimizer=sgd,
            generator_optimizer=sgd,
            batch_size=8,
            critic_steps=2,
            steps=5,
        )
        trainer = Trainer(experiment)
        start = {name: v.numpy() for name, v in trainer.state.variables().items()}
        trainer.train(5)
        return start, {name: v.numpy() for name, v in trainer.state.variables().items()}

    start, one = trained(1)
    _, two = trained(2)
    assert not [name for name in one if name.startswith("generator/weights")]
    assert all(not np.allclose(start[n], one[n], atol=1e-5) for n in one if n.startswith("critic/weights/hidden"))
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_samples_of_another_shape_are_refused():
    with pytest.raises(ganlab.IncompatibleError, match=r"examples of shape \(2,\).*of shape \(8, 8, 1\)"):
        made().generator((8, 8, 1))


def test_a_deviation_below_zero_is_refused():
    with pytest.raises(ganlab.ConfigError, match=r"data_plus_noise\.std = -1"):
        made(std=-1.0)
