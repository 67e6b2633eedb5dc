"""First-party constraints, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab
from ganlab_constraints.banach_penalty import BanachPenalty
from ganlab_constraints.bjorck import Bjorck
from ganlab_constraints.consistency import Consistency
from ganlab_constraints.dragan import DRAGAN
from ganlab_constraints.gradient_normalization import GradientNormalization
from ganlab_constraints.gradient_penalty import GradientPenalty
from ganlab_constraints.l2_regularization import L2Regularization
from ganlab_constraints.layer_norm_clipping import LayerNormClipping
from ganlab_constraints.lipschitz_penalty import LipschitzPenalty
from ganlab_constraints.max_gradient_penalty import MaxGradientPenalty
from ganlab_constraints.orthogonal_regularization import OrthogonalRegularization
from ganlab_constraints.parseval import Parseval
from ganlab_constraints.r1 import R1
from ganlab_constraints.r2 import R2
from ganlab_constraints.spectral_norm import SpectralNorm
from ganlab_constraints.spectral_projection import SpectralProjection
from ganlab_constraints.spectral_regularization import SpectralRegularization
from ganlab_constraints.weight_clipping import WeightClipping
from ganlab_constraints.weight_normalization import WeightNormalization
from ganlab_constraints.wgan_div import WGANDiv
from ganlab_constraints.zero_centered_penalty import ZeroCenteredPenalty


@ganlab.hookimpl
def ganlab_constraints() -> dict[str, type[ganlab.Constraint]]:
    """The constraints of this package."""
    return {
        "weight_clipping": WeightClipping,
        "gradient_penalty": GradientPenalty,
        "lipschitz_penalty": LipschitzPenalty,
        "dragan": DRAGAN,
        "r1": R1,
        "r2": R2,
        "zero_centered_penalty": ZeroCenteredPenalty,
        "max_gradient_penalty": MaxGradientPenalty,
        "wgan_div": WGANDiv,
        "consistency": Consistency,
        "banach_penalty": BanachPenalty,
        "gradient_normalization": GradientNormalization,
        "spectral_norm": SpectralNorm,
        "weight_normalization": WeightNormalization,
        "bjorck": Bjorck,
        "spectral_projection": SpectralProjection,
        "parseval": Parseval,
        "layer_norm_clipping": LayerNormClipping,
        "spectral_regularization": SpectralRegularization,
        "orthogonal_regularization": OrthogonalRegularization,
        "l2_regularization": L2Regularization,
    }
