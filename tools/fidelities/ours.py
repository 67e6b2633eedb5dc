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
from fidelities.names import from_reference, name_of, to_reference
from fidelities.recipe import CASES, LABELS, Case, inputs, singular_vector, weight
from ganlab import config
from ganlab.composition import make
from ganlab.functional import call
from ganlab.plugins import scheduled
from ganlab.plugins.recipes import Recipe


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
    with _double(), scheduled.at(case.step, case.step):
        shape = (case.side, case.side, 3)
        networks = {
            role: _Network(
                case,
                role,
                _doubled(call(getattr(parts["architecture"], role), shape, classes=case.classes), epsilon),
                parts[name],
            )
            for role, name in (("generator", "generator_constraints"), ("critic", "constraints"))
        }
        found = _generator_numbers(parts, networks["generator"], networks["critic"], given)
        return found | _critic_numbers(parts, networks["critic"], given)


def parameters(case: Case) -> dict[str, int]:
    """How many trained parameters the networks of the published width have."""
    # Numbers of this initializer cost the least.
    cheapest = {} if case.kind == "r3gan" else {"initializer": "normal"}
    architecture, shape = _parts(case, cheapest)["architecture"], (case.side, case.side, 3)
    classes = case.all_classes
    networks = {role: call(getattr(architecture, role), shape, classes=classes) for role in ("generator", "critic")}
    return {role: sum(int(np.prod(v.shape)) for v in net.trainable_variables) for role, net in networks.items()}


def _parts(case: Case, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of the experiment that decide the numbers."""
    whole = config.load([f"published/{CASES[case.name].name}.gin"]).arguments
    architecture: Recipe = whole["architecture"]
    assert architecture.arguments["latent_dim"] == case.latent
    names = ("loss", "constraints", "generator_constraints", "critic_optimizer", "generator_optimizer")
    used = {
        **{name: whole.get(name, ()) for name in names},
        "architecture": replace(architecture, arguments={**architecture.arguments, **changes}),
    }
    made = {name: make(part) for name, part in used.items()}
    for name in ("critic_optimizer", "generator_optimizer"):
        rate = whole[name].arguments["learning_rate"]
        if isinstance(rate, Recipe):
            made[name].learning_rate = float(make(rate).value(tf.constant(float(case.step)), case.step))
    return made


def _generator_numbers(parts: Any, generator: _Network, critic: _Network, given: Any) -> dict[str, np.ndarray]:
    with tf.GradientTape() as tape:
        tape.watch(generator.values)
        samples = generator(given["latent"])
        scores = critic(samples)[:, 0]
        game = parts["loss"]
        loss = tf.reduce_mean(
            game.generator(scores, critic(given["real"])[:, 0]) if game.pairs else game.generator(scores)
        )
    found = {"samples": samples.numpy().transpose(0, 3, 1, 2), "generator_loss": loss.numpy()}
    return found | generator.updates(tape.gradient(loss, generator.values), parts["generator_optimizer"])


def _critic_numbers(parts: Any, critic: _Network, given: Any) -> dict[str, np.ndarray]:
    replica = SimpleNamespace(uniform=lambda shape: given["between"], log=lambda *arguments, **others: None)
    batch = ganlab.Batch(given["real"], given["fake"], None, len(given["real"]), tf.constant(0, tf.int64))
    found = {}
    with tf.GradientTape() as tape:
        tape.watch(critic.values)
        real, fake = (critic(given[name]) for name in ("real", "fake"))
        loss = tf.reduce_mean(parts["loss"].critic(real[:, 0], fake[:, 0]))
        found = {"real_scores": real.numpy(), "fake_scores": fake.numpy(), "critic_loss": loss.numpy()}
        penalties = [
            tf.reduce_mean(tf.cast(c.penalty(lambda x: critic(x)[:, 0], batch, critic.state, replica), tf.float64))
            for c in parts["constraints"]
            if type(c).penalty is not ganlab.Constraint.penalty
        ]
        if penalties:
            found["penalty"] = sum(penalties).numpy()
            loss += sum(penalties)
    return found | critic.updates(tape.gradient(loss, critic.values), parts["critic_optimizer"])


class _Network:
    """A network in float64 with the recipe's weights, under its constraints at singular vectors.

    Attributes:
        model: The Keras model.
        values: Its trained weights by path.
        state: The constraint's state.
    """

    def __init__(self, case: Case, role: str, model: keras.Model, constraints: Any) -> None:
        self.model, self._case, self._role = model, case, role
        self._constraint = constraints[0] if constraints else None
        self.values, self.state = {}, {}
        for v in model.trainable_variables:
            shape = self._to_reference(v.path, np.zeros(v.shape)).shape
            value = from_reference(case, model, v.path, weight(role, self._name(v.path), shape), tuple(v.shape))
            self.values[v.path] = tf.constant(value)
            if case.kind not in ("wgan_gp", "r3gan") and value.ndim > 1:
                # The kernel as the matrix (outputs, everything else), as the constraint has it.
                self.state[v.path] = tf.constant(singular_vector(value.reshape(-1, value.shape[-1]).T))
        if self._constraint:
            self._constraint.prepare(model)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """The output with these weights, in training mode."""
        effective = self._constraint.reparameterize(self.values, self.state) if self._constraint else self.values
        trained = [effective[v.path] for v in self.model.trainable_variables]
        others = [v.value for v in self.model.non_trainable_variables]
        inputs = [x, tf.one_hot(LABELS, self._case.classes, dtype=tf.float64)] if self._case.classes else x
        return self.model.stateless_call(trained, others, inputs, training=True)[0]

    def updates(self, gradients: Mapping[str, tf.Tensor], template: Any) -> dict[str, np.ndarray]:
        """The gradients, and the changes of the weights by an update with them and one with minus half of them."""
        settings = template.get_config()
        if isinstance(settings["learning_rate"], dict):  # a schedule, which begins at its start
            settings["learning_rate"] = settings["learning_rate"]["config"]["start"]
        optimizer = type(template).from_config(settings)
        variables = [keras.Variable(value, dtype="float64", name="w") for value in self.values.values()]
        optimizer.build(variables)
        for factor in (1.0, -0.5):
            optimizer.apply([factor * gradients[path] for path in self.values], variables)
        moved = {path: v.value - self.values[path] for path, v in zip(self.values, variables, strict=True)}
        return {
            f"{self._role}_{kind}/{self._name(path)}": self._to_reference(path, values[path])
            for kind, values in (("gradient", gradients), ("update", moved))
            for path in self.values
        }

    def _to_reference(self, path: str, array: Any) -> np.ndarray:
        return to_reference(self._case, self.model, path, np.asarray(array))

    def _name(self, path: str) -> str:
        return name_of(self._case, self._role, self.model, path)


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
        if not isinstance(old, keras.layers.Layer):  # an operation, which has no dtype of its own
            return old
        settings = {**old.get_config(), "dtype": "float64"}
        if epsilon is not None and isinstance(old, keras.layers.BatchNormalization):
            settings["epsilon"] = epsilon
        if isinstance(old, keras.layers.UpSampling2D) and old.interpolation == "bilinear":
            return _Doubled(name=old.name, dtype="float64")
        return type(old).from_config(settings)

    return keras.models.clone_model(model, clone_function=layer)
