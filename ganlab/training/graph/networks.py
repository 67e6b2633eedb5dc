"""Networks as functions of their weights; refuses models that would be wrong under replicas."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab.composition import MAPPINGS, Experiment
from ganlab.errors import ConfigError, ContractError, IncompatibleError, nearest
from ganlab.functional import unique_names
from ganlab.interfaces import Architecture, Dataset, Loss
from ganlab.interfaces.loss import has_own
from ganlab.layers import NoiseSource, noise_from
from ganlab.plugins import optional, scheduled
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.models import (
    SCORE,
    SCORES,
    check_output,
    described_inputs,
    given_inputs,
    keras_model,
    numbers_of,
    outputs_of,
    side_inputs,
    takes,
    weighted_classes,
)
from ganlab.training.graph.refusals import check_layers, graph_of, layers_of, named, own_loss, seed_generators
from ganlab.training.graph.rematerialization import Segments
from ganlab.training.graph.roles import CRITIC, GENERATOR, ROLES, role_of
from ganlab.training.graph.values import Tensors
from ganlab.training.graph.variables import counted


class Network:
    """A Keras model that computes with the weights it is given, and returns the values it would have assigned.

    Attributes:
        model: The Keras model, built.
        role: Its role, for example "critic".
        side: In whose update it is trained, the critic's or the generator's.
        outputs: The names of its outputs.
        scores: Whether its output is scores, one a row, as the critic's is.
        input_shape: The shape of one example or latent vector that it takes, besides labels; None for other inputs.
        weights: Its trainable variables by name.
        buffers: Its other variables by name, for example moving statistics.
        conditional: Whether it takes labels too.
        given: The names of its inputs that get the conditions and the source of each row, or side outputs of
            augmentations.
        classes: How many classes its input has, for one that takes labels as weights of classes; else None.
        numbers: The numbers that it takes as its last inputs by name, each a float or what follows a schedule.
        clock: The step, and the steps of the run, that they have their values of outside of a training step.
    """

    def __init__(
        self,
        model: keras.Model,
        *,
        role: str,
        maker: str,
        side: str = GENERATOR,
        outputs: tuple[str, ...] = (),
        input_shape: tuple[int, ...] | None = None,
        conditional: bool = False,
        given: tuple[str, ...] = (),
        rematerialize: bool = False,
        numbers: Mapping[str, Any] | None = None,
    ) -> None:
        """Takes a built model; with `rematerialize`, its activations in training are computed again backwards.

        Raises:
            IncompatibleError: They cannot be.
        """
        self._segments = Segments(model, role) if rematerialize else None
        self.model, self.role, self._maker, self.conditional = model, role, maker, conditional
        self.side, self.outputs, self.input_shape, self.given = side, outputs, input_shape, given
        self.scores = side == CRITIC and SCORE in outputs
        self.numbers: Mapping[str, Any] = numbers or {}
        self.clock: tuple[Any, int] | None = None
        self.classes = weighted_classes(model, (*given, *self.numbers)) if conditional else None
        self.weights = unique_names(model.trainable_variables)
        seeds = {id(generator.state) for _, generator in seed_generators(model)}  # of layers that do not draw
        self.buffers = unique_names([v for v in model.non_trainable_variables if id(v) not in seeds])

    def __call__(
        self,
        x: Any,
        weights: Mapping[str, tf.Tensor],
        buffers: Mapping[str, tf.Tensor],
        *,
        given: Mapping[str, Any] = MappingProxyType({}),
        noise: NoiseSource | None = None,
        training: bool = True,
    ) -> tuple[Any, Tensors]:
        """Runs the model.

        Args:
            x: Its input.
            weights: Values for `self.weights`, under the same names.
            buffers: Values for `self.buffers`.
            given: What else belongs to each row: what `self.given` names, and of a conditional network `labels`, `(n,)`
                int64; for one with `classes` also the weight of each class in each row, `(n, classes)` float32.
            noise: The source that `ganlab.layers` draw from.
            training: Whether layers behave as in training.

        Returns:
            The output, float32, a tensor or a dict of them, and the values of the buffers after the call.
        """
        mapping = [(variable, weights[name]) for name, variable in self.weights.items()]
        mapping += [(variable, buffers[name]) for name, variable in self.buffers.items()]
        with plugin_code(self._maker, f"its {self.role}"):
            inputs = self.inputs(x, given)
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

    def inputs(self, x: Any, given: Mapping[str, Any]) -> Any:
        """The argument of the model's call: its input, with what else of each row it takes; a dict replaces that."""
        if not (self.conditional or self.given or self.numbers):
            return x
        labels = given.get("labels")
        if self.classes is not None and labels is not None and labels.dtype.is_integer:
            labels = tf.one_hot(labels, self.classes)
        last = [labels] if self.conditional else []
        numbers = self._numbers(x)
        if not self.given:
            return [*(x if isinstance(x, (list, tuple)) else [x]), *last, *numbers.values()]
        names = [each.name for each in self.model.inputs]
        named = x if isinstance(x, Mapping) else {}
        if unknown := [name for name in named if name not in names]:
            raise ContractError(f"The {self.role} has no input {unknown[0]!r}; they are {', '.join(names)}.")
        if missing := [name for name in self.given if name not in {**given, **named}]:
            raise IncompatibleError(
                f"The {self.role} {self.model.name!r} takes {missing[0]!r} beside examples, and no augmentation gives "
                "it here. Use one whose apply returns it, and no constraint that scores examples before augmentation."
            )
        own = [given.get("latent"), *last] if named else [x, *last]
        rest = [name for name in names if name not in self.given and name not in numbers]
        # A generator of a source alone has no place for the latent vector.
        values = {**dict(zip(reversed(rest), reversed(own), strict=False)), **numbers, **given, **named}
        return keras.tree.pack_sequence_as(graph_of(self.model).input, [values[name] for name in names])

    def _numbers(self, x: Any) -> Tensors:
        """The numbers that it takes, by name, for each row of an input."""
        if not self.numbers:
            return {}
        rows, timed = tf.shape(tf.nest.flatten(x)[0])[:1], contextlib.nullcontext()
        with scheduled.at(*self.clock) if self.clock and scheduled.now() is None else timed:
            values = {name: tf.convert_to_tensor(number, tf.float32) for name, number in self.numbers.items()}
        return {name: tf.fill(rows, value) for name, value in values.items()}

    @property
    def synchronizes(self) -> str:
        """A layer that communicates with other replicas when called, as messages name it; empty if there is none."""
        layers = layers_of(self.model)
        return next((named(self.role, layer) for layer in layers if getattr(layer, "synchronized", False)), "")


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
    shape = tuple(dataset.sample_shape)
    _check_game(experiment.loss, architecture, dataset)
    roles = [name for name in ROLES if name != CRITIC or experiment.has_critic]
    _reset_names()
    with experiment.strategy.scope(), _building(experiment.seed, experiment.precision):
        given: dict[str, Any] = {"facts": experiment.facts, "rematerialize": experiment.rematerialize}
        augmented = bool(experiment.augmentations)
        networks = {name: _network(name, architecture, shape, experiment.loss, augmented, **given) for name in roles}
        networks |= _further(architecture, shape, **given)
    if experiment.has_critic:
        _check_outputs(experiment.loss, networks[CRITIC])
    else:
        _check_alone(experiment, networks)
    for name in architecture.scheduled:
        followed = isinstance(getattr(architecture, name), scheduled.Scheduled)
        if followed and not any(name in network.numbers for network in networks.values()):
            raise ContractError(
                f"{selector_of(architecture)}.{name} follows a schedule, and neither generator nor critic takes it. "
                f"Give one the last input keras.Input((), name={name!r}), or set a number."
            )
    _check_names(experiment, networks)
    _check_shared(networks)
    if experiment.source is not None and "source" not in networks[GENERATOR].given:
        raise ConfigError(
            f"experiment.source = {selector_of(experiment.source)} gives the generator what it makes samples from, and "
            f"that of {selector_of(architecture)} has no input 'source'. Leave experiment.source out, or use an "
            "architecture whose generator takes one, for example architectures.cyclegan."
        )
    for name, network in networks.items():
        check_layers(
            name,
            network.model,
            network.input_shape,
            side=network.side,
            constraints=role_of(name, network.side, experiment).constraints_of(experiment),
            conditional=network.conditional,
            packing=architecture.packing if name == CRITIC else 1,
        )
    return networks


