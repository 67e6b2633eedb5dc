"""The published pairs: the solvers, and what the published code does in its own way."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import ganlab
from ganlab import config
from ganlab.plugins import manager as plugins

FOLDER = Path(__file__).parents[2] / "tools" / "w1bench"


@pytest.fixture(scope="module")
def plugin():
    """tools/w1bench/ganlab_plugins.py."""
    spec = importlib.util.spec_from_file_location("w1bench_plugins", FOLDER / "ganlab_plugins.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("solver", "constraint", "updates"),
    [
        ("gp", ["gradient_penalty"], 60_000),
        ("lp", ["lipschitz_penalty"], 60_000),
        ("sn", ["spectral_norm"], 10_000),
        ("sn_held", ["held_spectral_norm"], 10_000),
        ("sorted", ["polar_projection"], 25_000),
        ("batch", [], 25_000),
        ("mm", [], 20_000),
        ("mm_reversed", [], 20_000),
    ],
)
def test_a_solver_has_the_published_budget(solver, constraint, updates):
    with plugins.using(plugins.discover(local=FOLDER / "ganlab_plugins.py")):
        recipe = config.load([FOLDER / f"{solver}.gin"])
    assert [made.name for made in recipe.arguments["constraints"]] == constraint
    assert recipe.arguments["steps"] == updates
    architecture = recipe.arguments["architecture"]
    assert architecture.arguments.get("critic", architecture).name == "linear_critic"


@pytest.mark.slow
def test_a_sweep_trains_on_the_published_pairs(monkeypatch, tmp_path):
    monkeypatch.chdir(FOLDER.parents[1])
    grid = ["--grid", "dims=[2, 16]", "--grid", "datasets.min_funnels.funnels=[4]"]
    few = ["--param", "experiment.steps=5", "--runs", str(tmp_path), "--name", "held"]
    command = [sys.executable, "-m", "ganlab", "sweep", "--gin", "tools/w1bench/mm_reversed.gin", *grid, *few]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [ganlab.Run(path.parent).info["evaluation"] for path in (tmp_path / "held").rglob("run.json")]
    assert len(found) == 2
    assert all(-1 <= figures["reconstruction/cosine"] <= 1 for figures in found)


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
            total = sum(tf.reduce_sum(w**3) for w in made.values())
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
