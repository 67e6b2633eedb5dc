"""First-party optimizers, registered through this package's entry point like any plugin's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ganlab
from ganlab_builtin.optimizers.gradient import adam, adamw, extragradient, muon, optimistic_adam, rmsprop, sgd

GANLAB_KNOWN_AS = {
    "optimizers.adam": ["nadam", "amsgrad"],
    "optimizers.sgd": ["momentum", "gradient_descent"],
    "optimizers.optimistic_adam": ["optimistic", "omd"],
}


@ganlab.hookimpl
def ganlab_optimizers() -> dict[str, Callable[..., Any]]:
    """The optimizers of this package."""
    return {
        "adam": adam,
        "adamw": adamw,
        "extragradient": extragradient,
        "muon": muon,
        "optimistic_adam": optimistic_adam,
        "rmsprop": rmsprop,
        "sgd": sgd,
    }


@ganlab.hookimpl
def ganlab_defaults() -> dict[str, str]:
    """The defaults for experiments that name none."""
    return {"critic_optimizer": "adam", "generator_optimizer": "adam"}
