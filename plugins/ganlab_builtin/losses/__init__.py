"""First-party losses, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.losses.batches import Sinkhorn, Sliced
from ganlab_builtin.losses.classes import AuxiliaryClassifier, MultiHinge
from ganlab_builtin.losses.contrast import D2DCrossEntropy
from ganlab_builtin.losses.embeddings import MMD, Cramer
from ganlab_builtin.losses.features import FeatureMatching, MaxSliced
from ganlab_builtin.losses.foresight import Consensus, Unrolled
from ganlab_builtin.losses.games import Hinge, LeastSquares, NonSaturating, Patient, Wasserstein
from ganlab_builtin.losses.inference import ALI
from ganlab_builtin.losses.information import Info
from ganlab_builtin.losses.relative import Relativistic, RelativisticAverage
from ganlab_builtin.losses.robustness import HKR, KR
from ganlab_builtin.losses.scaling import NormalizedGradient
from ganlab_builtin.losses.selection import TopK
from ganlab_builtin.losses.self_supervised import SelfSupervised
from ganlab_builtin.losses.translation import Cycle, NeuralOT, Pix2Pix
from ganlab_builtin.losses.transport import CTransform

GANLAB_KNOWN_AS = {
    "losses.hinge": ["hinge_loss"],
    "losses.wasserstein": ["wgan", "wgan_gp", "w1"],
    "losses.non_saturating": ["gan", "vanilla", "bce", "ns", "nsgan", "minimax"],
    "losses.least_squares": ["lsgan", "mse"],
    "losses.relativistic": ["rsgan", "rpgan"],
    "losses.relativistic_average": ["ragan", "rasgan"],
}


@ganlab.hookimpl
def ganlab_losses() -> dict[str, type]:
    """The losses of this package."""
    return {
        "ali": ALI,
        "auxiliary_classifier": AuxiliaryClassifier,
        "c_transform": CTransform,
        "consensus": Consensus,
        "cramer": Cramer,
        "cycle": Cycle,
        "d2d_ce": D2DCrossEntropy,
        "feature_matching": FeatureMatching,
        "hinge": Hinge,
        "hkr": HKR,
        "info": Info,
        "kr": KR,
        "least_squares": LeastSquares,
        "max_sliced": MaxSliced,
        "mmd": MMD,
        "multi_hinge": MultiHinge,
        "neural_ot": NeuralOT,
        "non_saturating": NonSaturating,
        "normalized_gradient": NormalizedGradient,
        "patient": Patient,
        "pix2pix": Pix2Pix,
        "relativistic": Relativistic,
        "relativistic_average": RelativisticAverage,
        "self_supervised": SelfSupervised,
        "sinkhorn": Sinkhorn,
        "sliced": Sliced,
        "top_k": TopK,
        "unrolled": Unrolled,
        "wasserstein": Wasserstein,
    }


@ganlab.hookimpl
def ganlab_defaults() -> dict[str, str]:
    """The defaults for experiments that name none."""
    return {"loss": "wasserstein"}
