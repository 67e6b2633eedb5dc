"""Fully connected networks, for points in the plane and anything else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab.lazy import keras
from ganlab_builtin.architectures.conditioning import (
    LABELS,
    as_embedding,
    concatenated,
    given_input,
    label_input,
    scored,
    with_embedding,
)
from ganlab_builtin.architectures.parts import check_choice, drop, to_score

if TYPE_CHECKING:
    from collections.abc import Callable

ACTIVATIONS = ("relu", "leaky_relu", "elu", "softplus", "tanh", "max_min", "full_sort")
OUTPUTS = ("auto", "linear", "tanh")


class MLP(ganlab.Architecture):
    """A generator and a critic of equal fully connected layers, for samples of any shape.

    The defaults are the toy networks of Gulrajani et al., "Improved Training of Wasserstein GANs" (2017),
    2-512-512-512-2 and 2-512-512-512-1: uniform weights of He et al. (2015) before rectifiers, of Glorot and Bengio
    (2010) elsewhere, and no normalization.

    With the activation "max_min" or "full_sort", `ganlab.layers.GroupSort` of two and `ganlab.layers.FullSort`, and
    constraints.bjorck the critic is 1-Lipschitz by construction (Anil, Lucas and Grosse, "Sorting out Lipschitz
    function approximation", 2019).
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 2,
        depth: Annotated[int, Ge(1), Le(1000)] = 3,
        width: Annotated[int, Ge(1)] = 512,
        activation: Literal["relu", "leaky_relu", "elu", "softplus", "tanh", "max_min", "full_sort"] = "relu",
        output: Literal["auto", "linear", "tanh"] = "auto",
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
        labels: Literal["none", "projection", "concatenation", "classifier", "proxy"] = "none",
        embedding_dim: Annotated[int, Ge(0)] = 0,
        conditions: bool = False,
        source: bool = False,
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of the generator's input.
            depth: Hidden layers of each network.
            width: Units of each hidden layer.
            activation: The function after each hidden layer; the leaky slope is 0.2. "max_min" sorts pairs of units and
                needs an even width, "full_sort" sorts all.
            output: The generator's end: "linear", "tanh" for samples in [-1, 1], or "auto", tanh for images
                `(height, width, channels)` and linear for the rest.
            dropout: The probability with which the critic drops each hidden unit in training.
            labels: "none", or how the critic of a conditional pair uses a label: "projection" adds the product of its
                embedding and the last features (Miyato and Koyama, "cGANs with projection discriminator", 2018),
                "concatenation" takes it as further inputs, "classifier" returns `logits` beside the score, "proxy" a
                trained vector of the label, as long as the last features; both leave the label to the loss. The
                generator takes it as further inputs.
            embedding_dim: The length of a linear layer after the critic's last hidden one, which it returns as
                `embedding` beside the score; the score is taken from it. 0 for neither.
            conditions: Whether both networks take the dataset's conditions as further inputs.
            source: Whether the generator takes a source in place of latent vectors, whose length then has no effect.
        """
        check_choice("mlp.activation", activation, ACTIVATIONS)
        if activation == "max_min" and width % 2:
            raise ganlab.ConfigError(
                f'architectures.mlp.width = {width!r} must be even if activation = "max_min", which sorts pairs of '
                'units. Add a unit, or take "full_sort".'
            )
        check_choice("mlp.output", output, OUTPUTS)
        check_choice("mlp.labels", labels, (*LABELS, "proxy"))
        self.latent_dim, self.depth, self.width = 0 if source else latent_dim, depth, width
        self.conditions, self.source = conditions, source
        self.activation, self.output, self.dropout, self.labels = activation, output, dropout, labels
        self.conditional, self.embedding_dim = labels != "none", embedding_dim

    def generator(
        self,
        sample_shape: tuple[int, ...],
        classes: int | None = None,
        condition_shape: tuple[int, ...] | None = None,
        source_shape: tuple[int, ...] | None = None,
    ) -> keras.Model:
        """A model `(n, latent_dim) -> (n, *sample_shape)`, float32; a conditional one takes labels too."""
        size = _size(sample_shape)
        end = self.output
        if end == "auto":
            end = "tanh" if len(sample_shape) == 3 else "linear"
        if self.source:
            latent = given_input("source", source_shape, "The generator of architectures.mlp with source = True")
        else:
            latent = keras.Input((self.latent_dim,), name="latent")
        inputs, x = latent, latent if len(latent.shape) == 2 else keras.layers.Flatten(name="flat")(latent)
        if self.conditional:
            label = label_input(classes, "mlp")
            inputs, x = [latent, label], concatenated(x, label)
        if self.conditions:
            inputs, x = self._with_conditions(inputs, x, condition_shape)
        # float32 whatever the precision: in bfloat16 points would lie on a grid of three digits.
        x = keras.layers.Dense(size, activation=end, dtype="float32", name="output")(self._hidden(x))
        x = keras.layers.Reshape(sample_shape, dtype="float32", name="sample")(x)
        return keras.Model(inputs, x, name="generator")

    def critic(
        self,
        sample_shape: tuple[int, ...],
        classes: int | None = None,
        condition_shape: tuple[int, ...] | None = None,
    ) -> keras.Model:
        """A model `(n, *sample_shape) -> (n, 1)`, float32, or a dict of that as `score` and further outputs.

        A conditional one takes labels too.
        """
        _size(sample_shape)
        sample = keras.Input(sample_shape, name="sample")
        x = sample if len(sample_shape) == 1 else keras.layers.Flatten(name="flat")(sample)
        inputs, label = sample, None
        if self.conditional:
            label = label_input(classes, "mlp")
            inputs = [sample, label]
            if self.labels == "concatenation":
                x = concatenated(x, label)
        if self.conditions:
            inputs, x = self._with_conditions(inputs, x, condition_shape)
        features = as_embedding(self._hidden(x, self.dropout), self.embedding_dim)
        end = to_score(features) if label is None else scored(features, label, self.labels)
        if self.embedding_dim:
            end = with_embedding(end, features)
        return keras.Model(inputs, end, name="critic")

    def _with_conditions(self, inputs: Any, x: Any, shape: tuple[int, ...] | None) -> tuple[list[Any], Any]:
        given = given_input("conditions", shape, "architectures.mlp with conditions = True")
        flat = given if len(given.shape) == 2 else keras.layers.Flatten(name="flat_conditions")(given)
        both = keras.layers.Concatenate(name="with_conditions")([x, flat])
        return [*(inputs if isinstance(inputs, list) else [inputs]), given], both

    def _hidden(self, x: Any, dropout: float = 0.0) -> Any:
        for i in range(1, self.depth + 1):
            x = keras.layers.Dense(self.width, kernel_initializer=self._initializer(), name=f"hidden_{i}")(x)
            x = self._activation_layer()(name=f"activation_{i}")(x)
            x = drop(x, dropout, f"dropout_{i}")
        return x

    def _initializer(self) -> str:
        return "he_uniform" if self.activation in ("relu", "leaky_relu") else "glorot_uniform"

    def _activation_layer(self) -> Callable[..., Any]:
        if self.activation == "leaky_relu":
            return lambda name: keras.layers.LeakyReLU(negative_slope=0.2, name=name)
        if self.activation == "max_min":
            return lambda name: ganlab.layers.GroupSort(2, name=name)
        if self.activation == "full_sort":
            return lambda name: ganlab.layers.FullSort(name=name)
        return lambda name: keras.layers.Activation(self.activation, name=name)


def _size(sample_shape: tuple[int, ...]) -> int:
    if not sample_shape or min(sample_shape) < 1:
        raise ganlab.IncompatibleError(
            f"architectures.mlp cannot make samples of shape {tuple(sample_shape)}: it needs at least one axis, and "
            "every axis at least one long. Give the dataset's sample_shape as (d,) for d numbers."
        )
    return math.prod(sample_shape)
