"""A fixed generator: samples of another dataset, and nothing to train."""

import numpy as np
import pytest
import tensorflow as tf

import ganlab

pytestmark = pytest.mark.usefixtures("cpus")


def made(dataset, **arguments):
    critic = ganlab.component("architectures", "mlp")(width=8)
    return ganlab.component("architectures", "fixed_samples")(dataset=dataset, critic=critic, **arguments)


def latent(n):
    return np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)


def test_samples_of_a_synthetic_dataset_hardly_repeat_and_have_its_distribution():
    dataset = ganlab.component("datasets", "min_funnels")(dims=3, moved=False)
    drawn = made(dataset).generator((3,))(latent(20_000)).numpy()
    assert len(np.unique(drawn, axis=0)) > 19_990
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose(drawn.std(axis=0), 5 / 12**0.5, atol=0.03)
    # Under another seed there are other points.
    assert np.abs(made(dataset, seed=2).generator((3,))(latent(20_000)).numpy() - drawn).mean() > 0.5


def test_examples_of_a_finite_dataset_are_equally_frequent(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(10.0).reshape(10, 1))
    dataset = ganlab.component("datasets", "arrays")(path=str(tmp_path / "rows.npy"))
    drawn = made(dataset).generator((1,))(latent(20_000)).numpy().ravel()
    # 2,000 of each of 10 are expected, with a standard deviation of 42.
    counts = np.bincount(drawn.astype(int), minlength=10)
    assert 1800 < counts.min() <= counts.max() < 2200


def test_extreme_latent_numbers_have_an_example():
    dataset = ganlab.component("datasets", "gaussian_ring")()
    drawn = made(dataset).generator((2,))(tf.constant([[-np.inf, np.inf], [40.0, -40.0]]))
    assert np.isfinite(drawn).all()


def test_another_shape_is_refused():
    with pytest.raises(ganlab.IncompatibleError, match=r"fixed_samples returns examples of shape \(2,\)"):
        made(ganlab.component("datasets", "gaussian_ring")()).generator((3,))


def test_coupled_samples_share_the_draws_of_the_examples():
    make = ganlab.component("datasets", "min_funnels")
    real, numbers = make(dims=3), tf.range(2**41, 2**41 + 4096, dtype=tf.int64)
    pairs = real.examples(numbers, 0) - made(make(dims=3, moved=False)).coupled(numbers, 0)
    # The pairs are those of the optimal plan.
    assert float(tf.reduce_mean(tf.norm(pairs, axis=1))) == pytest.approx(real.wasserstein, rel=0.03)


def test_a_finite_dataset_has_no_coupled_samples(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(10.0).reshape(10, 1))
    assert made(ganlab.component("datasets", "arrays")(path=str(tmp_path / "rows.npy"))).coupled([3], 0) is None
