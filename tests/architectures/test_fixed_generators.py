"""Fixed generators, with nothing to train: examples of the data plus noise, and samples of another dataset."""

import numpy as np
import pytest
import tensorflow as tf

import ganlab

pytestmark = pytest.mark.usefixtures("cpus")


def made(name, dataset, **arguments):
    critic = ganlab.component("architectures", "mlp")(width=8, depth=2)
    return ganlab.component("architectures", name)(dataset=dataset, critic=critic, **arguments)


def plus_noise(**arguments):
    return made("data_plus_noise", ganlab.component("datasets", "gaussian_ring")(), **arguments)


def fixed_samples(dataset, **arguments):
    return made("fixed_samples", dataset, **arguments)


def latent(n, width):
    return np.random.default_rng(0).normal(size=(n, width)).astype(np.float32)


def test_without_noise_it_gives_each_example_equally_often():
    architecture = plus_noise(std=0.0, examples=50)
    table = architecture.dataset.examples(tf.range(50, dtype=tf.int64), 0).numpy()
    drawn = architecture.generator((2,))(latent(20_000, 3)).numpy()
    which = np.linalg.norm(drawn[:, None] - table[None], axis=2)
    np.testing.assert_array_equal(which.min(axis=1), 0.0)
    # 400 of each of 50 are expected, with a standard deviation of 20.
    counts = np.bincount(which.argmin(axis=1), minlength=50)
    assert 300 < counts.min() <= counts.max() < 500


def test_the_noise_has_the_given_deviation():
    quiet, loud = plus_noise(std=0.0).generator((2,)), plus_noise(std=0.5).generator((2,))
    z = latent(20_000, 3)
    difference = (loud(z) - quiet(z)).numpy()
    np.testing.assert_allclose(difference, 0.5 * z[:, 1:], atol=1e-6)


@pytest.mark.parametrize("name", ["data_plus_noise", "fixed_samples"])
def test_examples_of_another_shape_are_refused(name):
    with pytest.raises(ganlab.IncompatibleError, match=rf"{name} .* examples of shape \(2,\).*\(8, 8, 1\)"):
        made(name, ganlab.component("datasets", "gaussian_ring")()).generator((8, 8, 1))


def test_samples_of_a_synthetic_dataset_hardly_repeat_and_have_its_distribution():
    dataset = ganlab.component("datasets", "min_funnels")(dims=3, moved=False)
    drawn = fixed_samples(dataset).generator((3,))(latent(20_000, 2)).numpy()
    assert len(np.unique(drawn, axis=0)) > 19_990
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose(drawn.std(axis=0), 5 / 12**0.5, atol=0.03)
    # Under another seed there are other points.
    assert np.abs(fixed_samples(dataset, seed=2).generator((3,))(latent(20_000, 2)).numpy() - drawn).mean() > 0.5


def test_examples_of_a_finite_dataset_are_equally_frequent(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(10.0).reshape(10, 1))
    dataset = ganlab.component("datasets", "arrays")(path=str(tmp_path / "rows.npy"))
    drawn = fixed_samples(dataset).generator((1,))(latent(20_000, 2)).numpy().ravel()
    # 2,000 of each of 10 are expected, with a standard deviation of 42.
    counts = np.bincount(drawn.astype(int), minlength=10)
    assert 1800 < counts.min() <= counts.max() < 2200


def test_extreme_latent_numbers_have_an_example():
    dataset = ganlab.component("datasets", "gaussian_ring")()
    drawn = fixed_samples(dataset).generator((2,))(tf.constant([[-np.inf, np.inf], [40.0, -40.0]]))
    assert np.isfinite(drawn).all()


def test_coupled_samples_share_the_draws_of_the_examples():
    make = ganlab.component("datasets", "min_funnels")
    real, numbers = make(dims=3), tf.range(2**41, 2**41 + 4096, dtype=tf.int64)
    pairs = real.examples(numbers, 0) - fixed_samples(make(dims=3, moved=False)).coupled(numbers, 0)
    # The pairs are those of the optimal plan.
    assert float(tf.reduce_mean(tf.norm(pairs, axis=1))) == pytest.approx(real.wasserstein, rel=0.03)


def test_a_finite_dataset_has_no_coupled_samples(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(10.0).reshape(10, 1))
    assert (
        fixed_samples(ganlab.component("datasets", "arrays")(path=str(tmp_path / "rows.npy"))).coupled([3], 0) is None
    )
