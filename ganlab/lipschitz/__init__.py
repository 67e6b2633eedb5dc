"""Operator norms and certificates: how far a critic can stretch a distance, estimated and proved.

`operators` returns the linear map that each kernel of a critic performs. `spectral_norm` estimates its norm from below,
differentiably, anywhere; `norm_bound` bounds it from above, on the host. `certificate` multiplies such bounds into one
for the whole critic.
"""

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

__all__ = [
    "Certificate",
    "Convolution",
    "DepthwiseConvolution",
    "Operator",
    "ReshapedMatrix",
    "TransposedConvolution",
    "certificate",
    "norm_bound",
    "operators",
    "spectral_norm",
]
