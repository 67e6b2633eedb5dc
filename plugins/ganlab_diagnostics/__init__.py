"""First-party diagnostics, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab
from ganlab_diagnostics.slopes import Slopes


@ganlab.hookimpl
def ganlab_diagnostics() -> dict[str, type[ganlab.Diagnostic]]:
    """The diagnostics of this package."""
    return {"slopes": Slopes}
