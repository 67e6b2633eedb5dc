"""First-party diagnostics, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.diagnostics.gradient_norms import GradientNorms
from ganlab_builtin.diagnostics.lipschitz_interval import LipschitzInterval
from ganlab_builtin.diagnostics.singular_values import SingularValues
from ganlab_builtin.diagnostics.slopes import Slopes
from ganlab_builtin.diagnostics.surface import Surface
from ganlab_builtin.diagnostics.transport_gradient import TransportGradient
from ganlab_builtin.diagnostics.units import Units
from ganlab_builtin.diagnostics.wasserstein_error import WassersteinError
from ganlab_builtin.diagnostics.weights import Weights


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
        "transport_gradient": TransportGradient,
        "wasserstein_error": WassersteinError,
    }
