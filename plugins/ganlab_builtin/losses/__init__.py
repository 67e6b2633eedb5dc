"""First-party losses, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.losses.games import Hinge, LeastSquares, NonSaturating, Wasserstein


@ganlab.hookimpl
def ganlab_losses() -> dict[str, type]:
    """The losses of this package."""
    return {
        "hinge": Hinge,
        "least_squares": LeastSquares,
        "non_saturating": NonSaturating,
        "wasserstein": Wasserstein,
    }
