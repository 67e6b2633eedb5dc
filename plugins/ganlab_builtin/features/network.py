"""The classifier's network: convolutions down to four pixels, features, logits."""

from __future__ import annotations

from typing import Any

from ganlab.lazy import keras

_SMALLEST, _WIDEST = 4, 256


def build(shape: tuple[int, ...], classes: int, *, width: int, features: int, seed: int) -> keras.Model:
    """A convolutional network `(n, *shape) -> (n, features), (n, classes)`: features, and logits from them.

    Pairs of 3 x 3 convolutions, each pair followed by pooling that halves the image and doubles the channels, until a
    side is 4 or less. No normalization: its statistics would be each replica's own.
    """
    seeds = iter(range(1000 * seed, 1000 * seed + 1000))

    def he() -> Any:
        return keras.initializers.HeNormal(seed=next(seeds))

    # Every part has its own name and precision, so that it does not affect what is trained beside it.
    x = image = keras.Input(shape, name="image", dtype="float32")
    side, channels, block = min(shape[:2]), width, 0
    while block == 0 or side > _SMALLEST:
        block += 1
        for half in ("a", "b"):
            x = keras.layers.Conv2D(
                channels,
                3,
                padding="same",
                activation="relu",
                kernel_initializer=he(),
                dtype="float32",
                name=f"convolution_{block}{half}",
            )(x)
        x = keras.layers.MaxPooling2D(2, padding="same", dtype="float32", name=f"pool_{block}")(x)
        side, channels = (side + 1) // 2, min(2 * channels, _WIDEST)
    x = keras.layers.Flatten(dtype="float32", name="flat")(x)
    x = keras.layers.Dense(features, activation="relu", kernel_initializer=he(), dtype="float32", name="features")(x)
    logits = keras.layers.Dense(classes, kernel_initializer=he(), dtype="float32", name="logits")(x)
    return keras.Model(image, [x, logits], name="classifier")
