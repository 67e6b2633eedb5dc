"""The composed, validated experiment that is passed to training."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, ParamSpec

from ganlab.bounds import Ge, Local, Lt, rule, violation, without
from ganlab.composition.checking import check_division, check_roles, check_sizes
from ganlab.composition.defaults import completed
from ganlab.composition.parts import LISTS, MAPPINGS, PARTS, UNUSED
from ganlab.composition.turn import Turn
from ganlab.errors import ConfigError, nearest
from ganlab.interfaces import (
    Architecture,
    Augmentation,
    Constraint,
    Dataset,
    Diagnostic,
    Evaluator,
    Loss,
    Schedule,
)
from ganlab.interfaces.loss import has_own
from ganlab.plugins.annotations import annotation, without_numpy
from ganlab.plugins.recipes import Recipe, described, unique_names

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

Count = Annotated[int, Ge(1), Lt(2**31)]
CountOrZero = Annotated[int, Ge(0), Lt(2**31)]

_Settings = ParamSpec("_Settings")


class Rows(NamedTuple):
    """Where rows come from: a dataset, its method, a row's shape, and whether they have an order of their own."""

    dataset: Dataset
    method: str
    shape: tuple[int, ...]
    own: bool = False

    @property
    def dtype(self) -> str:
        """The name of their dtype."""
        return "int64" if self.method == "labels" else "float32"


