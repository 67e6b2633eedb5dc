"""Reads the weights of the Inception network of 2015 from a file that somebody else may have made."""

from __future__ import annotations

import hashlib
import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

import ganlab
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.features import inception_2015, torch_file
from ganlab_builtin.features.torch_file import UnreadableError

ENDINGS = (".pth", ".pt", ".pb", ".npz", ".safetensors")
_MOST = 1 << 29  # bytes of a file; the published ones have about 95 million
_HEADER = 1 << 20


def read(path: Path) -> dict[str, np.ndarray]:
    """The state dict of the network, float32, by the names of `inception_2015.shapes()`.

    A `.pth` or `.pt` is a state dict as torch.save writes it, `.pb` the graph that TensorFlow published; `.npz` and
    `.safetensors` hold the arrays of the state dict by the same names. Nothing in a file is executed.

    Args:
        path: The file.

    Raises:
        UnreadableError: It is damaged or too large, or is not of this network.
        OSError: It cannot be opened.
    """
    shapes = inception_2015.shapes()
    readers: dict[str, Callable[[BinaryIO, Mapping[str, tuple[int, ...]]], dict[str, np.ndarray]]] = {
        ".pb": _read_graph,
        ".npz": _read_npz,
        ".safetensors": _read_safetensors,
    }
    with ganlab.open_regular(path) as file:
        if file.seek(0, 2) > _MOST:
            raise UnreadableError(f"it has more than {_MOST >> 20} MiB")
        file.seek(0)
        try:
            arrays = readers.get(path.suffix, torch_file.read)(file, shapes)
        except UnreadableError:
            raise
        # A damaged file leads to errors of struct, zlib, zipfile, protobuf, safetensors, or of types and indices.
        except Exception as error:
            raise UnreadableError(f"it is damaged ({type(error).__name__}: {error})") from error
    missing = [name for name in shapes if name not in arrays]
    if missing:
        raise UnreadableError(f"it lacks {missing[0]} and {len(missing) - 1} more of {len(shapes)} arrays")
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise UnreadableError(f"{name} has values that are not finite")
    return arrays


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """A name for these weights: the same whatever kind of file they came from."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        sha.update(name.encode())
        sha.update(np.ascontiguousarray(arrays[name], "<f4").tobytes())
    return sha.hexdigest()[:20]


def _read_graph(file: BinaryIO, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    graph = tf.compat.v1.GraphDef()
    graph.ParseFromString(file.read())
    constants = {node.name: node.attr["value"].tensor for node in graph.node if node.op == "Const"}

    def constant(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if name not in constants:
            raise UnreadableError(f"its graph has no constant {name}")
        tensor = constants[name]
        recorded = tuple(dimension.size for dimension in tensor.tensor_shape.dim)
        # Before anything of this shape is made: a few bytes can claim any.
        if recorded != shape or tensor.dtype != tf.float32.as_datatype_enum:
            raise UnreadableError(f"{name} is of shape {recorded}, and must be float32 of {shape}")
        return np.asarray(tf.make_ndarray(tensor))

    arrays: dict[str, np.ndarray] = {}
    parts = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
    for layer in inception_2015.layers():
        kernel = constant(f"{layer.graph}/conv2d_params", layer.shape)
        arrays[f"{layer.name}.conv.weight"] = kernel.transpose(3, 2, 0, 1)
        for part, graph_name in parts.items():
            name = f"{layer.name}.bn.{part}"
            arrays[name] = constant(f"{layer.graph}/batchnorm/{graph_name}", shapes[name])
    classes, features = shapes["fc.weight"]
    arrays["fc.weight"] = constant("softmax/weights", (features, classes)).T
    arrays["fc.bias"] = constant("softmax/biases", (classes,))
    return arrays


def _read_npz(file: BinaryIO, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        members = set(archive.namelist())
        for name, shape in shapes.items():
            if f"{name}.npy" not in members:
                continue
            with archive.open(f"{name}.npy") as member:
                version = np.lib.format.read_magic(member)
                read_header = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }[version]
                recorded, fortran, dtype = read_header(member)
                _check(name, recorded, shape)
                if dtype.kind != "f" or dtype.itemsize > 8:
                    raise UnreadableError(f"{name} is of {dtype}, and must be floating point")
                data = member.read(math.prod(shape) * dtype.itemsize)
            arrays[name] = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C").astype(np.float32)
    return arrays


def _read_safetensors(file: BinaryIO, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    import safetensors

    data = file.read()
    if int.from_bytes(data[:8], "little") > _HEADER:
        raise UnreadableError(f"its header has more than {_HEADER:,} bytes")
    arrays = {}
    for name, entry in safetensors.deserialize(data):
        if name in shapes:
            _check(name, tuple(entry["shape"]), shapes[name])
            dtype = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}[entry["dtype"]]
            arrays[name] = np.frombuffer(entry["data"], dtype).reshape(shapes[name]).astype(np.float32)
    return arrays


def _check(name: str, recorded: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if recorded != expected:
        raise UnreadableError(f"{name} is of shape {recorded}, and must be of {expected}")
