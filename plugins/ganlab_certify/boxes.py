"""The slopes that the activations of a chain have within a box of inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ganlab_certify.chains import Chain


def within(chain: Chain, low: np.ndarray, high: np.ndarray) -> Chain:
    """The chain with the slopes that its activations have within a box, by interval arithmetic.

    A rectifier whose input is positive in the whole box has one slope there, and a bound of the narrower chain holds
    for inputs in the box. Behind an activation that is not increasing nothing is narrowed.

    Args:
        chain: The chain.
        low: The least value of each input, `(inputs,)`.
        high: The largest.
    """
    stages, known = [], True
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    for stage in chain.stages:
        if known:
            size = np.abs(stage.matrix)
            middle, half = stage.matrix @ ((low + high) / 2) + stage.bias, size @ ((high - low) / 2)
            # Above the rounding of these sums.
            half = half + 1e-12 * (size @ np.maximum(np.abs(low), np.abs(high)) + np.abs(stage.bias))
            low, high = middle - half, middle + half
            if stage.kink is not None:
                one = np.where(low > 0, 1.0, np.where(high < 0, stage.kink, np.nan))
                lower, upper = (np.where(np.isnan(one), slopes, one) for slopes in (stage.lower, stage.upper))
                stage = replace(stage, lower=lower, upper=upper)
            known = stage.group > 1 or stage.apply is not None
            if stage.group > 1:
                low, high = (np.sort(x.reshape(-1, stage.group), axis=1).ravel() for x in (low, high))
            elif stage.apply is not None:
                low, high = stage.apply(low), stage.apply(high)
        stages.append(stage)
    return replace(chain, stages=tuple(stages))
