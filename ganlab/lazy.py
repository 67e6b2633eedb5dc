"""Modules that are imported when first used, because TensorFlow takes seconds and help must not.

`from ganlab.lazy import tensorflow as tf` gives a plugin a module that behaves as `tensorflow` does and costs
nothing until a tensor is made, so that listing plugins or checking an experiment file stays quick. A plugin may
as well import TensorFlow in the ordinary way; it is only slower to list.
"""

from __future__ import annotations

import importlib
import types
from typing import TYPE_CHECKING, Any

from ganlab.errors import MissingDependencyError

_EXTRAS = {
    "tensorflow": "'ganlab[cpu]' (or [gpu] on NVIDIA GPUs, [tpu] on TPUs)",
    "keras": "'ganlab[cpu]' (or [gpu] on NVIDIA GPUs, [tpu] on TPUs)",
    "tensorflow_datasets": "'ganlab[tfds]'",
}


def require(name: str) -> types.ModuleType:
    """Imports a module that an extra of ganlab brings.

    Args:
        name: The module's name, such as `tensorflow`.

    Returns:
        The module.

    Raises:
        MissingDependencyError: It is not installed; the message names the extra to install.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        hint = f"pip install {_EXTRAS[name]}" if name in _EXTRAS else f"pip install {name}"
        raise MissingDependencyError(f"{name} is not installed, and this needs it. Install it: {hint}") from None


class _LazyModule(types.ModuleType):
    def __getattr__(self, attribute: str) -> Any:
        return getattr(require(self.__name__), attribute)


if TYPE_CHECKING:
    import keras
    import tensorflow
else:
    keras = _LazyModule("keras")
    tensorflow = _LazyModule("tensorflow")

__all__ = ["keras", "require", "tensorflow"]
