"""Networks as functions of their weights; refuses models that would be wrong under replicas."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import ContractError, IncompatibleError
from ganlab.functional import unique_names
from ganlab.interfaces import Architecture, Dataset, Loss
from ganlab.layers import NoiseSource, noise_from
from ganlab.plugins import optional
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.refusals import check_layers, layers_of, named, own_loss, seed_generators
from ganlab.training.graph.rematerialization import Segments
from ganlab.training.graph.roles import CRITIC, GENERATOR, ROLES, Role
from ganlab.training.graph.values import Tensors

SCORE = "score"


class Network:
    """A Keras model that computes with the weights it is given, and returns the values it would have assigned.

    Attributes:
        model: The Keras model, built.
        role: Its role, for example "critic".
        weights: Its trainable variables by name.
        buffers: Its other variables by name, for example moving statistics.
        conditional: Whether it takes labels too.
        classes: How many classes its input has, for one that takes labels as weights of classes; else None.
    """

    def __init__(
        self, model: keras.Model, *, role: str, maker: str, conditional: bool = False, rematerialize: bool = False
    ) -> None:
        """Takes a built model.

        Args:
            model: The model.
            role: Its role, for errors.
            maker: The architecture that made it, for errors.
            conditional: Whether it takes labels too.
            rematerialize: Whether its activations in training are computed again in the backward pass.

        Raises:
            IncompatibleError: They cannot be.
        """
        self._segments = Segments(model, role) if rematerialize else None
        self.model, self.role, self._maker, self.conditional = model, role, maker, conditional
        self.classes = _weighted_classes(model) if conditional else None
        self.weights = unique_names(model.trainable_variables)
        seeds = {id(generator.state) for _, generator in seed_generators(model)}  # of layers that do not draw
        self.buffers = unique_names([v for v in model.non_trainable_variables if id(v) not in seeds])

    def __call__(
        self,
        x: tf.Tensor,
        weights: Mapping[str, tf.Tensor],
        buffers: Mapping[str, tf.Tensor],
        *,
        labels: tf.Tensor | None = None,
        noise: NoiseSource | None = None,
        training: bool = True,
    ) -> tuple[Any, Tensors]:
        """Runs the model.

        Args:
            x: Its input.
            weights: Values for `self.weights`, under the same names.
            buffers: Values for `self.buffers`.
            labels: The class of each row, `(n,)` int64, for a conditional network; for one with `classes` also the
                weight of each class in each row, `(n, classes)` float32. Else ignored.
            noise: The source that `ganlab.layers` draw from.
            training: Whether layers behave as in training.

        Returns:
            The output, float32, a tensor or a dict of them, and the values of the buffers after the call.

        Raises:
            IncompatibleError: A layer adds a loss of its own.
            PluginError: The model fails; the message names the place.
        """
        mapping = [(variable, weights[name]) for name, variable in self.weights.items()]
        mapping += [(variable, buffers[name]) for name, variable in self.buffers.items()]
        with plugin_code(self._maker, f"its {self.role}"):
            inputs = self.inputs(x, labels)
            if self._segments and training:
                y, after, losses = self._segments(inputs, mapping, noise)
            else:
                source = noise_from(noise) if noise else contextlib.nullcontext()
                with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope, source:
                    y, losses = self.model(inputs, training=training), bool(scope.losses)
                    after = {id(v): scope.get_current_value(v) for v in self.buffers.values()}
        if losses:
            raise own_loss(f"The {self.role} {self.model.name!r} adds a loss of its own (add_loss)")
        left = {name: after.get(id(variable), buffers[name]) for name, variable in self.buffers.items()}
        return tf.nest.map_structure(lambda value: tf.cast(value, tf.float32), y), left

    def inputs(self, x: Any, labels: Any) -> Any:
        """The argument of the model's call: its input, or a list of that and the labels as it takes them."""
        if not self.conditional:
            return x
        if self.classes is not None and labels.dtype.is_integer:
            labels = tf.one_hot(labels, self.classes)
        return [x, labels]

    @property
    def synchronizes(self) -> str:
        """A layer that communicates with other replicas when called, as messages name it; empty if there is none."""
        return next((named(self.role, layer) for layer in layers_of(self.model) if _synchronized(layer)), "")


def build_networks(experiment: Experiment, roles: Mapping[str, Role] = ROLES) -> dict[str, Network]:
    """Builds the networks of an experiment in the strategy's scope, their initial weights decided by the seed.

    Args:
        experiment: The experiment.
        roles: Their roles by name.

    Returns:
        The networks by role.

    Raises:
        IncompatibleError: A layer cannot be right under replicas or under a constraint.
        ContractError: A model has the wrong output shape.
    """
    architecture, dataset = experiment.architecture, experiment.dataset
    shape, classes = tuple(dataset.sample_shape), dataset.classes
    _check_game(experiment.loss, architecture, dataset)
    _reset_names()
    with experiment.strategy.scope(), _seeded(experiment.seed), _precision(experiment.precision):
        models = {name: _model(role, architecture, shape, classes) for name, role in roles.items()}
    _check_outputs(experiment.loss, *models[CRITIC])
    described: dict[str, Any] = {"maker": selector_of(architecture), "conditional": bool(architecture.conditional)}
    for name, role in roles.items():
        check_layers(
            name,
            models[name][0],
            role.input_shape(architecture, shape),
            constraints=role.constraints_of(experiment),
            conditional=described["conditional"],
        )
    described["rematerialize"] = experiment.rematerialize
    return {name: Network(model, role=name, **described) for name, (model, _) in models.items()}


