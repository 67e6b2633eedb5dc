"""Measures how many examples a second of one core makes from picture files, at the sizes of CIFAR-10 and ImageNet-128.

    python tools/input_speed.py

Crops of scikit-learn's photographs are written as picture files and by `ganlab dataset make` as TFRecord files, and
read as training reads them: by number, in random order, through ganlab's own datasets. Processor time is counted, so
that the figures are those of one core, whatever else runs; files are in the system's cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import ganlab

SIDES = (32, 128)
FILES, BATCH, BATCHES = 512, 64, 40
# ImageNet's pictures as they come: JPEG of about this side, which image_folder crops and resizes each time.
ORIGINAL = 400


def main() -> None:
    """Prints a row for each size and format."""
    print("| images | from | examples per core and second | float32 per core and second |")
    print("|---|---|---|---|")
    for side in SIDES:
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder)
            write_pictures(here / "png", side, tf.io.encode_png, "png")
            write_pictures(here / "jpg", ORIGINAL, lambda image: tf.io.encode_jpeg(image, quality=95), "jpg")
            made = [sys.executable, "-m", "ganlab", "dataset", "make", str(here / "png"), str(here / "records")]
            subprocess.run([*made, "--size", str(side)], check=True, stdout=subprocess.DEVNULL)
            folder_of = ganlab.component("datasets", "image_folder")
            sources = {
                "TFRecord files of PNG": ganlab.component("datasets", "tfrecords")(path=str(here / "records")),
                "PNG files of that size": folder_of(path=str(here / "png"), size=side),
                f"JPEG files of {ORIGINAL} x {ORIGINAL}, resized": folder_of(path=str(here / "jpg"), size=side),
            }
            for name, dataset in sources.items():
                rate = examples_per_second(dataset)
                values = np.prod(dataset.sample_shape) * 4
                print(f"| {side} x {side} | {name} | {rate:,.0f} | {rate * values / 1e6:,.0f} MB |", flush=True)


def write_pictures(folder: Path, side: int, encode: Callable[[np.ndarray], tf.Tensor], ending: str) -> None:
    """Writes crops of the photographs, a folder for each of the two classes."""
    from sklearn.datasets import load_sample_image

    rng = np.random.default_rng(0)
    for name in ("china", "flower"):
        (folder / name).mkdir(parents=True)
        photograph = load_sample_image(f"{name}.jpg")
        for number in range(FILES // 2):
            top, left = (rng.integers(0, length - side + 1) for length in photograph.shape[:2])
            crop = photograph[top : top + side, left : left + side]
            (folder / name / f"{number}.{ending}").write_bytes(encode(crop).numpy())


def examples_per_second(dataset: ganlab.Dataset) -> float:
    """Examples that a dataset makes in a second of processor time, in batches as training asks for them."""
    size = dataset.size
    numbers = tf.data.Dataset.range(BATCHES + 4).map(
        lambda i: tf.random.stateless_uniform([BATCH], [0, i], 0, size, tf.int64)
    )
    batches = iter(numbers.map(lambda n: dataset.examples(tf.ensure_shape(n, [BATCH]), 0), tf.data.AUTOTUNE))
    for _ in range(4):
        next(batches)
    begun, made = time.process_time(), 0
    for batch in batches:
        made += int(batch.shape[0])
    return made / (time.process_time() - begun)


if __name__ == "__main__":
    main()
