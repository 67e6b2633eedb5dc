"""First-party architectures, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab


@ganlab.hookimpl
def ganlab_architectures() -> dict[str, type]:
    """The architectures of this package."""
    return {}
