"""First-party feature networks, found as anybody's are: by the entry point of this package."""

from __future__ import annotations

import ganlab
from ganlab_builtin.features.classifier import Classifier
from ganlab_builtin.features.inception import Inception
from ganlab_builtin.features.pixels import Pixels


@ganlab.hookimpl
def ganlab_features() -> dict[str, type[ganlab.Features]]:
    """The feature networks of this package."""
    return {"classifier": Classifier, "inception": Inception, "pixels": Pixels}
