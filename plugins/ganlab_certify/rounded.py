"""How far scores are from those of float32 where factors of products are rounded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ganlab.lazy import keras
from ganlab_certify.chains import Chain, UnsuitableError
from ganlab_certify.keras_networks import network_of

# By precision, the unit roundoffs of factors and of results; sums are in float32, cut off or rounded.
_UNITS = {"tensorfloat32": (2.0**-11, 2.0**-23), "mixed_bfloat16": (2.0**-8, 2.0**-8)}
_SUMS = 2.0**-23


@dataclass(frozen=True)
class Rounding:
    """How rounding in the precision of training loosens a certificate L, which holds for the critic in float32.

    For points x and y of norm up to `radius`, rounded scores have `|f(x) - f(y)| <= L |x - y| + 2 error`. So slopes
    between points at least d apart are at most `L + 2 error / d`. Nothing bounds those between nearer points.

    Attributes:
        precision: `experiment.precision`.
        radius: The largest norm of the examples and samples that were looked at.
        error: How far a rounded score is at most from that of float32; None if it is not derived for this critic.
        note: The reason for None.
    """

    precision: str
    radius: float
    error: float | None
    note: str = ""

    def factor(self, bound: float, apart: float) -> float | None:
        """By how much the slopes between points this far apart may exceed a bound of the critic's constant."""
        return None if self.error is None else 1.0 + 2.0 * self.error / (bound * apart)


def rounding_of(critic: keras.Model, weights: Mapping[str, Any], precision: str, radius: float) -> Rounding:
    """The rounding of a critic of dense layers and convolutions in a row, with piecewise linear activations between."""
    layers = keras.layers
    from ganlab import layers as ours  # here, because it imports Keras

    plain = (layers.InputLayer, layers.Flatten, layers.Reshape, layers.ReLU, layers.LeakyReLU, layers.Activation)
    linear = (layers.Dense, layers.Conv1D, layers.Conv2D)
    known = (*plain, *linear, ours.GroupSort, ours.FullSort)
    other = next((each for each in getattr(critic, "layers", []) if type(each) not in known), None)
    try:
        if other is not None:
            raise UnsuitableError(f"layer {other.name!r} ({type(other).__name__}) is not one that it is derived for")
        (chain,) = network_of(critic, weights).chains()
        stages = chain.stages
        if len(stages) + 1 != sum(isinstance(each, linear) for each in critic.layers):
            raise UnsuitableError("two layers have no activation between them")
        if any(stage.kink is None and stage.group == 1 for stage in stages):
            raise UnsuitableError("an activation is not piecewise linear")
    except UnsuitableError as reason:
        return Rounding(precision, radius, None, f"The error of rounded scores is not derived: {reason}.")
    return Rounding(precision, radius, score_error(chain, precision, radius))


def score_error(chain: Chain, precision: str, radius: float) -> float:
    """An upper bound of `|rounded score - score|` for points of norm up to `radius`, layer by layer.

    A layer takes h of norm at most s with an error of at most e. With the unit u of factors, sums of n products in
    float32 and N the norm of W's absolute values, its product is wrong by at most `|W| e + ((1 + u)^2 (1 + g) - 1) N
    (s + e)`, `g = n v / (1 - n v)` (Higham, "Accuracy and stability of numerical algorithms", 2002, eq. 3.5 and lemma
    3.1). Product, bias, their sum and the activation are each rounded as results. Underflow is not
    counted, and convolutions are sums of products, not Winograd's.
    """
    unit, result = _UNITS[precision]
    size, error = radius, 0.0
    last = (chain.last[None], np.array([chain.bias]), 1.0)
    stages = [(s.matrix, s.bias, float(np.abs([s.lower, s.upper]).max())) for s in chain.stages]
    for matrix, bias, slope in [*stages, last]:
        absolute = np.abs(matrix)
        norm, offset = float(np.linalg.norm(matrix, 2)), float(np.linalg.norm(bias))
        most = math.sqrt(absolute.sum(axis=0).max() * absolute.sum(axis=1).max())  # at least N
        summed = int((matrix != 0).sum(axis=1).max()) * _SUMS
        wrong = (1.0 + unit) ** 2 * (1.0 + summed / (1.0 - summed)) - 1.0
        error = norm * error + wrong * most * (size + error)
        size *= norm
        error += result * (size + error) + result * offset
        size += offset
        error += result * (size + error)
        size, error = slope * size, slope * error
        error += ((1.0 + result) ** 2 - 1.0) * (size + error)  # a slope is rounded, too
    return error
