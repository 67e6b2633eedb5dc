"""First-party losses, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab


@ganlab.hookimpl
def ganlab_losses() -> dict[str, type]:
    """The losses of this package."""
    return {}
