"""Shared parts of the architectures: normalizations, ends of networks, and checks of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ganlab
from ganlab.lazy import keras

GENERATOR_NORMALIZATIONS = ("batch", "layer", "none")
CRITIC_NORMALIZATIONS = ("none", "layer")
INITIALIZERS = ("he", "he_normal", "xavier", "normal", "orthogonal")


def normalize(x: Any, kind: str, name: str, *, critic: bool = False) -> Any:
    """A normalization layer applied to feature maps `(n, height, width, channels)`.

    "batch" takes its moments over the global batch, on every replica the same. "layer" takes each example's own, over
    all of its pixels and channels (Ba, Kiros and Hinton, 2016), with a scale and an offset per channel. In a critic it
    is one that can be differentiated twice; a generator has Keras' own, so that an export can do without ganlab.
    """
    if kind == "batch":
        return keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5, synchronized=True, name=name)(x)
    if kind == "layer":
        kind_of_layer = ganlab.layers.GroupNormalization if critic else keras.layers.GroupNormalization
        return kind_of_layer(groups=1, epsilon=1e-5, name=name)(x)
    return x


def to_pixels(x: Any) -> Any:
    """The generator's end: `[-1, 1]`, float32 whatever the precision."""
    return keras.layers.Activation("tanh", dtype="float32", name="pixels")(x)


def to_score(x: Any, start: Any = "glorot_uniform") -> Any:
    """The critic's end: one unbounded score an example, `(n, 1)`, float32 whatever the precision."""
    return keras.layers.Dense(1, kernel_initializer=start, dtype="float32", name="score")(x)


def with_heads(critic: keras.Model, heads: Mapping[str, int]) -> keras.Model:
    """A critic that returns further outputs of these widths, linear in what the layer of its score gets."""
    output = critic.output if isinstance(critic.output, dict) else {"score": critic.output}
    if twice := sorted(set(output) & set(heads)):
        raise ganlab.IncompatibleError(
            f"The critic {critic.name!r} has an output {twice[0]!r} already. Give the head another name."
        )
    return keras.Model(critic.input, {**output, **heads_of(critic, heads)}, name=critic.name)


def heads_of(critic: keras.Model, heads: Mapping[str, int]) -> dict[str, Any]:
    """Outputs that are linear in what the layer of a critic's score gets; arguments and errors as of `with_heads`."""
    if not getattr(critic, "inputs", None):
        raise ganlab.IncompatibleError(
            f"The critic {critic.name!r} does not show its layers, so no head can share them. Use an architecture "
            "whose critic is a keras.Model(inputs, outputs)."
        )
    score = critic.output["score"] if isinstance(critic.output, dict) else critic.output
    last = score._keras_history.operation
    if isinstance(last, keras.Model):
        raise ganlab.IncompatibleError(
            f"The score of the critic {critic.name!r} is that of a model in it, {last.name!r}, whose layers it does "
            "not show. Put architectures.with_head inside the architecture that adds to its critic, not around it."
        )
    features = last.input
    if isinstance(features, (list, tuple)):  # a layer of features and labels
        features = features[0]
    return {name: keras.layers.Dense(width, dtype="float32", name=name)(features) for name, width in heads.items()}


def kernel_start(kind: str, *, rectified: bool = False) -> Any:
    """An initializer for a kernel.

    Args:
        kind: "he" is the uniform distribution of He et al. (2015) before rectifiers and of Glorot and Bengio (2010)
            elsewhere; "he_normal" the normal one of He et al. everywhere; "xavier" that of Glorot and Bengio
            everywhere, with twice the variance (a gain of sqrt(2)) before rectifiers; "normal" the normal distribution
            of deviation 0.02 of Radford et al. (2016); "orthogonal" that of Saxe et al. (2014) for the kernel as the
            matrix (everything else, outputs).
        rectified: Whether a rectifier is near, as in the two 3x3 convolutions of a residual block.
    """
    if kind == "he":
        return "he_uniform" if rectified else "glorot_uniform"
    if kind == "he_normal":
        return keras.initializers.VarianceScaling(2.0, mode="fan_in", distribution="untruncated_normal")
    if kind == "xavier":
        return keras.initializers.VarianceScaling(2.0 if rectified else 1.0, mode="fan_avg", distribution="uniform")
    return keras.initializers.RandomNormal(stddev=0.02) if kind == "normal" else keras.initializers.Orthogonal()


def drop(x: Any, rate: float, name: str) -> Any:
    """Dropout whose masks belong to examples; `x` itself at rate 0."""
    return ganlab.layers.Dropout(rate, name=name)(x) if rate else x


def image_sides(name: str, sample_shape: tuple[int, ...], rule: str) -> tuple[int, int]:
    """The height and width of images; arguments and errors as of `square_side`."""
    if len(sample_shape) != 3 or min(sample_shape) < 1:
        raise unsupported(name, sample_shape, rule)
    return sample_shape[0], sample_shape[1]


def square_side(name: str, sample_shape: tuple[int, ...], rule: str) -> int:
    """The side of square images; others are refused by the rule of the architecture of this name."""
    height, width = image_sides(name, sample_shape, rule)
    if height != width:
        raise unsupported(name, sample_shape, rule)
    return height


def unsupported(name: str, sample_shape: tuple[int, ...], rule: str) -> ganlab.IncompatibleError:
    """The error of an architecture that cannot make samples of this shape."""
    return ganlab.IncompatibleError(
        f"architectures.{name} cannot make samples of shape {tuple(sample_shape)}: it makes {rule}. "
        "Choose another dataset or size, or architectures.mlp, which takes any shape."
    )


def check_choice(selector: str, value: Any, allowed: Sequence[str]) -> None:
    """Raises a ConfigError unless the value is one of those allowed."""
    if value not in allowed:
        hint = ""
        if value == "batch" and selector.endswith("critic_normalization"):
            hint = " Batch normalization couples the examples of a batch, whose penalties are per example: use 'layer'."
        raise ganlab.ConfigError(
            f"architectures.{selector} = {value!r} must be one of {', '.join(map(repr, allowed))}.{hint}"
        )
