"""First-party evaluators, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab
from ganlab_evaluators.modes import ModeCoverage


@ganlab.hookimpl
def ganlab_evaluators() -> dict[str, type]:
    """The evaluators of this package."""
    return {"mode_coverage": ModeCoverage}
