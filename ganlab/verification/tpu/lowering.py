"""Lowers an experiment's training iteration to StableHLO, in a process of its own: `python -m` this, see `main`."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from ganlab import composition, config
from ganlab.cli.options import use_plugins
from ganlab.composition import Experiment, compose
from ganlab.errors import GanlabError
from ganlab.recipes import Recipe
from ganlab.training.state import TrainingState
from ganlab.training.step import TrainingStep
from ganlab.verification.report import Source
from ganlab.verification.tpu import obstacles
from ganlab.verification.tpu.obstacles import Line, Obstacle
from ganlab.verification.tpu.strategy import CompileOnlyStrategy


@dataclass(frozen=True)
class Lowered:
    """What became of lowering.

    Attributes:
        batch_size: The global batch that was lowered: the experiment's, rounded up to divide over the replicas.
        asked_batch_size: The experiment's.
        error: A mistake in the experiment, in words; empty where there is none.
        obstacles: What XLA or TensorFlow would not take; empty where the module was written.
        lines: The user's line for the name of every operation that has one.
    """

    batch_size: int = 0
    asked_batch_size: int = 0
    error: str = ""
    obstacles: list[Obstacle] = field(default_factory=list)
    lines: dict[str, Line] = field(default_factory=dict)


def lower(source: Source, replicas: int, module: Path) -> Lowered:
    """Lowers the iteration of one replica, collectives included, as `TPUStrategy` would have it compiled.

    Args:
        source: The experiment.
        replicas: How many replicas train in step.
        module: Where the serialized StableHLO module goes.
    """
    try:
        asked, experiment = _composed(source, replicas)
        state = TrainingState(experiment)
        # The whole step is compiled: "auto" then compiles no part of it again, as on a TPU.
        step = TrainingStep(experiment, state, compiled=experiment.jit == "on")
    except GanlabError as error:
        return Lowered(error=str(error))
    done = Lowered(batch_size=experiment.batch_size, asked_batch_size=asked)
    graphs: list[tf.Graph] = []

    def iteration(number: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        graphs.append(tf.compat.v1.get_default_graph())
        return experiment.strategy.run(step.iteration, args=(number, real))

    specs = (
        tf.TensorSpec([], tf.int64),
        tf.TensorSpec([experiment.critic_steps, experiment.local_batch, *experiment.dataset.sample_shape], tf.float32),
    )
    function = tf.function(iteration, jit_compile=True, autograph=False)
    try:
        graph = function.get_concrete_function(*specs).graph
    except GanlabError as error:
        return replace(done, error=str(error))
    except Exception as error:
        return replace(done, obstacles=[obstacles.of_tracing(graphs, error)])
    try:
        lowered = function.experimental_get_compiler_ir(*specs)(stage="stablehlo_serialized")
    except Exception as error:
        return replace(done, obstacles=obstacles.of_lowering(graph, error))
    module.write_bytes(lowered)
    return replace(done, lines=obstacles.lines(graph))


def _composed(source: Source, replicas: int) -> tuple[int, Experiment]:
    """The batch size that was asked for, and the experiment with our strategy in the place of its own."""
    use_plugins(source.no_plugin, Path(source.plugin_file) if source.plugin_file else None, source.gin_files[0])
    recipe: Recipe = config.load(source.gin_files, source.params)
    asked = recipe.arguments.get("batch_size", composition.parameters()["batch_size"].default)
    changed = {"strategy": CompileOnlyStrategy(replicas), "batch_size": -(-asked // replicas) * replicas}
    return asked, compose(replace(recipe, arguments={**recipe.arguments, **changed}))


def main() -> None:
    """Reads `{"source": ..., "replicas": n, "module": path, "result": path}` from standard input.

    The result is a `Lowered` as JSON; the module is there where lowering went well.
    """
    request: dict[str, Any] = json.load(sys.stdin)
    lowered = lower(Source(**request["source"]), request["replicas"], Path(request["module"]))
    Path(request["result"]).write_text(json.dumps(dataclasses.asdict(lowered)))


if __name__ == "__main__":
    main()
