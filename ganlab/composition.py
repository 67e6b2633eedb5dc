"""The composed, validated experiment: made from an experiment file and passed to training."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ganlab.bounds import Ge, Lt, rule, violation
from ganlab.errors import ConfigError, ContractError, IncompatibleError
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
from ganlab.plugins.annotations import annotation
from ganlab.plugins.blame import plugin_code
from ganlab.plugins.manager import component
from ganlab.plugins.recipes import Recipe, described, recipe_of, selector_of

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

# The kind of component of each part of an experiment. The strategy comes first: it decides what devices there are, and
# must do so before anything else touches TensorFlow.
PARTS = {
    "strategy": "strategies",
    "dataset": "datasets",
    "architecture": "architectures",
    "loss": "losses",
    "constraints": "constraints",
    "generator_constraints": "constraints",
    "augmentations": "augmentations",
    "critic_optimizer": "optimizers",
    "generator_optimizer": "optimizers",
    "evaluators": "evaluators",
    "diagnostics": "diagnostics",
}
# The parts that take several components.
LISTS = ("constraints", "generator_constraints", "augmentations", "evaluators", "diagnostics")
PRECISIONS = ("float32", "mixed_bfloat16")
JITS = ("auto", "on", "off")


@dataclass(frozen=True)
class Experiment:
    """A whole experiment. Make one with `ganlab.experiment`, which documents the fields."""

    dataset: Dataset
    architecture: Architecture
    loss: Loss
    strategy: tf.distribute.Strategy
    critic_optimizer: keras.optimizers.Optimizer
    generator_optimizer: keras.optimizers.Optimizer
    constraints: tuple[Constraint, ...] = ()
    generator_constraints: tuple[Constraint, ...] = ()
    augmentations: tuple[Augmentation, ...] = ()
    batch_size: int = 64
    generator_batch_size: int | None = None
    microbatches: int = 1
    rematerialize: bool = False
    critic_steps: int = 5
    steps: int = 10_000
    seed: int = 0
    ema_decay: float = 0.0
    ema_half_life: float = 0.0
    ema_start: int = 0
    precision: str = "float32"
    jit: str = "auto"
    evaluators: tuple[Evaluator, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    evaluate_every: int = 1_000
    evaluate_beside: bool = False
    checkpoint_every: int = 1_000
    keep_best: str = ""
    log_every: int = 10
    start_from: str = ""

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
    def averaging(self) -> float:
        """The decay of the generator's moving average in one step; 0 for none."""
        if self.ema_half_life:
            return float(0.5 ** (self.generator_batch / self.ema_half_life))
        return float(self.ema_decay)

    @property
    def recipe(self) -> Recipe:
        """The recipe to make this experiment again. A part that no registered factory made stands for itself."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        lists = {part: list(values[part]) for part in LISTS}  # as files have them
        return Recipe("", "experiment", {name: described(value) for name, value in {**values, **lists}.items()})

    def component_names(self, part: str) -> list[str]:
        """Unique names for the components of a part that takes several: a repeated name becomes `<name>_2`."""
        return unique_names(getattr(self, part))


Count = Annotated[int, Ge(1), Lt(2**31)]
CountOrZero = Annotated[int, Ge(0), Lt(2**31)]


def experiment(
    *,
    dataset: Dataset,
    architecture: Architecture,
    loss: Loss,
    strategy: tf.distribute.Strategy,
    critic_optimizer: keras.optimizers.Optimizer,
    generator_optimizer: keras.optimizers.Optimizer,
    constraints: Sequence[Constraint] = (),
    generator_constraints: Sequence[Constraint] = (),
    augmentations: Sequence[Augmentation] = (),
    batch_size: Count = 64,
    generator_batch_size: Count | None = None,
    microbatches: Count = 1,
    rematerialize: bool = False,
    critic_steps: Count = 5,
    steps: Count = 10_000,
    seed: CountOrZero = 0,
    ema_decay: Annotated[float, Ge(0), Lt(1)] = 0.0,
    ema_half_life: Annotated[float, Ge(0)] = 0.0,
    ema_start: CountOrZero = 0,
    precision: Literal["float32", "mixed_bfloat16"] = "float32",
    jit: Literal["auto", "on", "off"] = "auto",
    evaluators: Sequence[Evaluator] = (),
    diagnostics: Sequence[Diagnostic] = (),
    evaluate_every: CountOrZero = 1_000,
    evaluate_beside: bool = False,
    checkpoint_every: CountOrZero = 1_000,
    keep_best: str = "",
    log_every: Count = 10,
    start_from: str = "",
) -> Experiment:
    """Composes and validates an experiment.

    Args:
        dataset: The source of real examples.
        architecture: Makes the generator and the critic.
        loss: The losses that they minimize.
        strategy: Spreads training over devices.
        critic_optimizer: Trains the critic. It is a template: training makes its own inside the strategy's scope.
        generator_optimizer: Trains the generator, likewise.
        constraints: Keep the critic Lipschitz, applied in order; none by default.
        generator_constraints: Act on the generator, applied in order; none by default.
        augmentations: Change the examples that the critic sees, real and generated, applied in order; none by default.
        batch_size: Examples of one update over all replicas (the global batch).
        generator_batch_size: Samples of one generator update; None for as many as the critic's batch has.
        microbatches: Into how many parts each replica splits its batch, one after another in the memory of one part.
            The gradient is that of the whole batch.
        rematerialize: Whether activations are computed again in the backward pass instead of being kept for it: less
            memory for more time in deep networks, with the same gradients. Networks are cut into segments for it.
        critic_steps: Critic updates for each generator update.
        steps: Generator updates in the whole run.
        seed: Decides initial weights, data order and noise.
        ema_decay: Decay of the generator's exponential moving average, which then draws the samples; 0 for none.
        ema_half_life: The same as a half-life in examples that the generator has made; 0 for none.
        ema_start: The step in which the average begins; before it, it equals the weights. 0 for from the start, when
            it follows quickly at first.
        precision: "float32" or "mixed_bfloat16" (penalties and losses stay float32).
        jit: Whether XLA compiles the gradients: "on", "off", or "auto" to compile where that is known to be faster.
        evaluators: Measures of the generator, taken every `evaluate_every` steps and at the end.
        diagnostics: Examine the critic, at each evaluation or at an interval of their own, and at the end.
        evaluate_every: Generator updates between evaluations and sample pictures; 0 for only at the end.
        evaluate_beside: Whether a process of its own evaluates, from a checkpoint of that step, while training goes
            on; the next evaluation or checkpoint waits for it. It uses the processor alone. The last evaluation is made
            in the training process.
        checkpoint_every: Generator updates between checkpoints; 0 for only at the end.
        keep_best: A figure of the evaluators and "min" or "max", as "evaluation/frechet_distance/distance:min": the
            checkpoint of the step where it was best stays beside the newest ones; empty for the newest alone.
        log_every: Generator updates that one row of metrics averages over.
        start_from: The folder of another run, whose newest weights of both networks are the initial ones wherever name
            and shape agree; empty for new weights. Optimizers, averages and constraints begin anew.

    Returns:
        The frozen experiment.

    Raises:
        ConfigError: A value is out of its range, or a part does not have its role.
        ContractError: The dataset or the architecture has an invalid size, shape or latent dimension.
        IncompatibleError: The batch does not divide over the replicas.
    """
    settings = dict(locals())
    check_settings(settings)
    _check_roles(settings)
    _check_sizes(dataset, architecture)
    lists = {part: tuple(settings[part]) for part in LISTS}
    made = Experiment(**{**settings, **lists})
    for name, size in (("batch_size", batch_size), ("generator_batch_size", made.generator_batch)):
        _check_division(made, name, size)
    return made


def _check_division(made: Experiment, name: str, size: int) -> None:
    if size % made.replicas:
        raise IncompatibleError(
            f"experiment.{name} = {size} does not divide over {made.replicas} replicas: each must see "
            f"equally many examples. Use a multiple of {made.replicas}, for example "
            f"{_round_up(size, made.replicas)}."
        )
    parts = made.replicas * made.microbatches
    if size % parts:
        raise IncompatibleError(
            f"experiment.{name} = {size} does not divide into {made.microbatches} microbatches on "
            f"{'one replica' if made.replicas == 1 else f'each of {made.replicas} replicas'}. Use a multiple of "
            f"{parts}, for example {_round_up(size, parts)}."
        )


def unique_names(components: Sequence[Any]) -> list[str]:
    """Unique names for components: a repeated name becomes `<name>_2`."""
    recipes = [recipe_of(item) for item in components]
    return numbered(
        recipe.name if recipe else type(item).__name__.lower() for recipe, item in zip(recipes, components, strict=True)
    )


def numbered(names: Iterable[str]) -> list[str]:
    """The same names, of which a repeated one becomes `<name>_2`."""
    found: list[str] = []
    for first in names:
        name, count = first, 1
        while name in found:
            count += 1
            name = f"{first}_{count}"
        found.append(name)
    return found


def compose(recipe: Recipe) -> Experiment:
    """Makes the experiment that a recipe describes, its strategy first.

    Raises:
        GanlabError: A part cannot be made, or they do not fit together.
    """
    check_settings(recipe.arguments)
    order = sorted(recipe.arguments, key=lambda name: list(PARTS).index(name) if name in PARTS else len(PARTS))
    made = {name: make(recipe.arguments[name]) for name in order}
    return experiment(**made)


def schedules(made: Experiment) -> dict[str, Schedule]:
    """The schedules of an experiment's parameters, by the tag that their values are logged under."""
    found: dict[str, Schedule] = {}
    for part in PARTS:
        value = getattr(made, part)
        names = made.component_names(part) if part in LISTS else [part]
        for name, item in zip(names, value if part in LISTS else [value], strict=True):
            recipe = recipe_of(item)
            found |= {f"schedules/{tag}": make(inner) for tag, inner in _scheduled(name, recipe)}
    return found


