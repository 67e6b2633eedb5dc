"""Imports modules on first use, because TensorFlow takes seconds to import and `--help` must not.

`from ganlab.lazy import tensorflow as tf` gives a plugin a module that behaves like `tensorflow` and costs
nothing until it is used, so that listing plugins or checking an experiment file stays quick. A plugin may also
import TensorFlow in the ordinary way; it is then slower to list.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from typing import TYPE_CHECKING, Any

from ganlab.errors import ConfigError, MissingDependencyError

INSTALL_TENSORFLOW = "pip install 'ganlab[cpu]' (or [gpu] on NVIDIA GPUs, [tpu] on TPUs)"
USE_TENSORFLOW = "unset KERAS_BACKEND, or edit ~/.keras/keras.json"
_INSTALL = {
    "tensorflow": INSTALL_TENSORFLOW,
    "keras": INSTALL_TENSORFLOW,
    "ot": "pip install 'ganlab[eval]'",
    "tensorflow_datasets": "pip install 'ganlab[tfds]'",
    "tf2onnx": "pip install 'ganlab[onnx]'",
    "submitit": "pip install 'ganlab[slurm]'",
    "ray": "pip install 'ganlab[ray]'",
    "optuna": "pip install 'ganlab[sweep]'",
}


def require(name: str) -> types.ModuleType:
    """Imports a module that one of ganlab's extras installs.

    Args:
        name: The module's name, e.g. `tensorflow`.

    Returns:
        The module.

    Raises:
        MissingDependencyError: The module is not installed; the message names the extra to install.
        ConfigError: The module is Keras, and its backend is not TensorFlow.
    """
    if name == "keras" and name not in sys.modules:
        _check_backend(os.environ.get("KERAS_BACKEND", "tensorflow"))  # before Keras looks for JAX or PyTorch
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if name == "keras" and error.name in ("jax", "torch"):
            _check_backend(error.name)  # set by keras.json
        if error.name != name:
            raise
        hint = _INSTALL.get(name, f"pip install {name}")
        raise MissingDependencyError(f"{name} is not installed, and this needs it. Install it: {hint}") from None
    if name == "keras":
        _check_backend(module.config.backend())
    return module


def _check_backend(backend: str) -> None:
    if backend != "tensorflow":
        raise ConfigError(f"Keras is set to the backend {backend!r}; ganlab needs 'tensorflow': {USE_TENSORFLOW}.")


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
