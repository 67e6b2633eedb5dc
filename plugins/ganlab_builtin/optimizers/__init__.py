"""First-party optimizers, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ganlab
from ganlab_builtin.optimizers.gradient import adam, rmsprop, sgd


@ganlab.hookimpl
def ganlab_optimizers() -> dict[str, Callable[..., Any]]:
    """The optimizers of this package."""
    return {"adam": adam, "rmsprop": rmsprop, "sgd": sgd}
