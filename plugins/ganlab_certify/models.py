"""Critics of foreign files: `.keras`, ONNX, and safetensors with a description."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ganlab.errors import ConfigError, GanlabError
from ganlab.files import line, local, open_regular
from ganlab.lazy import keras
from ganlab_certify import described_models, keras_files, onnx_models
from ganlab_certify.blueprints import UnreadableError

_MOST = 2**29


def open_model(path: Path) -> Callable[[], keras.Model]:
    """Reads a critic's file and checks it, before TensorFlow starts.

    Args:
        path: The file; its ending says what it is: `.keras`, `.onnx` or `.safetensors`.

    Returns:
        Makes the Keras model.

    Raises:
        ConfigError: The file cannot be used. So does what is returned.
    """
    return guarded(path, lambda: _opened(local(path)))


def _opened(path: Path) -> Callable[[], keras.Model]:
    if path.suffix not in (".keras", ".onnx", ".safetensors"):
        raise UnreadableError("its ending is not .keras, .onnx or .safetensors")
    with open_regular(path) as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise UnreadableError(f"it has more than {_MOST >> 20} MiB")
    if path.suffix == ".keras":
        keras_files.check(data)
        return lambda: guarded(path, lambda: _scored(keras_files.load(data)))
    drawn, score = onnx_models.read(data) if path.suffix == ".onnx" else described_models.read(data, path)
    if math.prod(drawn.shape(score)) != 1:
        raise UnreadableError(f"its output has the shape {drawn.shape(score)}, not one score")
    return lambda: guarded(path, lambda: drawn.built(score))


def _scored(model: keras.Model) -> keras.Model:
    if len(getattr(model, "outputs", [])) != 1 or None in model.inputs[0].shape[1:]:
        raise UnreadableError("it is not a model of an input of known sides and of one score")
    return model


def guarded(path: Path, read: Callable[[], Any], purpose: str = "certified") -> Any:
    """The result of a reader of a stranger's file; any error that it raises becomes one sentence."""
    try:
        return read()
    except GanlabError:
        raise
    except UnreadableError as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or str(error)
    # A damaged file leads to errors of zipfile, zlib, json, protobuf, h5py and Keras, or of types, keys and indices.
    except Exception as error:
        reason = f"it is damaged ({type(error).__name__}: {error})"
    raise ConfigError(f"{line(path)} cannot be {purpose}: {line(reason[:300])}.") from None
