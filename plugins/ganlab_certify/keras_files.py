"""Files of the format `.keras`, opened by Keras after the claims that they make are checked."""

from __future__ import annotations

import io
import json
import math
import re
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ganlab.lazy import keras
from ganlab_certify.blueprints import LARGEST, UnreadableError

_CONFIG, _WEIGHTS, _MOST_LAYERS = 2**23, "model.weights.h5", 1000
# Parts of Keras that files name, beside layers: none reads a file or runs code of its own.
_OURS = "ganlab>"
_MODULES = ("keras.initializers", "keras.regularizers", "keras.constraints", "keras.dtype_policies", "builtins")
_LAYERS = re.compile(
    "InputLayer|Dense|(Depthwise)?Conv[123]D|Conv[123]DTranspose|Activation|(Leaky|P)?ReLU|ELU|Softmax|Add|Subtract|"
    "Average|Maximum|Minimum|Concatenate|Identity|Flatten|Reshape|Permute|(ZeroPadding|Cropping|UpSampling)[123]D|"
    "(Global)?(Average|Max)Pooling[123]D|RepeatVector|Rescaling|(Layer|Group|RMS|Batch)Normalization|Dropout"
)


def check(data: bytes) -> None:
    """Checks a file as far as that needs no Keras.

    Raises:
        UnreadableError: It is damaged, expands to more than it should, or names what is not a plain layer.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > 16 or sum(member.file_size for member in members) > max(4 * len(data), 2**24):
            raise UnreadableError(f"its {len(members)} members expand to much more than its {len(data):,} bytes")
        if archive.getinfo("config.json").file_size > _CONFIG:
            raise UnreadableError(f"its config.json has more than {_CONFIG >> 20} MiB")
        config = json.loads(archive.read("config.json"))
        archive.getinfo(_WEIGHTS)
    layers = list(_named(config))
    if len(layers) > _MOST_LAYERS:
        raise UnreadableError(f"it has {len(layers):,} layers, more than {_MOST_LAYERS:,}")


def _named(value: Any) -> Iterator[str]:
    """The layers that a configuration names, each checked: its class, or for ours the name it is registered by."""
    if isinstance(value, list):
        for item in value:
            yield from _named(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _named(item)
        kind, module = value.get("class_name"), value.get("module")
        if kind in ("Functional", "Sequential", "DTypePolicy", "__tuple__", "__keras_tensor__") or kind is None:
            return
        registered = str(value.get("registered_name"))
        if registered.startswith(_OURS):
            yield registered
        elif _LAYERS.fullmatch(str(kind)):
            yield str(kind)
        elif module not in _MODULES:
            raise UnreadableError(f"it has {kind!r} of {module!r}, which is not a layer that has a certificate")


def load(data: bytes) -> keras.Model:
    """The model of a file that was checked.

    Raises:
        UnreadableError: Its layers and its weights do not suit each other.
    """
    import ganlab_builtin.layers  # noqa: F401 (which it may name, as those of ganlab.layers)
    import h5py

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        config, stored = archive.read("config.json").decode(), archive.read(_WEIGHTS)

    def look(name: str, item: Any) -> None:
        # Keras writes whole arrays. A chunk may expand to gigabytes, and the rest lies in other files.
        if isinstance(item, h5py.Dataset) and (
            item.chunks or item.external or item.is_virtual or item.id.get_storage_size() < item.nbytes
        ):
            raise UnreadableError(f"its weight {name} is not all in the file")

    with h5py.File(io.BytesIO(stored)) as weights:
        weights.visititems(look)
        if link := weights.visititems_links(lambda name, link: None if isinstance(link, h5py.HardLink) else name):
            raise UnreadableError(f"its weight {link} is a link")
    for name in set(filter(lambda name: name.startswith(_OURS), _named(json.loads(config)))):
        # What is not registered, or by another, Keras would look up by the class and module that the file names.
        kind = keras.saving.get_registered_object(name)
        if not str(getattr(kind, "__module__", "")).startswith(("ganlab.layers.", "ganlab_builtin.layers.")):
            raise UnreadableError(f"it has {name!r}, which is not a layer of ganlab")
    with keras.StatelessScope(initialize_variables=False):  # makes no variable
        model = keras.models.model_from_json(config)
    numbers = model.count_params()
    if 2 * numbers > len(stored):
        raise UnreadableError(f"its layers have {numbers:,} weights, and its weights have {len(stored):,} bytes")
    for layer in model._flatten_layers():
        for shape in (tensor.shape[1:] for node in layer._inbound_nodes for tensor in node.output_tensors):
            if None not in shape and math.prod(shape) > LARGEST:
                raise UnreadableError(f"its layer {layer.name!r} has an output of the shape {shape}")
    # Keras opens paths alone: these bytes in a folder of our own, because another could be under the first path by now.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "critic.keras")
        copy.write_bytes(data)
        return keras.saving.load_model(copy, compile=False)
