"""Generator and critic as functions of their weights, refused where they could not be right under replicas."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

import keras
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import ContractError, IncompatibleError
from ganlab.functional import unique_names
from ganlab.layers import NoiseSource, noise_from
from ganlab.roles import Architecture, Constraint, Dataset

Tensors = dict[str, tf.Tensor]


class Network:
    """A Keras model that computes with the weights it is given, and gives back what it would have assigned.

    Attributes:
        model: The Keras model, built.
        weights: Its trainable variables by name.
        buffers: Its other variables by name, such as moving statistics.
    """

    def __init__(self, model: keras.Model) -> None:
        self.model = model
        self.weights = unique_names(model.trainable_variables)
        self.buffers = unique_names(model.non_trainable_variables)

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
            noise: Where `ganlab.layers` draw from.
            training: Whether layers behave as in training.

        Returns:
            The output, float32, and the buffers as the model left them.
        """
        mapping = [(variable, weights[name]) for name, variable in self.weights.items()]
        mapping += [(variable, buffers[name]) for name, variable in self.buffers.items()]
        with keras.StatelessScope(state_mapping=mapping) as scope:
            with noise_from(noise) if noise else contextlib.nullcontext():
                y = self.model(x, training=training)
            left = {name: scope.get_current_value(variable) for name, variable in self.buffers.items()}
        return tf.cast(y, tf.float32), left

    @property
    def synchronizes(self) -> bool:
        """Whether a layer talks to other replicas when it is called."""
        return any(getattr(layer, "synchronized", False) for layer in _layers(self.model))


def build_networks(experiment: Experiment) -> tuple[Network, Network]:
    """Builds generator and critic in the strategy's scope, their initial weights decided by the seed.

    Returns:
        The generator and the critic.

    Raises:
        IncompatibleError: A layer cannot be right under replicas or under a constraint.
        ContractError: A model has the wrong output shape.
    """
    _reset_names()
    with experiment.strategy.scope():
        keras.utils.set_random_seed(experiment.seed)
        generator = _generator(experiment.architecture, experiment.dataset, experiment.precision)
        critic = _critic(experiment.architecture, experiment.dataset, experiment.precision)
    check_layers("generator", generator)
    check_layers("critic", critic, constraints=experiment.constraints)
    return Network(generator), Network(critic)


def build_generator(architecture: Architecture, dataset: Dataset, precision: str) -> keras.Model:
    """Builds a generator alone, outside any strategy, under the names that `build_networks` gives it."""
    _reset_names()
    return _generator(architecture, dataset, precision)


def _reset_names() -> None:
    # Automatic layer names take part in how graphs are ordered: with other names, other rounding.
    policy = keras.config.dtype_policy()  # the user's own, which clear_session resets
    keras.utils.clear_session()
    keras.config.set_dtype_policy(policy)


def _generator(architecture: Architecture, dataset: Dataset, precision: str) -> keras.Model:
    shape = tuple(dataset.sample_shape)
    with _precision(precision):
        model = _built(architecture.generator(shape), (int(architecture.latent_dim),))
    _check_output("generator", model, [(None, *shape)])
    return model


def _critic(architecture: Architecture, dataset: Dataset, precision: str) -> keras.Model:
    shape = tuple(dataset.sample_shape)
    with _precision(precision):
        model = _built(architecture.critic(shape), shape)
    _check_output("critic", model, [(None, 1), (None,)])
    return model


@contextlib.contextmanager
def _precision(policy: str) -> Iterator[None]:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _built(model: keras.Model, input_shape: tuple[int, ...]) -> keras.Model:
    if not isinstance(model, keras.Model):
        raise ContractError(f"An architecture returned {model!r}; it must return a keras.Model.")
    model(keras.Input(input_shape))
    return model


def _check_output(role: str, model: keras.Model, allowed: list[tuple[int | None, ...]]) -> None:
    shape = tuple(model.compute_output_shape((None, *model.input_shape[1:])))
    if shape not in allowed:
        expected = " or ".join(map(str, allowed))
        raise ContractError(f"The {role} {model.name!r} returns the shape {shape}; it must be {expected}.")


def check_layers(role: str, model: keras.Model, *, constraints: tuple[Constraint, ...] = ()) -> None:
    """Refuses layers that would go wrong silently.

    Args:
        role: "generator" or "critic", for the message.
        model: The built model.
        constraints: Those of the critic.

    Raises:
        IncompatibleError: Names the layer and what to use instead.
    """
    per_example = [type(c).__name__ for c in constraints if _differentiates_examples(type(c))]
    for layer in _layers(model):
        where = f"The {role}'s layer {layer.name!r} ({type(layer).__name__})"
        if isinstance(layer, keras.layers.BatchNormalization):
            if per_example:
                raise IncompatibleError(
                    f"{where} mixes the examples of a batch, so that {per_example[0]}, which takes each example alone, "
                    "would not be what it says. Use LayerNormalization, or no normalization, in the critic."
                )
            if not layer.synchronized:
                raise IncompatibleError(
                    f"{where} keeps statistics of its own on every replica, and only the first one's are saved. Use "
                    "BatchNormalization(synchronized=True) or LayerNormalization."
                )
        if any(isinstance(value, keras.random.SeedGenerator) for value in vars(layer).values()):
            raise IncompatibleError(
                f"{where} draws the same noise on every replica, and its seed is in no checkpoint. Use "
                "ganlab.layers.Dropout or ganlab.layers.GaussianNoise, or draw from replica in a constraint."
            )


def _differentiates_examples(kind: type[Constraint]) -> bool:
    return kind.penalty is not Constraint.penalty or kind.transform is not Constraint.transform


def _layers(model: keras.Model) -> list[keras.layers.Layer]:
    return list(model._flatten_layers(include_self=False, recursive=True))


def as_scores(y: tf.Tensor) -> tf.Tensor:
    """A critic's output as `(n,)`."""
    return tf.reshape(y, [-1])


def static_shape(x: tf.Tensor) -> tuple[int | None, ...] | str:
    """A tensor's shape as far as it is known, for comparing and for messages; "unknown" where not even the rank is."""
    shape = tf.convert_to_tensor(x).shape
    return "unknown" if shape.rank is None else tuple(shape)


CriticFunction = Callable[[tf.Tensor], tf.Tensor]
