"""Explains a gradient that differs on several replicas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ganlab_verify.cases import Case, Finding, departure
from ganlab_verify.comparing import Measure, grouped
from ganlab_verify.trace import Trace, norm

Gradient = Sequence[np.ndarray]

# How near to the replica count a ratio must be to count as the cause, and the part of the gradient that it may leave
# unexplained. A mistake of scale leaves only rounding; a dominant part of the loss leaves a few hundredths.
_NEAR = _LEFT = 1e-3


def explain_gradient(case: Case) -> Finding | None:
    """Explains a gradient that departs first; None where something else does."""
    first = case.first
    if first is None or first.kind not in ("gradient", "applied"):
        return None
    update = _update(case, first)
    applied = _measure(case, "applied", first)
    # A wrong application in one update also makes the gradient of the next one depart, which is not a separate mistake.
    if applied is not None and (first.kind == "applied" or _update(case, applied) < update):
        first, update = applied, _update(case, applied)
    names = grouped(case.reference.iterations[first.iteration - 1].gradients)[first.group]
    a, b = (_at(trace, first, names, update) for trace in (case.reference, case.other))
    where = names[int(np.argmax([norm([y - x]) for x, y in zip(a, b, strict=True)]))]
    updates = len(case.reference.iterations[0].gradients[names[0]])
    when = f", update {update + 1} of {updates}" if updates > 1 else ""
    if first.iteration > 1 or update > 0:
        cause, means = _later(case, first)
    elif first.kind == "applied":
        cause, means = _applied(a, b, case.other.replicas)
    else:
        cause, means = _handed_over(case, names, a, b)
    words = f"{departure(first, when)}, most in {where}. {means}"
    return Finding(cause, where, first.iteration, first.distance, words)


def _later(case: Case, first: Measure) -> tuple[str, str]:
    at_once = [m.group for m in case.measures if m.departs and m.iteration == first.iteration and m.kind == "variable"]
    also = f": {', '.join(at_once)}" if at_once else ""
    return (
        "after the first update",
        "It was right at first, so an update left other values than on one device: an optimizer's own variables, a "
        f"projection, a state. The groups that depart in the same iteration show where to look{also}.",
    )


def _applied(a: Gradient, b: Gradient, count: int) -> tuple[str, str]:
    means = "Replicas hand the right gradients to the optimizer, and it applies others"
    if _is(1 / count, a, b):
        return (
            "mean instead of sum",
            f"{means}: {_part(count)} of each, a mean over replicas instead of the sum (losses are divided by the "
            "global batch already).",
        )
    if _is(count, a, b):
        return "reduced twice", f"{means}: {count} times as much, a sum over replicas taken twice."
    return "gradients reduced wrongly", f"{means}."


def _handed_over(case: Case, names: Sequence[str], a: Gradient, b: Gradient) -> tuple[str, str]:
    count = case.other.replicas
    if count > 1 and set(names) <= case.other.iterations[0].repeated:
        return (
            "reduced twice",
            f"It is {_fit(a, b)[0]:.3g} times what it should be, and every replica hands over the same: gradients are "
            "reduced over replicas before the optimizer, which sums them again. Let only the optimizer reduce them.",
        )
    if _is(count, a, b):
        return (
            "loss averaged over the replica",
            f"It is {count} times what it should be, the number of replicas: each averages the loss over its own "
            "examples, and the optimizer sums. Divide the sum by the global batch size.",
        )
    if _is(1 / count, a, b):
        return (
            "mean instead of sum",
            f"It is {_part(count)} of what it should be: divided by the number of replicas once too often, or averaged "
            "over replicas instead of summed.",
        )
    for part, without in case.without().items():
        if not set(names) <= set(without):
            continue
        rest = [np.asarray(without[name][0], np.float64) for name in names]
        share, others = [x - r for x, r in zip(a, rest, strict=True)], [y - r for y, r in zip(b, rest, strict=True)]
        for ratio, times in ((count, f"{count} times"), (1 / count, f"{_part(count)} of")):
            if _is(ratio, share, others):
                return (
                    f"{part} scaled by replicas",
                    f"The {part} alone counts {times} what it should, the rest is right: it is averaged over each "
                    "replica's own examples, or scaled by the number of replicas. It must be one value for each "
                    "example, which the core divides by the global batch size.",
                )
    factor, left = _fit(a, b)
    return (
        "gradient of the replica's own",
        f"It is not a multiple by the number of replicas (best {factor:.3g}, which leaves {left:.1e}): the loss or a "
        "penalty takes something from the replica's own part of the batch, for example a mean, a norm or a maximum.",
    )


def _measure(case: Case, kind: str, first: Measure) -> Measure | None:
    """The departure of this kind beside another of the same group and iteration."""
    same = (m for m in case.measures if (m.kind, m.group, m.iteration) == (kind, first.group, first.iteration))
    return next((m for m in same if m.departs), None)


def _update(case: Case, measure: Measure) -> int:
    """The first update of the iteration in which a gradient departs."""
    names = grouped(case.reference.iterations[measure.iteration - 1].gradients)[measure.group]
    for update in range(len(case.reference.iterations[0].gradients[names[0]])):
        a, b = (_at(trace, measure, names, update) for trace in (case.reference, case.other))
        if norm(y - x for x, y in zip(a, b, strict=True)) > (measure.limit or 0.0) * norm(a):
            return update
    return 0


def _at(trace: Trace, measure: Measure, names: Sequence[str], update: int) -> Gradient:
    done = trace.iterations[measure.iteration - 1]
    every = done.applied if measure.kind == "applied" else done.gradients
    return [np.asarray(every[name][update], np.float64) for name in names]


def _fit(a: Gradient, b: Gradient) -> tuple[float, float]:
    """The factor by which `a` comes nearest to `b`, and the share of `b` that it leaves."""
    inner = sum(float(np.sum(x * y)) for x, y in zip(a, b, strict=True))
    factor = inner / (norm(a) ** 2 or 1.0)
    return factor, norm(y - factor * x for x, y in zip(a, b, strict=True)) / (norm(b) or 1.0)


def _is(ratio: float, a: Gradient, b: Gradient) -> bool:
    factor, left = _fit(a, b)
    return ratio != 1 and abs(factor / ratio - 1) < _NEAR and left < _LEFT


def _part(count: int) -> str:
    return "half" if count == 2 else f"1/{count}"