def given_rows(dataset: Dataset, source: Dataset | None = None) -> dict[str, Rows]:
    """Where the labels, conditions and sources that networks may take come from, by the names of these inputs.

    `experiment.source` takes the place of a dataset's own sources.
    """
    shapes = {"labels": None if dataset.classes is None else (), "conditions": dataset.condition_shape}
    found = {name: Rows(dataset, name, tuple(shape)) for name, shape in shapes.items() if shape is not None}
    if source is not None:
        found["source"] = Rows(source, "examples", tuple(source.sample_shape), own=True)
    elif dataset.source_shape is not None:
        found["source"] = Rows(dataset, "sources", tuple(dataset.source_shape))
    return found


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A whole experiment. `ganlab.experiment` makes one and validates it.

    The fields are the settings: of a file, of the command line and of Python.

    Args:
        dataset: The source of real examples. From Python also an array of them, a tuple of it and an array of classes,
            a `tf.data.Dataset`, or what has a length and items, as PyTorch's datasets have.
        architecture: Makes the generator and the critic.
        loss: The losses that they minimize. Plugins have a default for it, for the strategy and for both optimizers:
            leave them out.
        source: Another dataset, whose examples the generator makes samples from, in an order of its own; None for no
            source, or for that of a dataset of pairs.
        strategy: Spreads training over devices.
        critic_optimizer: Trains the critic. It is a template: training makes its own inside the strategy's scope. Only
            a loss that trains no critic needs none.
        generator_optimizer: Trains the generator, likewise.
        constraints: Keep the critic Lipschitz, applied in order; none by default.
        generator_constraints: Act on the generator, applied in order; none by default.
        optimizers: Optimizers of further networks of the architecture, by the networks' names. A network without one
            has one like that of its side, `critic_optimizer` or `generator_optimizer`.
        network_constraints: Lists of the constraints of further networks, by the networks' names.
        augmentations: Change the examples that the critic sees, real and generated, applied in order; none by default.
        batch_size: Examples of one update over all replicas (the global batch).
        generator_batch_size: Samples of one generator update; None for as many as the critic's batch has.
        microbatches: Into how many parts each replica splits its batch, one after another in the memory of one part.
            The gradient is that of the whole batch.
        rematerialize: Whether activations are computed again in the backward pass instead of being kept for it: less
            memory for more time in deep networks, with the same gradients. Networks are cut into segments for it.
        critic_steps: Critic updates in each step, before those of the generator; a number, or a schedule of them,
            rounded.
        generator_steps: Generator updates in each step.
        steps: Steps in the whole run.
        seed: Decides initial weights, data order and noise.
        ema_decay: Decay of the generator's exponential moving average, which then draws the samples; 0 for none.
        ema_half_life: The same as a half-life in examples that the generator has made; 0 for none.
        ema_start: The step in which the average begins; before it, it equals the weights. 0 for from the start, when
            it follows quickly at first.
        ema_buffers: Whether the generator's moving statistics are averaged too; otherwise samples of the average are
            drawn with the trained generator's.
        precision: "float32"; "tensorfloat32", whose products round their factors to 10 bits where the GPU can; or
            "mixed_bfloat16" (penalties and losses stay float32).
        jit: What XLA compiles: "off" for nothing, "on" for the gradients, "step" for the whole iteration of a single
            replica, "auto" for what is known to be faster: "step" on a single GPU.
        deterministic: Whether GPUs use only kernels that give the same bits each time; others are refused by name.
        evaluators: Measures of the generator, taken every `evaluate_every` steps and at the end.
        diagnostics: Examine the critic, at each evaluation or at an interval of their own, and at the end.
        evaluate_every: Generator updates between evaluations and sample pictures; 0 for only at the end.
        evaluate_beside: Whether a process of its own evaluates, from a checkpoint of that step, while training goes
            on; the next evaluation or checkpoint waits for it. It runs on the CPU. The last evaluation is made
            in the training process.
        checkpoint_every: Generator updates between checkpoints; 0 for only at the end.
        keep_best: A figure of the evaluators and "min" or "max", as "evaluation/frechet_distance/distance:min": the
            checkpoint of the step where it was best stays beside the newest ones; empty for the newest alone.
        log_every: Generator updates that one row of metrics averages over.
        start_from: The folder of another run, whose newest weights of both networks are the initial ones wherever name
            and shape agree; empty for new weights. Optimizers, averages and constraints begin anew.
    """

    dataset: Dataset | Any
    architecture: Architecture
    # Never None in a validated experiment.
    loss: Loss = None  # type: ignore[assignment]
    strategy: tf.distribute.Strategy = None
    critic_optimizer: keras.optimizers.Optimizer | None = None
    generator_optimizer: keras.optimizers.Optimizer = None
    source: Dataset | None = None
    constraints: Sequence[Constraint] = ()
    generator_constraints: Sequence[Constraint] = ()
    optimizers: Mapping[str, keras.optimizers.Optimizer] | None = None
    network_constraints: Mapping[str, Sequence[Constraint]] | None = None
    augmentations: Sequence[Augmentation] = ()
    batch_size: Count = 64
    generator_batch_size: Count | None = None
    microbatches: Count = 1
    rematerialize: bool = False
    critic_steps: Count | Schedule = 5
    generator_steps: Count = 1
    steps: Count = 10_000
    seed: CountOrZero = 0
    ema_decay: Annotated[float, Ge(0), Lt(1)] = 0.0
    ema_half_life: Annotated[float, Ge(0)] = 0.0
    ema_start: CountOrZero = 0
    ema_buffers: bool = False
    precision: Literal["float32", "tensorfloat32", "mixed_bfloat16"] = "float32"
    jit: Literal["auto", "on", "off", "step"] = "auto"
    deterministic: bool = True
    evaluators: Sequence[Evaluator] = ()
    diagnostics: Sequence[Diagnostic] = ()
    evaluate_every: CountOrZero = 1_000
    evaluate_beside: bool = False
    checkpoint_every: CountOrZero = 1_000
    keep_best: str = ""
    log_every: Count = 10
    start_from: Annotated[str, Local()] = ""

    def replace(self, **settings: Any) -> Experiment:
        """This experiment with other settings, which are checked as those of a new one.

        Raises:
            GanlabError: As of `ganlab.experiment`.
        """
        return experiment(**{**{each.name: getattr(self, each.name) for each in fields(self)}, **settings})

    @property
    def has_critic(self) -> bool:
        """Whether the loss has one for a critic; one without compares batches, and no critic is made."""
        return has_own(self.loss, "critic")

    @property
    def turn(self) -> Turn:
        """How often each side is updated in a step, and which of the run's updates these are."""
        critic = self.critic_steps if self.has_critic else 0
        return Turn.made(critic, self.generator_steps, self.steps, waits=has_own(self.loss, "ready"))

    @property
    def replicas(self) -> int:
        """How many replicas train in step."""
        return int(self.strategy.num_replicas_in_sync)

    @property
    def local_batch(self) -> int:
        """How many examples of a critic's batch each replica sees."""
        return self.batch_size // self.replicas

    @property
    def generator_batch(self) -> int:
        """How many samples a generator update takes over all replicas."""
        return self.generator_batch_size or self.batch_size

    @property
    def local_generator_batch(self) -> int:
        """How many of them each replica makes."""
        return self.generator_batch // self.replicas

    @property
    def given(self) -> dict[str, Rows]:
        """Where a batch's labels, conditions and sources come from, as `given_rows` returns it."""
        return given_rows(self.dataset, self.source)

    @property
    def facts(self) -> dict[str, Any]:
        """Classes and shapes for the optional parameters of an architecture's methods, None where there are none."""
        source = self.given.get("source")
        shapes = {"condition_shape": self.dataset.condition_shape, "source_shape": source and source.shape}
        return {"classes": self.dataset.classes, **shapes}

    @property
    def averaging(self) -> float:
        """The decay of the generator's moving average in one step; 0 for none."""
        if self.ema_half_life:
            return float(0.5 ** (self.generator_batch / self.ema_half_life))
        return float(self.ema_decay)

    @property
    def recipe(self) -> Recipe:
        """The recipe to make this experiment again. A part that no registered factory made stands for itself."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values |= {part: list(values[part]) for part in LISTS}  # as files have them
        given = {k: v for k, v in values.items() if k not in UNUSED or v not in (None, {}, UNUSED[k])}
        return Recipe("", "experiment", {name: described(value) for name, value in given.items()})

    def component_names(self, part: str) -> list[str]:
        """Unique names for the components of a part that takes several: a repeated name becomes `<name>_2`."""
        return unique_names(getattr(self, part))

    def components(self) -> Iterator[tuple[str, Any]]:
        """The components of every part, each under a unique name; of a part that takes one, the part's.

        A name that an earlier part uses has its own part as a prefix: `generator_constraints/<name>`.
        """
        taken: set[str] = set()
        for part in PARTS:
            value = getattr(self, part)
            if part in LISTS:
                names = unique_names(value)
                yield from zip([f"{part}/{name}" if name in taken else name for name in names], value, strict=True)
                taken.update(names)
            elif part not in MAPPINGS:
                yield from [] if value is None else [(part, value)]
            else:
                for network, items in (value or {}).items():
                    several = MAPPINGS[part] == "several"
                    names = [f"/{name}" for name in unique_names(items)] if several else [""]
                    for name, item in zip(names, items if several else [items], strict=True):
                        yield f"{part}/{network}{name}", item


def _validated(make: Callable[_Settings, Experiment]) -> Callable[_Settings, Experiment]:
    """The constructor with checks before it: same parameters, same documentation."""

    @functools.wraps(make, updated=())
    def experiment(*none: _Settings.args, **settings: _Settings.kwargs) -> Experiment:
        given = {name: without_numpy(value) for name, value in settings.items()}
        check_settings(given)
        unchecked = make(*none, **completed(given))
        parts = {each.name: getattr(unchecked, each.name) for each in fields(unchecked)}
        check_settings(parts)
        check_roles(parts)
        for dataset in filter(None, (unchecked.dataset, unchecked.source)):
            check_sizes(dataset, unchecked.architecture)
        sizes = {"batch_size": unchecked.batch_size, "generator_batch_size": unchecked.generator_batch}
        check_division(sizes, replicas=unchecked.replicas, microbatches=unchecked.microbatches)
        several: dict[str, Any] = {part: tuple(parts[part]) for part in LISTS}
        several |= {part: dict(parts[part]) for part in MAPPINGS if parts[part]}
        return replace(unchecked, **several)

    experiment.__name__ = experiment.__qualname__ = "experiment"
    vars(experiment)["__signature__"] = inspect.signature(make).replace(return_annotation=Experiment)
    experiment.__doc__ = f"""{make.__doc__}
    Raises:
        ConfigError: A value is out of its range, or a part does not have its role.
        ContractError: The dataset or the architecture has an invalid size, shape or latent dimension.
        IncompatibleError: The batch does not divide over the replicas.
    """
    return experiment


experiment = _validated(Experiment)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Checks the plain values of an experiment, as far as they are given, without TensorFlow."""
    for name, value in settings.items():
        if name not in parameters():
            raise ConfigError(f"experiment has no parameter {name!r}.{nearest(name, parameters())}")
        if not isinstance(value, Recipe) and (missed := _missed(annotation(Experiment, name), value)):
            raise ConfigError(f"experiment.{name} = {value!r} must be {missed}.")
    decay, half_life = settings.get("ema_decay", 0.0), settings.get("ema_half_life", 0.0)
    if decay and half_life:
        raise ConfigError(
            f"experiment.ema_decay = {decay!r} and experiment.ema_half_life = {half_life!r} are two forms of one "
            "setting. Set one, not both."
        )
    # Settings of a file also come one by one, where nothing is known of the others.
    if settings.get("ema_buffers") is True and len(settings) > 1 and not (decay or half_life):
        raise ConfigError(
            "experiment.ema_buffers = True has no effect without an average. Set experiment.ema_decay or "
            "experiment.ema_half_life, or leave experiment.ema_buffers out."
        )
    best = settings.get("keep_best", "")
    if best and settings.get("evaluate_beside"):
        raise ConfigError(
            f"experiment.keep_best = {best!r} chooses a checkpoint when it is saved, and with "
            "experiment.evaluate_beside = True its figures come later. Leave one of them out."
        )
    if best and (not best.rpartition(":")[0] or best.rpartition(":")[2] not in ("min", "max")):
        raise ConfigError(
            f"experiment.keep_best = {best!r} must be a figure and a direction, as in "
            "'evaluation/frechet_distance/distance:min'."
        )


def _missed(hint: Any, value: Any) -> str:
    """The rule of a setting that a value does not keep; empty if it does, or if the setting is a part."""
    if (bounds := rule(hint)) and (
        violation(value, hint) or not isinstance(value, (int, float, type(None), without(hint)))
    ):
        return bounds
    if typing.get_origin(hint) is Literal:
        allowed = typing.get_args(hint)
        return "" if value in allowed else f"one of {', '.join(map(repr, allowed))}"
    kind = without(hint)
    words = {bool: "True or False", str: "a text; '' for none"}
    return words[kind] if kind in words and not isinstance(value, kind) else ""


def parameters() -> Mapping[str, inspect.Parameter]:
    """The parameters that an experiment file may set on `experiment`, with their defaults."""
    return inspect.signature(Experiment).parameters
