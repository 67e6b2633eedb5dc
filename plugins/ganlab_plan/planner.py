"""Plans an experiment on several places."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ganlab_verify import ProcessError, Source, call, tpu

from ganlab.commands import read_experiment, use_plugins
from ganlab.errors import ConfigError, MissingDependencyError
from ganlab_plan.advice import advice
from ganlab_plan.places import Place
from ganlab_plan.times import Cost, Limit, Time, time

FRACTION = 0.5
# What makes a step smaller, each tried before it is advised.
_SMALLER = {"microbatches": 2, "rematerialize": True}
_LOOPS = (
    "The TPU compiler counts the body of a loop once; its counts were multiplied as the traced step's loops are long."
)

_UNOPTIMIZED = (
    "The TPU compiler did not optimize: a run moves other bytes, often more, and needs other memory, often less."
)


@dataclass(frozen=True)
class Plan:
    """An experiment on one place.

    Attributes:
        topology: The place.
        replicas: The number of replicas.
        batch_size: The global batch that was planned: the experiment's, rounded up to divide over the replicas.
        cost: The cost of an iteration on one replica; None if the step cannot be compiled there.
        capacity: Bytes of memory of a replica.
        time: The projected time of an iteration; None if it does not fit or cannot be compiled.
        limit: What limits it; None if it cannot be compiled.
        advice: What to change, in sentences.
        notes: What to know about the figures, in sentences; the reason if the step cannot be compiled.
    """

    topology: str
    replicas: int
    batch_size: int
    cost: Cost | None
    capacity: float
    time: Time | None
    limit: Limit | None
    advice: Sequence[str] = ()
    notes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values: bytes, seconds, operations."""
        return {**asdict(self), "seconds": self.time.total if self.time else None}


def plan(
    source: Source,
    where: Sequence[Place],
    *,
    fraction: float = FRACTION,
    install: bool = False,
    optimize: bool = True,
    progress: Callable[[str], None] = lambda sentence: None,
) -> list[Plan]:
    """Plans an experiment: compiles or traces its step for each place, counts it and projects the time of an iteration.

    Args:
        source: The experiment.
        where: The places.
        fraction: The fraction of the peak that products reach on TPUs and GPUs.
        install: Whether to install the TPU compiler, 600 MB, if it is missing.
        optimize: Whether the TPU compiler optimizes as for a run. If not, it is done much sooner; operations and
            all-reduces are the same, bytes and memory differ.
        progress: Called with a sentence before each part of the work.

    Returns:
        A plan for each place.

    Raises:
        GanlabError: The experiment is invalid, or the TPU compiler is needed and not installed.
    """
    if not 0 < fraction <= 1:
        raise ConfigError(f"The fraction of the peak {fraction} must be above 0 and at most 1.")
    tpus = [one.name for one in where if one.chip.kind == "tpu"]
    if tpus and not install and not tpu.environment.installed():
        raise MissingDependencyError(
            f"{tpus[0]} needs the TPU compiler ({', '.join(tpu.environment.PINS)}; {tpu.environment.SIZE}), which is "
            "not installed. Install it once with --install, or name GPUs or cpu alone."
        )
    _read(source)
    if tpus:
        progress("Asking the TPU compiler for the slices.")
        with contextlib.suppress(tpu.environment.UnavailableError):  # the plans then say why
            tpu.check_topologies(tpus)
    try:
        counts = sorted({one.replicas for one in where if one.chip.kind != "cpu"})
        if counts:
            progress("Tracing the step.")
        counted = call("ganlab_plan.tracing:counted", source, {"replicas": counts}, cpus=1) if counts else []
        facts, plans = dict(zip(counts, counted, strict=True)), []
        for number, one in enumerate(where, start=1):
            progress(f"Planning for {one.name} ({number} of {len(where)}).")
            plans.append(_planned(source, one, facts.get(one.replicas, {}), fraction, install, optimize))
        return plans
    except ProcessError as error:
        raise ConfigError(str(error)) from error


def _read(source: Source) -> None:
    """Finds mistakes in the experiment before any process starts."""
    use_plugins(source.no_plugin, Path(source.plugin_file) if source.plugin_file else None, source.gin_files[0])
    read_experiment(source.gin_files, source.params)


