"""The check that an experiment trains alike on any number of replicas; runs in a process of its own."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from ganlab import Constraint
from ganlab.commands import Recipe
from ganlab.engine import ConstraintStack
from ganlab_verify import ignored_labels, stateful
from ganlab_verify.cases import Case, Finding
from ganlab_verify.comparing import Measure
from ganlab_verify.explaining import explain
from ganlab_verify.reference import Reference
from ganlab_verify.report import Row, Source
from ganlab_verify.trace import Arrays, Trace
from ganlab_verify.trainings import Bench, Optimizers, recipe_of
from ganlab_verify.verdict import diverged, failed, passed

NAME = "replicas"


def check(source: Source, *, replicas: Sequence[int], iterations: int, optimizers: Optimizers) -> Row:
    """Trains on one device and on each number of replicas, and compares.

    Args:
        source: The experiment.
        replicas: The numbers of replicas.
        iterations: How many iterations to train.
        optimizers: Plain gradient descent, or the experiment's own.

    Returns:
        The row. Its figure is the distance that comes nearest to its limit, or the first that exceeds it.
    """
    recipe = recipe_of(source)
    by = {"sgd": "gradient descent", "own": "its own optimizers"}[optimizers]
    single = Bench(recipe, 0, optimizers=optimizers)
    rates = single.find_rates() if optimizers == "sgd" else (0.0, 0.0)
    row = stateful.row(NAME, single.trainer.graph()) or stateful.of_python(NAME, single)
    row = row or stateful.kept(NAME, single.experiment) or ignored_labels.row(NAME, single.experiment, single.state)
    if row is not None:
        return row
    reference = Reference(single, iterations)
    if (row := diverged(NAME, reference.traces[0], by)) is not None:
        return row
    measures: list[tuple[str, Measure]] = []
    for count in replicas:
        bench = Bench(recipe, count, optimizers=optimizers, rates=rates)
        others, compared = reference.against(reference.trained(bench))
        finding = _finding(recipe, bench, reference.traces, others, compared)
        where = f"by {by} on {count} replica{'s' if count > 1 else ''}"
        if finding is not None:
            return failed(NAME, finding, compared, where, replicas=count)
        measures += [(where, measure) for measure in compared]
    return passed(NAME, measures)


def _finding(
    recipe: Recipe, bench: Bench, references: Sequence[Trace], others: Sequence[Trace], measures: Sequence[Measure]
) -> Finding | None:
    # Copies that differ are wrong whatever the start.
    start = next((k for k, trace in enumerate(others) if any(i.apart or i.applied_apart for i in trace.iterations)), 0)
    without = functools.partial(_without, recipe)
    return explain(Case(references[start], others[start], measures, without, _projecting(bench)))


def _projecting(bench: Bench) -> list[str]:
    experiment = bench.experiment
    pairs = zip(experiment.component_names("constraints"), experiment.constraints, strict=True)
    return [name for name, constraint in pairs if type(constraint).project is not Constraint.project]


def _without(recipe: Recipe) -> Mapping[str, Arrays]:
    """The first gradients of one device without a part of the loss of the first network."""
    gradients: dict[str, Arrays] = {}
    for part, partial in (("penalty", _WithoutPenalty), ("weight penalty", _WithoutWeightPenalty)):
        bench = Bench(recipe, 0, optimizers="sgd")
        first = bench.state.in_turn[0]  # the critic, if there is one
        stack, side = first.stack, first.role.side
        first.stack = partial(stack.constraints, stack.names, stack.kind, side)
        gradients[part] = bench.traced(1).iterations[0].gradients
    return gradients


class _WithoutPenalty(ConstraintStack):
    def penalties(self, *arguments: object, **functions: object) -> None:
        return None


class _WithoutWeightPenalty(ConstraintStack):
    def weight_penalty(self, *arguments: object) -> None:
        return None
