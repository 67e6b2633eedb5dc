"""Networks of safetensors files, whose layers a JSON file beside it lists, as blueprints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from ganlab.errors import RunError
from ganlab.files import line, read_json, schema
from ganlab_certify.blueprints import Blueprint, UnreadableError, Value

_HEADER = 2**24
_KINDS = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
_ACTIVATIONS = ("relu", "leaky_relu", "tanh", "sigmoid", "softplus", "elu", "selu", "gelu", "silu")


def read(data: bytes, path: Path) -> tuple[Blueprint, Value]:
    """The network of a safetensors file and of the description beside it, `NAME.json`, and its last layer.

    Raises:
        UnreadableError: A file is damaged, or they do not suit each other.
    """
    arrays, described = _arrays(data), _description(path.with_suffix(".json"))
    drawn = Blueprint(len(data))
    return _Described(arrays, drawn, torch=described.get("layout", "torch") == "torch").network(described)


def _description(path: Path) -> dict[str, Any]:
    try:
        described = read_json(path.parent, path.name, schema.ANYTHING, most=2**20, remedy="Correct it.")
    except FileNotFoundError:
        raise UnreadableError(f"its layers are not described: {line(path)} does not exist") from None
    except RunError as error:
        raise UnreadableError(str(error)) from None
    if not isinstance(described, dict) or not isinstance(described.get("layers"), list):
        raise UnreadableError(f"{line(path)} must be an object with the shape `input` and a list `layers`")
    return described


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    if int.from_bytes(data[:8], "little") > _HEADER:
        raise UnreadableError(f"its header has more than {_HEADER:,} bytes")
    arrays = {}
    for name, entry in safetensors.deserialize(data):
        if entry["dtype"] in _KINDS:  # not counters and the like, which no layer may name
            values = np.frombuffer(entry["data"], _KINDS[entry["dtype"]]).reshape(entry["shape"])
            arrays[name] = values if values.itemsize == 8 else values.astype(np.float32)
    return arrays


class _Described:
    """Makes layers by their descriptions; layers of the layout "torch" have channels first and outputs first."""

    def __init__(self, arrays: dict[str, np.ndarray], drawn: Blueprint, *, torch: bool) -> None:
        self._arrays, self._torch, self._drawn = arrays, torch, drawn

    def network(self, described: dict[str, Any]) -> tuple[Blueprint, Value]:
        """The blueprint of a description and its last value."""
        last = self._drawn.input(tuple(described["input"]))
        named = {"input": last}
        if "classes" in described:
            named["label"] = self._drawn.input((described["classes"],))
        for number, layer in enumerate(described["layers"]):
            sources = layer.get("of", [])
            try:
                values = [named[name] for name in ([sources] if isinstance(sources, str) else sources)] or [last]
                last = self._made(layer["kind"], layer, values)
            except KeyError as missing:
                raise UnreadableError(f"layer {number + 1}: there is no {missing}") from None
            except UnreadableError as reason:
                raise UnreadableError(f"layer {number + 1} ({layer['kind']}): {reason}") from None
            if "name" in layer:
                named[layer["name"]] = last
        return self._drawn, last

    def _made(self, kind: str, layer: dict[str, Any], values: list[Value]) -> Value:
        drawn, value = self._drawn, values[0]
        bias = self._arrays[layer["bias"]] if "bias" in layer else None
        if kind == "dense":
            kernel = self._arrays[layer["weight"]]
            return drawn.dense(value, kernel.T if self._torch else kernel, bias)
        if kind == "conv":
            kernel = self._arrays[layer["weight"]]
            kernel = np.moveaxis(kernel, (0, 1), (-1, -2)) if self._torch else kernel
            given: dict[str, Any] = {"strides": self._sides(layer, "strides", 1, kernel.ndim - 2)}
            given["dilation"] = self._sides(layer, "dilation", 1, kernel.ndim - 2)
            pads = self._pads(layer, kernel.ndim - 2)
            return drawn.convolution(
                self._images(value), kernel, bias, pads=pads, groups=layer.get("groups", 1), **given
            )
        if kind == "batch_norm":
            parts = [self._arrays[layer[part]] for part in ("weight", "bias", "mean", "variance")]
            return drawn.normalized(self._images(value), parts, layer.get("epsilon", 1e-5))
        if kind == "average_pool":
            value = self._images(value)
            size = self._sides(layer, "size", 2, len(drawn.shape(value)) - 1)
            strides = self._sides(layer, "strides", list(size), len(size))
            return drawn.average_pool(value, size, strides=strides, pads=self._pads(layer, len(size)))
        if kind == "global_average_pool":
            return drawn.global_average(self._images(value))
        if kind in ("flatten", "reshape"):
            return drawn.reshaped(value, tuple(layer["shape"]) if kind == "reshape" else (-1,))
        if kind in ("add", "subtract", "concatenate"):
            return drawn.joined(values, kind.capitalize())
        if kind == "projection":
            features, label = values
            table = self._arrays[layer["embedding"]]
            scores = drawn.dense(features, self._arrays[layer["weight"]].reshape(-1, 1), bias).pending
            return drawn.projection(features, scores, label, table)
        if kind == "leaky_relu":
            return drawn.elementwise(value, "LeakyReLU", negative_slope=float(layer["slope"]))
        if kind in _ACTIVATIONS:
            return drawn.elementwise(value, "Activation", activation=kind)
        raise UnreadableError("the kind is not known")

    def _images(self, value: Value) -> Value:
        images = self._torch and len(self._drawn.shape(value)) > 1
        return self._drawn.settled(value, first=True) if images else value

    def _sides(self, layer: dict[str, Any], name: str, default: Any, sides: int) -> tuple[int, ...]:
        given = layer.get(name, default)
        return (given,) * sides if isinstance(given, int) else tuple(given)

    def _pads(self, layer: dict[str, Any], sides: int) -> Any:
        given = layer.get("padding", 0)
        return ((given, given),) * sides if isinstance(given, int) else given
