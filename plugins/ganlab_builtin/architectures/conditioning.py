"""Labels in networks: the input, how a generator takes it, and what a critic makes of it."""

from __future__ import annotations

from typing import Any

import ganlab
from ganlab.lazy import keras
from ganlab_builtin.architectures.parts import to_score

LABELS = ("none", "projection", "concatenation", "classifier")


def label_input(classes: int | None, architecture: str) -> Any:
    """The labels of the rows as one and zeros, `(n, classes)`, so that samples between two classes are possible.

    Raises:
        IncompatibleError: The dataset has no classes.
    """
    if not classes:
        raise ganlab.IncompatibleError(
            f"architectures.{architecture}.labels needs a dataset with classes. Use one, for example datasets.digits, "
            'or set labels = "none".'
        )
    return keras.Input((classes,), name="label")


def concatenated(x: Any, label: Any) -> Any:
    """Vectors `(n, d)` and the labels side by side, `(n, d + classes)`."""
    return keras.layers.Concatenate(name="with_label")([x, label])


def scored(features: Any, label: Any, kind: str) -> Any:
    """The critic's end: the score, `(n, 1)` float32, or a dict of it and `logits`, `(n, classes)`.

    Args:
        features: The last features, `(n, d)`.
        label: The labels' input, `(n, classes)`.
        kind: One of `LABELS`.
    """
    score = to_score(features)
    if kind == "projection":
        # Without a bias, and of a size that keeps the product near one: the projection of Miyato and Koyama (2018).
        wide = features.shape[-1]
        start = keras.initializers.RandomNormal(stddev=wide**-0.5)
        embed = keras.layers.Dense(
            wide, use_bias=False, kernel_initializer=start, dtype="float32", name="label_embedding"
        )
        along = keras.layers.Dot(axes=1, dtype="float32", name="projection")
        projected = along([features, embed(label)])
        return keras.layers.Add(dtype="float32", name="projected_score")([score, projected])
    if kind == "classifier":
        return {"score": score, "logits": keras.layers.Dense(label.shape[-1], dtype="float32", name="logits")(features)}
    return score
