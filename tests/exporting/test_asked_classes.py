"""A conditional run: samples of asked classes, between classes, and its exported generator."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from command_lines import command, mistake_in
from making import architecture, constraint, dataset
from small import small

import ganlab
from ganlab import exporting
from ganlab.errors import ConfigError

# The last as a stranger's folder may have it.
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "../n`\x1b[31mine"]


@pytest.fixture(scope="module")
def run(cpus, tmp_path_factory):
    """Three steps on digits, with spectral norm on the generator and an average."""
    digits = dataset("digits")
    digits.class_names = NAMES
    parts = {
        "dataset": digits,
        "architecture": architecture("mlp", width=16, depth=1, latent_dim=4, labels="projection"),
        "generator_constraints": [constraint("spectral_norm")],
        "ema_decay": 0.5,
    }
    return ganlab.train(small(0, steps=3, **parts), tmp_path_factory.mktemp("runs") / "labels")


def test_a_run_records_how_frequent_classes_are(run):
    from sklearn.datasets import load_digits

    counts = np.bincount(load_digits(return_X_y=True)[1])
    np.testing.assert_allclose(run.info["label_frequencies"], counts / counts.sum(), rtol=1e-12)


def test_classes_are_asked_for_by_name(run):
    assert run.info["class_names"] == NAMES
    assert exporting.draw(run, 5, labels=["three", 7, "8", NAMES[9]]).labels.tolist() == [3, 7, 8, 9, 3]
    assert exporting.interpolate(run, 2, 2, labels="three").labels.tolist() == [3] * 4
    for alone in (np.int64(3), np.array(3), np.array([3]), tf.constant([3])):
        assert exporting.draw(run, 2, labels=alone).labels.tolist() == [3, 3]
    for wrong in (True, 1.5, np.array([0.5])):
        with pytest.raises(ConfigError, match=r"labels = .* must be a whole number"):
            exporting.draw(run, 2, labels=wrong)
    with pytest.raises(ConfigError, match="truncation = 'x' must be at least"):
        exporting.draw(run, 2, truncation="x")
    with pytest.raises(ConfigError, match="checkpoint = '3' must be a whole number"):
        exporting.draw(run, 2, checkpoint="3")
    with pytest.raises(ConfigError, match=r"label = thre is not a class of the data\. Did you mean 'three'\?"):
        exporting.draw(run, 5, labels="thre")


def test_images_go_into_a_folder_one_by_one(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = command("sample", run.path, "-n", 3, "--label", "three", "--label", NAMES[9], "-o", "images/")
    assert said == "Wrote images: 3 samples of seed 0 at step 3.\n"
    first, second, third = sorted(path.name for path in (tmp_path / "images").iterdir())
    assert (first, third) == ("000000-three.png", "000002-three.png")
    assert "\x1b" not in second
    drawn = exporting.draw(run, 3, labels=["three", NAMES[9]])
    read = ganlab.component("datasets", "image_folder")(path="images", size=8, channels=1)
    np.testing.assert_allclose(read.examples(tf.range(3, dtype=tf.int64), 0), drawn.samples, atol=0.51 / 127.5)
    assert "images is a folder with files in it already" in mistake_in(tmp_path, "sample", run.path, "-o", "images")


@pytest.mark.parametrize("text", ["-1", "cat"])
def test_classes_without_names_are_listed_by_their_numbers(run, tmp_path, text):
    shutil.copytree(run.path, tmp_path / "a")
    nameless = ganlab.Run(tmp_path / "a")
    nameless.update(class_names=[])
    with pytest.raises(ConfigError, match=rf"label = {text} is not a class .* Classes: the numbers from 0 to 9\."):
        exporting.draw(nameless, 5, labels=text)


def test_labels_are_drawn_as_frequent_as_in_the_data_and_belong_to_numbers(run):
    many = exporting.draw(run, 4000, seed=1)
    shares = np.bincount(many.labels, minlength=10) / 4000
    # Five deviations of a share of a tenth.
    np.testing.assert_allclose(shares, run.info["label_frequencies"], atol=5 * np.sqrt(0.09 / 4000))
    few = exporting.draw(run, 5, seed=1)
    np.testing.assert_array_equal(few.labels, many.labels[:5])
    np.testing.assert_allclose(few.samples, many.samples[:5], atol=1e-6)


def test_asked_labels_are_what_the_generator_gets(run):
    model = run.generator()
    drawn = exporting.draw(run, 6, labels=[3, 7])
    assert drawn.labels.tolist() == [3, 7, 3, 7, 3, 7]
    one_hot = np.eye(10, dtype=np.float32)[drawn.labels]
    np.testing.assert_allclose(model([drawn.latents, one_hot]), drawn.samples, atol=1e-6)


def test_the_generator_has_the_weights_that_its_constraints_make(run):
    model = run.generator()
    norms = [np.linalg.norm(layer.kernel.numpy(), 2) for layer in model.layers if hasattr(layer, "kernel")]
    np.testing.assert_allclose(norms, 1.0, rtol=0.05)


def test_a_path_goes_from_one_class_to_another(run):
    drawn = exporting.interpolate(run, 2, 5, labels=[3, 8])
    weights = drawn.labels.reshape(2, 5, 10)
    np.testing.assert_allclose(weights[:, 0], np.eye(10)[[3, 3]])
    np.testing.assert_allclose(weights[:, 2, [3, 8]], 0.5)
    np.testing.assert_allclose(weights[:, 4], np.eye(10)[[8, 8]])
    np.testing.assert_allclose(run.generator()([drawn.latents, drawn.labels]), drawn.samples, atol=1e-6)


def test_a_path_stays_in_its_class(run):
    assert exporting.interpolate(run, 3, 4).labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert exporting.interpolate(run, 2, 3, labels=[5]).labels.tolist() == [5] * 6


def test_a_class_that_does_not_exist_is_named(run):
    with pytest.raises(ConfigError, match="label = 10 must be a class of the data, from 0 to 9"):
        exporting.draw(run, 2, labels=[10])


@pytest.mark.parametrize("format", [pytest.param("saved_model", marks=pytest.mark.slow), "keras"])
def test_the_exported_generator_takes_labels(run, tmp_path, format):
    facts = exporting.export(run, tmp_path / format, format=format)
    assert (facts["classes"], facts["class_names"]) == (10, NAMES)
    page = (tmp_path / format / "README.md").read_text()
    assert "The classes by their labels: 0 `zero`, 1 `one`, 2 `two`" in page
    assert "9 `../n'\\x1b[31mine`." in page
    kept = np.load(tmp_path / format / "samples.npz")
    if format == "saved_model":
        generator = tf.saved_model.load(str(tmp_path / format / "generator"))
        samples = generator(kept["latents"], kept["labels"])
        np.testing.assert_allclose(
            generator.sample(3, 1, 4)["samples"], exporting.draw(run, 3, seed=1, labels=[4]).samples
        )
    else:
        model = keras.saving.load_model(tmp_path / format / "generator.keras")
        samples = model.predict([kept["latents"], np.eye(10, dtype=np.float32)[kept["labels"]]], verbose=0)
    np.testing.assert_allclose(samples, kept["samples"], atol=1e-5)
    page = (tmp_path / format / "README.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    assert "$" not in page
    assert "labels" in code
    assert "Labels are not checked: one that is not from 0 to 9 may draw" in page


def test_the_command_draws_a_row_for_each_class(run, tmp_path):
    from click.testing import CliRunner
    from ganlab_export.pictures import picture

    from ganlab.cli import cli

    out = tmp_path / "grid.png"
    done = CliRunner().invoke(cli, ["sample", str(run.path), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "100 samples" in done.output
    rows = exporting.draw(run, 100, labels=[label for label in range(10) for _ in range(10)])
    assert out.read_bytes() == picture(run, rows, columns=10)
    done = CliRunner().invoke(cli, ["sample", str(run.path), "-o", str(tmp_path / "t.npz"), "-n", "4", "--label", "3"])
    assert done.exit_code == 0, done.output
    assert np.load(tmp_path / "t.npz")["labels"].tolist() == [3] * 4
    done = CliRunner().invoke(cli, ["sample", str(run.path), "-o", str(out), "--label", "11"])
    assert done.exit_code == 2
