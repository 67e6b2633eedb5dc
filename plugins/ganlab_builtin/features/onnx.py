"""Any encoder, from a file in ONNX."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

import ganlab
from ganlab.bounds import Ge, Gt, Local, Lt
from ganlab.lazy import require
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.features import resizing

_MOST = (1 << 31) - 1  # bytes that a message of protobuf can have
_BATCH, _WIDEST = 50, 1024
_WORDS = {
    "filter": ("bicubic", "bilinear", "nearest"),
    "range": ("unit", "signed", "bytes"),
    "order": ("rgb", "bgr"),
}
_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")


class Onnx(ganlab.Features):
    """The output of a network in an ONNX file, such as DINOv2, CLIP or Inception, for images.

    Images become whole numbers from 0 to 255, grey ones in three equal channels; they are resized with antialiasing as
    Pillow does it, in floating point, clipped to [0, 255], brought into `range`, and standardized by `mean` and `std`.
    The defaults are those of DINOv2. The network runs on a GPU if onnxruntime has one.

    The file may be a stranger's: one that refers to other files, has inner graphs, functions or operations of its own,
    or does not take images of float32 is refused before anything in it runs.
    """

    def __init__(
        self,
        *,
        path: Annotated[str, Local()],
        output: str = "",
        size: Annotated[int, Ge(1), Lt(2**14)] = 224,
        filter: Literal["bicubic", "bilinear", "nearest"] = "bicubic",
        range: Literal["unit", "signed", "bytes"] = "unit",
        mean: Sequence[float] = (0.485, 0.456, 0.406),
        std: Sequence[Annotated[float, Gt(0)]] = (0.229, 0.224, 0.225),
        order: Literal["rgb", "bgr"] = "rgb",
        unit_length: bool = False,
    ) -> None:
        """Checks that the file exists; it is read when first needed.

        Args:
            path: The file, with one input: images, with their channels before or after their sides.
            output: The name of the output to take; the first one if empty. Of tokens, `(n, tokens, d)`, the first is
                taken, which is that of the class.
            size: The side in pixels that images are resized to.
            filter: How they are resized.
            range: What 0 to 255 becomes: [0, 1] for `unit`, [-1, 1] for `signed`, or itself.
            mean: What is subtracted after that, for each channel.
            std: What is divided by after that.
            order: The order of channels.
            unit_length: Whether vectors are scaled to length 1, as CMMD has those of CLIP.
        """
        for (name, known), word in zip(_WORDS.items(), (filter, range, order), strict=True):
            if word not in known:
                raise _refusal(name, word, f"must be one of {', '.join(map(repr, known))}.")
        self._path = Path(path).expanduser()
        if not self._path.is_file():
            raise _refusal("path", path, f"is not there: no file {str(self._path.absolute())!r}. Export one to it.")
        for name, values in (("mean", mean), ("std", std)):
            if len(values) != 3:
                raise _refusal(name, values, "must be three numbers, for red, green and blue, or as `order` says.")
        self._settings: dict[str, Any] = {"output": output, "size": size, "filter": filter, "range": range}
        self._settings |= {"mean": [float(v) for v in mean], "std": [float(v) for v in std], "order": order}
        self._settings["unit_length"] = unit_length
        self._session: Any = None

    def prepare(self, dataset: ganlab.Dataset) -> None:
        """Loads the network at the first call."""
        resizing.check_images("onnx", dataset)
        if self._session is None:
            self._session = self._load()

    def _load(self) -> Any:
        onnx, runtime = require("onnx"), require("onnxruntime")
        try:
            with ganlab.open_regular(self._path) as file:
                data = file.read(_MOST + 1)
            if len(data) > _MOST:
                raise ValueError("it has more than 2 GiB")
            model = onnx.ModelProto.FromString(data)
            _check(model, self._settings["size"])
            names = [output.name for output in model.graph.output]
            self._output = self._settings["output"] or names[0]
            if self._output not in names:
                raise ValueError(f"its outputs are {', '.join(names)}, and not {self._output!r}")
            known = runtime.get_available_providers()
            providers = [provider for provider in _PROVIDERS if provider in known]
            session = runtime.InferenceSession(data, providers=providers)
        # protobuf and onnxruntime have errors of their own for damaged files.
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            raise _refusal("path", str(self._path), f"is not of an encoder that can be used: {reason}.") from error
        sides = _sides(model)
        self._input, self._batch, self._channels_last = session.get_inputs()[0].name, sides[0] or _BATCH, sides[3] == 3
        self._digest = hashlib.sha256(data).hexdigest()[:20]
        return session

    def embed(self, x: np.ndarray) -> np.ndarray:
        """The network's output, `(n, d)` float32."""
        if self._session is None:
            raise ganlab.ContractError("features.onnx has no network yet: call prepare(dataset) first.")
        parts = []
        for start in range(0, len(x), self._batch):
            images = self._prepared(np.asarray(x[start : start + self._batch], np.float32))
            images = np.resize(images, (self._batch, *images.shape[1:]))  # a file may have a fixed number of them
            vectors = np.asarray(self._session.run([self._output], {self._input: images})[0], np.float32)
            if len(vectors) != len(images) or vectors.ndim < 2:
                raise ganlab.IncompatibleError(
                    f"features.onnx: output {self._output!r} of {self._path} is of shape {vectors.shape} for "
                    f"{len(images)} images. Set features.onnx.output to one with a vector for each image."
                )
            parts.append(vectors[:, 0] if vectors.ndim == 3 else vectors.reshape(len(vectors), -1))
        vectors = np.concatenate(parts)[: len(x)]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if self._settings["unit_length"] else vectors

    def _prepared(self, images: np.ndarray) -> np.ndarray:
        s = self._settings
        side = s["size"], s["size"]
        pixels = tf.image.resize(resizing.in_bytes(images), side, method=s["filter"], antialias=True)
        pixels = np.clip(np.asarray(pixels), 0.0, 255.0)  # the filter has negative weights
        pixels = pixels[..., ::-1] if s["order"] == "bgr" else pixels
        scaled = {"unit": pixels / 255.0, "signed": pixels / 127.5 - 1.0, "bytes": pixels}[s["range"]]
        scaled = np.asarray((scaled - np.array(s["mean"])) / np.array(s["std"]), np.float32)
        return np.ascontiguousarray(scaled if self._channels_last else scaled.transpose(0, 3, 1, 2))

    def fingerprint(self) -> dict[str, Any]:
        """The file, by a hash, and how images are prepared."""
        return {"network": self._digest, **self._settings} if self._session else {}


