"""An exported generator draws the same samples with TensorFlow and without ganlab."""

import re

import numpy as np
import pytest
from short_runs import BFLOAT16, DIGITS, POINTS

import ganlab as lab
from ganlab.exporting import draw, export

# Runs the code of each export's page in its folder, and then further checks.
ELSEWHERE = """
import os, re, sys
for name in ("ganlab", "ganlab_architectures"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(name)
import numpy as np
there = os.getcwd()
for folder, format in (word.split("=") for word in sys.argv[1:]):
    os.chdir(os.path.join(there, folder))
    (code,) = re.findall(r"```python\\n(.*?)```", open("README.md").read(), re.DOTALL)
    page = {}
    exec(code, page)
    assert np.asarray(page["more"]).shape[0] == 64, page["more"].shape
    expected = np.load(os.path.join(there, "expected.npz"))
    if format == "saved_model":
        drawn = page["generator"].sample(int(expected["n"]), seed=int(expected["seed"]))
        np.testing.assert_array_equal(drawn["latents"], expected["latents"])
        served = page["generator"].signatures["serving_default"](latent=page["tf"].constant(expected["latents"]))
        np.testing.assert_array_equal(served["samples"], drawn["samples"])
        samples = drawn["samples"]
    else:
        samples = page["generator"].predict(expected["latents"], verbose=0)
    print(format, np.abs(np.asarray(samples, np.float32) - expected["samples"]).max())
"""


@pytest.fixture
def largest_difference(without_ganlab, tmp_path):
    """Exports a run in two formats, loads both without ganlab, and returns the largest difference of samples."""

    def largest_difference(path):
        run = lab.Run(path)
        formats = ("saved_model", "keras")
        for format in formats:
            export(run, tmp_path / format, format=format)
        drawn = draw(run, 37, seed=11)
        np.savez(tmp_path / "expected.npz", samples=drawn.samples, latents=drawn.latents, n=37, seed=11)
        (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
        said = without_ganlab("elsewhere.py", *(f"{format}={format}" for format in formats))
        found = dict(re.findall(r"^(saved_model|keras) (\S+)$", said, re.MULTILINE))
        assert set(found) == set(formats), said
        return max(map(float, found.values()))

    return largest_difference


@pytest.mark.slow
def test_points_of_an_mlp(points, largest_difference):
    assert largest_difference(points) <= 1e-5


@pytest.mark.slow
def test_images_of_averaged_convolutions_with_batch_normalization(digits, largest_difference):
    assert largest_difference(digits) <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("text", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_mixed_precision(trained, largest_difference, text):
    run = trained(text, *BFLOAT16)
    assert lab.Run(run).info["settings"]["experiment.precision"] == "mixed_bfloat16"
    assert largest_difference(run) <= 1e-5


@pytest.mark.slow
def test_onnx_of_mixed_precision_computes_in_float32(trained, tmp_path):
    pytest.importorskip("tf2onnx", reason="the extra onnx is not installed")
    run = lab.Run(trained(POINTS, *BFLOAT16))
    facts = export(run, tmp_path / "out", format="onnx")
    assert (facts["precision"], facts["trained_in"]) == ("float32", "mixed_bfloat16")
    assert "It was trained in bfloat16 and computes in float32 here" in (tmp_path / "out" / "README.md").read_text()
    with np.load(tmp_path / "out" / "samples.npz") as kept:
        own = draw(run, 16).samples
        difference = np.abs(kept["samples"] - own).max() / np.abs(own).max()
    assert 1e-5 < difference < 0.03  # bfloat16 has 8 bits