def _scheduled(path: str, value: Any) -> Iterator[tuple[str, Recipe]]:
    """The recipes of schedules inside a value, each with the names that lead to it."""
    if isinstance(value, Recipe):
        if value.kind == "schedules":
            yield path, value
        for name, argument in value.arguments.items():
            yield from _scheduled(f"{path}/{name}", argument)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value, start=1):
            yield from _scheduled(f"{path}/{i}", item)


def make(value: Any) -> Any:
    """Makes the component that a recipe describes, inner recipes first; looks inside lists, tuples and dicts."""
    if isinstance(value, Recipe):
        factory = component(value.kind, value.name)
        return factory(**{name: make(argument) for name, argument in value.arguments.items()})
    if isinstance(value, (list, tuple)):
        return type(value)(make(item) for item in value)
    if isinstance(value, dict):
        return {name: make(item) for name, item in value.items()}
    return value


def check_settings(settings: Mapping[str, Any]) -> None:
    """Checks the plain values of an experiment, as far as they are given, without TensorFlow.

    Raises:
        ConfigError: A value is out of its range.
    """
    for name, value in settings.items():
        bounds = rule(hint := annotation(experiment, name))
        if bounds and (violation(value, hint) or not isinstance(value, (int, float, type(None)))):
            raise ConfigError(f"experiment.{name} = {value!r} must be {bounds}.")
    decay, half_life = settings.get("ema_decay", 0.0), settings.get("ema_half_life", 0.0)
    if decay and half_life:
        raise ConfigError(
            f"experiment.ema_decay = {decay!r} and experiment.ema_half_life = {half_life!r} say the same in two ways. "
            "Set one of them."
        )
    for name in ("keep_best", "start_from"):
        if not isinstance(settings.get(name, ""), str):
            raise ConfigError(f"experiment.{name} = {settings[name]!r} must be a text; '' for none.")
    for name in ("evaluate_beside", "rematerialize"):
        if not isinstance(settings.get(name, False), bool):
            raise ConfigError(f"experiment.{name} = {settings[name]!r} must be True or False.")
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
    for name, allowed in (("precision", PRECISIONS), ("jit", JITS)):
        value = settings.get(name, allowed[0])
        if value not in allowed:
            raise ConfigError(f"experiment.{name} = {value!r} must be one of {', '.join(map(repr, allowed))}.")


