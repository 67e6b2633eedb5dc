"""First-party schedules, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.schedules.curves import Bursts, ConstantThenLinear, Cosine, Linear, Warmup


@ganlab.hookimpl
def ganlab_schedules() -> dict[str, type[ganlab.Schedule]]:
    """The schedules of this package."""
    return {
        "bursts": Bursts,
        "constant_then_linear": ConstantThenLinear,
        "cosine": Cosine,
        "linear": Linear,
        "warmup": Warmup,
    }