def _check(model: Any, size: int) -> None:
    """Refuses what could read other files, run long, or is not of images."""
    graph, sides = model.graph, _sides(model)
    if model.functions or graph.sparse_initializer:
        raise ValueError("it has functions or sparse arrays of its own")
    for node in graph.node:
        if node.domain not in ("", "ai.onnx"):
            raise ValueError(f"{node.op_type} is of the domain {node.domain!r}")
        inner = {field.name for attribute in node.attribute for field, _ in attribute.ListFields()}
        if inner & {"g", "graphs", "sparse_tensor", "sparse_tensors"}:
            raise ValueError(f"{node.op_type} has an inner graph or sparse arrays")
    if any(tensor.data_location or tensor.external_data for tensor in _tensors(graph)):
        raise ValueError("its arrays are in another file; save it with them in one")
    if not graph.output:
        raise ValueError("it has no output")
    known = len(sides) == 4 and 3 in (sides[1], sides[3]) and 0 <= sides[0] <= _WIDEST
    if not known or not {size, 0}.issuperset(sides[1:3] if sides[3] == 3 else sides[2:]):
        raise ValueError(f"it must have one input of float32 images of {size} pixels a side, and has {sides or 'none'}")


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)


def _sides(model: Any) -> tuple[int, ...]:
    """The shape of the only input, 0 for any side; empty if there are several, or of another type."""
    arrays = {array.name for array in model.graph.initializer}
    inputs = [each.type.tensor_type for each in model.graph.input if each.name not in arrays]
    one = len(inputs) == 1 and inputs[0].elem_type == 1
    return tuple(side.dim_value for side in inputs[0].shape.dim) if one else ()


def _refusal(parameter: str, value: Any, rule: str) -> ganlab.ConfigError:
    return ganlab.ConfigError(f"features.onnx.{parameter} = {value!r} {rule}")
