"""Explains a departure by its pattern: which mistakes under replicas look like this."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ganlab.commands import listed
from ganlab_verify.cases import Case, Finding, departure
from ganlab_verify.comparing import Measure, grouped
from ganlab_verify.gradients import explain_gradient


def explain(case: Case) -> Finding | None:
    """Finds and explains the first departure; None where there is none.

    Causes are tried before their consequences: variables outside the scope, copies that differ, different inputs, a
    different gradient, and then everything else.
    """
    for look in (_outside_the_scope, _copies_apart, _inputs, explain_gradient, _rest):
        finding = look(case)
        if finding is not None:
            return finding
    return None


def _outside_the_scope(case: Case) -> Finding | None:
    lone, first = case.other.lone, case.first
    if not lone:
        return None
    size = first.distance if first is not None else 0.0
    seen = f"{listed(lone, 1)}: one copy for {case.other.replicas} replicas."
    if first is not None and first.kind == "variable":
        seen += f" {departure(first)}, though the gradient was right."
    if all("/optimizer/" in name for name in lone):
        means = (
            "An optimizer outside the strategy's scope: the replicas update the same moments and counters in turn, so "
            "that each applies different ones. Create it within strategy.scope()."
        )
        return Finding("optimizer outside the scope", lone[0], 1, size, f"{seen} {means}")
    means = "They were created outside the strategy's scope, so replicas overwrite each other's. Create them within it."
    return Finding("variables outside the scope", lone[0], 1, size, f"{seen} {means}")


def _copies_apart(case: Case) -> Finding | None:
    for number, iteration in enumerate(case.other.iterations, start=1):
        groups = grouped({name: iteration.variables[name] for name in iteration.apart})
        explanation = _which_copies(case, groups, iteration.applied_apart)
        if explanation is not None:
            cause, names, means = explanation
            size = iteration.apart.get(names[0], iteration.applied_apart.get(names[0], 0.0))
            seen = (
                f"From iteration {number} on replicas hold different copies of {listed(names, 1)}, apart by {size:.1e} "
                "of the norm."
            )
            return Finding(cause, names[0], number, size, f"{seen} {means}")
    return None


def _which_copies(
    case: Case, groups: Mapping[str, list[str]], applied: Mapping[str, float]
) -> tuple[str, list[str], str] | None:
    """Explains copies that differ. Weights come first: they make states and statistics differ, not the reverse."""

    def those(*ends: str) -> list[str]:
        return [name for group, names in groups.items() if group.endswith(ends) for name in names]

    if applied:
        means = "Each replica applied its own gradient: the gradients were not summed over replicas."
        return "gradients not summed", list(applied), means
    weights = those("/weights", "/parameters")
    if weights and case.projecting and all(name.startswith("critic/") for name in weights):
        means = (
            "All applied the same gradient, so a later step differs: the projection of "
            f"{' or '.join(case.projecting)} acted on some replicas only. It must not depend on the replica."
        )
        return "projection on some replicas", weights, means
    if weights:
        means = (
            "All applied the same gradient, so the update differs: the optimizer's own variables are not the same on "
            "each replica, or something assigned the weights on some replicas only."
        )
        return "updates apart", weights, means
    states = those("/state")
    if states:
        means = (
            f"A state of constraint {states[0].split('/')[1]} must be the same on every replica: its advance acted on "
            "some replicas only, or took a statistic of the replica's own examples. Reduce it with replica.mean, .sum "
            "or .max."
        )
        return "state advanced apart", states, means
    buffers = those("/buffers", "/average_buffers")
    if buffers:
        means = (
            "Only moving statistics differ: an unsynchronized BatchNormalization, which normalizes by each replica's "
            "own examples and saves the first replica's statistics. Use synchronized=True, or "
            "ganlab.layers.LayerNormalization."
        )
        return "unsynchronized statistics", buffers, means
    rest = those("")
    return ("copies apart", rest, "They must be the same on every replica.") if rest else None


# By the witness's figure: the name of the mistake and its explanation, where replicas have the same inputs (_SAME), or
# inputs other than one device's (_OTHERS).
_SAME = {
    "noise": (
        "identical noise",
        "The noise is identical on every replica: its seed lacks the example number (or the replica).",
    ),
    "examples": ("identical examples", "Every replica receives the same examples: the input is not sharded."),
    "samples": (
        "identical samples",
        "The generator's samples are identical on every replica, though other noise differs: the seed of its latent "
        "vectors lacks the example number (or the replica).",
    ),
}
_OTHERS = {
    "noise": (
        "noise by replica",
        "The replicas' noise is not the noise of the same examples on one device: its seed contains the replica, but "
        "must contain the example number.",
    ),
    "examples": ("other examples", "The replicas' examples together are not the batch of one device."),
    "samples": (
        "samples by replica",
        "The noise agrees and the generator's samples do not: its latent vectors are not drawn by example number, or "
        "one of its layers draws its own noise or takes statistics of the replica's own examples.",
    ),
}


def _inputs(case: Case) -> Finding | None:
    """Explains departures in the witness's figures: noise, examples and samples."""
    first, other = case.first, case.other
    for tag in (tag for tag in other.tags if tag.startswith(other.witness)):
        values, what = other.metric(tag), tag.removeprefix(other.witness)
        if other.replicas > 1 and np.all(values == values[:, :1]):
            size = next((m.distance for m in case.measures if m.group == tag and m.iteration == 1), 0.0)
            cause, means = _SAME[what]
            apart = f"Its mean is off by {size:.1e} at iteration 1. {means}"
            return Finding(cause, what, 1, size, f"{apart} So {other.replicas} replicas learn what one would.")
    if first is None or first.kind != "metric" or not first.group.startswith(other.witness):
        return None
    what = first.group.removeprefix(other.witness)
    cause, means = _OTHERS[what]
    return Finding(cause, what, first.iteration, first.distance, f"{departure(first)}. {means}")


def _rest(case: Case) -> Finding | None:
    first = case.first
    if first is None:
        return None
    if first.kind == "metric":
        cause, means = "metric reduced wrongly", _metric(case, first)
    elif first.iteration == 0:
        cause = "other initial values"
        means = "Training starts from different values: they depend on the number of replicas."
    elif first.group.endswith("buffers"):
        cause = "moving statistics"
        means = "Only moving statistics depart: they come from one replica's examples, or are averaged wrongly."
    elif first.group.endswith("/state"):
        cause = "state reduced wrongly"
        whose = "The loss's" if first.group.startswith("loss") else "A constraint's"
        means = f"{whose} state departs: its advance reduces over replicas wrongly, for example a sum for a mean."
    else:
        cause = "after the first update"
        means = (
            "The gradients were right, so the update itself was wrong: the optimizer's own variables, a projection or "
            "an average."
        )
    return Finding(cause, first.group, first.iteration, first.distance, f"{departure(first)}. {means}")


def _metric(case: Case, first: Measure) -> str:
    a, b = (trace.reduced(first.group)[first.iteration - 1] for trace in (case.reference, case.other))
    count, means = case.other.replicas, "Gradients and weights agree, so training is right and only the metric is not:"
    ratio = b / a if a else np.inf
    if count > 1 and any(abs(ratio * factor - 1) < 1e-3 for factor in (count, 1 / count)):
        return f"{means} it is off by a factor of {count}, a sum over replicas for a mean or the reverse."
    return f"{means} its reduction over replicas is wrong ({b:.6g} instead of {a:.6g})."
