"""First-party losses, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.losses.classes import AuxiliaryClassifier, MultiHinge
from ganlab_builtin.losses.games import Hinge, LeastSquares, NonSaturating, Wasserstein
from ganlab_builtin.losses.relative import Relativistic, RelativisticAverage


@ganlab.hookimpl
def ganlab_losses() -> dict[str, type]:
    """The losses of this package."""
    return {
        "auxiliary_classifier": AuxiliaryClassifier,
        "hinge": Hinge,
        "least_squares": LeastSquares,
        "multi_hinge": MultiHinge,
        "non_saturating": NonSaturating,
        "relativistic": Relativistic,
        "relativistic_average": RelativisticAverage,
        "wasserstein": Wasserstein,
    }
