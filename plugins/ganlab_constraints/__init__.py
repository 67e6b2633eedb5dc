"""First-party constraints, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab
from ganlab_constraints.gradient_penalty import GradientPenalty
from ganlab_constraints.spectral_norm import SpectralNorm
from ganlab_constraints.weight_clipping import WeightClipping


@ganlab.hookimpl
def ganlab_constraints() -> dict[str, type[ganlab.Constraint]]:
    """The constraints of this package."""
    return {
        "weight_clipping": WeightClipping,
        "gradient_penalty": GradientPenalty,
        "spectral_norm": SpectralNorm,
    }
