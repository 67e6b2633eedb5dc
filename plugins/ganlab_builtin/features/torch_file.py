"""Reads arrays from files of `torch.save`, without PyTorch and without executing anything that a file says.

Such a file is a pickle, which is a program. Only the few instructions that a state dict consists of are accepted, and
the only functions that it may call are the ones below, which put together descriptions of tensors.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

_MAGIC = 0x1950A86A20F9469CFC6C  # of files from before PyTorch 1.6
_PROTOCOL = 1001
_LONGEST = 1 << 20  # bytes of a pickle; that of the published weights has about 60,000
_OPCODES = {
    *("PROTO", "GLOBAL", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "MARK", "REDUCE", "BUILD"),
    *("BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "BINUNICODE", "BINPERSID", "BININT", "BININT1", "BININT2"),
    *("LONG1", "NEWTRUE", "NEWFALSE", "NONE", "EMPTY_DICT", "EMPTY_LIST", "APPEND", "APPENDS", "SETITEM"),
    *("SETITEMS", "STOP"),
}
_DTYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8"}


class UnreadableError(Exception):
    """The file is damaged, or is not a state dict."""


@dataclass(frozen=True)
class _Storage:
    dtype: np.dtype[Any]
    key: str
    count: int

    @property
    def bytes(self) -> int:
        return self.count * int(self.dtype.itemsize)


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    start: int
    shape: tuple[int, ...]


def read(file: BinaryIO, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The arrays with these names.

    Args:
        file: The file, opened by bytes; both formats of `torch.save` are read.
        shapes: The shape that each wanted array must have, by name. No other is read, whatever the file has.

    Raises:
        UnreadableError: It is not such a file, is damaged, or holds more than a dict of tensors.
    """
    try:
        return _read_zip(file, shapes) if zipfile.is_zipfile(file) else _read_old(file, shapes)
    except UnreadableError:
        raise
    # A damaged file leads to errors of struct, zlib, zipfile, pickle, or of types and indices.
    except Exception as error:
        raise UnreadableError(f"it is damaged ({type(error).__name__}: {error})") from error


