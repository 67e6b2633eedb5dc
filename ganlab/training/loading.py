"""Loads a trained generator from a run's directory, without the run's strategy and without training."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import keras
import tensorflow as tf

from ganlab import composition
from ganlab.composition import Rows, given_rows, make
from ganlab.config import overrides
from ganlab.errors import ConfigError, RunError
from ganlab.interfaces import Architecture, Dataset, Evaluator
from ganlab.plugins import optional, scheduled
from ganlab.plugins.recipes import Factory, unique_names
from ganlab.runs import RunDirectory
from ganlab.runs.origins import DATA, data_changes, data_of, recorded
from ganlab.runs.status import checkpoints_gone
from ganlab.support import several
from ganlab.support.terminal import line
from ganlab.training.checkpoints import Checkpoint, Checkpoints, restore
from ganlab.training.evaluation import measured
from ganlab.training.graph.arithmetic import set_arithmetic
from ganlab.training.graph.networks import Network, build_network
from ganlab.training.graph.players import Player
from ganlab.training.graph.roles import CRITIC, GENERATOR, role_of
from ganlab.training.graph.sampling import Sampler, label_frequencies
from ganlab.training.graph.variables import raw, values_of

# A checkpoint of a run: a step, the best by `experiment.keep_best`, or None for the newest.
Step = int | Literal["best"] | None


@dataclass(frozen=True)
class Trained:
    """A generator from a checkpoint, with the weights that samples are drawn with: its average if the run keeps one.

    Attributes:
        network: The generator with these weights.
        sample: Draws samples from it.
        sample_shape: The shape of one sample.
        latent_dim: The length of its input.
        step: Generator updates done.
        seed: The run's seed.
        precision: The precision that its layers compute in, "float32" or "mixed_bfloat16".
        trained_in: The precision that it was trained in.
        averaged: Whether the weights are an average over training.
        frequencies: How often each class occurs in the data, for a conditional generator; else None.
    """

    network: Network
    sample: Sampler
    sample_shape: tuple[int, ...]
    latent_dim: int
    step: int
    seed: int
    precision: str
    trained_in: str
    averaged: bool
    frequencies: list[float] | None = None


def load_generator(run: RunDirectory) -> keras.Model:
    """`ganlab.Run.generator`, which has the documentation."""
    return load_trained(run).network.model


def load_network(run: RunDirectory, name: str) -> keras.Model:
    """`ganlab.Run.network`, which has the documentation."""
    further = "constraints" if name == CRITIC else "network_constraints"
    arguments = run.recipe(only=(*composition.OF_GENERATOR, further)).arguments
    architecture, precision = make(arguments["architecture"]), str(arguments.get("precision", "float32"))
    return _restored(run, arguments, architecture, find_checkpoint(run), precision, name)[0].model


def load_trained(run: RunDirectory, *, checkpoint: Step = None, precision: str | None = None) -> Trained:
    """The generator of a checkpoint, on one device and without the run's strategy.

    Args:
        run: A run with a checkpoint, finished or not.
        checkpoint: A step that has a checkpoint, "best" by `experiment.keep_best`, or None for the newest.
        precision: The precision that its layers are to compute in; None for the one the run trained in.

    Raises:
        RunError: There is no such checkpoint, or it does not fit the recorded experiment.
    """
    arguments = run.recipe(only=composition.OF_GENERATOR).arguments
    return _trained(run, arguments, find_checkpoint(run, checkpoint), precision)


def evaluate(
    run: RunDirectory, evaluators: str | Evaluator | Sequence[str | Evaluator] = (), *, checkpoint: Step = None
) -> dict[str, float]:
    """`ganlab.Run.evaluate`, which has the documentation: on the same samples as training would have."""
    alone = isinstance(evaluators, (str, Evaluator)) or not isinstance(evaluators, Iterable)
    items: Any = [evaluators] if alone else evaluators
    chosen = [_evaluator(run, item) for item in items]
    own = () if chosen else ("evaluators",)
    arguments = run.recipe(only=(*composition.OF_GENERATOR, "network_constraints", "dataset", *own)).arguments
    chosen = chosen or make(arguments.get("evaluators", ()))
    if not chosen:
        raise ConfigError(
            f"The experiment of {run.path} has no evaluators. Name some, for example 'frechet_distance'; 'ganlab "
            "plugins' lists them."
        )
    trained = _trained(run, arguments, find_checkpoint(run, checkpoint))
    keep_precision(trained)
    dataset = make(arguments["dataset"])
    if changes := data_changes(recorded(run.info, DATA), data_of(dataset)):
        warnings.warn(
            f"{line(run.path)} is evaluated on other data than it was trained on: {line(changes[0])}.", stacklevel=3
        )
    return measured(unique_names(chosen), chosen, trained.sample, dataset, run)


def _evaluator(run: RunDirectory, item: Any) -> Evaluator:
    """A given evaluator; one given by name is made with the settings of the run's file."""
    if isinstance(item, str):
        recipe = run.recipe([overrides.components("evaluators", [item], f"evaluator {item!r}")], only=())
        (item,) = make(recipe.arguments["evaluators"])
    if not isinstance(item, Evaluator):
        hint = " It makes one: call it, and pass what it returns." if isinstance(item, (Factory, type)) else ""
        raise ConfigError(
            f"{item!r} is not an evaluator.{hint} Pass names, as in run.evaluate(['kid']), or what a factory made, as "
            "in run.evaluate([ganlab.component('evaluators', 'kid')()])."
        )
    return item


