"""Generator and critic as functions of their weights; refuses models that would be wrong under replicas."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping

import keras
import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import ContractError
from ganlab.functional import unique_names
from ganlab.interfaces import Architecture
from ganlab.layers import NoiseSource, noise_from
from ganlab.plugins.blame import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.refusals import check_layers, layers_of, named, own_loss, seed_generators

Tensors = dict[str, tf.Tensor]


class Network:
    """A Keras model that computes with the weights it is given, and returns the values it would have assigned.

    Attributes:
        model: The Keras model, built.
        role: "generator" or "critic".
        weights: Its trainable variables by name.
        buffers: Its other variables by name, for example moving statistics.
    """

    def __init__(self, model: keras.Model, *, role: str, maker: str) -> None:
        """Takes a built model.

        Args:
            model: The model.
            role: "generator" or "critic", for errors.
            maker: The architecture that made it, for errors.
        """
        self.model, self.role, self._maker = model, role, maker
        self.weights = unique_names(model.trainable_variables)
        seeds = {id(generator.state) for _, generator in seed_generators(model)}  # of layers that do not draw
        self.buffers = unique_names([v for v in model.non_trainable_variables if id(v) not in seeds])

    def __call__(
        self,
        x: tf.Tensor,
        weights: Mapping[str, tf.Tensor],
        buffers: Mapping[str, tf.Tensor],
        *,
        noise: NoiseSource | None = None,
        training: bool = True,
    ) -> tuple[tf.Tensor, Tensors]:
        """Runs the model.

        Args:
            x: Its input.
            weights: Values for `self.weights`, under the same names.
            buffers: Values for `self.buffers`.
            noise: The source that `ganlab.layers` draw from.
            training: Whether layers behave as in training.

        Returns:
            The output, float32, and the values of the buffers after the call.

        Raises:
            IncompatibleError: A layer adds a loss of its own.
            PluginError: The model fails; the message names the place.
        """
        mapping = [(variable, weights[name]) for name, variable in self.weights.items()]
        mapping += [(variable, buffers[name]) for name, variable in self.buffers.items()]
        with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
            with (
                noise_from(noise) if noise else contextlib.nullcontext(),
                plugin_code(self._maker, f"its {self.role}"),
            ):
                y = self.model(x, training=training)
            if scope.losses:
                raise own_loss(f"The {self.role} {self.model.name!r} adds a loss of its own (add_loss)")
            left = {name: scope.get_current_value(variable) for name, variable in self.buffers.items()}
        return tf.cast(y, tf.float32), left

    @property
    def synchronizes(self) -> str:
        """A layer that communicates with other replicas when called, as messages name it; empty if there is none."""
        return next((named(self.role, layer) for layer in layers_of(self.model) if _synchronized(layer)), "")


def build_networks(experiment: Experiment) -> tuple[Network, Network]:
    """Builds generator and critic in the strategy's scope, their initial weights decided by the seed.

    Returns:
        The generator and the critic.

    Raises:
        IncompatibleError: A layer cannot be right under replicas or under a constraint.
        ContractError: A model has the wrong output shape.
    """
    architecture, shape = experiment.architecture, tuple(experiment.dataset.sample_shape)
    _reset_names()
    with experiment.strategy.scope(), _seeded(experiment.seed), _precision(experiment.precision):
        generator = _generator(architecture, shape)
        critic = _critic(architecture, shape)
    check_layers("generator", generator, (int(architecture.latent_dim),))
    check_layers("critic", critic, shape, constraints=experiment.constraints)
    maker = selector_of(architecture)
    return Network(generator, role="generator", maker=maker), Network(critic, role="critic", maker=maker)


def build_generator(architecture: Architecture, sample_shape: tuple[int, ...], precision: str) -> Network:
    """Builds a generator alone, outside any strategy, under the names that `build_networks` gives it."""
    _reset_names()
    with _seeded(0), _precision(precision):
        model = _generator(architecture, sample_shape)
    return Network(model, role="generator", maker=selector_of(architecture))


def _reset_names() -> None:
    # Automatic layer names influence the order of operations in graphs: other names, other rounding.
    policy = keras.config.dtype_policy()  # the user's own, which clear_session resets
    keras.utils.clear_session(free_memory=False)  # collecting garbage takes long in a large process
    keras.config.set_dtype_policy(policy)


def _generator(architecture: Architecture, shape: tuple[int, ...]) -> keras.Model:
    with plugin_code(selector_of(architecture), "generator"):
        model = architecture.generator(shape)
    return _built("generator", architecture, model, (int(architecture.latent_dim),), [(None, *shape)])


def _critic(architecture: Architecture, shape: tuple[int, ...]) -> keras.Model:
    with plugin_code(selector_of(architecture), "critic"):
        model = architecture.critic(shape)
    return _built("critic", architecture, model, shape, [(None, 1), (None,)])


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Context manager: initial weights follow the seed; afterwards restores Python's and numpy's own generators."""
    python, arrays = random.getstate(), np.random.get_state()
    keras.utils.set_random_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)


@contextlib.contextmanager
def _precision(policy: str) -> Iterator[None]:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _built(
    role: str,
    architecture: Architecture,
    model: keras.Model,
    input_shape: tuple[int, ...],
    allowed: list[tuple[int | None, ...]],
) -> keras.Model:
    """Builds a model of any kind, subclasses of keras.Model included, by calling it on a symbolic input."""
    if not isinstance(model, keras.Model):
        raise ContractError(
            f"{selector_of(architecture)} returned {model!r} as its {role}; it must return a keras.Model."
        )
    with plugin_code(selector_of(architecture), f"its {role}"):
        output = model(keras.Input(input_shape))
    shape = tuple(output.shape) if isinstance(output, keras.KerasTensor) else type(output).__name__
    if shape not in allowed:
        expected = " or ".join(map(str, allowed))
        raise ContractError(f"The {role} {model.name!r} returns the shape {shape}; it must be {expected}.")
    return model


def _synchronized(layer: keras.layers.Layer) -> bool:
    return bool(getattr(layer, "synchronized", False))


def as_scores(y: tf.Tensor) -> tf.Tensor:
    """A critic's output as `(n,)`."""
    return tf.reshape(y, [-1])


def static_shape(x: tf.Tensor) -> tuple[int | None, ...] | str:
    """A tensor's static shape, for comparing and for messages; "unknown" if not even the rank is known."""
    shape = tf.convert_to_tensor(x).shape
    return "unknown" if shape.rank is None else tuple(shape)


CriticFunction = Callable[[tf.Tensor], tf.Tensor]
