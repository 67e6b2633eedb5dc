"""First-party optimizers, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab


@ganlab.hookimpl
def ganlab_optimizers() -> dict[str, type]:
    """The optimizers of this package."""
    return {}
