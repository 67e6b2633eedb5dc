"""First-party diagnostics, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab
from ganlab_diagnostics.gradient_norms import GradientNorms
from ganlab_diagnostics.lipschitz_interval import LipschitzInterval
from ganlab_diagnostics.singular_values import SingularValues
from ganlab_diagnostics.slopes import Slopes
from ganlab_diagnostics.surface import Surface
from ganlab_diagnostics.units import Units
from ganlab_diagnostics.wasserstein_error import WassersteinError
from ganlab_diagnostics.weights import Weights


@ganlab.hookimpl
def ganlab_diagnostics() -> dict[str, type[ganlab.Diagnostic]]:
    """The diagnostics of this package."""
    return {
        "gradient_norms": GradientNorms,
        "weights": Weights,
        "singular_values": SingularValues,
        "slopes": Slopes,
        "lipschitz_interval": LipschitzInterval,
        "surface": Surface,
        "units": Units,
        "wasserstein_error": WassersteinError,
    }
