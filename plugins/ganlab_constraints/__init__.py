"""First-party constraints, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab


@ganlab.hookimpl
def ganlab_constraints() -> dict[str, type]:
    """The constraints of this package."""
    return {}
