"""Measures how fast a core decodes picture files."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

_SIDE = 64


def decoding_rate() -> float:
    """Bytes of examples per second that one core makes from PNG files of 64 by 64 pixels; measured here."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{i}.png" for i in range(512)]
        for name in names:
            # Smooth pictures: noise would be slower to decode than photographs are.
            coarse = rng.uniform(0, 255, (8, 8, 3))
            picture = tf.cast(tf.image.resize(coarse, (_SIDE, _SIDE), "bicubic"), tf.uint8)
            Path(name).write_bytes(tf.io.encode_png(picture).numpy())

        def read(name: tf.Tensor) -> tf.Tensor:
            return tf.cast(tf.io.decode_png(tf.io.read_file(name), channels=3), tf.float32) / 127.5 - 1.0

        files = tf.data.Dataset.from_tensor_slices(names).repeat(8).map(read).batch(64)
        for _ in files.take(8):
            pass
        begun, made = time.process_time(), 0
        for batch in files:
            made += int(tf.size(batch)) * 4
        return made / (time.process_time() - begun)