def keep_precision(trained: Trained) -> None:
    """Makes this process compute as training did: float32 means without TensorFloat-32."""
    tf.config.experimental.enable_tensor_float_32_execution(trained.precision != "float32")


def find_checkpoint(run: RunDirectory, step: Step = None) -> Checkpoint:
    """The checkpoint of a step, the best by `experiment.keep_best`, or the newest; its files are read and checked.

    Raises:
        RunError: There is none, it is damaged, or the run's folder is not as ganlab wrote it.
    """
    run.check()
    if step == "best":
        step = _best(run)
    step = None if step is None else several.whole_number(step, "checkpoint")
    checkpoints = Checkpoints(run.path / "checkpoints").all()
    if not checkpoints:
        raise RunError(_none(run))
    chosen = checkpoints[-1] if step is None else next((one for one in checkpoints if one.step == step), None)
    steps = ", ".join(str(checkpoint.step) for checkpoint in checkpoints)
    if chosen is None:
        raise RunError(f"{run.path} has no checkpoint of step {step}; those that are kept are of {steps}.")
    damage = chosen.damage()
    if damage is not None:
        raise RunError(f"The checkpoint {chosen.path} is damaged: {damage}. Choose another step; there are {steps}.")
    return chosen


def _none(run: RunDirectory) -> str:
    """Why a run has no checkpoint, and what to do."""
    info = run.info
    if gone := checkpoints_gone(run.path, info):
        return f"{gone} So there is no generator to load."
    if info.get("status") == "diverged":
        return (
            f"{line(run.path)} diverged, and has no finite checkpoint: there is no generator to load. "
            "docs/divergence.md says what to try."
        )
    return f"{line(run.path)} has no checkpoint yet, so there is no generator to load. Train it further first."


def _best(run: RunDirectory) -> int:
    best = run.info.get("best")
    if not best:
        raise RunError(
            f"{run.path} has no best checkpoint: it was trained without experiment.keep_best, or never evaluated."
        )
    return int(best["step"])


def _trained(
    run: RunDirectory, arguments: Mapping[str, Any], checkpoint: Checkpoint, precision: str | None = None
) -> Trained:
    trained_in = str(arguments.get("precision", "float32"))
    precision, architecture = precision or trained_in, make(arguments["architecture"])
    restored = functools.partial(_restored, run, arguments, architecture, checkpoint, precision)
    generator, frequencies = restored()
    seed, of = int(arguments.get("seed", 0)), (generator, generator.weights, architecture, frequencies)

    def networks() -> dict[str, Any]:
        with checkpoint.bounding():
            made = optional.call(architecture.networks, _sample_shape(run), **_facts(run, frequencies))
        built = {name: restored(name)[0] for name in made.get(GENERATOR, ())}
        return {name: Sampler(each, each.weights, architecture).function for name, each in built.items()}

    return Trained(
        network=generator,
        sample=Sampler(*of, rows=_rows(run, generator), seed=seed, networks=networks),
        sample_shape=_sample_shape(run),
        latent_dim=int(architecture.latent_dim),
        step=checkpoint.step,
        seed=seed,
        precision=precision,
        trained_in=trained_in,
        averaged=_averaged(arguments),
        frequencies=frequencies,
    )


