"""The same numbers by ganlab, from an experiment file of gin/published at a reduced width, in float64."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import ganlab
from fidelities.recipe import CASES, LATENT, Case, inputs, singular_vector, weight
from ganlab import config
from ganlab.composition import make
from ganlab.plugins.recipes import Recipe

_PARTS = {
    "convolution_1": "c1",
    "convolution_2": "c2",
    "shortcut": "c_sc",
    "1_normalization": "b1",
    "2_normalization": "b2",
}
_VARIABLES = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}


def numbers(case: Case, *, epsilon: float | None = None, **changes: Any) -> dict[str, np.ndarray]:
    """Outputs, losses, gradients and updates by name and in the layout of the reference.

    Args:
        case: The network.
        epsilon: Another one in the batch normalizations, to see that it is noticed.
        changes: Other arguments of the architecture, likewise.
    """
    parts = _parts(case, {**case.settings, **changes})
    given = {
        name: tf.constant(array.transpose(0, 2, 3, 1) if array.ndim == 4 else array)
        for name, array in inputs(case).items()
    }
    with _double():
        shape = (case.side, case.side, 3)
        generator = _Network(case, "generator", _doubled(parts["architecture"].generator(shape), epsilon))
        critic = _Network(case, "critic", _doubled(parts["architecture"].critic(shape), epsilon))
        (constraint,) = parts["constraints"]
        constraint.prepare(critic.model)
        state = {
            path: tf.constant(singular_vector(np.asarray(critic.to_reference(path, value))))
            for path, value in critic.values.items()
            if case.kind == "sngan" and len(value.shape) > 1
        }
        found = _generator_numbers(parts, generator, critic, constraint, state, given)
        return found | _critic_numbers(parts, critic, constraint, state, given)


def parameters(case: Case) -> dict[str, int]:
    """How many trained parameters the networks of the published width have."""
    architecture, shape = _parts(case, {})["architecture"], (case.side, case.side, 3)
    return {
        role: sum(int(np.prod(v.shape)) for v in getattr(architecture, role)(shape).trainable_variables)
        for role in ("generator", "critic")
    }


def _parts(case: Case, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of the experiment that decide the numbers."""
    whole = config.load([f"published/{CASES[case.name].name}.gin"]).arguments
    architecture: Recipe = whole["architecture"]
    assert architecture.arguments["latent_dim"] == LATENT
    used = {
        **{name: whole[name] for name in ("loss", "constraints", "critic_optimizer", "generator_optimizer")},
        "architecture": replace(architecture, arguments={**architecture.arguments, **changes}),
    }
    return {name: make(part) for name, part in used.items()}


def _generator_numbers(
    parts: Any, generator: _Network, critic: _Network, constraint: Any, state: Any, given: Any
) -> dict[str, np.ndarray]:
    with tf.GradientTape() as tape:
        tape.watch(generator.values)
        samples = generator(generator.values, given["latent"])
        scores = critic(constraint.reparameterize(critic.values, state), samples)[:, 0]
        loss = tf.reduce_mean(parts["loss"].generator(scores))
    found = {"samples": samples.numpy().transpose(0, 3, 1, 2), "generator_loss": loss.numpy()}
    return found | generator.updates(tape.gradient(loss, generator.values), parts["generator_optimizer"])


def _critic_numbers(parts: Any, critic: _Network, constraint: Any, state: Any, given: Any) -> dict[str, np.ndarray]:
    replica = SimpleNamespace(uniform=lambda shape: given["between"], log=lambda *arguments, **others: None)
    batch = ganlab.Batch(given["real"], given["fake"], None, len(given["real"]), tf.constant(0, tf.int64))
    found = {}
    with tf.GradientTape() as tape:
        tape.watch(critic.values)
        effective = constraint.reparameterize(critic.values, state)
        real, fake = (critic(effective, given[name]) for name in ("real", "fake"))
        loss = tf.reduce_mean(parts["loss"].critic(real[:, 0], fake[:, 0]))
        found = {"real_scores": real.numpy(), "fake_scores": fake.numpy(), "critic_loss": loss.numpy()}
        if type(constraint).penalty is not ganlab.Constraint.penalty:
            penalty = constraint.penalty(lambda x: critic(effective, x)[:, 0], batch, state, replica)
            penalty = tf.reduce_mean(tf.cast(penalty, tf.float64))
            found["penalty"] = penalty.numpy()
            loss += penalty
    return found | critic.updates(tape.gradient(loss, critic.values), parts["critic_optimizer"])


