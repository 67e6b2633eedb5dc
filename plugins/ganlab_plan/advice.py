"""Changes to an experiment that its limit suggests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ganlab_plan.places import Place
from ganlab_plan.times import Cost, Limit, Time, time


def advice(limit: Limit, cost: Cost, spent: Time, where: Place, facts: Mapping[str, Any], fraction: float) -> list[str]:
    """Sentences on what would help, with the projected time where the model gives one.

    Args:
        limit: What limits the iteration.
        cost: The cost on one replica.
        spent: The projected time.
        where: The place.
        facts: The experiment's settings, as `tracing.facts` returns them, and the settings that it has `refused`.
        fraction: The fraction of the peak that products reach.
    """
    local = facts["batch_size"] // facts["replicas"]
    float32 = facts["precision"] == "float32"
    advised = []
    if limit == "memory capacity":
        return _smaller(cost, where, facts, local)
    if limit == "compute":
        if float32 and where.chip.kind != "cpu":
            advised.append(f"experiment.precision = 'mixed_bfloat16' ({_ms(_in_bfloat16(cost, where, fraction))}).")
        elif float32:
            advised.append("experiment.precision = 'mixed_bfloat16', where the CPU has instructions for it.")
        if facts["critic_steps"] > 1:
            advised.append(f"Fewer critic updates than experiment.critic_steps = {facts['critic_steps']}.")
        if where.chip.kind != "cpu":
            advised.append("More replicas: arithmetic divides over them.")
    elif limit == "memory bandwidth":
        advised.append(
            f"A larger batch for each replica than {local}: weights are read and written whatever the batch."
        )
        if float32:
            advised.append("experiment.precision = 'mixed_bfloat16': activations take half of the bytes.")
    elif limit == "all-reduce":
        part = "messages, not bytes" if spent.latency > spent.exchange else "bytes of gradients"
        advised.append(
            f"All-reduces take the same time whatever the batch (mostly {part}): a larger batch, or fewer replicas."
        )
    elif limit == "kernel launches":
        advised.append(
            f"The network is small for this chip: a batch above {local} costs little until arithmetic takes as long."
        )
    elif limit == "input":
        advised.append("Examples that are made faster: decoded once into an array, or more cores for the host.")
    return advised


def _in_bfloat16(cost: Cost, where: Place, fraction: float) -> float:
    products = {"bfloat16": sum(cost.products.values())}
    return time(replace(cost, products=products), where, precision="mixed_bfloat16", fraction=fraction).total


def _smaller(cost: Cost, where: Place, facts: Mapping[str, Any], local: int) -> list[str]:
    fixed = facts["variables"]
    if fixed >= where.memory:
        return ["A smaller network, or a chip with more memory: the variables alone do not fit."]
    parts = facts["microbatches"]
    while parts <= local and (
        local % parts or fixed + (cost.memory - fixed) * facts["microbatches"] / parts > where.memory
    ):
        parts += 1
    advised = []
    if parts <= local and "microbatches" not in facts["refused"]:
        advised.append(f"experiment.microbatches = {parts}, by this estimate.")
    if not facts["rematerialize"] and "rematerialize" not in facts["refused"]:
        advised.append("experiment.rematerialize = True: activations are computed again instead of being kept.")
    return [*advised, f"A smaller batch for each replica than {local}, or more replicas."]


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms by this model"
