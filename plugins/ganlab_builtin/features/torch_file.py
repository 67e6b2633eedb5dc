"""Reads arrays from files of `torch.save`, without PyTorch and without executing anything that a file says.

Such a file is a pickle, which is a program. It is not given to Python's unpickler: the few instructions that a state
dict consists of are carried out here, and all that they can make are plain values and descriptions of tensors. Tuples
are never hashed, compared or printed, because a few hundred bytes can nest them 2**60 times.
"""

from __future__ import annotations

import io
import math
import pickletools
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

_MAGIC = 0x1950A86A20F9469CFC6C  # of files from before PyTorch 1.6
_PROTOCOL = 1001
_LONGEST = 1 << 20  # bytes of a pickle; that of the published weights has about 60,000
_MOST_ITEMS = 1 << 20  # of the lists and tuples that functions are given, all together
_LARGEST = 1 << 40  # of a storage, a shape or a stride, in numbers
_MOST_AXES = 8
_SHOWN = 100  # characters of a name in a message
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
        if not isinstance(key, str):
            raise UnreadableError("a storage's key is not a name")
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
    tensors = {name: content[name] for name in shapes if isinstance(content.get(name), _Tensor)}
    for name, tensor in tensors.items():
        if tensor.shape != shapes[name]:
            raise UnreadableError(f"{name} is of shape {tensor.shape}, and must be of {shapes[name]}")
        if not 0 <= tensor.start <= tensor.storage.count - math.prod(tensor.shape):
            raise UnreadableError(f"{name} reaches beyond its storage")
    # A storage may be shared, but all of them are hardly larger than all that is wanted.
    counts = {tensor.storage.key: tensor.storage.count for tensor in tensors.values()}
    if sum(counts.values()) > 2 * sum(map(math.prod, shapes.values())):
        raise UnreadableError(f"its tensors lie in storages of {sum(counts.values()):,} numbers")
    return tensors


def _arrays(tensors: Mapping[str, _Tensor], bytes_of: Callable[[_Storage], bytes]) -> dict[str, np.ndarray]:
    values: dict[str, np.ndarray] = {}
    arrays = {}
    for name, tensor in tensors.items():
        key = tensor.storage.key
        if key not in values:
            values[key] = np.frombuffer(bytes_of(tensor.storage), tensor.storage.dtype)
        if len(values[key]) != tensor.storage.count:
            raise UnreadableError("it ends before its last tensor")
        part = values[key][tensor.start : tensor.start + math.prod(tensor.shape)]
        arrays[name] = part.reshape(tensor.shape).astype(np.float32)
    return arrays


def _load(file: BinaryIO) -> tuple[Any, dict[str, _Storage]]:
    """The value of the next pickle of a file, and the storages that it names."""
    start = file.tell()
    machine = _Machine()
    for code, argument, place in pickletools.genops(file.read(_LONGEST)):
        if code.name == "STOP":
            file.seek(start + (place or 0) + 1)
            return machine.stack.pop(), machine.storages
        machine.do(code.name, argument)
    raise UnreadableError("its list of tensors has no end")


class _Machine:
    """Carries out the instructions of a pickle.

    Attributes:
        stack: The values so far.
        storages: The storages that were named, by key.
    """

    def __init__(self) -> None:
        """Begins with nothing."""
        self.stack: list[Any] = []
        self.storages: dict[str, _Storage] = {}
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._room = _MOST_ITEMS

    def do(self, name: str, argument: Any) -> None:
        """Carries out an instruction.

        Raises:
            UnreadableError: No state dict needs it.
        """
        stack = self.stack
        match name:
            case "PROTO":
                pass
            case "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINUNICODE":
                stack.append(argument)
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
            case "EMPTY_TUPLE" | "EMPTY_LIST" | "EMPTY_DICT":
                stack.append({"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict}[name]())
            case "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(self._memo[argument])
            case "MARK":
                self._marks.append(len(stack))
            case "TUPLE":
                stack.append(tuple(self._popped(self._marks.pop())))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(tuple(self._popped(-int(name[-1]))))
            case "APPEND":
                stack[-2].append(stack.pop())
            case "APPENDS":
                items = self._popped(self._marks.pop())
                stack[-1].extend(items)
            case "SETITEM" | "SETITEMS":
                items = self._popped(-2 if name == "SETITEM" else self._marks.pop())
                stack[-1].update(_dict(zip(items[::2], items[1::2], strict=True)))
            case "BUILD":  # gives attributes to an object, which a plain value has not
                stack.pop()
            case "GLOBAL":
                stack.append(_named(argument))
            case "BINPERSID":
                stack.append(self._storage(stack.pop()))
            case "REDUCE":
                function, arguments = self._popped(-2)
                self._room -= sum(len(item) for item in arguments if isinstance(item, (list, tuple)))
                if function not in _FUNCTIONS.values() or self._room < 0:
                    raise UnreadableError("it makes more than a state dict has")
                stack.append(function(*arguments))
            case _:
                raise UnreadableError(f"it has the instruction {name}, which no state dict needs")

    def _popped(self, start: int) -> list[Any]:
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def _storage(self, pid: Any) -> _Storage:
        kind, dtype, key, _, count, *view = pid
        # The key becomes the name of a member of the archive, and nothing else.
        if kind != "storage" or not isinstance(dtype, np.dtype) or not isinstance(key, str) or any(view):
            raise UnreadableError("it refers to something that is not a tensor's storage")
        if not _is_size(count):
            raise UnreadableError("a storage has no sensible number of numbers")
        return self.storages.setdefault(key, _Storage(dtype, key, count))


def _named(text: str) -> Any:
    """The function or type that a pickle names, `module name`."""
    named = _FUNCTIONS.get(text, _DTYPES.get(text.removeprefix("torch ")))
    if named is None:
        name = text[:_SHOWN].replace(" ", ".")
        raise UnreadableError(f"it asks for {name}, which no state dict of float tensors needs")
    return np.dtype(named) if isinstance(named, str) else named


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _dict(pairs: Iterable[tuple[Any, Any]] = ()) -> dict[str, Any]:
    """In place of `collections.OrderedDict`."""
    entries = {}
    for key, value in pairs:
        if not isinstance(key, str):
            raise UnreadableError("a dict has a key that is not a name")
        entries[key] = value
    return entries


def _tensor(storage: Any, start: Any, shape: Any, strides: Any, *rest: Any) -> _Tensor:
    """In place of `torch._utils._rebuild_tensor_v2`."""
    sizes = (start, *shape[: _MOST_AXES + 1], *strides[: _MOST_AXES + 1])
    if not isinstance(storage, _Storage) or not all(map(_is_size, sizes)) or len(shape) > _MOST_AXES:
        raise UnreadableError("a tensor is not described by a few whole numbers")
    steps = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    if any(n > 1 and step != stride for n, step, stride in zip(shape, steps, strides, strict=True)):
        raise UnreadableError("a tensor does not lie in the order of its elements")
    return _Tensor(storage, start, tuple(shape))


def _parameter(data: Any, *rest: Any) -> Any:
    """In place of `torch._utils._rebuild_parameter`."""
    return data


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "collections OrderedDict": _dict,
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_parameter": _parameter,
}