def _check_roles(settings: Mapping[str, Any]) -> None:
    from ganlab.lazy import keras, tensorflow

    roles = {
        "strategy": (tensorflow.distribute.Strategy, "tf.distribute.Strategy"),
        "dataset": (Dataset, "ganlab.Dataset"),
        "architecture": (Architecture, "ganlab.Architecture"),
        "loss": (Loss, "ganlab.Loss"),
        "constraints": (Constraint, "ganlab.Constraint"),
        "generator_constraints": (Constraint, "ganlab.Constraint"),
        "augmentations": (Augmentation, "ganlab.Augmentation"),
        "critic_optimizer": (keras.optimizers.Optimizer, "keras.optimizers.Optimizer"),
        "generator_optimizer": (keras.optimizers.Optimizer, "keras.optimizers.Optimizer"),
        "evaluators": (Evaluator, "ganlab.Evaluator"),
        "diagnostics": (Diagnostic, "ganlab.Diagnostic"),
    }
    for part, (role, called) in roles.items():
        value = settings[part]
        if part in LISTS and not isinstance(value, (list, tuple)):
            one = ": put it in brackets" if isinstance(value, role) else ""
            raise ConfigError(f"experiment.{part} is {value!r}; it must be a list of {called} objects{one}.")
        for item in value if part in LISTS else (value,):
            if not isinstance(item, role):
                raise ConfigError(
                    f"experiment.{part} is {item!r}, of type {type(item).__name__}; it must be a {called}, for "
                    f"example one of the {PARTS[part]} that 'ganlab plugins' lists."
                )


def _check_sizes(dataset: Dataset, architecture: Architecture) -> None:
    """Refuses sizes that would otherwise cause an error deep inside TensorFlow."""
    name = selector_of(dataset)
    with plugin_code(name, "size"):
        size = getattr(dataset, "size", None)
    if size is not None and not _is_whole(size):
        raise ContractError(
            f"{name}.size is {size!r}; it must be the number of examples, a whole number of at least 1, or None for an "
            "endless dataset. Is its source empty?"
        )
    with plugin_code(name, "sample_shape"):
        shape = getattr(dataset, "sample_shape", None)
    if not isinstance(shape, (list, tuple)) or not shape or not all(map(_is_whole, shape)):
        raise ContractError(
            f"{name}.sample_shape is {shape!r}; it must be a tuple of whole numbers of at least 1: (height, width, "
            "channels) for images, (d,) for vectors."
        )
    name = selector_of(architecture)
    with plugin_code(name, "latent_dim"):
        latent_dim = getattr(architecture, "latent_dim", None)
    if not _is_whole(latent_dim):
        raise ContractError(f"{name}.latent_dim is {latent_dim!r}; it must be a whole number of at least 1.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def parameters() -> Mapping[str, inspect.Parameter]:
    """The parameters that an experiment file may set on `experiment`, with their defaults."""
    return inspect.signature(experiment).parameters