def build_network(
    name: str,
    architecture: Architecture,
    sample_shape: tuple[int, ...],
    precision: str,
    facts: Mapping[str, Any],
    loss: Loss | None = None,
) -> Network:
    """Builds one network, outside any strategy, under the names that `build_networks` gives it.

    `facts` are the optional parameters of the architecture's methods; the loss may be left out for the generator.
    """
    _reset_names()
    with _building(0, precision):
        generator = _network(GENERATOR, architecture, sample_shape, facts=facts)
        if name == GENERATOR:
            return generator
        if loss is None or has_own(loss, "critic"):  # others' layers without names are numbered on from the critic's
            critic = _network(CRITIC, architecture, sample_shape, loss, augmented=True, facts=facts)
            if name == CRITIC:
                return critic
        further = _further(architecture, sample_shape, facts=facts, rematerialize=False)
    if name not in further:
        raise ConfigError(_unknown(name, architecture, further))
    return further[name]


def _reset_names() -> None:
    # Automatic layer names influence the order of operations in graphs: other names, other rounding.
    policy = keras.config.dtype_policy()  # the user's own, which clear_session resets
    keras.utils.clear_session(free_memory=False)  # collecting garbage takes long in a large process
    keras.config.set_dtype_policy(policy)


def _network(
    role: str,
    architecture: Architecture,
    shape: tuple[int, ...],
    loss: Loss | None = None,
    augmented: bool = False,
    *,
    facts: Mapping[str, Any],
    rematerialize: bool = False,
) -> Network:
    """The generator or the critic that an architecture makes."""
    maker, conditional = selector_of(architecture), bool(architecture.conditional)
    with plugin_code(maker, role):
        model = keras_model(role, maker, optional.call(getattr(architecture, role), shape, **facts))
    input_shape = (int(architecture.latent_dim),) if role == GENERATOR else shape
    numbers = {name: getattr(architecture, name) for name in numbers_of(model, architecture.scheduled)}
    given = given_inputs(role, model, facts, input_shape, 1 + conditional + len(numbers))
    scored = loss is not None and has_own(loss, "scores")
    if role == CRITIC and augmented and not scored:
        given += side_inputs(model, 1 + conditional, (*given, *numbers))
    named = (*given, *numbers)
    fits = takes(model, input_shape, 1 + conditional, named)
    own = role == CRITIC and not fits
    if role == GENERATOR and given and not (fits or len(model.inputs) == len(named) + conditional):
        raise IncompatibleError(
            f"The generator {model.name!r} takes {described_inputs(model)}. Beside {' and '.join(given)} it may take "
            f"its latent vector, {input_shape}, and the labels of a conditional architecture, and nothing else."
        )
    if own and not scored:
        raise IncompatibleError(
            f"The critic {model.name!r} takes {described_inputs(model)}, where examples are {shape}, and "
            f"{selector_of(loss)} scores examples alone. Use a loss that says how it scores them (`scores`), for "
            "example losses.ali, an augmentation that gives further inputs, or a critic of examples."
        )
    if own or given:
        output = graph_of(model).output
    else:
        inputs, count = keras.Input(input_shape), weighted_classes(model, tuple(numbers))
        label = keras.Input((count,)) if count else keras.Input((), dtype="int64")
        further = [*([label] if conditional else []), *(keras.Input(()) for _ in numbers)]
        with plugin_code(maker, f"its {role}"):
            output = model([inputs, *further] if further else inputs)
    check_output(role, model, output, [(None, *shape)] if role == GENERATOR else SCORES)
    return Network(
        model,
        role=role,
        maker=maker,
        side=role,
        outputs=tuple(output) if isinstance(output, dict) else (SCORE,),
        input_shape=None if own or given else input_shape,
        conditional=conditional,
        given=given,
        rematerialize=rematerialize,
        numbers=numbers,
    )


