"""Scores of 24 images against 24 by random weights, against pytorch-fid and torch-fidelity; files and memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ganlab_builtin.evaluators import published_scores
from ganlab_builtin.evaluators.streaming import Moments, rows_in_a_file
from measured import frechet
from small import Points

import ganlab

FEATURES = Path(__file__).parents[1] / "features"
REFERENCE = json.loads((FEATURES / "published_network.json").read_text())


class Few(ganlab.Features):
    def __init__(self, scale=1.0):
        random = np.random.default_rng(0)
        self.kernel, self.last = scale * random.normal(size=(12, 8)), random.normal(size=(8, 3))

    def embed(self, x):
        return np.tanh(x.reshape(len(x), -1) @ self.kernel)

    def probabilities(self, x):
        e = np.exp(self.embed(x) @ self.last)
        return e / e.sum(axis=1, keepdims=True)


def points(count, seed=0, move=0.0):
    return np.random.default_rng(seed).normal(size=(count, 2, 2, 3)).astype(np.float32) + np.float32(move)


def scores(**arguments):
    return ganlab.component("evaluators", "published_scores")(**{"features": Few()} | arguments)


ALONE = {"subsets": 0, "splits": 0, "nearest": 0}  # the Frechet distance


def sampler(x):
    def sample(n, seed, start=0):
        return x[start : start + n]

    return sample


@pytest.mark.slow
def test_inception_score_is_over_the_parts_of_its_authors():
    """13 rows in 5 parts: 2, 3, 2, 3, 3, where numpy.array_split would have 3, 3, 3, 2, 2."""
    given = np.random.default_rng(0).dirichlet(np.ones(4), size=13).astype(np.float32)
    expected = []
    for i in range(5):
        part = given[i * 13 // 5 : (i + 1) * 13 // 5].astype(np.float64)
        expected.append(np.exp((part * (np.log(part) - np.log(part.mean(0)))).sum(1).mean()))
    with rows_in_a_file() as rows:
        rows.add(given)
        found = published_scores._inception_score(rows, 5)
    assert found["inception_score"] == pytest.approx(np.mean(expected), rel=1e-6)
    assert found["inception_score_deviation"] == pytest.approx(np.std(expected), rel=1e-6)


@pytest.mark.slow
def test_the_whole_chain_is_that_of_both_packages(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(FEATURES))
    import published_network as reference
    from ganlab_builtin.features import inception_2015

    path = tmp_path / "random.npz"
    shapes = inception_2015.shapes()
    np.savez(path, **{name: reference.rebuild_array(name, shape) for name, shape in shapes.items()})
    real, generated = (reference.folder(which).astype(np.float32) / 127.5 - 1 for which in (0, 1))
    count = reference.COUNT

    def measured(samples, resizing="tensorflow", **arguments):
        inception = ganlab.component("features", "inception")(path=str(path), resizing=resizing)
        evaluator = scores(features=inception, samples=count, **ALONE | arguments)
        return evaluator.evaluate(sampler(samples), Points(real), None)

    subsets = {"subsets": reference.SUBSETS, "subset_size": reference.SUBSET}
    found = measured(generated, **subsets, nearest=count, neighbours=reference.NEIGHBOURS)
    there = REFERENCE["torch_fidelity"]
    assert found["frechet_distance"] == pytest.approx(there["fid"], rel=1e-4)
    kernel = there["kid_of_subsets"]
    assert found["kernel_distance"] == pytest.approx(kernel["kernel_inception_distance_mean"], rel=1e-4)
    assert found["kernel_distance_deviation"] == pytest.approx(kernel["kernel_inception_distance_std"], rel=1e-4)
    assert found["precision"] == pytest.approx(there["prc"]["precision"], abs=1e-6)
    assert found["recall"] == pytest.approx(there["prc"]["recall"], abs=1e-6)

    # torch-fidelity's samples were shuffled by this.
    order = np.random.default_rng(0).permutation(count)
    found = measured(generated[order], splits=reference.SPLITS)
    assert found["inception_score"] == pytest.approx(there["isc"]["inception_score_mean"], rel=1e-4)
    assert found["inception_score_deviation"] == pytest.approx(there["isc"]["inception_score_std"], rel=1e-3)

    found = measured(generated, resizing="pytorch")
    assert found["frechet_distance"] == pytest.approx(REFERENCE["pytorch_fid"]["fid"], rel=1e-4)


def test_scores_are_those_of_all_rows_at_once():
    real, generated = points(700), points(1300, seed=1, move=0.3)
    found = scores(samples=1300, subsets=7, subset_size=100, splits=10, nearest=500).evaluate(
        sampler(generated), Points(real), None
    )
    features = Few()
    expected = frechet(features.embed(generated), features.embed(real))
    assert found["frechet_distance"] == pytest.approx(expected, rel=1e-6)
    parts = [features.probabilities(part) for part in np.split(generated, 10)]
    one = [np.exp(np.mean(np.sum(p * np.log(p / p.mean(0)), axis=1))) for p in parts]
    assert found["inception_score"] == pytest.approx(np.mean(one), rel=1e-6)
    assert found["inception_score_deviation"] == pytest.approx(np.std(one), rel=1e-5)
    assert (found["samples"], found["real_examples"]) == (1300, 700)
    assert 0 < found["kernel_distance"] < 1
    assert 0 < found["precision"] <= 1


def test_one_sample_that_is_not_finite_leaves_no_score():
    generated = points(60, seed=1)
    generated[50, 0, 0, 0] = np.inf  # behind the first examples and in few subsets; `Few` would make it 1
    evaluator = scores(samples=60, subsets=2, subset_size=3, splits=2, nearest=20)
    found = evaluator.evaluate(sampler(generated), Points(points(60)), None)
    assert {name for name, value in found.items() if np.isfinite(value)} == {"samples", "real_examples"}
    assert len(found) > 8


def test_statistics_are_written_and_read(tmp_path):
    real, generated, file = points(300), points(200, seed=1), tmp_path / "kept" / "real.npz"
    few = {"samples": 200, "statistics": str(file), **ALONE}
    evaluator = scores(**few)
    first = evaluator.evaluate(sampler(generated), Points(real), None)
    evaluator.write_statistics()
    kept = np.load(file)
    np.testing.assert_allclose(kept["mu"], Few().embed(real).mean(0), rtol=1e-6)
    np.testing.assert_allclose(kept["sigma"], np.cov(Few().embed(real).T), rtol=1e-5, atol=1e-9)

    class Unread(Points):
        def examples(self, numbers, seed):
            raise AssertionError("the examples are read")

        def fingerprint(self):
            return Points(real).fingerprint()

    again = scores(**few)
    assert again.evaluate(sampler(generated), Unread(real), None) == pytest.approx(first, rel=1e-9)
    assert again.diagnose({}) is None
    for more, data, message in (
        ({"features": Few(2.0)}, real, "was made with other features"),
        ({}, real + 1, "is of other data"),
        ({"real_examples": 200}, real, "is of another number of examples"),
    ):
        with pytest.raises(ganlab.ConfigError, match=message):
            scores(**few, **more).evaluate(sampler(generated), Points(data), None)


def test_settings_alone_write_no_statistics(tmp_path):
    real, file = points(300), tmp_path / "kept" / "real.npz"
    evaluator = scores(statistics=str(file), samples=200, **ALONE)
    first = evaluator.evaluate(sampler(points(200, seed=1)), Points(real), None)
    assert list(tmp_path.iterdir()) == []
    # But they are computed once.
    data = Points(real)
    data.fingerprint, data.examples = Points(real).fingerprint, None
    assert evaluator.evaluate(sampler(points(200, seed=1)), data, None) == first
    other = evaluator.evaluate(sampler(points(200, seed=1)), Points(real + 1), None)
    assert other["frechet_distance"] != first["frechet_distance"]


def test_a_file_of_pytorch_fid_is_read_and_its_origin_is_in_doubt(tmp_path):
    real, generated, file = points(300), points(200, seed=1), tmp_path / "fid_stats.npz"
    rows = Few().embed(real)
    np.savez(file, mu=rows.mean(0), sigma=np.cov(rows.T))
    evaluator = scores(statistics=str(file), samples=200, **ALONE)
    found = evaluator.evaluate(sampler(generated), Points(real), None)
    direct = scores(samples=200, **ALONE).evaluate(sampler(generated), Points(real), None)
    assert found["frechet_distance"] == pytest.approx(direct["frechet_distance"], rel=1e-6)
    assert set(found) == {"frechet_distance", "samples"}  # a figure that is not finite would hide the warning
    assert "does not say which features" in evaluator.diagnose({})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged"),
        (b"PK\x03\x04nonsense", "damaged"),
        ({"mu": np.zeros(8)}, "damaged"),
        ({"mu": np.zeros((8, 1)), "sigma": np.eye(8)}, "must be"),
        ({"mu": np.zeros(8), "sigma": np.eye(7)}, "must be"),
        ({"mu": np.full(8, np.nan), "sigma": np.eye(8)}, "not finite"),
        ({"mu": np.zeros(8), "sigma": np.triu(np.ones((8, 8)))}, "not symmetric"),
        ({"mu": np.array([None] * 8), "sigma": np.eye(8)}, "damaged"),
        ({"mu": np.zeros(8), "sigma": np.eye(8), "ganlab": np.array("[1, 2")}, "damaged"),
        ({"mu": np.zeros(9), "sigma": np.eye(9)}, "is of 9 features"),
    ],
)
def test_a_bad_file_is_one_message(tmp_path, content, message):
    file = tmp_path / "bad.npz"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        np.savez(file, **content)
    evaluator = scores(statistics=str(file), samples=20, **ALONE)
    with pytest.raises(ganlab.ConfigError, match=rf"published_scores\.statistics = .*{message}"):
        evaluator.evaluate(sampler(points(20, seed=1)), Points(points(30)), None)


FEW = {"samples": 40, **ALONE}


@pytest.mark.parametrize(
    ("protocol", "kind", "message"),
    [
        ({"samples": 50}, ganlab.ConfigError, r"subset_size = 1000 must be at most .*samples, which is 50"),
        ({"statistics": "a.txt"}, ganlab.ConfigError, r"statistics = 'a\.txt' must be a file .* name ends in \.npz"),
        ({"nearest": 3}, ganlab.ConfigError, "nearest = 3 and samples"),
        ({**FEW, "real_examples": 40}, ganlab.IncompatibleError, "real_examples = 40 is more than Points has, 30"),
        ({**FEW, "subsets": 3, "subset_size": 40}, ganlab.IncompatibleError, "_size needs 40 real .* there are 30"),
    ],
)
def test_protocols_that_cannot_be_are_refused(protocol, kind, message):
    with pytest.raises(kind, match=message):
        scores(**protocol).evaluate(sampler(points(40)), Points(points(30)), None)


def test_samples_that_cannot_be_drawn_in_parts_are_drawn_at_once():
    real, generated, evaluator = Points(points(300)), points(200, seed=1), scores(samples=200, **ALONE)
    whole = evaluator.evaluate(lambda n, seed: generated[:n], real, None)
    assert whole == evaluator.evaluate(sampler(generated), real, None)


def test_moments_of_parts_are_those_of_the_whole():
    rows = np.random.default_rng(0).normal(size=(1000, 7)) * 1e3 + 1e6
    moments = Moments()
    for part in np.split(rows, [1, 3, 400, 400, 999]):
        moments.add(part)
    np.testing.assert_allclose(moments.mean, rows.mean(0), rtol=1e-13)
    np.testing.assert_allclose(moments.covariance(), np.cov(rows.T), rtol=1e-9, atol=1e-6)


_MEMORY = """
import numpy as np, tensorflow as tf
import ganlab

