"""Traces an experiment's step and counts what it needs, in a process of its own."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf
from ganlab_verify import CompileOnlyStrategy, Source, recipe_of

import ganlab
from ganlab import Experiment
from ganlab.commands import Recipe
from ganlab.engine import Inputs, TrainingState, TrainingStep, compose, set_arithmetic, specs_of
from ganlab.errors import IncompatibleError
from ganlab_plan.counting import count

_INPUT_SECONDS = 0.5


def counted(source: Source, *, replicas: Sequence[int]) -> list[dict[str, Any]]:
    """Counts the step of one replica, for several numbers of replicas.

    Args:
        source: The experiment.
        replicas: Numbers of replicas.

    Returns:
        For each number the fields of `facts`, and the global batch that the experiment asks for.

    Raises:
        GanlabError: The experiment is invalid.
    """
    recipe = recipe_of(source)
    return [{**facts(*traced(recipe, number)), "asked_batch_size": _batch_size(recipe)} for number in replicas]


def refused(source: Source, *, replicas: int, settings: dict[str, Any]) -> list[str]:
    """Which settings the experiment refuses, each tried alone by tracing the step with it.

    Args:
        source: The experiment.
        replicas: The number of replicas.
        settings: Settings of the experiment by name.

    Raises:
        GanlabError: The experiment is invalid.
    """
    recipe, refusals = recipe_of(source), []
    for name, value in settings.items():
        try:
            traced(replace(recipe, arguments={**recipe.arguments, name: value}), replicas)
        except IncompatibleError:
            refusals.append(name)
    return refusals


def facts(experiment: Experiment, state: TrainingState, graph: tf.Graph) -> dict[str, Any]:
    """The facts that the plan of an experiment rests on, as plain values: its settings, and the counts of a replica."""
    counts = count(graph)
    examples = sum(_bytes(spec) for spec in specs_of(experiment).values())
    return {
        "replicas": experiment.replicas,
        "batch_size": experiment.batch_size,
        "precision": experiment.precision,
        "critic_steps": experiment.critic_steps,
        "microbatches": experiment.microbatches,
        "rematerialize": experiment.rematerialize,
        "flops": counts.flops,
        "flops_once": count(graph, once=True).flops,
        "products": counts.products,
        "accessed": counts.fused,
        "all_reduces": round(counts.all_reduces),
        "reduced": counts.reduced,
        "kernels": round(counts.launches),
        "memory": variable_bytes(state) + examples + counts.peak,
        "variables": variable_bytes(state),
        "input_seconds": input_seconds(experiment),
        "notes": sorted(counts.notes),
    }


def traced(recipe: Recipe, replicas: int) -> tuple[Experiment, TrainingState, tf.Graph]:
    """Traces one iteration of one of a number of replicas.

    Args:
        recipe: The experiment's recipe.
        replicas: The number of replicas; the global batch is rounded up to divide over them.

    Returns:
        The experiment, its state, and the graph, in which an all-reduce is an `XlaAllReduce`.

    Raises:
        GanlabError: The experiment is invalid.
    """
    batch = _batch_size(recipe)
    parts = replicas * recipe.arguments.get("microbatches", 1)
    changed = {"strategy": CompileOnlyStrategy(replicas), "batch_size": -(-batch // parts) * parts}
    generated = recipe.arguments.get("generator_batch_size")
    if generated is not None:
        changed["generator_batch_size"] = -(-generated // parts) * parts
    experiment = compose(replace(recipe, arguments={**recipe.arguments, **changed}))
    set_arithmetic(experiment.precision)
    state = TrainingState(experiment)
    step = TrainingStep(experiment, state, compiled=False)
    examples = specs_of(experiment)

    def iteration(number: tf.Tensor, examples_of_step: dict[str, tf.Tensor]) -> tf.Tensor:
        return experiment.strategy.run(step.iteration, args=(number, examples_of_step))

    function = tf.function(iteration, autograph=False)
    return experiment, state, function.get_concrete_function(tf.TensorSpec([], tf.int64), examples).graph


def _batch_size(recipe: Recipe) -> int:
    default = inspect.signature(ganlab.experiment).parameters["batch_size"].default
    return int(recipe.arguments.get("batch_size", default))


def variable_bytes(state: TrainingState) -> float:
    """Bytes of everything that is trained or kept: weights, averages, optimizers' and constraints' states."""
    return float(sum(_bytes(variable) for variable in state.variables().values()))


def input_seconds(experiment: Experiment) -> float:
    """Seconds that a core of this machine takes to make a replica's real examples of an iteration, measured."""
    inputs = Inputs(experiment)
    make_examples = tf.function(lambda step: inputs.of(step, tf.constant(0)), autograph=False)
    make_examples(tf.constant(0, tf.int64))
    begun, busy, done = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begun < _INPUT_SECONDS:
        done += 1
        make_examples(tf.constant(done, tf.int64))
    return (time.process_time() - busy) / done


def _bytes(value: Any) -> float:
    return float((value.shape.num_elements() or 0) * value.dtype.size if hasattr(value.dtype, "size") else 0)