def _further(
    architecture: Architecture, shape: tuple[int, ...], *, facts: Mapping[str, Any], rematerialize: bool
) -> dict[str, Network]:
    """The networks of an architecture beside generator and critic, by name."""
    maker, sides = selector_of(architecture), (GENERATOR, CRITIC)
    with plugin_code(maker, "networks"):
        given = optional.call(architecture.networks, shape, **facts)
    further: dict[str, Network] = {}
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
            outputs = outputs_of(name, maker, model)
            further[name] = Network(
                model, role=name, maker=maker, side=side, outputs=outputs, rematerialize=rematerialize
            )
    return further


@contextlib.contextmanager
def _building(seed: int, precision: str) -> Iterator[None]:
    """Context manager: initial weights follow the seed, layers compute in the precision, and `at_most` bounds them."""
    python, arrays, policy = random.getstate(), np.random.get_state(), keras.config.dtype_policy()
    keras.utils.set_random_seed(seed)
    # TensorFloat-32 is how float32 is multiplied: see `set_arithmetic`.
    keras.config.set_dtype_policy("float32" if precision == "tensorfloat32" else precision)
    try:
        with tf.variable_creator_scope(counted):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)
        keras.config.set_dtype_policy(policy)


def _check_game(loss: Loss, architecture: Architecture, dataset: Dataset) -> None:
    """Refuses a loss or an architecture that needs labels, of a dataset without them."""
    needing = selector_of(loss) if loss.labels else selector_of(architecture) if architecture.conditional else ""
    if needing and dataset.classes is None:
        raise IncompatibleError(
            f"{needing} needs the classes of examples, and {selector_of(dataset)} has no labels. Use a dataset with "
            "labels (its classes is not None), or an unconditional architecture and loss."
        )


