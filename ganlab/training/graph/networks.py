"""Networks as functions of their weights; refuses models that would be wrong under replicas."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab.composition import MAPPINGS, Experiment
from ganlab.errors import ConfigError, ContractError, IncompatibleError, nearest
from ganlab.functional import unique_names
from ganlab.interfaces import Architecture, Dataset, Loss
from ganlab.layers import NoiseSource, noise_from
from ganlab.plugins import optional
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.refusals import check_layers, graph_of, layers_of, named, own_loss, seed_generators
from ganlab.training.graph.rematerialization import Segments
from ganlab.training.graph.roles import CRITIC, GENERATOR, ROLES, role_of
from ganlab.training.graph.values import Tensors

SCORE = "score"


class Network:
    """A Keras model that computes with the weights it is given, and returns the values it would have assigned.

    Attributes:
        model: The Keras model, built.
        role: Its role, for example "critic".
        side: In whose update it is trained, the critic's or the generator's.
        scores: Whether its output is scores, one a row, as the critic's is.
        of_examples: Whether its input is examples, or latent vectors, and labels where it takes them, and nothing else.
        weights: Its trainable variables by name.
        buffers: Its other variables by name, for example moving statistics.
        conditional: Whether it takes labels too.
        classes: How many classes its input has, for one that takes labels as weights of classes; else None.
    """

    def __init__(
        self,
        model: keras.Model,
        *,
        role: str,
        maker: str,
        side: str = GENERATOR,
        scores: bool = False,
        of_examples: bool = True,
        conditional: bool = False,
        rematerialize: bool = False,
    ) -> None:
        """Takes a built model.

        Args:
            model: The model.
            role: Its role, for errors.
            maker: The architecture that made it, for errors.
            side: In whose update it is trained.
            scores: Whether its output is scores.
            of_examples: Whether its input is examples or latent vectors alone.
            conditional: Whether it takes labels too.
            rematerialize: Whether its activations in training are computed again in the backward pass.

        Raises:
            IncompatibleError: They cannot be.
        """
        self._segments = Segments(model, role) if rematerialize else None
        self.model, self.role, self._maker, self.conditional = model, role, maker, conditional
        self.side, self.scores, self.of_examples = side, scores, of_examples
        self.classes = _weighted_classes(model) if conditional else None
        self.weights = unique_names(model.trainable_variables)
        seeds = {id(generator.state) for _, generator in seed_generators(model)}  # of layers that do not draw
        self.buffers = unique_names([v for v in model.non_trainable_variables if id(v) not in seeds])

    def __call__(
        self,
        x: Any,
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
        return [*x, labels] if isinstance(x, (list, tuple)) else [x, labels]

    @property
    def synchronizes(self) -> str:
        """A layer that communicates with other replicas when called, as messages name it; empty if there is none."""
        return next((named(self.role, layer) for layer in layers_of(self.model) if _synchronized(layer)), "")


def build_networks(experiment: Experiment) -> dict[str, Network]:
    """Builds the networks of an experiment in the strategy's scope, their initial weights decided by the seed.

    Returns:
        The networks by role.

    Raises:
        IncompatibleError: A layer cannot be right under replicas or under a constraint.
        ContractError: A model has the wrong inputs or output shape, or a further network the wrong name or side.
        ConfigError: A setting names a network that the architecture does not have.
    """
    architecture, dataset = experiment.architecture, experiment.dataset
    shape, classes = tuple(dataset.sample_shape), dataset.classes
    _check_game(experiment.loss, architecture, dataset)
    _reset_names()
    with experiment.strategy.scope(), _seeded(experiment.seed), _precision(experiment.precision):
        built = {name: _model(name, architecture, shape, classes, experiment.loss) for name in ROLES}
        built |= further_networks(architecture, shape, classes)
    _check_outputs(experiment.loss, built[CRITIC])
    _check_names(experiment, built)
    _check_shared(built)
    for name, each in built.items():
        check_layers(
            name,
            each.model,
            each.input_shape,
            side=each.side,
            constraints=role_of(name, each.side, experiment).constraints_of(experiment),
            conditional=each.conditional,
        )
    maker, rematerialize = selector_of(architecture), experiment.rematerialize
    return {name: each.network(name, maker, rematerialize=rematerialize) for name, each in built.items()}


def build_generator(
    architecture: Architecture, sample_shape: tuple[int, ...], precision: str, classes: int | None = None
) -> Network:
    """Builds a generator alone, outside any strategy, under the names that `build_networks` gives it."""
    _reset_names()
    with _seeded(0), _precision(precision):
        built = _model(GENERATOR, architecture, sample_shape, classes)
    return built.network(GENERATOR, selector_of(architecture))


def _weighted_classes(model: keras.Model) -> int | None:
    """The classes of a model whose last input is `(n, classes)` of floats; None for one that takes numbers."""
    inputs = _inputs(model)
    if len(inputs) < 2 or len(inputs[-1].shape) != 2 or not str(inputs[-1].dtype).startswith("float"):
        return None
    return int(inputs[-1].shape[1])


def _reset_names() -> None:
    # Automatic layer names influence the order of operations in graphs: other names, other rounding.
    policy = keras.config.dtype_policy()  # the user's own, which clear_session resets
    keras.utils.clear_session(free_memory=False)  # collecting garbage takes long in a large process
    keras.config.set_dtype_policy(policy)


@dataclass(frozen=True)
class _Built:
    """A model as an architecture made it, built.

    Attributes:
        model: The model.
        side: In whose update it is trained.
        outputs: The names of its outputs.
        scores: Whether these are scores.
        input_shape: The shape of one row of its input; None for a model with inputs of its own.
        conditional: Whether it takes labels too.
    """

    model: keras.Model
    side: str
    outputs: tuple[str, ...]
    scores: bool
    input_shape: tuple[int, ...] | None
    conditional: bool = False

    def network(self, role: str, maker: str, *, rematerialize: bool = False) -> Network:
        return Network(
            self.model,
            role=role,
            maker=maker,
            side=self.side,
            scores=self.scores,
            of_examples=self.input_shape is not None,
            conditional=self.conditional,
            rematerialize=rematerialize,
        )


def _model(
    role: str, architecture: Architecture, shape: tuple[int, ...], classes: int | None, loss: Loss | None = None
) -> _Built:
    """The generator or the critic that an architecture makes, built."""
    maker, conditional = selector_of(architecture), bool(architecture.conditional)
    with plugin_code(maker, role):
        model = _keras_model(role, maker, optional.call(getattr(architecture, role), shape, classes=classes))
    input_shape = (int(architecture.latent_dim),) if role == GENERATOR else shape
    if role == CRITIC and not _takes(model, input_shape, 1 + conditional):
        if loss is None or not scores_itself(loss):
            raise IncompatibleError(
                f"The critic {model.name!r} takes {_described(model)}, where examples are {shape}, and the "
                f"{'loss' if loss is None else selector_of(loss)} scores examples alone. Use a loss that says how it "
                "scores them (`scores`), for example losses.ali, or a critic of examples."
            )
        output, own = graph_of(model).output, None
    else:
        inputs, own = keras.Input(input_shape), input_shape
        label = keras.Input((count,)) if (count := _weighted_classes(model)) else keras.Input((), dtype="int64")
        with plugin_code(maker, f"its {role}"):
            output = model([inputs, label] if conditional else inputs)
    _check_output(role, model, output, [(None, *shape)] if role == GENERATOR else _SCORES)
    names = tuple(output) if isinstance(output, dict) else (SCORE,)
    return _Built(model, role, names, role == CRITIC, own, conditional)


def further_networks(architecture: Architecture, shape: tuple[int, ...], classes: int | None) -> dict[str, _Built]:
    """The networks of an architecture beside generator and critic, by name.

    Raises:
        ContractError: A side does not exist, a name is taken or no name, or a model's inputs are not known.
    """
    maker, sides = selector_of(architecture), (GENERATOR, CRITIC)
    with plugin_code(maker, "networks"):
        given = optional.call(architecture.networks, shape, classes=classes)
    further: dict[str, _Built] = {}
    for side, models in given.items() if isinstance(given, Mapping) else [(given, None)]:
        if side not in sides or not isinstance(models, Mapping):
            raise ContractError(
                f"{maker} has {side!r:.60} in what networks returns. It must be a dict by the side that trains a "
                "network, 'generator' or 'critic', of dicts by name: {'generator': {'encoder': model}}."
            )
        for name, model in models.items():
            if name in (*sides, *further) or not (isinstance(name, str) and name.isidentifier()):
                raise ContractError(
                    f"{maker} names a network {name!r}. A name must be an identifier that no other network has; "
                    f"{GENERATOR!r} and {CRITIC!r} are those that the methods of these names make."
                )
            if not _inputs(_keras_model(name, maker, model)):
                raise ContractError(
                    f"The {name} of {maker}, {model.name!r}, does not say what its inputs are. Make it by "
                    "keras.Model(inputs, outputs), or a keras.Sequential that begins with a keras.Input."
                )
            output = graph_of(model).output
            score = output.get(SCORE) if isinstance(output, dict) else output
            scores = side == CRITIC and getattr(score, "shape", None) in _SCORES
            names = tuple(output) if isinstance(output, dict) else (SCORE,) if scores else ()
            further[name] = _Built(model, side, names, scores, None)
    return further


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


def _keras_model(role: str, maker: str, model: Any) -> keras.Model:
    if not isinstance(model, keras.Model):
        raise ContractError(f"{maker} returned {model!r} as its {role}; it must return a keras.Model.")
    return model


def _inputs(model: keras.Model) -> list[Any]:
    """The symbolic inputs of a model; empty if they are not known."""
    try:
        return list(getattr(model, "inputs", None) or [])
    except ValueError:  # a keras.Sequential that is not built
        return []


def _takes(model: keras.Model, shape: tuple[int, ...], count: int) -> bool:
    """Whether a model takes rows of a shape as the first of this many inputs, as far as its inputs are known."""
    inputs = _inputs(model)
    if not inputs:
        return True
    own = tuple(inputs[0].shape[1:])
    return (
        len(inputs) == count and len(own) == len(shape) and all(a in (None, b) for a, b in zip(own, shape, strict=True))
    )


def _described(model: keras.Model) -> str:
    return " and ".join(f"{x.name} {tuple(x.shape[1:])}" for x in _inputs(model))


_SCORES: list[tuple[int | None, ...]] = [(None, 1), (None,)]


def _check_output(role: str, model: keras.Model, output: Any, allowed: list[tuple[int | None, ...]]) -> None:
    """Refuses an output of another shape than these."""
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


def scores_itself(loss: Loss) -> bool:
    """Whether a loss may say how the critic scores examples."""
    return type(loss).scores is not Loss.scores


def _check_names(experiment: Experiment, built: Mapping[str, _Built]) -> None:
    """Refuses settings of networks that do not exist."""
    further = [name for name in built if name not in ROLES]
    for part in MAPPINGS:
        for name in getattr(experiment, part) or {}:
            if name in ROLES:
                own = getattr(ROLES[name], "optimizer" if part == "optimizers" else "constraints")
                raise ConfigError(f"experiment.{part} names the {name}, whose setting is experiment.{own}.")
            if name not in built:
                known = f"they are {', '.join(further)}" if further else "it has none"
                raise ConfigError(
                    f"experiment.{part} names a network {name!r}, which is none of the further networks of "
                    f"{selector_of(experiment.architecture)}; {known}.{nearest(name, further)}"
                )


def _check_shared(built: Mapping[str, _Built]) -> None:
    """Refuses a variable of two networks, which two optimizers would train without knowing of each other."""
    owners: dict[int, str] = {}
    for name, each in built.items() if len(built) > len(ROLES) else ():
        for variable in each.model.variables:
            if owners.setdefault(id(variable), name) != name:
                raise ContractError(
                    f"The {name} {each.model.name!r} has the variable {variable.path!r} of the "
                    f"{owners[id(variable)]}. A variable belongs to one network: make layers anew, or give one network "
                    "several outputs."
                )


def _check_outputs(loss: Loss, critic: _Built) -> None:
    model, outputs = critic.model, critic.outputs
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
