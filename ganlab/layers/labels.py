"""Layers that take class labels.

A label is the number of a class, `(n,)` integers, or the weight of each class, `(n, classes)` floats: ones and zeros,
or what lies between two classes. An input of weights decides how many classes there are; for numbers, pass `classes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.layers.base import Layer


@keras.saving.register_keras_serializable(package="ganlab")
class LabelEmbedding(Layer):
    """A vector for each class: labels to `(n, units)`.

    Linear in the weights of classes, without a bias. Its `kernel` is a matrix `(classes, units)`, which constraints on
    kernels treat as a dense layer's, or a vector of that many numbers, which they leave alone.
    """

    arguments = "units classes constrained kernel_initializer"

    def __init__(
        self,
        units: int,
        classes: int | None = None,
        kernel_initializer: Any = None,
        constrained: bool = True,
        **kwargs: Any,
    ) -> None:
        """Sets the size of the vectors.

        Args:
            units: The length of a vector.
            classes: How many classes there are; needed for labels that are numbers.
            kernel_initializer: How the vectors start. None draws them from a normal distribution of variance
                `1 / units`, so that their length is about one.
            constrained: Whether constraints see a kernel.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(**kwargs)
        if not isinstance(units, int) or units < 1:
            raise ValueError(f"ganlab.layers.LabelEmbedding(units={units!r}): it must be at least 1.")
        self.units, self.classes, self.constrained = units, classes, bool(constrained)
        start = keras.initializers.RandomNormal(stddev=units**-0.5) if kernel_initializer is None else None
        self.kernel_initializer = start or keras.initializers.get(kernel_initializer)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the vectors."""
        classes = count_classes(self, input_shape, self.classes)
        table = (classes, self.units)

        def flat(shape: Any, dtype: Any = None) -> Any:
            return keras.ops.reshape(self.kernel_initializer(table, dtype=dtype), shape)

        self.kernel = (
            self.add_weight(shape=table, initializer=self.kernel_initializer, name="kernel")
            if self.constrained
            else self.add_weight(shape=(classes * self.units,), initializer=flat, name="kernel")
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The vectors of these labels, `(n, units)`."""
        table = tf.reshape(self.kernel, [-1, self.units])
        return tf.matmul(class_weights(inputs, table.shape[0], self.compute_dtype), table)

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """`(n, units)`."""
        return (input_shape[0], self.units)


@keras.saving.register_keras_serializable(package="ganlab")
class ProjectionHead(Layer):
    """A conditional critic's last layer, from `[features, labels]` to scores `(n, 1)`.

    Miyato and Koyama, "cGANs with projection discriminator" (2018), equation 3: `score = psi(h) + <embed(y), h>`, with
    an affine psi (the sublayer `score`), the features h, `(n, d)`, and a vector for each class (`label_embedding`).
    """

    arguments = "classes"

    def __init__(self, classes: int | None = None, **kwargs: Any) -> None:
        """Args: classes: How many there are, needed for labels that are numbers; kwargs: Keras' own, like `name`."""
        super().__init__(**kwargs)
        self.classes = classes
        self.score = keras.layers.Dense(1, dtype=self.dtype_policy, name="score")

    def build(self, input_shape: Sequence[Sequence[int | None]]) -> None:
        """Creates the weights of the score and of the projection."""
        features, labels = pair(self, input_shape)
        if len(features) != 2 or features[1] is None:
            raise ValueError(
                f"ganlab.layers.ProjectionHead got features of shape {tuple(features)}; they must be vectors (n, d). "
                "Add keras.layers.Flatten or GlobalAveragePooling2D before it."
            )
        self.label_embedding = LabelEmbedding(
            int(features[1]), self.classes, dtype=self.dtype_policy, name="label_embedding"
        )
        self.label_embedding.build(labels)
        self.score.build(features)

    def call(self, inputs: Sequence[tf.Tensor]) -> tf.Tensor:
        """The scores of `[features, labels]`, `(n, 1)`."""
        features, labels = inputs
        product = tf.reduce_sum(features * self.label_embedding(labels), axis=1, keepdims=True)
        return self.score(features) + product

    def compute_output_shape(self, input_shape: Sequence[Sequence[int | None]]) -> tuple[int | None, ...]:
        """`(n, 1)`."""
        return (input_shape[0][0], 1)


def class_weights(labels: tf.Tensor, classes: int, dtype: Any) -> tf.Tensor:
    """The weight of each class in each row, `(n, classes)`, of numbers of classes `(n,)` or of such weights."""
    labels = tf.convert_to_tensor(labels)
    return tf.one_hot(labels, classes, dtype=dtype) if labels.dtype.is_integer else tf.cast(labels, dtype)


def count_classes(layer: keras.layers.Layer, shape: Sequence[int | None], classes: int | None) -> int:
    """How many classes labels of this shape have.

    Args:
        layer: The layer that takes them, for the error.
        shape: Their shape, `(n,)` or `(n, classes)`.
        classes: How many were given; None if the shape decides.

    Raises:
        ValueError: Neither decides, or they disagree.
    """
    kind, length = f"ganlab.layers.{type(layer).__name__}(classes={classes!r})", shape[1] if len(shape) == 2 else None
    if len(shape) not in (1, 2) or (length is None and classes is None) or (classes or length) != (length or classes):
        raise ValueError(
            f"{kind} got labels of shape {tuple(shape)}; they must be numbers of classes (n,), with classes given, or "
            "the weight of each class (n, classes)."
        )
    return int(length or classes or 0)


def pair(layer: keras.layers.Layer, shapes: Any) -> tuple[Any, Any]:
    """The shapes of a layer's input and of its labels.

    Raises:
        ValueError: It was not called on both.
    """
    if len(shapes) != 2 or not all(isinstance(shape, tuple | list) for shape in shapes):
        raise ValueError(
            f"ganlab.layers.{type(layer).__name__} got the shape {shapes}; call it on a list of its input and labels: "
            "layer([x, labels])."
        )
    return shapes[0], shapes[1]