def _check_alone(experiment: Experiment, built: Mapping[str, Network]) -> None:
    """Refuses what follows a critic, under a loss that has none."""
    loss, parts = experiment.loss, ("constraints", "augmentations", "diagnostics")
    given = [f"experiment.{part}" for part in parts if getattr(experiment, part)]
    given += [f"the network {name!r} of its side" for name, network in built.items() if network.side == CRITIC]
    given += [f"its method {name}" for name in ("advance", "ready", "scores", "witness") if has_own(loss, name)]
    if given:
        raise IncompatibleError(
            f"{selector_of(loss)} has no loss for a critic, so that none is trained, and {given[0]} needs one. Leave "
            "that out, or use a loss with a method critic."
        )


def _check_names(experiment: Experiment, built: Mapping[str, Network]) -> None:
    """Refuses settings of networks that do not exist."""
    architecture, further = experiment.architecture, [name for name in built if name not in ROLES]
    settings = {"optimizer": experiment.optimizers, "constraints": experiment.network_constraints}
    for kind, part in zip(settings, MAPPINGS, strict=True):
        for name in settings[kind] or {}:
            if name in ROLES:
                own = getattr(ROLES[name], kind)
                raise ConfigError(f"experiment.{part} names the {name}, whose setting is experiment.{own}.")
            if name not in built:
                raise ConfigError(f"experiment.{part}: {_unknown(name, architecture, further)}")


def _unknown(name: str, architecture: Architecture, further: Collection[str]) -> str:
    known = f"they are {', '.join(further)}" if further else "it has none"
    return (
        f"{name!r} is none of the networks that {selector_of(architecture)} has beside generator and critic; {known}."
        f"{nearest(name, further)}"
    )


def _check_shared(built: Mapping[str, Network]) -> None:
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


def _check_outputs(loss: Loss, critic: Network) -> None:
    model, outputs = critic.model, critic.outputs
    missing = [name for name in loss.outputs if name not in outputs]
    if missing:
        raise IncompatibleError(
            f"{selector_of(loss)} needs {', '.join(map(repr, missing))} from the critic, and the critic {model.name!r} "
            f"returns only {', '.join(map(repr, outputs))}. Use an architecture whose critic returns a dict with "
            f"{', '.join(map(repr, (SCORE, *loss.outputs)))}."
        )


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
