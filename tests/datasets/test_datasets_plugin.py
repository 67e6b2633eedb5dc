import inspect
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from ganlab_builtin.datasets import ganlab_datasets
from PIL import Image

import ganlab


@pytest.fixture
def make(tmp_path):
    """Makes a dataset by its registered name, with its own files if it needs some."""

    def by_name(name):
        random = np.random.default_rng(1)
        if name == "arrays":
            np.save(tmp_path / "rows.npy", random.normal(size=(64, 3)))
            return ganlab.component("datasets", name)(path=str(tmp_path / "rows.npy"))
        if name == "image_folder":
            for i in range(64):
                Image.fromarray(random.integers(0, 256, (5, 5, 3), np.uint8)).save(tmp_path / f"{i:02}.png")
            return ganlab.component("datasets", name)(path=str(tmp_path), size=4)
        return ganlab.component("datasets", name)()

    return by_name


def test_the_plugin_offers_the_datasets_under_their_names():
    assert sorted(ganlab_datasets()) == [
        "arrays",
        "digits",
        "gaussian_grid",
        "gaussian_ring",
        "glyphs",
        "image_folder",
        "keras",
        "min_funnels",
        "moved_examples",
        "photo_patches",
        "swiss_roll",
        "tfds",
        "tfrecords",
        "translated_gaussians",
        "two_images",
        "varied",
    ]


@pytest.mark.parametrize("name", ganlab_datasets())
def test_every_parameter_is_by_keyword_and_documented(name):
    factory = ganlab_datasets()[name]
    assert issubclass(factory, ganlab.Dataset)
    for parameter in inspect.signature(factory).parameters.values():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert f"    {parameter.name}: " in factory.__init__.__doc__


@pytest.mark.parametrize("name", ["arrays", "digits", "gaussian_grid", "gaussian_ring", "image_folder", "swiss_roll"])
def test_examples_are_a_pure_function_of_their_numbers(name, make, through_pipeline):
    dataset = make(name)
    order = np.random.default_rng(0).permutation(64)
    straight = through_pipeline(dataset, range(64), batch=64, seed=7)
    # In another order, in other batches, and outside a graph. Vectorized functions may differ in the last bit by place.
    np.testing.assert_allclose(through_pipeline(dataset, order, batch=8, seed=7), straight[order], atol=1e-6)
    eager = dataset.examples(tf.constant(order[:5], tf.int64), 7)
    assert eager.dtype == tf.float32
    np.testing.assert_allclose(eager, straight[order[:5]], atol=1e-6)
    assert len(np.unique(straight.reshape(64, -1), axis=0)) == 64


def test_making_datasets_does_not_import_tensorflow(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((4, 2)))
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "a.png")
    program = f"""
import sys
from ganlab_builtin.datasets import *
Digits(); GaussianRing(); GaussianGrid(); SwissRoll()
Arrays(path={str(tmp_path / "rows.npy")!r}); ImageFolder(path={str(tmp_path)!r})
print([name for name in ("tensorflow", "keras", "sklearn") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