def build_generator(
    architecture: Architecture, sample_shape: tuple[int, ...], precision: str, classes: int | None = None
) -> Network:
    """Builds a generator alone, outside any strategy, under the names that `build_networks` gives it."""
    _reset_names()
    with _seeded(0), _precision(precision):
        model, _ = _model(ROLES[GENERATOR], architecture, sample_shape, classes)
    conditional = bool(architecture.conditional)
    return Network(model, role=GENERATOR, maker=selector_of(architecture), conditional=conditional)


def _weighted_classes(model: keras.Model) -> int | None:
    """The classes of a model whose second input is `(n, classes)` of floats; None for one that takes numbers."""
    inputs = getattr(model, "inputs", None) or []
    if len(inputs) != 2 or len(inputs[1].shape) != 2 or not str(inputs[1].dtype).startswith("float"):
        return None
    return int(inputs[1].shape[1])


def _reset_names() -> None:
    # Automatic layer names influence the order of operations in graphs: other names, other rounding.
    policy = keras.config.dtype_policy()  # the user's own, which clear_session resets
    keras.utils.clear_session(free_memory=False)  # collecting garbage takes long in a large process
    keras.config.set_dtype_policy(policy)


def _model(
    role: Role, architecture: Architecture, shape: tuple[int, ...], classes: int | None
) -> tuple[keras.Model, tuple[str, ...]]:
    """The model that an architecture makes for a role, built, and the names of its outputs."""
    with plugin_code(selector_of(architecture), role.name):
        model = optional.call(getattr(architecture, role.name), shape, classes=classes)
    allowed = {GENERATOR: [(None, *shape)], CRITIC: [(None, 1), (None,)]}.get(role.name)
    return _built(role.name, architecture, model, role.input_shape(architecture, shape), allowed)


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
def _precision(precision: str) -> Iterator[None]:
    before = keras.config.dtype_policy()
    # TensorFloat-32 is how float32 is multiplied: see `set_arithmetic`.
    keras.config.set_dtype_policy("float32" if precision == "tensorfloat32" else precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _built(
    role: str,
    architecture: Architecture,
    model: keras.Model,
    input_shape: tuple[int, ...],
    allowed: list[tuple[int | None, ...]] | None,
) -> tuple[keras.Model, tuple[str, ...]]:
    """Builds a model of any kind, subclasses of keras.Model included, by calling it on a symbolic input.

    Returns:
        The model, and the names of its outputs.
    """
    if not isinstance(model, keras.Model):
        raise ContractError(
            f"{selector_of(architecture)} returned {model!r} as its {role}; it must return a keras.Model."
        )
    inputs = keras.Input(input_shape)
    label = keras.Input((classes,)) if (classes := _weighted_classes(model)) else keras.Input((), dtype="int64")
    with plugin_code(selector_of(architecture), f"its {role}"):
        output = model([inputs, label] if architecture.conditional else inputs)
    names = tuple(output) if isinstance(output, dict) else (SCORE,)
    if allowed is None:
        return model, names
    score = output.get(SCORE) if role == CRITIC and isinstance(output, dict) else output
    if score is None:
        raise ContractError(
            f"The critic {model.name!r} returns a dict of {sorted(output)}; it must have a {SCORE!r}, "
            f"{_either(allowed)}."
        )
    shape = tuple(score.shape) if isinstance(score, keras.KerasTensor) else type(score).__name__
    if shape not in allowed:
        which = f" as its {SCORE!r}" if score is not output else ""
        raise ContractError(
            f"The {role} {model.name!r} returns the shape {shape}{which}; it must be {_either(allowed)}."
        )
    return model, names


def _either(shapes: list[tuple[int | None, ...]]) -> str:
    return " or ".join(map(str, shapes))


def _check_game(loss: Loss, architecture: Architecture, dataset: Dataset) -> None:
    """Refuses labels that are asked for and missing.

    Raises:
        IncompatibleError: The dataset has no labels, and the loss or the architecture needs them.
    """
    needing = selector_of(loss) if loss.labels else selector_of(architecture) if architecture.conditional else ""
    if needing and dataset.classes is None:
        raise IncompatibleError(
            f"{needing} needs the classes of examples, and {selector_of(dataset)} has no labels. Use a dataset with "
            "labels (its classes is not None), or an unconditional architecture and loss."
        )


def _check_outputs(loss: Loss, model: keras.Model, outputs: tuple[str, ...]) -> None:
    missing = [name for name in loss.outputs if name not in outputs]
    if missing:
        raise IncompatibleError(
            f"{selector_of(loss)} needs {', '.join(map(repr, missing))} from the critic, and the critic {model.name!r} "
            f"returns only {', '.join(map(repr, outputs))}. Use an architecture whose critic returns a dict with "
            f"{', '.join(map(repr, (SCORE, *loss.outputs)))}."
        )


def _synchronized(layer: keras.layers.Layer) -> bool:
    return bool(getattr(layer, "synchronized", False))


def as_scores(y: Any) -> tf.Tensor:
    """The scores in a critic's output, as `(n,)`."""
    return tf.reshape(y[SCORE] if isinstance(y, dict) else y, [-1])


def as_outputs(y: Any) -> Tensors:
    """All outputs of a critic by name."""
    return {**y, SCORE: as_scores(y)} if isinstance(y, dict) else {SCORE: as_scores(y)}


def static_shape(x: tf.Tensor) -> tuple[int | None, ...] | str:
    """A tensor's static shape, for comparing and for messages; "unknown" if not even the rank is known."""
    shape = tf.convert_to_tensor(x).shape
    return "unknown" if shape.rank is None else tuple(shape)


NetworkFunction = Callable[[tf.Tensor], tf.Tensor]
