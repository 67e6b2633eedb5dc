"""The check that the step's gradients are those of its losses; runs in a process of its own."""

from __future__ import annotations

from collections.abc import Callable

from ganlab import Experiment
from ganlab.commands import Recipe
from ganlab.engine import TrainingState, parameters
from ganlab_verify.departing_layer import NAME, failed, passed
from ganlab_verify.derivatives import Derivatives, Truth, he, moved
from ganlab_verify.differences import Values
from ganlab_verify.report import Row, Source
from ganlab_verify.trace import norm
from ganlab_verify.trainings import Bench, recipe_of

# A gradient is right or wrong whatever the batch, and a small one is fast.
BATCH = 16
# The float32 rounding of a gradient differs between graphs by a few times itself, and is at least this.
_ROUNDINGS, _LEAST = 30.0, 1e-4
# A rectifier may switch so near to a start that no step is short enough, or that the step's own graph, which rounds
# otherwise, has it on the other side: one of millions moves a gradient by 1e-4 to 1e-3 of its norm. A mistake also
# shows from another start.
_STARTS = 3


def check(source: Source) -> Row:
    """Compares the gradients that the step applies with differences of its losses in float64.

    Args:
        source: The experiment.

    Returns:
        The row. Its figure is the error that comes nearest to its limit, or the worst that exceeds it.
    """
    return of_recipe(recipe_of(source))


def of_recipe(recipe: Recipe) -> Row:
    """The row of an experiment's recipe: the step trains once from each start, and its gradients are compared."""
    batch = min(BATCH, int(recipe.arguments.get("batch_size", parameters()["batch_size"].default)))
    bench = Bench(recipe, 0, optimizers="sgd", batch_size=batch, critic_steps=1, generator_steps=1)
    iterations = []

    def train(start: Values) -> Values:
        # The optimizers' rate is zero, so that only a projection moves weights before the generator's update.
        bench.begin(start)
        iterations.append(bench.traced(1).iterations[0])
        return iterations[-1].variables

    def applied(truth: Truth) -> Row | None:
        return _applied(truth, iterations[-1].applied)

    return _row(Derivatives(bench.experiment, bench.state), bench.initial, train, applied)


def of_state(experiment: Experiment, state: TrainingState) -> Row:
    """The row of an experiment of one replica, whose gradients are computed as in the step, without training."""
    initial = {name: variable.numpy() for name, variable in state.variables().items()}
    return _row(Derivatives(experiment, state), initial, lambda start: start, lambda truth: None)


def _row(
    derivatives: Derivatives, initial: Values, train: Callable[[Values], Values], applied: Callable[[Truth], Row | None]
) -> Row:
    trained = [name for name in initial if "/weights/" in name or "/parameters/" in name]
    other: Row | None = None
    departing: list[Truth] = []
    for seed in range(_STARTS):
        start = {**initial, **moved(initial, trained, seed)}
        later, notes = train(start), []
        truths = derivatives.truths(start, later)
        other = next((row for truth in truths if (row := applied(truth)) is not None), None)
        if other is not None:
            continue
        if any(truth.vanishes for truth in truths):
            small = " and ".join(truth.role for truth in truths if truth.vanishes)
            notes.append(
                f"Most of the {small}'s gradient is too small beside the loss to compare, so kernels of He's size "
                "replace the experiment's."
            )
            start |= he(start, trained, seed)
            truths = derivatives.truths(start, start)
        departing = [truth for truth in truths if truth.departs]
        if not departing:
            return passed(truths, notes)
    return other or failed(departing[0], derivatives.wrong_layers(departing[0].role))


def _applied(truth: Truth, applied: Values) -> Row | None:
    """The row of a step that applies a gradient other than the one under test; None if they are the same."""
    size = norm(truth.gradient.values())
    if not size or truth.vanishes:
        return None
    error = norm(applied[name][0] - gradient for name, gradient in truth.gradient.items()) / size
    limit = max(_LEAST, _ROUNDINGS * truth.rounding)
    if error <= limit:
        return None
    detail = (
        f"The optimizer of the {truth.role} applies a gradient other than that of its loss: they are {error:.1e} of "
        f"its norm apart (rounding: {limit:.1e})."
    )
    return Row(NAME, "failed", error, limit, detail, {"cause": "another gradient applied", "where": truth.role})
