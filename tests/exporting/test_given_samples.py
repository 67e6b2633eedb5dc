"""Runs whose generators take conditions or a source: samples, the command line, and exports."""

import contextlib

import numpy as np
import pytest
from PIL import Image
from short_runs import POINTS

import ganlab as lab
from ganlab import exporting
from ganlab.errors import ConfigError

pytestmark = pytest.mark.slow

PLUGIN = '''
import ganlab
from ganlab.functional import example_normal
from ganlab.lazy import keras, tensorflow as tf

class Sums(ganlab.Dataset):
    """Images of 4 x 4 pixels with an image as a pair and two conditions."""
    sample_shape, source_shape, condition_shape = (4, 4, 1), (4, 4, 1), (2,)

    def conditions(self, numbers, seed):
        return example_normal(numbers, 2, seed, stream=1)

    def sources(self, numbers, seed):
        return tf.tanh(tf.reshape(example_normal(numbers, 16, seed, stream=2), [-1, 4, 4, 1]))

    def examples(self, numbers, seed):
        return -self.sources(numbers, seed)

class Nets(ganlab.Architecture):
    def __init__(self, *, latent_dim: int = 0):
        self.latent_dim = latent_dim

    def generator(self, sample_shape):
        ends = [keras.Input((4, 4, 1), name="source"), keras.Input((2,), name="conditions")]
        if self.latent_dim:
            ends.append(keras.Input((self.latent_dim,)))
        flat = keras.layers.Concatenate()([keras.layers.Flatten()(x) for x in ends])
        x = keras.layers.Dense(16, activation="tanh")(flat)
        return keras.Model(ends, keras.layers.Reshape(sample_shape)(x))

    def critic(self, sample_shape):
        x = keras.Input(sample_shape)
        return keras.Model(x, keras.layers.Dense(1)(keras.layers.Flatten()(x)))

@ganlab.hookimpl
def ganlab_datasets():
    return {"sums": Sums}

@ganlab.hookimpl
def ganlab_architectures():
    return {"nets": Nets}
'''
GIN = """
experiment.dataset = @datasets.sums()
experiment.architecture = @architectures.nets()
experiment.loss = @losses.non_saturating()
experiment.strategy = @strategies.one_device()
experiment.critic_optimizer = @optimizers.adam()
experiment.generator_optimizer = @optimizers.adam()
experiment.batch_size = 8
experiment.steps = 2
"""


@pytest.fixture
def run(ganlab, tmp_path, request):
    """Two steps of a generator of image and conditions, with latent vectors of the length asked for."""
    (tmp_path / "ganlab_plugins.py").write_text(PLUGIN)
    (tmp_path / "sums.gin").write_text(GIN + f"architectures.nets.latent_dim = {request.param}\n")
    ganlab("run", "--gin", "sums.gin", "--runs", "runs", "--name", "one")
    return tmp_path / "runs" / "sums" / "one"


@pytest.mark.parametrize("run", [3], indirect=True)
def test_samples_have_the_asked_conditions_and_the_sources_of_examples(run, ganlab, tmp_path):
    ganlab("sample", run, "--condition", "0.5,-1", "--condition", "2,0", "-n", "5", "-o", "few.npz")
    few = np.load(tmp_path / "few.npz")
    np.testing.assert_array_equal(few["conditions"], [[0.5, -1], [2, 0], [0.5, -1], [2, 0], [0.5, -1]])
    model = lab.Run(run).generator()
    expected = model([few["source"], few["conditions"], few["latents"]])
    np.testing.assert_allclose(few["samples"], expected, atol=1e-6)
    ganlab("sample", run, "-n", "5", "-o", "own.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "own.npz")["source"], few["source"])
    ganlab("sample", run, "-n", "6", "-o", "grid.png")
    assert Image.open(tmp_path / "grid.png").size == (4 * 66 + 2, 3 * 66 + 2)  # two pairs in a row
    for text, message in [
        ("0.5", "length 1; the generator's conditions have 2"),
        ("a,b", "must be numbers with commas"),
        ("0.5,nan", "condition = 0.5,nan must have finite numbers"),
        ("1e39,0", "condition = 1e+39,0 must have finite numbers"),
    ]:
        assert message in ganlab("sample", run, "--condition", text, "-o", "no.npz", code=2)


@pytest.mark.parametrize("run", [pytest.param(0, marks=pytest.mark.slow), 3], indirect=True)
def test_exports_draw_the_same(run, ganlab, tmp_path):
    for format in ("saved_model", "keras"):
        facts = exporting.export(lab.Run(run), tmp_path / format, format=format)
        assert facts["checked"]
        assert facts["given"] == {"source": (4, 4, 1), "conditions": (2,)}
        page = (tmp_path / format / "README.md").read_text()
        assert "`source` of shape (4, 4, 1) and `conditions` of shape (2,)" in page
        code = page.split("```python\n")[1].split("```")[0]
        with contextlib.chdir(tmp_path / format):
            exec(compile(code, "README", "exec"), {})  # compares the samples itself


def test_a_generator_without_conditions_refuses_them(trained):
    with pytest.raises(ConfigError, match="takes no conditions: it cannot be asked"):
        exporting.draw(lab.Run(trained(POINTS)), 3, conditions=[[0.5]])
