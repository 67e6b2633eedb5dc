"""Shipped experiments train as one program of XLA's as they do by TensorFlow's kernels, on one replica and on two."""

from dataclasses import replace

import numpy as np
import pytest
from ganlab_verify.lab import FLOOR, Training, lasting_departure
from test_shipped_files import FILES, METHODS, ONE_DEVICE, PUBLISHED, composed, other_images

from ganlab import IncompatibleError, config
from ganlab.plugins.recipes import Recipe
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("fresh_plugins", "cpus")

TWO = Recipe("strategies", "mirrored", {"virtual_replicas": 2})
SGD = Recipe("optimizers", "sgd", {"learning_rate": 0.01})
# One of each kind of network and dataset, and small: XLA takes minutes for a deep one.
COMPILED = (
    "quickstart",
    "eight_gaussians",
    "glyphs",
    "photo_patches",
    "wgan_gp_mnist",
    "wgan_mnist",
    "gngan_cifar10_cnn",
    "sngan_cifar10_cnn",
)
# Where other parameters than the file's make three iterations reach what it is about.
REACHING = {"ada": {"start": 0.5, "images": 200.0}}
# Steps that differ in their updates make no single program; what the refusal of each says.
UNEQUAL = {
    "first_wgan": "experiment.critic_steps follows a schedule",
    "stopping_rule": "decides when the generator moves",
}


def files(paths, *quick):
    """The files as parameters; those not named are slow."""
    return [pytest.param(path, id=path.stem, marks=() if path.stem in quick else pytest.mark.slow) for path in paths]


def method(path, strategy, jit):
    """Three iterations of a method on eight examples, by gradient descent, which hides no factor in the gradient."""
    whole = config.load([path]).arguments
    updates = whole.get("critic_steps", 5)
    settings = {"jit": jit, "steps": 3, "batch_size": 8}
    settings["critic_steps"] = min(2, updates) if isinstance(updates, int) else updates
    given = REACHING.get(path.stem, {})
    settings["augmentations"] = [replace(a, arguments={**a.arguments, **given}) for a in whole.get("augmentations", ())]
    settings |= {"critic_optimizer": SGD, "generator_optimizer": SGD}
    images = other_images(whole["dataset"]) if path.stem == "stacked_mnist" else None  # instead of a download
    return Training(composed(path, strategy, images, **settings)).train(3).still()


@pytest.mark.parametrize("path", files([path for path in METHODS if path.stem not in UNEQUAL]))
def test_a_program_of_a_method_trains_as_kernels_do_on_one_and_two_replicas(path):
    compiled, one, two = (method(path, *how) for how in ((ONE_DEVICE, "step"), (ONE_DEVICE, "off"), (TWO, "off")))
    assert compiled.trainer.compiled == ["step"]
    # Each variable moves as far as by kernels, so that the program loses none: a lost update would be a third or more.
    for name, value in one.values.items():
        moved, apart = (np.abs(value - np.float64(o[name])).max(initial=0) for o in (one.start, compiled.values))
        assert apart <= 0.1 * moved + FLOOR * max(1.0, np.abs(value).max(initial=0)), name
    for kernels in (one, two):
        assert lasting_departure(kernels, compiled) is None


@pytest.mark.parametrize("path", files([path for path in METHODS if path.stem in UNEQUAL], "stopping_rule"))
def test_steps_of_unequal_updates_are_refused_as_a_program_by_name(path):
    with pytest.raises(IncompatibleError, match=rf"'step' .* {UNEQUAL[path.stem]}"):
        method(path, ONE_DEVICE, "step")


def program(path):
    """The trainer of a file's narrow networks, on other images of its shape if its own are not here."""
    whole = config.load([path]).arguments
    images = other_images(whole["dataset"]) if path in PUBLISHED else None
    settings = {"generator_batch_size": 8} if whole.get("generator_batch_size") else {}
    return Trainer(composed(path, ONE_DEVICE, images, jit="step", **settings))


@pytest.mark.parametrize("path", files([*FILES, *PUBLISHED], "quickstart", "swiss_roll"))
def test_xla_has_a_kernel_for_each_operation_of_an_experiment(path):
    trainer = program(path)
    trainer.trace()  # names the first that it has none for
    assert trainer.compiled == ["step"]


@pytest.mark.slow
@pytest.mark.parametrize("path", files([path for path in (*FILES, *PUBLISHED) if path.stem in COMPILED]))
def test_a_program_of_an_experiment_trains(path):
    trainer = program(path)
    assert np.isfinite(trainer.train(2)).all()
    assert trainer.compiled == ["step"]
