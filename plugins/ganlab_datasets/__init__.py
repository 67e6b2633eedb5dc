"""First-party datasets, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab


@ganlab.hookimpl
def ganlab_datasets() -> dict[str, type]:
    """The datasets of this package."""
    return {}
