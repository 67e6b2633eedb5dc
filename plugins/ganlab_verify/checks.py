"""The checks by name, each run in processes of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ganlab.files import scratch_folder
from ganlab_verify import tpu
from ganlab_verify.process import ProcessError, call
from ganlab_verify.report import Row, Source, merged


@dataclass(frozen=True)
class Options:
    """Options of the checks.

    Attributes:
        replicas: The numbers of replicas, besides one device without mirroring.
        iterations: How many iterations to train.
        topology: The TPU to compile for, for example "v5e:2x2".
        install: Whether the TPU compiler may be installed if it is missing.
    """

    replicas: tuple[int, ...] = (1, 2, 4)
    iterations: int = 5
    topology: str = "v5e:2x2"
    install: bool = False


def run(check: str, source: Source, options: Options) -> Row:
    """Runs one check.

    Args:
        check: Its name, one of `CHECKS`.
        source: The experiment.
        options: The options.

    Returns:
        The result. A check that could not finish has failed: its row gives the reason, and `data` has the traceback.
    """
    try:
        return CHECKS[check](source, options)
    except ProcessError as error:
        return Row(check, "failed", None, None, str(error), {"cause": "error", "traceback": error.trace})


def _replicas(source: Source, options: Options) -> Row:
    settings = {"replicas": list(options.replicas), "iterations": options.iterations}
    rows: list[Row] = []
    for optimizers in ("sgd", "own"):
        rows.append(_call("replicas:check", source, options, **settings, optimizers=optimizers))
        if rows[-1].status == "failed":
            break
    agreement = (
        f"{_listed(options.replicas)} train as one device does, by gradient descent and by the experiment's own "
        f"optimizers: every metric, gradient and variable of {options.iterations} iterations."
    )
    return merged("replicas", agreement, rows)


def _graph(source: Source, options: Options) -> Row:
    agreement = f"Eager, graph and XLA agree in every metric, gradient and variable of {options.iterations} iterations."
    return merged("graph", agreement, [_call("graph:check", source, options, iterations=options.iterations)])


def _microbatches(source: Source, options: Options) -> Row:
    row = _call("microbatches:check", source, options, iterations=options.iterations)
    if row.status == "refused":
        return Row(row.check, row.status, None, None, f"Refused, as it must be: {row.detail}", row.data)
    return merged("microbatches", "The parts of a batch, one after another, train as the whole does.", [row])


def _gradients(source: Source, options: Options) -> Row:
    row: Row = _call("truth:check", source, options)
    return row


def _resume(source: Source, options: Options) -> Row:
    # Two replicas are enough to see that every copy comes back.
    count = min((n for n in options.replicas if n > 1), default=1)
    with scratch_folder("ganlab-verify-") as folder:
        settings = {"replicas": count, "iterations": max(2, options.iterations), "folder": folder}
        row: Row = _call(
            "resume:resume", source, options, **settings, **_call("resume:interrupt", source, options, **settings)
        )
    return row


def _tpu(source: Source, options: Options) -> Row:
    return tpu.check(source, topology=options.topology, install=options.install)


def _call(target: str, source: Source, options: Options, **settings: Any) -> Any:
    return call(f"ganlab_verify.{target}", source, settings, cpus=max(options.replicas))


def _listed(counts: Sequence[int]) -> str:
    *rest, last = map(str, counts)
    return f"{', '.join(rest)} and {last} replicas" if rest else f"{last} replica{'s' if last != '1' else ''}"


CHECKS: dict[str, Callable[[Source, Options], Row]] = {
    "replicas": _replicas,
    "graph": _graph,
    "gradients": _gradients,
    "microbatches": _microbatches,
    "resume": _resume,
    "tpu": _tpu,
}
