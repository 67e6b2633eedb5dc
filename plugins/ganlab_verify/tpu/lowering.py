"""Lowers an experiment's training iteration to StableHLO, in a process of its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from ganlab import Experiment
from ganlab.engine import (
    TrainingState,
    TrainingStep,
    compose,
    op_source,
    parameters,
    set_arithmetic,
    specs_of,
)
from ganlab.errors import GanlabError, IncompatibleError
from ganlab_verify.report import Source
from ganlab_verify.tpu import obstacles
from ganlab_verify.tpu.obstacles import Obstacle
from ganlab_verify.tpu.strategy import CompileOnlyStrategy
from ganlab_verify.trainings import recipe_of


@dataclass(frozen=True)
class Lowered:
    """Result of lowering.

    Attributes:
        batch_size: The global batch that was lowered: the experiment's, rounded up to divide over the replicas.
        asked_batch_size: The experiment's global batch.
        refused: Why it refuses to be compiled whole: steps that differ. Empty if nothing does.
        obstacles: The parts that XLA or TensorFlow rejected; empty if the module was written.
        lines: The user's line of code by the operation's name, where there is one.
    """

    batch_size: int
    asked_batch_size: int
    refused: str = ""
    obstacles: list[Obstacle] = field(default_factory=list)
    lines: dict[str, op_source.Line] = field(default_factory=dict)


def lower(source: Source, *, replicas: int, module: str) -> dict[str, Any]:
    """Lowers the iteration of one replica, collectives included, as `TPUStrategy` would compile it.

    Args:
        source: The experiment.
        replicas: How many replicas train in step.
        module: Where the serialized StableHLO module goes.

    Returns:
        A `Lowered` as plain values.

    Raises:
        GanlabError: The experiment is invalid.
    """
    recipe = recipe_of(source)
    asked = recipe.arguments.get("batch_size", parameters()["batch_size"].default)
    parts = replicas * recipe.arguments.get("microbatches", 1)
    changed = {"strategy": CompileOnlyStrategy(replicas), "batch_size": -(-asked // parts) * parts}
    generated = recipe.arguments.get("generator_batch_size")
    if generated is not None:
        changed["generator_batch_size"] = -(-generated // parts) * parts
    experiment = compose(replace(recipe, arguments={**recipe.arguments, **changed}))
    done = Lowered(experiment.batch_size, asked)
    try:
        experiment.turn.check_static("A TPU, which compiles all of an iteration,", "Train on CPUs or GPUs.")
    except IncompatibleError as error:
        return asdict(replace(done, refused=str(error)))
    return asdict(_lowered(experiment, done, Path(module)))


def _lowered(experiment: Experiment, done: Lowered, module: Path) -> Lowered:
    set_arithmetic(experiment.precision)
    # The whole step is compiled: "auto" then compiles no part of it again, as on a TPU.
    step = TrainingStep(experiment, TrainingState(experiment), compiled=experiment.jit == "on")
    graphs: list[tf.Graph] = []

    def iteration(number: tf.Tensor, *data: tf.Tensor) -> tf.Tensor:
        graphs.append(tf.compat.v1.get_default_graph())
        given = dict(zip(examples, data, strict=True))
        return experiment.strategy.run(step.iteration, args=(number, given))

    # Lowering takes no nested arguments.
    examples = specs_of(experiment)
    specs = (tf.TensorSpec([], tf.int64), *examples.values())
    function = tf.function(iteration, jit_compile=True, autograph=False)
    try:
        graph = function.get_concrete_function(*specs).graph
    except Exception as error:
        # The message for a missing gradient is better here than where the plugin requested it.
        missing = error.__cause__ if isinstance(error.__cause__, LookupError) else error
        if isinstance(missing, GanlabError):
            raise
        return replace(done, obstacles=[obstacles.of_tracing(graphs, missing)])
    try:
        lowered = function.experimental_get_compiler_ir(*specs)(stage="stablehlo_serialized")
    except Exception as error:
        return replace(done, obstacles=obstacles.of_lowering(graph, error))
    module.write_bytes(lowered)
    return replace(done, lines=op_source.lines(graph))
