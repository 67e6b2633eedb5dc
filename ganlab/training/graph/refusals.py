"""Refuses layers that would go wrong silently, by name."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.errors import IncompatibleError
from ganlab.interfaces import Constraint
from ganlab.plugins.recipes import selector_of


def check_layers(
    role: str,
    model: keras.Model,
    input_shape: tuple[int, ...] | None,
    *,
    side: str = "critic",
    constraints: Sequence[Constraint] = (),
    conditional: bool = False,
    packing: int = 1,
) -> None:
    """Refuses layers that would go wrong silently; the message says what to use instead.

    `input_shape` is None for a model that says what its inputs are.
    """
    layers = [model, *layers_of(model)]
    for layer in layers:
        for name, value in vars(layer).items():
            if name.endswith("_regularizer") and value is not None:
                raise own_loss(f"{named(role, layer)} has a {name}")
        _check_statistics(role, layer, constraints if side == "critic" else ())
    for variable in model.variables:
        if getattr(variable, "regularizer", None) is not None:
            raise own_loss(f"The {role}'s weight {variable.path!r} has a regularizer")
    _check_seeds(role, model, input_shape, conditional)
    differentiating = next((selector_of(c) for c in constraints if differentiates(c, side)), "")
    for layer in layers if differentiating else ():
        _check_derivatives(role, side, layer, differentiating)
    for each in constraints if packing > 1 else ():
        if differentiates(each) and type(each).transform is not Constraint.transform:
            raise IncompatibleError(
                f"{selector_of(each)} changes each score by the slope at its own example, and this critic scores packs "
                f"of {packing}, where other examples move it too. Use a penalty on slopes, a constraint on weights, or "
                "an architecture without packing."
            )


def differentiates(constraint: Constraint, side: str = "critic") -> bool:
    """Whether a constraint takes the gradient of a network by its input, as declared or inferred from its methods."""
    if constraint.differentiates is not None:
        return bool(constraint.differentiates)
    return _takes_examples(constraint, side)


def layers_of(model: keras.Model) -> list[keras.layers.Layer]:
    """Every layer inside a model or a layer, at any depth."""
    return list(model._flatten_layers(include_self=False, recursive=True))


def graph_of(model: keras.Model) -> keras.Model:
    """The functional model whose symbolic tensors are a model's: that inside a `keras.Sequential`, or itself."""
    return getattr(model, "_functional", None) or model


def named(role: str, layer: keras.layers.Layer) -> str:
    """A layer as messages name it."""
    return f"The {role}'s layer {layer.name!r} ({type(layer).__name__})"


def own_loss(what: str) -> IncompatibleError:
    """The error of a term that a layer would add to the loss."""
    return IncompatibleError(
        f"{what}, which would be ignored: networks are trained on the experiment's loss and constraints alone. Leave "
        "it out; a constraint with weight_penalty adds a term on the critic's weights."
    )


def of_whole_batch(what: str) -> IncompatibleError:
    """The error that names what cannot be trained in microbatches."""
    return IncompatibleError(
        f"{what} takes statistics of the whole batch, which its parts do not know. Set experiment.microbatches = 1, or "
        "use a layer that normalizes each example alone, for example ganlab.layers.LayerNormalization."
    )


def seed_generators(model: keras.Model) -> list[tuple[keras.layers.Layer, keras.random.SeedGenerator]]:
    """The layers of a model that keep a seed of their own, each with its seed generator."""
    return [
        (layer, value)
        for layer in [model, *layers_of(model)]
        for value in vars(layer).values()
        if isinstance(value, keras.random.SeedGenerator)
    ]


