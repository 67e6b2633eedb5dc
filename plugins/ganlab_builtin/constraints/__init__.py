"""First-party constraints, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.constraints.alp import ALP
from ganlab_builtin.constraints.aol import AOL
from ganlab_builtin.constraints.augmentation_consistency import AugmentationConsistency
from ganlab_builtin.constraints.banach_penalty import BanachPenalty
from ganlab_builtin.constraints.bidirectional_spectral_norm import BidirectionalSpectralNorm
from ganlab_builtin.constraints.bjorck import Bjorck
from ganlab_builtin.constraints.bound_penalty import BoundPenalty
from ganlab_builtin.constraints.cayley import Cayley
from ganlab_builtin.constraints.closed_loop_control import ClosedLoopControl
from ganlab_builtin.constraints.consistency import Consistency
from ganlab_builtin.constraints.dragan import DRAGAN
from ganlab_builtin.constraints.finite_difference_penalty import FiniteDifferencePenalty
from ganlab_builtin.constraints.fisher import Fisher
from ganlab_builtin.constraints.gradient_normalization import GradientNormalization
from ganlab_builtin.constraints.gradient_penalty import GradientPenalty
from ganlab_builtin.constraints.gram_norm import GramNorm
from ganlab_builtin.constraints.gran import GraN
from ganlab_builtin.constraints.householder import Householder
from ganlab_builtin.constraints.infinity_norm import InfinityNorm
from ganlab_builtin.constraints.l2_regularization import L2Regularization
from ganlab_builtin.constraints.latent_consistency import LatentConsistency
from ganlab_builtin.constraints.latent_step import LatentStep
from ganlab_builtin.constraints.layer_norm_clipping import LayerNormClipping
from ganlab_builtin.constraints.lecam import LeCam
from ganlab_builtin.constraints.lipschitz_penalty import LipschitzPenalty
from ganlab_builtin.constraints.max_gradient_penalty import MaxGradientPenalty
from ganlab_builtin.constraints.mode_seeking import ModeSeeking
from ganlab_builtin.constraints.orthogonal_convolution import OrthogonalConvolution
from ganlab_builtin.constraints.orthogonal_regularization import OrthogonalRegularization
from ganlab_builtin.constraints.parseval import Parseval
from ganlab_builtin.constraints.path_length import PathLength
from ganlab_builtin.constraints.polar_projection import PolarProjection
from ganlab_builtin.constraints.product_normalization import ProductNormalization
from ganlab_builtin.constraints.r1 import R1
from ganlab_builtin.constraints.r2 import R2
from ganlab_builtin.constraints.score_drift import ScoreDrift
from ganlab_builtin.constraints.sobolev import Sobolev
from ganlab_builtin.constraints.spectral_norm import SpectralNorm
from ganlab_builtin.constraints.spectral_projection import SpectralProjection
from ganlab_builtin.constraints.spectral_regularization import SpectralRegularization
from ganlab_builtin.constraints.spectral_soft_cap import SpectralSoftCap
from ganlab_builtin.constraints.stable_rank import StableRank
from ganlab_builtin.constraints.transport_cost import TransportCost
from ganlab_builtin.constraints.weight_clipping import WeightClipping
from ganlab_builtin.constraints.weight_normalization import WeightNormalization
from ganlab_builtin.constraints.wgan_div import WGANDiv
from ganlab_builtin.constraints.zero_centered_penalty import ZeroCenteredPenalty

GANLAB_KNOWN_AS = {
    "constraints.gradient_penalty": ["wgan_gp", "gp"],
    "constraints.lipschitz_penalty": ["wgan_lp", "lp"],
    "constraints.spectral_norm": ["spectral_normalization", "sn", "sngan"],
    "constraints.weight_clipping": ["clipping", "clip", "wgan_wc"],
    "constraints.zero_centered_penalty": ["zero_gp"],
    "constraints.transport_cost": ["adversarial_flow", "afm", "optimal_transport"],
    "constraints.consistency": ["ct_gan", "wgan_ct"],
    "constraints.augmentation_consistency": ["cr", "crgan", "bcr"],
}


@ganlab.hookimpl
def ganlab_constraints() -> dict[str, type[ganlab.Constraint]]:
    """The constraints of this package."""
    return {
        "weight_clipping": WeightClipping,
        "gradient_penalty": GradientPenalty,
        "lipschitz_penalty": LipschitzPenalty,
        "alp": ALP,
        "finite_difference_penalty": FiniteDifferencePenalty,
        "dragan": DRAGAN,
        "r1": R1,
        "r2": R2,
        "zero_centered_penalty": ZeroCenteredPenalty,
        "max_gradient_penalty": MaxGradientPenalty,
        "wgan_div": WGANDiv,
        "consistency": Consistency,
        "banach_penalty": BanachPenalty,
        "gradient_normalization": GradientNormalization,
        "gran": GraN,
        "spectral_norm": SpectralNorm,
        "bidirectional_spectral_norm": BidirectionalSpectralNorm,
        "stable_rank": StableRank,
        "gram_norm": GramNorm,
        "weight_normalization": WeightNormalization,
        "product_normalization": ProductNormalization,
        "bjorck": Bjorck,
        "cayley": Cayley,
        "householder": Householder,
        "aol": AOL,
        "spectral_projection": SpectralProjection,
        "spectral_soft_cap": SpectralSoftCap,
        "parseval": Parseval,
        "infinity_norm": InfinityNorm,
        "polar_projection": PolarProjection,
        "layer_norm_clipping": LayerNormClipping,
        "spectral_regularization": SpectralRegularization,
        "orthogonal_regularization": OrthogonalRegularization,
        "orthogonal_convolution": OrthogonalConvolution,
        "bound_penalty": BoundPenalty,
        "l2_regularization": L2Regularization,
        "augmentation_consistency": AugmentationConsistency,
        "closed_loop_control": ClosedLoopControl,
        "fisher": Fisher,
        "latent_consistency": LatentConsistency,
        "latent_step": LatentStep,
        "lecam": LeCam,
        "mode_seeking": ModeSeeking,
        "path_length": PathLength,
        "score_drift": ScoreDrift,
        "sobolev": Sobolev,
        "transport_cost": TransportCost,
    }