class _Network:
    """A network in float64 with the recipe's weights.

    Attributes:
        model: The Keras model.
        values: Its trained weights by path.
    """

    def __init__(self, case: Case, role: str, model: keras.Model) -> None:
        self.model, self._case, self._role = model, case, role
        names = {v.path.split("/")[0] for v in model.trainable_variables}
        self._blocks = len({"_".join(name.split("_")[:2]) for name in names if name.startswith("block_")})
        self.values = {}
        for v in model.trainable_variables:
            shape = self.to_reference(v.path, np.zeros(v.shape)).shape
            self.values[v.path] = tf.constant(self._to_ours(v.path, weight(role, self._name(v.path), shape)))

    def __call__(self, values: Mapping[str, tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        """The output with these weights, in training mode."""
        trained = [values[v.path] for v in self.model.trainable_variables]
        others = [v.value for v in self.model.non_trainable_variables]
        return self.model.stateless_call(trained, others, x, training=True)[0]

    def updates(self, gradients: Mapping[str, tf.Tensor], template: Any) -> dict[str, np.ndarray]:
        """The gradients, and the changes of the weights by an update with them and one with minus half of them."""
        settings = template.get_config()
        if isinstance(settings["learning_rate"], dict):  # a schedule, which begins at its start
            settings["learning_rate"] = settings["learning_rate"]["config"]["start"]
        optimizer = type(template).from_config(settings)
        variables = [keras.Variable(value, dtype="float64", name="w") for value in self.values.values()]
        optimizer.build(variables)
        for step, factor in ((1, 1.0), (2, -0.5)):
            # PyTorch adds epsilon to the corrected average, TensorFlow to the average itself.
            optimizer.epsilon = settings["epsilon"] * np.sqrt(1 - settings["beta_2"] ** step)
            optimizer.apply([factor * gradients[path] for path in self.values], variables)
        moved = {path: v.value - self.values[path] for path, v in zip(self.values, variables, strict=True)}
        return {
            f"{self._role}_{kind}/{self._name(path)}": self.to_reference(path, np.asarray(values[path]))
            for kind, values in (("gradient", gradients), ("update", moved))
            for path in self.values
        }

    def to_reference(self, path: str, array: Any) -> np.ndarray:
        """A weight in the layout of PyTorch: outputs first, channels before places."""
        array = np.asarray(array)
        if path.startswith("project/"):
            wide = array.reshape(-1, *self.model.get_layer("base").output.shape[1:])
            wide = wide.transpose(3, 1, 2, 0).reshape(-1, len(wide))
            return wide if path.endswith("kernel") else wide[:, 0]
        return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T

    def _to_ours(self, path: str, array: np.ndarray) -> np.ndarray:
        if path.startswith("project/"):
            height, width, channels = self.model.get_layer("base").output.shape[1:]
            wide = array.reshape(channels, height, width, -1).transpose(3, 1, 2, 0)
            return wide.reshape(wide.shape[0], -1) if path.endswith("kernel") else wide.ravel()
        return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T

    def _name(self, path: str) -> str:
        """The reference's name of a weight."""
        layer, variable = path.split("/")
        if layer.startswith("block_"):
            _, number, part = layer.split("_", 2)
            # The generator's first block is the reference's second: the dense layer counts.
            name = f"block{int(number) + (self._role == 'generator')}.{_PARTS[part]}"
        elif layer == "score":
            # With 48 pixels and spectral normalization the reference calls a block and the last layer 5.
            name = "l5" if (self._case.kind, self._case.side) == ("sngan", 48) else f"l{self._blocks + 1}"
        else:
            last = self._blocks + 2
            name = {"project": "l1", "last_normalization": f"b{last}", "last_convolution": f"c{last}"}[layer]
        return f"{name}.{_VARIABLES[variable]}"


class _Doubled(keras.layers.Layer):
    """Bilinear upsampling by two as Keras does it, but in float64, which TensorFlow's returns as float32."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        rows, columns = (_interpolation(side) for side in x.shape[1:3])
        return tf.einsum("ih,jw,nhwc->nijc", rows, columns, x)


def _interpolation(side: int) -> tf.Tensor:
    """The matrix of the interpolation along one axis, whose entries are exact in float32."""
    image = np.eye(side, dtype=np.float32)[:, None, :]  # a pixel's row, its only column, a channel each
    return tf.cast(tf.image.resize(image, (2 * side, 1), "bilinear")[:, 0], tf.float64)


@contextlib.contextmanager
def _double() -> Iterator[None]:
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    try:
        yield
    finally:
        keras.config.set_floatx(before)


def _doubled(model: keras.Model, epsilon: float | None) -> keras.Model:
    """The network with every layer in float64, the ends that are float32 otherwise too."""

    def layer(old: keras.layers.Layer) -> keras.layers.Layer:
        settings = {**old.get_config(), "dtype": "float64"}
        if epsilon is not None and isinstance(old, keras.layers.BatchNormalization):
            settings["epsilon"] = epsilon
        if isinstance(old, keras.layers.UpSampling2D) and old.interpolation == "bilinear":
            return _Doubled(name=old.name, dtype="float64")
        return type(old).from_config(settings)

    return keras.models.clone_model(model, clone_function=layer)
