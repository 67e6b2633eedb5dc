"""First-party feature networks, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.features.classifier import Classifier
from ganlab_builtin.features.inception import Inception
from ganlab_builtin.features.onnx import Onnx
from ganlab_builtin.features.pixels import Pixels


@ganlab.hookimpl
def ganlab_features() -> dict[str, type[ganlab.Features]]:
    """The feature networks of this package."""
    return {"classifier": Classifier, "inception": Inception, "onnx": Onnx, "pixels": Pixels}