class Wide(ganlab.Features):
    def embed(self, x):
        return np.random.default_rng(abs(hash(x.tobytes()))).normal(size=(len(x), 2048)).astype(np.float32)

    def probabilities(self, x):
        return np.full((len(x), 1008), 1 / 1008, np.float32)

class Points(ganlab.Dataset):
    size, sample_shape = 50_000, (4,)

    def examples(self, numbers, seed):
        return tf.random.stateless_normal((len(numbers), 4), (seed, numbers[0]))

def sample(n, seed, start=0):
    return np.random.default_rng([seed, start]).normal(size=(n, 4)).astype(np.float32)

def peak():  # of this process alone: ru_maxrss includes the one that started it
    (found,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return found

before = peak()
evaluator = ganlab.component("evaluators", "published_scores")(features=Wide(), subsets=2, nearest=0)
figures = evaluator.evaluate(sample, Points(), None)
print(*(figures[name] for name in ("samples", "real_examples", "frechet_distance", "inception_score")), before, peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux says how much memory a process had")
def test_fifty_thousand_features_take_less_than_a_gigabyte():
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    done = subprocess.run([sys.executable, "-c", _MEMORY], capture_output=True, text=True, timeout=400, env=environment)
    assert done.returncode == 0, done.stderr
    samples, examples, distance, score, before, peak = map(float, done.stdout.split()[-6:])
    print(f"before {before:,.0f} kB, peak {peak:,.0f} kB")
    assert (samples, examples) == (50_000, 50_000)
    # Two samples of N(0, I): 2 d / n of the means, and to first order |S - S'|^2 / 4 of the covariances.
    assert distance == pytest.approx((2 * 2048 + 2048 * 2049 / 2) / 50_000, rel=0.1)
    assert score == pytest.approx(1.0, abs=1e-5)
    # All 100,000 rows would be 820 MB in float32 alone, and the probabilities 200 MB.
    assert peak < 1_000_000
