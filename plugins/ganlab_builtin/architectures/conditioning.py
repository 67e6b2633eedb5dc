"""Labels in networks: the input, how a generator takes it, and what a critic makes of it."""

from __future__ import annotations

from typing import Any

import ganlab
from ganlab.lazy import keras
from ganlab_builtin.architectures.parts import normalize, to_score

LABELS = ("none", "projection", "concatenation", "classifier")


def label_input(classes: int | None, architecture: str, *, optional: bool = True) -> Any:
    """The labels of the rows as one and zeros, `(n, classes)`, so that samples between two classes are possible."""
    if not classes:
        where, remedy = (".labels", ', or set labels = "none"') if optional else ("", "")
        raise ganlab.IncompatibleError(
            f"architectures.{architecture}{where} needs a dataset with classes. Use one, for example datasets.digits"
            f"{remedy}."
        )
    return keras.Input((classes,), name="label")


def given_input(name: str, shape: tuple[int, ...] | None, whose: str) -> Any:
    """The input of conditions or of a source, by the name that the core gives them to, for an error `whose`."""
    if shape is None:
        remedy = {
            "conditions": "a dataset with conditions, for example datasets.showers",
            "source": "experiment.source, or a dataset of pairs, for example datasets.edges",
        }[name]
        raise ganlab.ConfigError(f"{whose} needs {remedy}; the experiment has no {name}.")
    return keras.Input(shape, name=name)


def concatenated(x: Any, label: Any) -> Any:
    """An input and the labels side by side along the last axis, for vectors `(n, d + classes)`."""
    return keras.layers.Concatenate(name="with_label")([x, label])


def embedded(latent: Any, label: Any) -> Any:
    """Latent vectors `(n, d)` and as many numbers learned for each class, side by side, `(n, 2 d)`.

    The numbers start with the variance of the latent vectors, so that neither outweighs the other. In a generator the
    layers are Keras' own, so that an export can do without ganlab.
    """
    start = keras.initializers.RandomNormal(stddev=1.0)
    embed = keras.layers.Dense(latent.shape[-1], use_bias=False, kernel_initializer=start, name="label_embedding")
    return concatenated(latent, embed(label))


def with_planes(x: Any, label: Any) -> Any:
    """Images with a plane for each class as further channels: of ones for the label, of zeros for the others."""
    planes = keras.layers.Reshape((1, 1, label.shape[-1]), name="label_pixel")(label)
    planes = keras.layers.UpSampling2D(x.shape[1:3], name="label_planes")(planes)
    return concatenated(x, planes)


def normalize_by_label(x: Any, label: Any, kind: str, name: str) -> Any:
    """A generator's `parts.normalize` with gains and biases of the label; without them for the label None."""
    if label is None or kind == "none":
        return normalize(x, kind, name)
    if kind == "batch":
        layer = ganlab.layers.ConditionalBatchNormalization(momentum=0.9, epsilon=1e-5, name=name)
    else:
        layer = ganlab.layers.ConditionalLayerNormalization(epsilon=1e-5, name=name)
    return layer([x, label])


def scored(features: Any, label: Any, kind: str, start: Any = "glorot_uniform") -> Any:
    """The critic's end: the score, `(n, 1)` float32, or a dict of it and `logits`, `(n, classes)`, or `proxy`.

    Args:
        features: The last features, `(n, d)`; a proxy has their shape.
        label: The labels' input, `(n, classes)`.
        kind: One of `LABELS`, or "proxy".
        start: The initializer of a score that is a layer of its own.
    """
    if kind == "projection":
        return ganlab.layers.ProjectionHead(dtype="float32", name="projection")([features, label])
    score = to_score(features, start)
    if kind == "classifier":
        return {"score": score, "logits": keras.layers.Dense(label.shape[-1], dtype="float32", name="logits")(features)}
    if kind == "proxy":
        return {
            "score": score,
            "proxy": keras.layers.Dense(features.shape[-1], use_bias=False, dtype="float32", name="proxy")(label),
        }
    return score


def as_embedding(features: Any, width: int) -> Any:
    """The last features, `(n, d)`, as an embedding `(n, width)` float32 without activation; as they are for width 0."""
    return keras.layers.Dense(width, dtype="float32", name="embedding")(features) if width else features


def with_embedding(end: Any, embedding: Any) -> dict[str, Any]:
    """The critic's end as a dict that has `embedding` too."""
    return {**(end if isinstance(end, dict) else {"score": end}), "embedding": embedding}


def normalize_by_vector(x: Any, vector: Any, start: Any, name: str) -> Any:
    """Batch normalization over the global batch with gains and biases that are linear in a vector of each example.

    Brock, Donahue and Simonyan, "Large scale GAN training for high fidelity natural image synthesis" (2019), figure 15:
    `(1 + G v) x + B v`, matrices G and B without biases.

    Args:
        x: Feature maps `(n, height, width, channels)`.
        vector: `(n, d)`.
        start: The initializer of both matrices.
        name: The prefix of the layers' names.
    """
    channels = x.shape[-1]
    x = keras.layers.BatchNormalization(
        momentum=0.9, epsilon=1e-5, synchronized=True, center=False, scale=False, name=name
    )(x)

    def linear(part: str) -> Any:
        layer = keras.layers.Dense(channels, use_bias=False, kernel_initializer=start, name=f"{name}_{part}")
        return keras.layers.Reshape((1, 1, channels), name=f"{name}_{part}_of_pixel")(layer(vector))

    scaled = keras.layers.Multiply(name=f"{name}_scaled")([x, linear("gain")])
    return keras.layers.Add(name=f"{name}_shifted")([x, scaled, linear("bias")])
