"""The published pairs: what stands beside what, and what the published code does in its own way."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import ganlab

FOLDER = Path(__file__).parents[2] / "tools" / "w1bench"


@pytest.fixture(scope="module")
def plugin():
    """tools/w1bench/ganlab_plugins.py."""
    spec = importlib.util.spec_from_file_location("w1bench_plugins", FOLDER / "ganlab_plugins.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reproduce(*options, cwd=None):
    command = [sys.executable, str(FOLDER / "reproduce.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd).stdout.splitlines()


def test_nothing_has_finished_in_an_empty_folder(tmp_path):
    assert len(reproduce("--table", "--runs", str(tmp_path))) == 2


@pytest.mark.slow
def test_a_row_has_what_a_run_reached_beside_the_published(tmp_path):
    options = ("--solvers", "sn-held", "--cells", "2x4", "--share", "0.0005", "--runs", str(tmp_path))
    row = reproduce(*options, cwd=tmp_path)[-1].split("|")
    assert [cell.strip() for cell in row[1:6]] == ["`sn-held`", "2", "4", "0", "5"]
    # published.csv: the cosine .21308; the cost .15223 of .81738.
    assert [cell.strip() for cell in (row[7], row[9])] == ["0.213", "-81.4%"]
    before = (tmp_path / "pair" / "sn-held-2-4-s0" / "metrics.jsonl").read_bytes()
    assert reproduce(*options, cwd=tmp_path)[-1].split("|") == row
    assert (tmp_path / "pair" / "sn-held-2-4-s0" / "metrics.jsonl").read_bytes() == before


def test_the_held_norm_has_the_values_of_spectral_norm_and_another_gradient(plugin, cpus):
    held, usual = plugin.HeldSpectralNorm(), ganlab.component("constraints", "spectral_norm")(power_iterations=5)
    critic = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    weights = {
        v.path: tf.constant(np.random.default_rng(i).normal(size=v.shape), tf.float32)
        for i, v in enumerate(critic.trainable_variables)
    }
    weights = dict(zip(ganlab.functional.named_weights(critic), weights.values(), strict=True))
    found = []
    for constraint in (held, usual):
        constraint.prepare(critic)
        state = constraint.initial_state(weights)
        with tf.GradientTape() as tape:
            tape.watch(weights)
            made = constraint.reparameterize(weights, state)
            total = tf.add_n([tf.reduce_sum(w**3) for w in made.values()])
        found.append((made, tape.gradient(total, weights)))
    kernels = [name for name, w in weights.items() if len(w.shape) == 2]
    for name in weights:
        np.testing.assert_allclose(found[0][0][name], found[1][0][name], rtol=1e-5)
    for name in kernels:
        # With w = s u, s the norm, d(u^3) is 3 u^2 / s if s is constant.
        u = np.asarray(found[0][0][name])
        scale = np.linalg.norm(weights[name]) / np.linalg.norm(u)
        np.testing.assert_allclose(found[0][1][name], 3 * u**2 / scale, rtol=1e-4)
        assert np.abs(found[1][1][name] - found[0][1][name]).max() > 0.01


def test_the_critic_starts_as_pytorchs_layers(plugin):
    keras.utils.set_random_seed(0)
    critic = plugin.LinearCritic(width=256).critic((9,))
    for layer, inputs in zip([x for x in critic.layers if x.weights], (9, 256, 256), strict=True):
        for values in layer.get_weights():
            assert np.abs(values).max() <= inputs**-0.5
            if values.size > 1:
                assert values.std() == pytest.approx(inputs**-0.5 / 3**0.5, rel=0.15)