def _restored(
    run: RunDirectory,
    arguments: Mapping[str, Any],
    architecture: Architecture,
    checkpoint: Checkpoint,
    precision: str,
    name: str = GENERATOR,
) -> tuple[Network, list[float] | None]:
    """The generator or a further network with its weights of a checkpoint, and the frequencies of classes."""
    set_arithmetic(precision)
    frequencies = _frequencies(run, arguments) if architecture.conditional else None
    loss = None if name == GENERATOR else make(run.recipe(only=("loss",)).arguments.get("loss"))
    shape, facts = _sample_shape(run), _facts(run, frequencies)
    further = arguments.get("network_constraints") or {}
    own = {GENERATOR: arguments.get("generator_constraints", []), CRITIC: arguments.get("constraints", [])}
    clock = checkpoint.step, int(arguments.get("steps", composition.parameters()["steps"].default))
    with checkpoint.bounding():
        network = build_network(name, architecture, shape, precision, facts, loss)
        network.clock = clock
        with scheduled.at(*clock):
            player = Player(role_of(name, network.side), network, make({**further, **own}.get(name, [])))
            _restore_weights(
                player,
                checkpoint,
                player.role.averaged and _averaged(arguments),
                averaged_buffers=player.role.averaged and bool(arguments.get("ema_buffers")),
            )
    return network, frequencies


def _facts(run: RunDirectory, frequencies: list[float] | None) -> dict[str, Any]:
    """The optional parameters of the architecture's methods."""
    given = run.info.get("given", {})
    shapes = {name: tuple(given[name]) if name in given else None for name in ("condition_shape", "source_shape")}
    return {"classes": None if frequencies is None else len(frequencies), **shapes}


def _averaged(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments.get("ema_decay") or arguments.get("ema_half_life"))


def _sample_shape(run: RunDirectory) -> tuple[int, ...]:
    # Recorded in the run, because the data may be elsewhere, or large.
    return tuple(run.info.get("sample_shape") or _dataset(run).sample_shape)


def _frequencies(run: RunDirectory, arguments: Mapping[str, Any]) -> list[float]:
    frequencies = run.info.get("label_frequencies") or label_frequencies(_dataset(run), int(arguments.get("seed", 0)))
    if frequencies is None:
        raise RunError(f"The generator of {run.path} is conditional, and its dataset has no labels.")
    return [float(value) for value in frequencies]


def _rows(run: RunDirectory, generator: Network) -> dict[str, Rows]:
    """Where the conditions and sources of samples come from; without them no data are needed."""
    arguments = run.recipe(only=("dataset", "source")).arguments if generator.given else {}
    return given_rows(make(arguments["dataset"]), make(arguments.get("source"))) if arguments else {}


def _dataset(run: RunDirectory) -> Dataset:
    made: Dataset = make(run.recipe(only=("dataset",)).arguments["dataset"])
    return made


def _restore_weights(player: Player, checkpoint: Checkpoint, averaged: bool, *, averaged_buffers: bool) -> None:
    """Restores a network's weights as its constraints reparameterize them."""
    player.constrain()
    trained, average = player.named(player.nest), player.named(player.nest, averages=True)
    kept = average if averaged else trained
    buffers = (average if averaged_buffers else trained).buffers
    groups = [kept.weights, buffers, *kept.parameters, *trained.states]
    restore(checkpoint, {name: raw(v) for group in groups for name, v in group.items()}, partial=True)
    effective = player.stack.effective(values_of(player.nest))
    for name, variable in player.weights.items():
        variable.assign(effective[name])