def _planned(
    source: Source, where: Place, facts: dict[str, Any], fraction: float, install: bool, optimize: bool
) -> Plan:
    if where.chip.kind == "cpu":
        return _on_this_machine(source, where)
    if facts["batch_size"] != facts["asked_batch_size"]:
        facts = {**facts, "notes": [*facts["notes"], _other_batch(facts)]}
    if where.chip.kind == "tpu":
        return _on_tpu(source, where, facts, fraction, install, optimize)
    cost = _cost(facts)
    notes = [*facts["notes"], "Counted in the traced step, as if XLA fused all elementwise operations; not compiled."]
    return _judged(source, where, facts, cost, fraction, notes)


def _other_batch(facts: dict[str, Any]) -> str:
    wanted, planned, replicas = facts["asked_batch_size"], facts["batch_size"], facts["replicas"]
    parts = "" if facts["microbatches"] == 1 else f" in {facts['microbatches']} microbatches"
    return f"experiment.batch_size = {wanted} does not divide over {replicas} replicas{parts}: {planned} was planned."


def _on_tpu(
    source: Source, where: Place, facts: dict[str, Any], fraction: float, install: bool, optimize: bool
) -> Plan:
    row = tpu.check(source, topology=where.name, install=install, optimize=optimize)
    memory = row.data.get("memory", {}).get("total")
    if "flops" not in row.data:
        if memory is None:
            return Plan(
                where.name, where.replicas, facts["batch_size"], None, where.memory, None, None, (), (row.detail,)
            )
        traced = _cost({**facts, "memory": memory})
        note = "It did not compile, for want of memory: operations and bytes are those of the traced step."
        notes = [note] if optimize else [note, _UNOPTIMIZED]
        return _judged(source, where, facts, traced, fraction, notes, full=True)
    loops = facts["flops"] / facts["flops_once"]
    reduced = row.data["compiled_all_reduces"]
    cost = Cost(
        row.data["flops"] * loops,
        {"float32": row.data["flops"] * loops},
        row.data["bytes_accessed"] * loops,
        reduced["count"],
        reduced["bytes"],
        memory,
        input_seconds=facts["input_seconds"],
    )
    notes = [*facts["notes"], *([] if optimize else [_UNOPTIMIZED]), *([_LOOPS] if loops > 1 else [])]
    notes += [] if row.status == "passed" else [row.detail]
    return _judged(source, where, facts, cost, fraction, notes)


def _on_this_machine(source: Source, where: Place) -> Plan:
    facts = call("ganlab_plan.here:measured", source, {}, cpus=0)
    cost, capacity, replicas = _cost(facts), facts["capacity"], facts["replicas"]
    notes = [*facts["notes"], f"Measured now, on {facts['cores']} cores at a load of {facts['load']:.1f}."]
    if facts["seconds"] is None:
        change = ["A smaller batch."]
        return Plan(where.name, replicas, facts["batch_size"], cost, capacity, None, "memory capacity", change, notes)
    examples = min(facts["seconds"], facts["input_seconds"] * replicas)
    spent = Time(facts["seconds"] - examples, 0.0, input=examples, serial=True)
    change = advice(spent.limit, cost, spent, where, facts, 1.0)
    return Plan(where.name, replicas, facts["batch_size"], cost, capacity, spent, spent.limit, change, notes)


def _cost(facts: dict[str, Any]) -> Cost:
    names = ("flops", "products", "accessed", "all_reduces", "reduced", "memory", "kernels", "input_seconds")
    return Cost(**{name: facts[name] for name in names})


def _judged(
    source: Source,
    where: Place,
    facts: dict[str, Any],
    cost: Cost,
    fraction: float,
    notes: Sequence[str],
    *,
    full: bool = False,
) -> Plan:
    spent = time(cost, where, precision=facts["precision"], fraction=fraction)
    limit: Limit = "memory capacity" if full or cost.memory > where.memory else spent.limit
    if limit == "memory capacity":
        arguments = {"replicas": where.replicas, "settings": _SMALLER}
        facts = {**facts, "refused": call("ganlab_plan.tracing:refused", source, arguments, cpus=1)}
    change = advice(limit, cost, spent, where, facts, fraction)
    fits = spent if limit != "memory capacity" else None
    return Plan(where.name, where.replicas, facts["batch_size"], cost, where.memory, fits, limit, change, notes)
