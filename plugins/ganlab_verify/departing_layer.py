"""Makes the row of the check `gradients`: how narrowly the gradients passed, or which layer is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganlab import CriticLayer
from ganlab.commands import listed
from ganlab_verify.derivatives import Truth
from ganlab_verify.differences import Slope, worst
from ganlab_verify.report import Row
from ganlab_verify.single_layer import Wrong

NAME = "gradients"

_REMEDY = (
    "Possible causes: a tf.stop_gradient, a wrong tf.custom_gradient, or an operation that TensorFlow differentiates "
    "wrongly (tf.nn.moments, twice) or not at all (bilinear resizing, twice). ganlab.layers has normalizations and "
    "resizing that are right. To hold a value fixed on purpose, use ganlab.functional.fixed or a constraint's state."
)
_LEAK = (
    "It is right if the constraints' states move with the weights: the gradient goes through what advance returned, "
    "which must be a constant."
)


def passed(truths: Sequence[Truth], notes: Sequence[str] = ()) -> Row:
    """The row of gradients that are right; `not run` if nothing could be compared.

    Args:
        truths: The comparisons of critic and generator.
        notes: Further sentences.
    """
    constant = [truth for truth in truths if truth.constant]
    notes = [*notes, *("The critic's loss is constant, and its gradient zero." for _ in constant)]
    # A network without weights has no gradient.
    truths = [truth for truth in truths if truth.slopes and not truth.constant]
    compared = [(truth, slope) for truth in truths if (slope := worst(truth.slopes)) is not None]
    vague = [slope.where for truth in truths for slope in truth.slopes if slope.vague and slope.where]
    data: dict[str, Any] = {
        "notes": list(notes),
        "worst": {truth.role: {"slopes": [slope.error, slope.limit]} for truth, slope in compared},
        "vague": vague,
        "single": sorted({name for truth in truths for name in truth.kept}),
    }
    if len(compared) < len(truths):
        missing = " and ".join(truth.role for truth in truths if worst(truth.slopes) is None)
        detail = f"The gradient of the {missing} is too small beside the loss to compare with a difference."
        return Row(NAME, "not run", None, None, detail, data)
    nearest, slope = max(compared, key=lambda pair: pair[1].error / pair[1].limit)
    count = sum(bool(s.where) and not s.vague for truth in truths for s in truth.slopes)
    whose = " and ".join(truth.role for truth in truths)
    detail = (
        f"The gradients of {whose} are those of their losses, by differences in float64 along random "
        f"directions of all weights and of each of {count} variables. Nearest to a limit: {_along(nearest, slope)}."
    )
    if vague:
        detail += f" Too small to compare: the gradient of {listed(vague, 1)}."
    if data["single"]:
        detail += f" Without a float64 kernel, which limits the precision: {', '.join(data['single'])}."
    return Row(NAME, "passed", slope.error, slope.limit, " ".join([detail, *notes]), data)


def failed(truth: Truth, wrong: Sequence[Wrong]) -> Row:
    """The row of a gradient that is wrong.

    Args:
        truth: The network's comparison.
        wrong: The layers whose derivatives are wrong by themselves.
    """
    departing = {slope.where: slope for slope in truth.slopes if slope.departs}
    layers, right = _origin(truth, departing)
    own = [name for name in (layers[0].weights if layers else ()) if name in departing]
    slope = max((departing[name] for name in own or departing), key=lambda slope: slope.error)
    if wrong:
        cause, means = _of_layers(wrong)
    elif truth.leaks:
        cause, means = "state inside the gradient", _LEAK
    else:
        cause = "gradient unlike its loss"
        means = f"Every layer is right by itself. {_where(truth, layers, right)} {_REMEDY}"
    words = (
        f"The {truth.role}'s gradient is not its loss's: {_along(truth, slope)}; by the gradient the slope is "
        f"{slope.claimed:.6g}, by the loss {slope.found:.6g}. {means}"
    )
    data = {
        "cause": cause,
        "role": truth.role,
        "where": wrong[0].layer.name if wrong else slope.where or truth.role,
        "size": slope.error,
        "departures": [name for name in departing if name],
        "layers": [one.layer.name for one in wrong],
        "claimed": slope.claimed,
        "found": slope.found,
    }
    return Row(NAME, "failed", slope.error, slope.limit, words, data)


def _of_layers(wrong: Sequence[Wrong]) -> tuple[str, str]:
    first = wrong[0]
    kind = f"The layer {first.layer.name!r} ({type(first.layer).__name__})"
    more = f" So are {listed([repr(one.layer.name) for one in wrong[1:]], 1)}." if wrong[1:] else ""
    if first.times == 1:
        return "wrong derivative", f"{kind} has a derivative that is not its own.{more} {_REMEDY}"
    return (
        "wrong second derivative",
        f"{kind} has a right first derivative and a wrong second one, which a penalty on slopes uses.{more} {_REMEDY}",
    )


def _origin(truth: Truth, departing: dict[str, Slope]) -> tuple[Sequence[CriticLayer], bool]:
    """The layers to look at, in the order of their calls, and whether the last of them has a right gradient.

    A gradient goes from the loss back to the input, so all gradients before a mistake are wrong. Of the layers with
    weights, the last that departs is nearest to the mistake, and the next that is right lies after it.
    """
    wrong = [i for i, layer in enumerate(truth.layers) if any(name in departing for name in layer.weights)]
    if not wrong:
        return (), False
    clear = {slope.where for slope in truth.slopes if not slope.vague and not slope.departs}
    after = [i for i in range(wrong[-1] + 1, len(truth.layers)) if any(n in clear for n in truth.layers[i].weights)]
    end = after[0] if after else len(truth.layers) - 1
    return truth.layers[wrong[-1] : end + 1], bool(after)


def _where(truth: Truth, layers: Sequence[CriticLayer], right: bool) -> str:
    if not layers:
        return ""
    first, *others = map(_named, layers)
    departs = f"In the order of their calls {first} is the last layer whose weights' gradient departs"
    beyond = "the constraints and the loss" if truth.role == "critic" else "the critic, its constraints and the loss"
    if right:
        *between, end = others
        among = f", at those between ({', '.join(between)})" if between else ""
        return f"{departs}, and {end} the next whose gradient is right: look at the first{among} and at the second."
    after = f"look at it, at those after it ({', '.join(others)})" if others else "look at it"
    return f"{departs}, and none after it is known to be right: {after} and at {beyond}."


def _named(layer: CriticLayer) -> str:
    kind = f"{layer.kind}, {layer.activation}" if layer.activation else layer.kind
    return f"{layer.name!r} ({kind})"


def _along(truth: Truth, slope: Slope) -> str:
    where = f"along {slope.where}" if slope.where else f"along a direction of all the {truth.role}'s weights"
    return f"{where} it is {slope.error:.1e} off (limit {slope.limit:.1e})"
