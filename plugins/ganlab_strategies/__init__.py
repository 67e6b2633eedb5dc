"""First-party strategies, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab


@ganlab.hookimpl
def ganlab_strategies() -> dict[str, type]:
    """The strategies of this package."""
    return {}
