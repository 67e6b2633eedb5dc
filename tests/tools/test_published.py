"""The settings and slices of tools/published.py, and the rows that it prints."""

import sys
from pathlib import Path

import pytest
from ganlab_plan import Plan, place
from ganlab_plan.times import Cost, time

from ganlab import config
from ganlab.config import load
from ganlab.plugins import manager as plugins
from ganlab.runs.experiment_source import use_plugins

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PUBLISHED = {path.stem: path for path in config.shipped_gin_files() if path.parent.name == "published"}


@pytest.fixture
def published(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.setattr(plugins, "_current", None)
    import published

    return published


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("wgan_mnist", (28, 1), 10),
        ("sngan_cifar10", (32, 3), 10),
        ("mimicry_sngan_48", (48, 3), None),
        ("biggan_imagenet128", (128, 3), 1000),
    ],
)
def test_images_are_those_that_the_file_names(published, name, shape, classes):
    images = published.data(load([PUBLISHED[name]]))
    assert ((images.side, images.channels), images.classes) == (shape, classes)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_file_is_compiled_with_other_images_and_nothing_else(published, name):
    compiling = published.compiling
    before = load([PUBLISHED[name]])
    use_plugins((), compiling.GREY_IMAGES)
    after = load([PUBLISHED[name]], compiling.settings(before))
    innermost = after.arguments["dataset"]
    while "dataset" in innermost.arguments:
        innermost = innermost.arguments["dataset"]
    assert innermost.name == "grey_images"
    same = {key: value for key, value in before.arguments.items() if key != "dataset"}
    assert {key: value for key, value in after.arguments.items() if key != "dataset"} == same


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_batch_divides_over_the_slices_of_its_file(published, name):
    given = load([PUBLISHED[name]]).arguments
    for one in published.compiling.SLICES.get(name, published.compiling.NEAREST):
        parts = place(one).replicas * given.get("microbatches", 1)
        assert given["batch_size"] % parts == 0
        assert given.get("generator_batch_size", given["batch_size"]) % parts == 0


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_narrow_experiment_can_be_read(published, name):
    small = load([PUBLISHED[name]], published.settings(load([PUBLISHED[name]])))
    assert small.arguments["batch_size"] == published.BATCH
    assert small.arguments["critic_steps"] <= 2


def test_grey_images_have_their_shape_and_classes(published):
    import numpy as np
    import tensorflow as tf
    from publishing.grey_images import GreyImages

    grey = GreyImages(side=5, channels=3, classes=4)
    numbers = tf.constant([0, 255, 5], tf.int64)
    images = grey.examples(numbers, 0)
    assert images.shape == (3, 5, 5, 3)
    assert np.ptp(images, axis=(1, 2, 3)).tolist() == [0, 0, 0]
    assert images[:2, 0, 0, 0].numpy().tolist() == [-1.0, 1.0]
    assert grey.labels(numbers).numpy().tolist() == [0, 3, 1]


COST = Cost(2.5e12, {"float32": 2.5e12}, 1e11, 40, 3.5e8, 5 * 2**30)


def plan_of(**changes):
    where = place("v5e:8x8")
    spent = time(COST, where, precision="mixed_bfloat16", fraction=0.5)
    known = {"cost": COST, "capacity": where.memory, "time": spent, "limit": spent.limit, **changes}
    return Plan(where.name, where.replicas, 2048, **known)


def test_a_row_has_the_plans_figures(published):
    # 1e11 bytes at 819 GB/s take 122.1 ms; arithmetic takes 25.4 ms; 2 * 63 / 64 * 0.35 GB at 100 GB/s take 6.9 ms, and
    # 40 messages pass 14 links twice in 1.1 ms.
    assert published.compiling.row("mine", plan_of()) == (
        "| mine | v5e:8x8 | 64 | 2,048 | 5 of 16 GiB | 2,500 | 40 | 350 | 130 ms | memory bandwidth |"
    )


def test_a_row_says_what_does_not_fit_or_compile(published):
    full = published.compiling.row("mine", plan_of(time=None, limit="memory capacity"))
    assert full.endswith("| none | memory capacity |")
    refused = published.compiling.row("mine", plan_of(cost=None, time=None, limit=None, notes=("It has no kernel.",)))
    assert "| cannot be compiled: It has no kernel. |" in refused
    assert refused.count("|") == full.count("|")


def test_a_file_that_is_not_there_is_named(published, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["published.py", "biggan"])
    with pytest.raises(SystemExit):
        published.main()
    assert "unknown: biggan; there are biggan_deep_imagenet128, " in capsys.readouterr().err
