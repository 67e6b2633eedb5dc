"""Every shipped experiment trains for two iterations with small networks and batches, on the replicas it names."""

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest

import ganlab
from ganlab import config
from ganlab.composition import compose, make
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.step import TrainingStep
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("in_use", "cpus")


@pytest.fixture(scope="module")
def in_use():
    with plugins.using():
        yield


# Parameters that make a component small, where it has them.
SMALL = {
    "width": 8,
    "channels": 8,
    "generator_channels": None,
    "critic_channels": None,
    "depth": 2,
    "samples": 64,
    "size": 2000,
    "updates": 20,
    "devices": None,
}
LOCAL_BATCH = 4

APART = ("base", "methods", "published", "stacked_mnist", "mnist")
PUBLISHED = [path for path in config.shipped_gin_files() if path.parent.name == "published"]
DIGITS = [
    p
    for p in config.shipped_gin_files()
    if "mnist" in p.parent.name + p.stem and p.parent.name not in ("base", "published")
]
FILES = [path for path in config.shipped_gin_files() if path.parent.name not in APART and path not in DIGITS]
METHODS = [path for path in config.shipped_gin_files() if path.parent.name == "methods"]


def small(value):
    """The recipe with the parameters above at every depth; other values are unchanged."""
    if isinstance(value, (list, tuple)):
        return type(value)(small(item) for item in value)
    if not isinstance(value, Recipe):
        return value
    known = inspect.signature(ganlab.component(value.kind, value.name)).parameters
    given = {name: small(argument) for name, argument in value.arguments.items()}
    return replace(value, arguments={**given, **{name: size for name, size in SMALL.items() if name in known}})


def on_this_machine(strategy):
    """The strategy if a CPU can stand in for its devices, with two replicas unless it names a number; else two."""
    if strategy.name == "one_device":
        return strategy
    replicas = strategy.arguments.get("virtual_replicas") if strategy.name == "mirrored" else None
    return Recipe("strategies", "mirrored", {"virtual_replicas": replicas or 2})


def composed(path, strategy=None, dataset=None, **settings):
    """The small experiment of a file, on its strategy or another one, on its dataset or another one, so set."""
    whole = config.load([path])
    arguments = {name: small(value) for name, value in whole.arguments.items()}
    arguments["dataset"] = dataset or arguments["dataset"]
    arguments["strategy"] = strategy or on_this_machine(whole.arguments["strategy"])
    replicas = arguments["strategy"].arguments.get("virtual_replicas", 1)
    parts = replicas * arguments.get("microbatches", 1)
    arguments |= {"steps": 2, "batch_size": LOCAL_BATCH * parts, "critic_steps": 1, "log_every": 1}
    arguments |= settings
    experiment = compose(replace(whole, arguments=arguments))
    assert experiment.replicas == replicas
    return experiment


def other_images(dataset):
    """A dataset that is here, of the shape of one that is not."""
    if inner := dataset.arguments.get("dataset"):
        return replace(dataset, arguments={**dataset.arguments, "dataset": other_images(inner)})
    given = dataset.arguments
    if dataset.name == "idx":
        return Recipe("datasets", "glyphs", {"side": 28})
    side = given.get("resize") or given.get("crop") or {"mnist": 28, "cifar10": 32}[given["name"]]
    name = "glyphs" if dataset.arguments["name"] == "mnist" else "photo_patches"
    return Recipe("datasets", name, {"side": side})


# One of each kind of network and constraint; the others are composed.
TRAINED = (
    "mimicry_sngan_48",
    "mimicry_wgan_gp_32",
    "gngan_cifar10_cnn",
    "sagan_imagenet128",
    "wgan_gp_mnist",
    "r3gan_cifar10",
)


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_experiment_has_labels_if_its_networks_take_them(path):
    whole = config.load([path]).arguments
    dataset = whole["dataset"]
    while "dataset" in dataset.arguments:
        dataset = dataset.arguments["dataset"]
    if make(whole["architecture"]).conditional and dataset.name == "tfds":  # the others have them always
        assert dataset.arguments["labels"] == "label"


@pytest.mark.slow
@pytest.mark.parametrize("path", [*PUBLISHED, *DIGITS], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_published_experiment_composes(path):
    experiment = composed(path, dataset=other_images(config.load([path]).arguments["dataset"]))
    if experiment.microbatches > 1:  # networks may refuse them
        TrainingStep(experiment, TrainingState(experiment), compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in PUBLISHED if p.stem in TRAINED], ids=lambda path: path.stem)
def test_published_experiment_trains_on_other_images_of_its_shape(path, tmp_path):
    images = other_images(config.load([path]).arguments["dataset"])
    run = ganlab.train(composed(path, dataset=images), tmp_path / "run")
    assert (run.info["status"], run.info["step"], run.info["replicas"]) == ("completed", 2, 2)
    assert all(math.isfinite(record.reduced) for record in run.metrics())


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=() if path.stem == "quickstart" else pytest.mark.slow) for path in FILES],
)
def test_shipped_experiment_trains(path, tmp_path):
    experiment = composed(path)
    replicas = experiment.replicas

    run = ganlab.train(experiment, tmp_path / "run")

    info = run.info
    assert (info["status"], info["step"], info["replicas"]) == ("completed", 2, replicas)
    records = [record for record in run.metrics() if record.tag == "critic/wasserstein"]
    assert [(record.step, len(record.replicas)) for record in records] == [(1, replicas), (2, replicas)]
    assert all(math.isfinite(record.reduced) for record in run.metrics())
    for evaluator in experiment.component_names("evaluators"):
        assert any(name.startswith(f"{evaluator}/") for name in info["evaluation"])


ONE_DEVICE = Recipe("strategies", "one_device", {"device": "CPU:0"})


def method(path):
    """The small experiment of a method, on digits drawn here where it downloads some."""
    dataset = config.load([path]).arguments["dataset"]
    return composed(path, ONE_DEVICE, other_images(dataset) if path.stem == "stacked_mnist" else None)


@pytest.mark.parametrize("path", METHODS, ids=lambda path: path.stem)
def test_method_composes(path):
    method(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", METHODS, ids=lambda path: path.stem)
def test_method_trains(path):
    trainer = Trainer(method(path))
    assert np.isfinite(trainer.train(2)).all()
