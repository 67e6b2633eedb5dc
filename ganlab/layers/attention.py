"""Attention between the places of a feature map."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="ganlab")
class SelfAttention(keras.layers.Layer):
    """Adds to every place of a feature map what it gathers from all others: `x + gamma * attention(x)`.

    Zhang, Goodfellow, Metaxas and Odena, "Self-attention generative adversarial networks" (2019), section 3, as in the
    authors' code: 1x1 convolutions without biases make queries and keys of an eighth of the channels and values of half
    of them; keys and values are halved in height and width by maximum pooling; a softmax over places weighs the values;
    a last 1x1 convolution restores the channels. `gamma`, one number, starts at zero, so that the layer starts as the
    identity.

    The convolutions are `Conv2D` sublayers (`query`, `key`, `value`, `merge`), which constraints on kernels find. The
    layer as a whole has no Lipschitz constant, whatever the kernels: products of queries and keys grow quadratically
    (Kim, Papamakarios and Mnih, "The Lipschitz constant of self-attention", 2021). A critic with it has no certificate.
    """

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the convolutions and gamma.

        Raises:
            ValueError: The input is not a feature map of known size, channels last.
        """
        if len(input_shape) != 4 or None in input_shape[1:]:
            raise ValueError(
                f"ganlab.layers.SelfAttention got the shape {tuple(input_shape)}; it must be (n, height, width, "
                "channels) of known height, width and channels."
            )
        batch, height, width, channels = input_shape
        inner, outer = max(1, int(channels or 0) // 8), max(1, int(channels or 0) // 2)
        self.query, self.key = self._convolution(inner, "query"), self._convolution(inner, "key")
        self.value, self.merge = self._convolution(outer, "value"), self._convolution(int(channels or 0), "merge")
        for layer in (self.query, self.key, self.value):
            layer.build(input_shape)
        self.merge.build((batch, height, width, outer))
        self.gamma = self.add_weight(shape=(), initializer="zeros", name="gamma")

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The feature map, of its shape."""
        height, width = inputs.shape[1:3]
        queries = _places(self.query(inputs))
        keys, values = (_places(_pooled(layer(inputs))) for layer in (self.key, self.value))
        # In float32: a softmax of half precision rounds away the weights of most places.
        logits = tf.matmul(queries, keys, transpose_b=True)
        wide = logits if logits.dtype == tf.float64 else tf.cast(logits, tf.float32)
        gathered = tf.matmul(tf.cast(tf.nn.softmax(wide), values.dtype), values)
        gathered = tf.reshape(gathered, [-1, height, width, values.shape[-1]])
        return inputs + tf.cast(self.gamma, inputs.dtype) * self.merge(gathered)

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> Sequence[int | None]:
        """The input's shape."""
        return input_shape

    def _convolution(self, channels: int, name: str) -> keras.layers.Conv2D:
        return keras.layers.Conv2D(channels, 1, use_bias=False, dtype=self.dtype_policy, name=name)


def _pooled(x: tf.Tensor) -> tf.Tensor:
    return tf.nn.max_pool2d(x, 2, 2, "SAME")


def _places(x: tf.Tensor) -> tf.Tensor:
    """A feature map as `(n, height * width, channels)`."""
    return tf.reshape(x, [-1, x.shape[1] * x.shape[2], x.shape[3]])
