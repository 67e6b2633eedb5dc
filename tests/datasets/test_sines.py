"""Sine waves: their values, covariance and spectrum against numpy, and how they are shown."""

import numpy as np
import tensorflow as tf
from command_lines import command
from PIL import Image

import ganlab

COUNT = 10_000


def sines(**arguments):
    return ganlab.component("datasets", "sines")(**{"length": 24, "low": 1.5, "high": 4.0} | arguments)


def test_series_have_the_stated_covariance_and_spectrum():
    dataset = sines()
    series = np.asarray(dataset.examples(tf.range(COUNT, dtype=tf.int64), 5), np.float64)
    power = np.abs(np.fft.rfft(series, axis=1)) ** 2 / 24
    # Five deviations of a mean; the covariance is that of values anywhere, so that the phase is uniform.
    np.testing.assert_array_less(np.abs(power.mean(0) - dataset.spectrum), 5 * power.std(0) / np.sqrt(COUNT))
    for start in (0, 9):
        products = series[:, [start]] * series[:, start : start + 15]
        apart = np.abs(products.mean(0) - dataset.covariance[:15])
        np.testing.assert_array_less(apart, 5 * products.std(0) / np.sqrt(COUNT))
    assert dataset.spectrum.argmax() in (2, 3)


def test_each_series_is_one_wave():
    # Any sine has x[t + 1] + x[t - 1] = 2 cos(w) x[t], here with w between 2 pi 1.5 / 24 and 2 pi 4 / 24.
    x = np.asarray(sines().examples(tf.range(50, dtype=tf.int64), 0), np.float64)
    sums, middle = x[:, 2:] + x[:, :-2], x[:, 1:-1]
    twice = (sums * middle).sum(1) / (middle**2).sum(1)
    np.testing.assert_allclose(sums, twice[:, None] * middle, atol=1e-5)
    waves = np.arccos(twice / 2) * 24 / (2 * np.pi)
    assert 1.5 <= waves.min() < 1.8 < 3.7 < waves.max() < 4.0


def test_dataset_show_draws_lines(tmp_path, monkeypatch, fresh_plugins):
    monkeypatch.chdir(tmp_path)
    assert "64 examples of shape (64,)" in command("dataset", "show", "methods/sines", "-o", "lines.png")
    pixels = np.asarray(Image.open(tmp_path / "lines.png"))
    assert pixels.shape == (8 * 66 + 2, 8 * 130 + 2)
