"""The check that eager execution, the graph and XLA agree on one device; runs in a process of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import tensorflow as tf

from ganlab.errors import TrainingFailedError
from ganlab_verify import stateful
from ganlab_verify.comparing import Measure
from ganlab_verify.reference import Reference, Train
from ganlab_verify.report import Row, Source
from ganlab_verify.shapes import at, look
from ganlab_verify.tpu import obstacles
from ganlab_verify.trace import Trace
from ganlab_verify.trainings import Bench, recipe_of
from ganlab_verify.verdict import departed, diverged, passed

NAME = "graph"

_MEANS = {
    "eagerly": (
        "graph unlike eager",
        "Traced once and run many times, the step computes something else than line by line: a Python value or a "
        "Python random number was frozen while tracing, or Python code had an effect that the graph does not repeat.",
    ),
    "compiled by XLA": (
        "XLA unlike the graph",
        "The compiled part draws random numbers of its own (only those from replica are drawn outside and passed in), "
        "or has an operation that XLA computes differently.",
    ),
    "as one program": (
        "program unlike the graph",
        "XLA compiled the whole iteration, as experiment.jit = 'step' asks. A part keeps values between iterations in "
        "variables of its own, draws random numbers of its own, or has an operation that XLA computes differently.",
    ),
}


def check(source: Source, *, iterations: int) -> Row:
    """Trains as a graph, eagerly, and with the gradients compiled by XLA; compares, and checks the graph's shapes.

    Where experiment.jit is "step", XLA also compiles the whole iteration.

    Args:
        source: The experiment.
        iterations: How many iterations to train.

    Returns:
        The row. Its figure is the distance that comes nearest to its limit, or the first that exceeds it.
    """
    recipe = recipe_of(source)
    bench = Bench(recipe, 0, optimizers="sgd")
    step = look(bench.experiment, bench.state)
    if step.unknown:
        return _not_static(step.unknown)
    rates = bench.find_rates()
    reference = Reference(bench, iterations)
    row = stateful.row(NAME, bench.trainer.graph()) or diverged(NAME, reference.traces[0], "gradient descent")
    if row is not None:
        return row
    measures: list[tuple[str, Measure]] = []
    with _eagerly():
        eager = Bench(recipe, 0, optimizers="sgd", rates=rates)
    row = _compared("eagerly", reference, _in_python(reference.trained(eager)), measures)
    if row is not None:
        return row
    compiled = Bench(recipe, 0, optimizers="sgd", rates=rates, jit="on")
    try:
        row = _compared("compiled by XLA", reference, reference.trained(compiled), measures)
    except TrainingFailedError as error:
        if not isinstance(error.__cause__, tf.errors.OpError):
            raise
        return _not_compiled(compiled.trainer.graph(), error.__cause__)
    if row is None and recipe.arguments.get("jit") == "step":
        program = Bench(recipe, 0, optimizers="sgd", rates=rates, jit="step")
        program.trainer.trace()
        row = _compared("as one program", reference, reference.trained(program), measures)
    if row is not None:
        return row
    notes = ["Every tensor has a static shape."]
    if step.communicates:
        notes.append(
            f"{step.communicates} communicates: on several replicas of CPUs or GPUs its part of the step is left "
            "uncompiled."
        )
    return passed(NAME, measures, notes)


def _in_python(train: Train) -> Train:
    def eager(starts: Sequence[int | None]) -> list[Trace]:
        with _eagerly():
            return train(starts)

    return eager


def _compared(how: str, reference: Reference, train: Train, measures: list[tuple[str, Measure]]) -> Row | None:
    _, compared = reference.against(train)
    measures += [(how, measure) for measure in compared]
    return departed(NAME, compared, how, *_MEANS[how])


def _not_static(unknown: Sequence[str]) -> Row:
    more = f" (and {len(unknown) - 1} more, perhaps because of it)" if len(unknown) > 1 else ""
    detail = (
        f"A tensor of the training step has no static shape: {unknown[0]}{more}. A TPU compiles for fixed shapes: use "
        "tf.where or multiply by a mask instead of tf.boolean_mask, or set the shape with tf.ensure_shape."
    )
    return Row(NAME, "failed", float(len(unknown)), 0.0, detail, {"cause": "unknown shape", "tensors": list(unknown)})


def _not_compiled(graph: tf.Graph, error: tf.errors.OpError) -> Row:
    """The row of a graph that XLA rejects: the operations without a kernel, and the line that uses the first."""
    first, *others = obstacles.of_lowering(graph, error, whole=False)
    operations = sorted({one.op for one in (first, *others) if one.reason == obstacles.NO_KERNEL})
    if operations:
        many = "s" if len(operations) > 1 else ""
        detail = (
            f"XLA has no kernel for the operation{many} {', '.join(operations)}{at(first.line)}, so neither "
            "experiment.jit = 'on' nor a TPU can run this. Use other operations there."
        )
    else:
        detail = f"XLA cannot compile the gradients{at(first.line)}: {first.reason}"
    data = {"cause": "no XLA kernel", "operations": operations, "error": str(error)}
    return Row(NAME, "failed", None, None, detail, data)


@contextlib.contextmanager
def _eagerly() -> Iterator[None]:
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)
