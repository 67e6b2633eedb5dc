"""The penalty on convolutions that are not orthogonal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import ganlab
from ganlab import lipschitz
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import Certified

if TYPE_CHECKING:
    import keras


class OrthogonalConvolution(Certified):
    """Penalizes convolutions, as the maps that they perform, for being other than orthogonal.

    Wang, Chen, Chakraborty and Yu, "Orthogonal convolutional neural networks" (2020), and Achour, Malgouyres and
    Mamalet, "Existence, stability and scalability of orthogonal convolutional neural networks" (2022):
    `weight * (||conv(K, K) - I||^2 - max(0, M - C S^d))`, summed over kernels K with C inputs, M outputs, stride S and
    d axes. `conv(K, K)` correlates the kernel with itself at all offsets that are multiples of the stride, and I is the
    identity at offset zero. The second term is the least value of the first: it is above zero where there are more
    outputs than `C S^d`, and then the columns of the map become orthonormal instead of its rows. A dense layer is a
    convolution of one tap.

    It is zero for convolutions that are orthogonal on a circle. With zero padding, "same" or "valid", such a map's norm
    is still at most 1, and it is isometric away from the border.
    """

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 0.1) -> None:
        """Chooses the penalty.

        Args:
            weight: The penalty's factor.
        """
        self.weight = weight

    def prepare(self, critic: keras.Model) -> None:
        """Refuses kernels that the papers do not cover."""
        self._strides = {}
        weights = ganlab.functional.named_weights(critic)
        for name, operator in lipschitz.operators(critic).items():
            shape = tuple(weights[name].shape)
            if reason := _uncovered(operator, shape):
                raise ganlab.IncompatibleError(
                    f"constraints.orthogonal_convolution cannot constrain {name!r} of the critic {critic.name!r}, of "
                    f"the shape {shape}: {reason}. Change that layer, or use constraints.bjorck, which takes any "
                    "convolution."
                )
            self._strides[name] = operator.strides if isinstance(operator, lipschitz.Convolution) else ()
        super().prepare(critic)

    def weight_penalty(self, weights: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The penalty, a scalar."""
        return self.weight * sum(_residual(weights[name], strides) for name, strides in self._strides.items())


def _uncovered(operator: lipschitz.Operator, shape: tuple[int, ...]) -> str | None:
    """The reason why the papers do not cover a kernel, or None."""
    if not isinstance(operator, lipschitz.Convolution):
        return None
    *taps, inputs, outputs = shape
    if isinstance(operator, lipschitz.DepthwiseConvolution) or operator.groups > 1:
        return "it takes groups of channels apart"
    if isinstance(operator, lipschitz.TransposedConvolution):
        return "it is a transposed convolution"
    if len(taps) > 2:
        return "it has three axes of space, where the papers have one or two"
    if operator.padding == "causal":
        return "its padding is causal"
    if any(rate > 1 for rate in operator.dilation):
        return f"it is dilated by {operator.dilation}"
    if len({*taps}) > 1 or len({*operator.strides}) > 1:
        return f"its kernel of {tuple(taps)} taps or its strides {operator.strides} differ between axes"
    (stride,), patch = {*operator.strides}, math.prod(taps)
    if outputs <= inputs * stride ** len(taps):
        return f"{outputs} outputs exceed the {inputs * patch} numbers of a patch" if outputs > inputs * patch else None
    return (
        f"with more outputs than inputs, its strides {operator.strides} exceed its taps" if stride > taps[0] else None
    )


def _residual(kernel: tf.Tensor, strides: tuple[int, ...]) -> tf.Tensor:
    """The squared distance of a kernel's self-correlation from the identity, above the least possible."""
    *taps, inputs, outputs = kernel.shape
    if not strides:
        wide = outputs > inputs  # the smaller product has no least value to take off
        gram = tf.matmul(kernel, kernel, transpose_a=not wide, transpose_b=wide)
        return tf.reduce_sum(tf.square(gram - tf.eye(min(inputs, outputs))))
    reach = [(t - 1) // s for t, s in zip(taps, strides, strict=True)]
    padding = [(r * s, r * s) for r, s in zip(reach, strides, strict=True)]
    images = tf.pad(tf.transpose(kernel, [len(taps) + 1, *range(len(taps) + 1)]), [(0, 0), *padding, (0, 0)])
    products = tf.nn.convolution(images, kernel, strides=strides, padding="VALID")
    middle = tf.one_hot(_middle(reach), math.prod(2 * r + 1 for r in reach))
    identity = middle[None, :, None] * tf.eye(outputs)[:, None, :]
    products = tf.reshape(products, identity.shape)
    return tf.reduce_sum(tf.square(products - identity)) - max(0, outputs - inputs * math.prod(strides))


def _middle(reach: list[int]) -> int:
    """The place of offset zero among the flattened offsets."""
    return math.prod(2 * r + 1 for r in reach) // 2
