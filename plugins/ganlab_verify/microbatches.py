"""The check that microbatches add up to the whole batch; runs in a process of its own."""

from __future__ import annotations

from ganlab.errors import IncompatibleError
from ganlab_verify import stateful
from ganlab_verify.comparing import Measure
from ganlab_verify.reference import Reference
from ganlab_verify.report import Row, Source
from ganlab_verify.trainings import Bench, recipe_of
from ganlab_verify.verdict import departed, diverged, passed

NAME = "microbatches"
PARTS = (2, 4)

_MEANS = (
    "The parts of a batch do not add up to the whole: a loss, a penalty or a layer mixes the examples that it is "
    "given, and these are now those of one part. Return one value for each example; what needs the whole batch belongs "
    "in advance, or in replica.mean, .sum, .max and .gather, which refuse microbatches."
)


def check(source: Source, *, iterations: int) -> Row:
    """Trains on one device with the whole batch and with each number of microbatches by gradient descent; compares.

    Args:
        source: The experiment.
        iterations: How many iterations to train.

    Returns:
        The row. Its figure is the distance that comes nearest to its limit, or the first that exceeds it. Its status is
        `refused` if a part of the experiment needs the whole batch and says so.
    """
    recipe = recipe_of(source)
    whole = Bench(recipe, 0, optimizers="sgd", microbatches=1)
    sizes = whole.experiment.local_batch, whole.experiment.local_generator_batch
    numbers = [parts for parts in PARTS if not any(size % parts for size in sizes)]
    if not numbers:
        return Row(NAME, "not run", None, None, f"A batch of {sizes[0]} does not divide into {PARTS[0]} microbatches.")
    rates = whole.find_rates()
    reference = Reference(whole, iterations)
    row = stateful.row(NAME, whole.trainer.graph()) or diverged(NAME, reference.traces[0], "gradient descent")
    if row is not None:
        return row
    measures: list[tuple[str, Measure]] = []
    for parts in numbers:
        try:
            divided = Bench(recipe, 0, optimizers="sgd", rates=rates, microbatches=parts)
            _, compared = reference.against(reference.trained(divided))
        except IncompatibleError as error:
            return Row(NAME, "refused", None, None, str(error), {"cause": "needs the whole batch"})
        where = f"in {parts} microbatches"
        measures += [(where, measure) for measure in compared]
        row = departed(NAME, compared, where, "mixes examples", _MEANS)
        if row is not None:
            return row
    return passed(NAME, measures)
