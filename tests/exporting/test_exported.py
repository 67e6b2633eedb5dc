"""The content of exports, and the refusals."""

import errno
import json
import sys
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_export.formats import FORMATS, foreign
from short_runs import BASE

import ganlab as lab
from ganlab.errors import ConfigError, IncompatibleError, MissingDependencyError, RunError
from ganlab.exporting import draw, export


def test_the_folder_holds_the_model_samples_facts_and_a_page(digits, tmp_path):
    returned = export(lab.Run(digits), tmp_path / "out", format="keras", checkpoint=2)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "README.md",
        "export.json",
        "generator.keras",
        "samples.npz",
    ]
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]
    facts = json.loads((tmp_path / "out" / "export.json").read_text())
    assert facts == json.loads(json.dumps(returned))
    expected = {
        "format": "keras",
        "model": "generator.keras",
        "latent_dim": 5,
        "sample_shape": [8, 8, 1],
        "value_range": [-1.0, 1.0],
        "precision": "float32",
        "step": 2,
        "steps": 4,
        "averaged": True,
        "samples": {"file": "samples.npz", "count": 16, "seed": 3},
        "license": None,
        "checked": True,
    }
    assert {name: facts[name] for name in expected} == expected
    assert facts["settings"]["architectures.dcgan.channels"] == 8
    assert facts["provenance"]["packages"]["ganlab"] == lab.__version__
    with np.load(tmp_path / "out" / "samples.npz", allow_pickle=False) as kept:
        drawn = draw(lab.Run(digits), 16, checkpoint=2)
        np.testing.assert_array_equal(kept["samples"], drawn.samples)
        np.testing.assert_array_equal(kept["latents"], drawn.latents)


@pytest.mark.slow
def test_export_json_names_neither_machine_nor_command(points, tmp_path):
    export(lab.Run(points), tmp_path / "out")
    text = (tmp_path / "out" / "export.json").read_text() + (tmp_path / "out" / "README.md").read_text()
    provenance = lab.Run(points).info["provenance"]
    assert provenance["host"] not in text
    assert str(points.parent) not in text
    assert "--name" not in text
    assert json.loads((tmp_path / "out" / "export.json").read_text())["value_range"] is None


def test_an_empty_folder_is_filled_and_a_full_one_left_alone(points, tmp_path):
    (tmp_path / "out").mkdir()
    export(lab.Run(points), tmp_path / "out")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="out is a folder with files in it already"):
        export(lab.Run(points), tmp_path / "out")
    with pytest.raises(RunError, match=r"README\.md is a file already"):
        export(lab.Run(points), tmp_path / "out" / "README.md")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_disk_that_fills_up_leaves_nothing(points, tmp_path, monkeypatch):
    def full(trained, path):
        path.write_text("half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setitem(FORMATS, "keras", replace(FORMATS["keras"], write=full))
    with pytest.raises(RunError, match=r"out cannot be written: No space left on device\. Nothing was left behind"):
        export(lab.Run(points), tmp_path / "deep" / "out", format="keras")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_draws_other_samples_is_not_kept(points, tmp_path, monkeypatch):
    other = replace(FORMATS["keras"], read=lambda path: lambda arrays: arrays["latent"][:, :2] * 1e6)
    monkeypatch.setitem(FORMATS, "keras", other)
    with pytest.raises(IncompatibleError, match=r"generator\.keras, the generator draws samples that differ by up to"):
        export(lab.Run(points), tmp_path / "out", format="keras")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused(points, tmp_path):
    with pytest.raises(ConfigError, match=r"Unknown format 'saved-model'.* Did you mean 'saved_model'\?"):
        export(lab.Run(points), tmp_path / "out", format="saved-model")


@pytest.mark.slow
def test_layers_that_are_not_keras_own_are_refused_in_a_keras_file(trained, tmp_path):
    text = f"{BASE}\nexperiment.dataset = @datasets.gaussian_ring()\nexperiment.architecture = @architectures.mlp()\n"
    run = lab.Run(trained(text + "architectures.mlp.activation = 'max_min'\narchitectures.mlp.width = 8\n"))
    with pytest.raises(IncompatibleError, match=r"The generator has ganlab>GroupSort: .*Use --format saved_model"):
        export(run, tmp_path / "out", format="keras")
    assert list(tmp_path.iterdir()) == []
    export(run, tmp_path / "out")
    there = tf.saved_model.load(str(tmp_path / "out" / "generator"))
    np.testing.assert_allclose(there.sample(9, 5)["samples"], draw(run, 9, seed=5).samples, rtol=1e-5, atol=1e-5)


def twice(x):
    return 2 * x


def chained(*layers):
    latent = out = keras.Input((3,))
    for layer in layers:
        out = layer(out)
    return keras.Model(latent, out)


def test_custom_code_is_listed_wherever_it_is_in_a_model():
    class Own(keras.Model):
        def call(self, x):
            return x

    class Scaled(keras.layers.Layer):
        def call(self, x):
            return 2 * x

    dense = keras.layers.Dense
    assert foreign(Own()) == ["its own class Own"]
    assert foreign(chained(dense(2), Scaled())) == ["Scaled"]
    assert foreign(chained(chained(dense(3), Scaled()), dense(2))) == ["Scaled"]
    assert foreign(chained(dense(2, activation=twice))) == ["twice"]
    assert foreign(chained(dense(2), keras.layers.Lambda(lambda x: 2 * x, output_shape=(2,)))) == ["a Lambda layer"]
    plain = [dense(4, activation=keras.ops.tanh), keras.layers.LeakyReLU(), keras.layers.BatchNormalization()]
    plain += [dense(4, kernel_initializer=keras.initializers.HeUniform(), dtype="mixed_bfloat16"), dense(1, "relu")]
    assert foreign(chained(*plain)) == []


def test_onnx_names_its_extra(points, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(MissingDependencyError, match=r"pip install -e '\.\[onnx-export\]'"):
        export(lab.Run(points), tmp_path / "out", format="onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("which", [pytest.param("points", marks=pytest.mark.slow), "digits"])
def test_onnx_runs_elsewhere(which, request, tmp_path):
    pytest.importorskip("tf2onnx", reason="the extra onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    run = lab.Run(request.getfixturevalue(which))
    assert export(run, tmp_path / "out", format="onnx")["checked"]
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "generator.onnx"))
    expected = draw(run, 33, seed=9)
    (samples,) = session.run(["samples"], {"latent": expected.latents})
    np.testing.assert_allclose(samples, expected.samples, rtol=1e-5, atol=1e-5)


def test_onnx_without_a_runtime_is_not_read_back(points, tmp_path, monkeypatch):
    pytest.importorskip("tf2onnx", reason="the extra onnx is not installed")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert export(lab.Run(points), tmp_path / "out", format="onnx")["checked"] is False
