"""evaluators.condition_accuracy and evaluators.reconstruction, against numbers by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from measured import measure
from small import Points, constraint, small

import ganlab
from ganlab.training.loading import load_trained


class Drawn:
    """Samples of a function of what is given, in the place of a generator's."""

    def __init__(self, function, name, given):
        self._function, self._name, self._given = function, name, given

    def given(self, n, seed):
        return {self._name: self._given[:n]}

    def __call__(self, n, seed, **asked):
        return self._function(asked.get(self._name, self._given[:n]))


SHOWERS = ganlab.component("datasets", "showers")(layers=3, resolution=0.2)
ASKED = np.random.default_rng(0).uniform(0.5, 1.5, (4000, 1))


def accuracy(function):
    return measure("condition_accuracy", Drawn(function, "conditions", ASKED), SHOWERS, samples=4000, bins=4)


def test_samples_like_the_data_are_as_good_as_the_data():
    random = np.random.default_rng(1)

    def like(energy):
        means = energy * SHOWERS.shares
        return means + 0.2 * np.sqrt(means) * random.standard_normal(means.shape)

    figures = accuracy(like)
    # The correlation of E and E + a sqrt(E) e: sqrt(v / (v + a^2 m)) with variance v and mean m of E.
    expected = np.sqrt((1 / 12) / (1 / 12 + 0.04))
    assert figures["correlation"] == pytest.approx(expected, abs=0.02)
    assert figures["real_correlation"] == pytest.approx(expected, abs=0.02)
    assert max(figures["mean_error"], figures["spread_error"]) < 0.2


def test_samples_that_ignore_what_is_asked_are_uncorrelated_and_far_off_in_the_outer_bins():
    random = np.random.default_rng(2)
    figures = accuracy(lambda energy: np.repeat(random.uniform(0.5, 1.5, energy.shape), 3, axis=1) / 3)
    assert abs(figures["correlation"]) < 0.06
    # The means of the outer quarters lie 0.375 from 1; deviations of a bin are sqrt(0.25^2 / 12 + 0.04 E).
    assert figures["mean_error"] == pytest.approx(0.375 / np.sqrt(0.25**2 / 12 + 0.04 * 0.625), rel=0.15)


def test_samples_of_exactly_the_asked_energy_are_too_narrow():
    figures = accuracy(lambda energy: energy * np.array([0.0, 1.0, 0.0]))
    assert figures["correlation"] == pytest.approx(1.0)
    assert figures["mean_error"] < 0.1
    expected = 1 - (0.25 / np.sqrt(12)) / np.sqrt(0.25**2 / 12 + 0.04 * 1.375)
    assert figures["spread_error"] == pytest.approx(expected, rel=0.15)


def test_reconstruction_is_the_difference_from_the_examples_of_the_sources():
    edges = ganlab.component("datasets", "edges")(side=8, size=50)
    real = edges.examples(tf.range(50, dtype=tf.int64), 0).numpy()
    drawn = Drawn(lambda source: np.repeat(source, 3, axis=-1) / 2, "source", np.ones((5, 8, 8, 1)))
    figures = measure("reconstruction", drawn, edges, samples=80)
    apart = edges.sources(tf.range(50, dtype=tf.int64), 0).numpy() / 2 - real
    assert figures == pytest.approx({"absolute_error": np.abs(apart).mean(), "squared_error": (apart**2).mean()})


def test_the_cosine_of_ways_is_that_of_directions_and_the_optimal_critics_gradient():
    cube = ganlab.component("datasets", "min_funnels")(dims=6, moved=False)
    x = np.asarray(cube.sources(tf.range(200, dtype=tf.int64), 0))
    way = np.random.default_rng(0).normal(size=x.shape)
    best = np.asarray(cube.potential_gradient(x), float)  # of length one
    found = measure("reconstruction", Drawn(lambda x: x - way, "source", x), cube, samples=200)
    expected = (way * best).sum(axis=1) / np.linalg.norm(way, axis=1)
    assert found["cosine"] == pytest.approx(expected.mean(), abs=1e-4)


def of_ali(generator, network, dataset, run):
    real = dataset.examples(tf.range(1000, dtype=tf.int64), 0).numpy()
    apart = generator(network("encoder")(real)["mean"]).numpy() - real
    return {"absolute_error": np.abs(apart).mean(), "squared_error": (apart**2).mean()}


def of_cyclegan(generator, network, dataset, run):
    back, source = network("back"), load_trained(run).sample.given(1000, 0)["source"]
    real = dataset.examples(tf.range(1000, dtype=tf.int64), 0).numpy()
    ways = {"error": generator(back(real)) - real, "source_error": back(generator(source)) - source}
    return {name: np.abs(apart).mean() for name, apart in ways.items()}


def test_cycle_errors_are_those_of_the_one_way_back():
    def network(inputs, outputs):
        x = keras.Input((inputs,))
        return keras.Model(x, keras.layers.Dense(outputs)(x))

    drawn, ring = Drawn(lambda x: 2 * x, "source", ASKED.repeat(2, 1)), ganlab.component("datasets", "gaussian_ring")()
    ways = {"one": (network(2, 3), None), "two": (network(2, 2), lambda x: x / 2 + 1)}
    drawn.networks = lambda: ways
    assert measure("cycle_error", drawn, ring) == pytest.approx({"error": 2.0, "source_error": 1.0})
    ways["three"] = ways["two"]
    with pytest.raises(ganlab.IncompatibleError, match="needs a generator that takes a source, and a further network"):
        measure("cycle_error", drawn, ring)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "loss", "name", "by_hand"),
    [("ali", "ali", "reconstruction", of_ali), ("cyclegan", "cycle", "cycle_error", of_cyclegan)],
)
def test_ways_back_are_found_by_what_they_map_with_the_averaged_weights(cpus, game, loss, name, by_hand, tmp_path):
    data = [ganlab.component("datasets", each)() for each in ("gaussian_ring", "swiss_roll")]
    given = {
        "dataset": data[0],
        "source": data[1] if game == "cyclegan" else None,
        "architecture": ganlab.component("architectures", game)(width=8),
        "loss": ganlab.component("losses", loss)(),
        "network_constraints": {"encoder" if game == "ali" else "back": [constraint("weight_normalization")]},
        "ema_decay": 0.5,
        "evaluators": [ganlab.component("evaluators", name)()],
    }
    run = ganlab.train(small(2, steps=3, evaluate_every=3, **given), tmp_path / "run")
    generator, network = run.generator(), run.network
    expected = by_hand(generator, network, data[0], run)
    figures = {key.removeprefix(f"{name}/"): value for key, value in run.info["evaluation"].items()}
    assert figures == pytest.approx(expected, rel=1e-5)
    assert run.evaluate(name) == pytest.approx({f"{name}/{key}": value for key, value in expected.items()}, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cycle_error", "a further network that makes"),
        ("condition_accuracy", "takes conditions"),
        ("reconstruction", "dataset of pairs"),
    ],
)
def test_other_data_are_refused(name, message):
    with pytest.raises(ganlab.errors.IncompatibleError, match=message):
        measure(name, Drawn(lambda x: x, "labels", ASKED), Points(ASKED))