def _read_zip(file: BinaryIO, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(file) as archive:
        (top,) = {name.partition("/")[0] for name in archive.namelist()}
        order = f"{top}/byteorder"
        if order in archive.namelist() and archive.getinfo(order).file_size < 16 and archive.read(order) != b"little":
            raise UnreadableError("its numbers are big-endian")
        pickled = archive.getinfo(f"{top}/data.pkl")
        if pickled.file_size > _LONGEST:
            raise UnreadableError(f"its list of tensors has {pickled.file_size:,} bytes, more than {_LONGEST:,}")
        content, _ = _load(io.BytesIO(archive.read(pickled)))

        def bytes_of(storage: _Storage) -> bytes:
            info = archive.getinfo(f"{top}/data/{storage.key}")
            if info.file_size != storage.bytes:
                raise UnreadableError(f"a tensor of {storage.bytes:,} bytes has {info.file_size:,} in the file")
            return archive.read(info)

        return _arrays(_tensors(content, shapes), bytes_of)


def _read_old(file: BinaryIO, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The format before PyTorch 1.6: five pickles, then each storage's count and bytes in the order of the last one."""
    file.seek(0)
    if _load(file)[0] != _MAGIC or _load(file)[0] != _PROTOCOL:
        raise UnreadableError("it is not a file of torch.save")
    if not _load(file)[0].get("little_endian"):
        raise UnreadableError("its numbers are big-endian")
    content, storages = _load(file)
    keys, _ = _load(file)
    places: dict[str, int] = {}
    for key in keys:
        (count,) = np.frombuffer(file.read(8), "<i8")
        if count != storages[key].count:
            raise UnreadableError(f"a storage of {storages[key].count:,} numbers has {count:,} in the file")
        places[key] = file.tell()
        file.seek(storages[key].bytes, io.SEEK_CUR)

    def bytes_of(storage: _Storage) -> bytes:
        file.seek(places[storage.key])
        return file.read(storage.bytes)

    return _arrays(_tensors(content, shapes), bytes_of)


def _tensors(content: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, _Tensor]:
    """The wanted tensors of a state dict; those that are missing are left to the caller."""
    if not isinstance(content, dict):
        raise UnreadableError("it has no dict of tensors")
    found = {name: content[name] for name in shapes if isinstance(content.get(name), _Tensor)}
    for name, tensor in found.items():
        if tensor.shape != shapes[name]:
            raise UnreadableError(f"{name} is of shape {tensor.shape}, and must be of {shapes[name]}")
        if not 0 <= tensor.start <= tensor.storage.count - math.prod(tensor.shape):
            raise UnreadableError(f"{name} reaches beyond its storage")
        # A storage may be shared, but none is larger than all that is wanted.
        if tensor.storage.count > sum(map(math.prod, shapes.values())):
            raise UnreadableError(f"{name} lies in a storage of {tensor.storage.count:,} numbers")
    return found


def _arrays(found: Mapping[str, _Tensor], bytes_of: Callable[[_Storage], bytes]) -> dict[str, np.ndarray]:
    arrays = {}
    for name, tensor in found.items():
        values = np.frombuffer(bytes_of(tensor.storage), tensor.storage.dtype)
        if len(values) != tensor.storage.count:
            raise UnreadableError("it ends before its last tensor")
        part = values[tensor.start : tensor.start + math.prod(tensor.shape)]
        arrays[name] = part.reshape(tensor.shape).astype(np.float32)
    return arrays


def _load(file: BinaryIO) -> tuple[Any, dict[str, _Storage]]:
    """The next pickle of a file, of accepted instructions alone, and the storages that it names."""
    start = file.tell()
    data = file.read(_LONGEST)
    end = 0
    for code, argument, place in pickletools.genops(data):
        if code.name not in _OPCODES:
            raise UnreadableError(f"it has the instruction {code.name}, which no state dict needs")
        # The interpreter reserves memory for every place of its memo up to the largest one.
        if code.name == "LONG_BINPUT" and (argument or 0) > len(data):
            raise UnreadableError("it has more places than instructions")
        end = (place or 0) + 1
    file.seek(start + end)
    reader = _Reader(io.BytesIO(data[:end]))
    return reader.load(), reader.storages


class _Reader(pickle.Unpickler):
    """An unpickler that knows dicts and descriptions of tensors, and refuses every other name."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, encoding="utf-8")
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return _parameter
        if module == "torch" and name in _DTYPES:
            return np.dtype(_DTYPES[name])
        raise UnreadableError(f"it asks for {module}.{name}, which no state dict of float tensors needs")

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, count, *view = pid
        # The key becomes the name of a member of the archive, and nothing else.
        if kind != "storage" or not isinstance(dtype, np.dtype) or not isinstance(key, str) or any(view):
            raise UnreadableError("it refers to something that is not a tensor's storage")
        if type(count) is not int or count < 0:
            raise UnreadableError(f"a storage has {count!r} numbers")
        return self.storages.setdefault(key, _Storage(dtype, key, count))


def _tensor(storage: Any, start: Any, shape: Any, strides: Any, *rest: Any) -> _Tensor:
    """In place of `torch._utils._rebuild_tensor_v2`."""
    if not isinstance(storage, _Storage) or not all(type(n) is int and n >= 0 for n in (start, *shape, *strides)):
        raise UnreadableError("a tensor is not described by whole numbers")
    steps = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    if any(n > 1 and step != own for n, step, own in zip(shape, steps, strides, strict=True)):
        raise UnreadableError("a tensor does not lie in the order of its elements")
    return _Tensor(storage, start, tuple(shape))


def _parameter(data: Any, *rest: Any) -> Any:
    """In place of `torch._utils._rebuild_parameter`."""
    return data
