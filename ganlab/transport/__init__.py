"""Distances of optimal transport between samples, and intervals that hold the distance of what they were drawn from.

The truth that a critic's estimate is compared with. Uses numpy and scipy in float64; no TensorFlow.
"""

from ganlab.transport.exact import exact_w1
from ganlab.transport.interval import Lipschitz, Samples, W1Interval, w1_interval
from ganlab.transport.sliced import sliced_wasserstein

__all__ = ["Lipschitz", "Samples", "W1Interval", "exact_w1", "sliced_wasserstein", "w1_interval"]