def _check_statistics(role: str, layer: keras.layers.Layer, constraints: Sequence[Constraint]) -> None:
    if isinstance(layer, keras.layers.SpectralNormalization):
        raise IncompatibleError(
            f"{named(role, layer)} divides its kernel anew in every call, so that real and fake examples of one update "
            "meet different networks, and its gradient leaves the division out. Remove the layer and use "
            "constraints.spectral_norm, which works on the critic as it is."
        )
    if not isinstance(layer, keras.layers.BatchNormalization):
        return
    per_example = [type(c).__name__ for c in constraints if _takes_examples(c)]
    if per_example:
        raise IncompatibleError(
            f"{named(role, layer)} mixes the examples of a batch, so that {per_example[0]}, which is defined for each "
            "example alone, would compute something else. Use ganlab.layers.LayerNormalization, or no normalization, "
            "in the critic."
        )
    if not layer.synchronized:
        raise IncompatibleError(
            f"{named(role, layer)} keeps statistics of its own on every replica, and only the first one's are saved. "
            "Use BatchNormalization(synchronized=True) or ganlab.layers.LayerNormalization."
        )


def _check_seeds(role: str, model: keras.Model, input_shape: tuple[int, ...] | None, conditional: bool) -> None:
    kept = seed_generators(model)
    if not kept:
        return
    drawn: list[keras.random.SeedGenerator] = []

    def call(x: Any) -> None:
        with keras.StatelessScope() as scope:
            try:
                model([x, _some_labels(model)] if conditional and input_shape else x, training=True)
            finally:
                drawn.extend(seed for _, seed in kept if scope.get_current_value(seed.state) is not None)

    # Recurrent layers keep a seed even without dropout. A failure here comes again in the step, with a better message.
    with contextlib.suppress(Exception):
        if input_shape is None:
            x = keras.tree.map_structure(lambda x: tf.TensorSpec((2, *x.shape[1:]), x.dtype), graph_of(model).input)
        else:
            x = tf.TensorSpec((2, *input_shape), tf.float32)
        tf.function(call, autograph=False).get_concrete_function(x)
    for layer, seed in kept:
        if seed in drawn:
            raise IncompatibleError(
                f"{named(role, layer)} draws the same noise on every replica, and its seed is in no checkpoint. Use "
                "ganlab.layers.Dropout or ganlab.layers.GaussianNoise, or draw from replica in a constraint."
            )


def _some_labels(model: keras.Model) -> tf.Tensor:
    inputs = getattr(model, "inputs", None) or []
    if len(inputs) == 2:
        return tf.zeros([2, *inputs[1].shape[1:]], inputs[1].dtype)
    return tf.zeros([2], tf.int64)


def _check_derivatives(role: str, side: str, layer: keras.layers.Layer, constraint: str) -> None:
    """Refuses Keras' layers that are right when differentiated once, but wrong or impossible when twice."""
    layers = keras.layers
    call = type(layer).call  # a class that inherits may compute something else
    if call is layers.LayerNormalization.call and not layer.rms_scaling:
        why, instead = _STOPPED, "LayerNormalization"
    elif call is layers.GroupNormalization.call:
        why, instead = _STOPPED, "GroupNormalization or, for groups=-1, ganlab.layers.InstanceNormalization"
    elif call is layers.UpSampling2D.call and layer.interpolation != "nearest":
        why, instead = _interpolated(layer.interpolation), "UpSampling2D"
    elif isinstance(layer, layers.Resizing) and call is layers.Resizing.call:
        why, instead = _interpolated(layer.interpolation), "Resizing"
    else:
        return
    raise IncompatibleError(
        f"{named(role, layer)} cannot be used under {constraint}, which trains on the {role}'s gradient by its "
        f"{'examples' if side == 'critic' else 'latent vectors'}: {why}. Use ganlab.layers.{instead}, with the "
        "same output."
    )


_STOPPED = (
    "TensorFlow takes the variance's mean to be fixed in the second derivative, so that the gradient of the weights "
    "would be wrong"
)


def _interpolated(interpolation: str) -> str:
    if interpolation == "bilinear":
        return "TensorFlow takes the second derivative of bilinear resizing to be zero, which makes the gradient wrong"
    return f"TensorFlow has no second derivative of {interpolation} resizing"


def _takes_examples(constraint: Constraint, side: str = "critic") -> bool:
    kind, penalty = type(constraint), "penalty" if side == "critic" else "generator_penalty"
    return any(getattr(kind, method) is not getattr(Constraint, method) for method in (penalty, "transform"))
