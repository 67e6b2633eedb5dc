"""Operator norms and certificates: how far a critic can stretch a distance, estimated and proved.

`operators` returns the linear map that each kernel of a critic performs. `spectral_norm` estimates its norm from below,
differentiably, anywhere; `norm_bound` bounds it from above, on the host. `certificate` multiplies such bounds into one
for the whole critic; `ladder` tries tighter ones, and `attacked_constant` looks for steep places, from below.
"""

from ganlab.lipschitz.attacks import attacked_constant
from ganlab.lipschitz.bounds import norm_bound
from ganlab.lipschitz.certificates import Certificate, certificate
from ganlab.lipschitz.iteration import spectral_norm
from ganlab.lipschitz.operators import (
    Convolution,
    DepthwiseConvolution,
    Operator,
    ReshapedMatrix,
    TransposedConvolution,
    operators,
)
from ganlab.lipschitz.rungs import Rung, ladder

__all__ = [
    "Certificate",
    "Convolution",
    "DepthwiseConvolution",
    "Operator",
    "ReshapedMatrix",
    "Rung",
    "TransposedConvolution",
    "attacked_constant",
    "certificate",
    "ladder",
    "norm_bound",
    "operators",
    "spectral_norm",
]
