"""Checks the index of a checkpoint's variables before TensorFlow reads it, which ends the process if it was forged.

The index is a table of LevelDB (TensorFlow's tsl/lib/io/format.h): blocks of entries, whose keys share prefixes, then a
block with the places of these blocks, and at the end of the file the place of that one. An entry has a variable's name
and a `BundleEntryProto` with its type, its shape and where its bytes are in the data file.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from ganlab.support.paths import open_inside, read_inside

_INDEX, _DATA = "variables.index", "variables.data-00000-of-00001"
# The largest index, in bytes: that of a million variables.
_LARGEST = 1 << 28
_LONGEST_NAME = 4096
# All names together may take this many times the file's length; those that ganlab writes take about that length.
_MOST_SHARED = 16
# What an array may have: axes, bits of its number of elements.
_MOST_AXES, _BITS = 32, 60
# The types of references to variables, which are never saved, begin here; TensorFlow ends the process at one.
_REFERENCES = 100
_FOOTER, _MAGIC = 48, 0xDB4775248B80FB57
_GRAPH = b"_CHECKPOINTABLE_OBJECT_GRAPH"


def check_index(folder: Path) -> None:
    """Checks that an index is one that TensorFlow writes for its data file.

    Raises:
        ValueError: It is not.
        RunError: A file is not a regular one of the folder, or the index is too large.
        OSError: A file cannot be read.
    """
    try:
        _check(folder)
    except (LookupError, struct.error, DecodeError, TypeError) as error:
        raise ValueError("it is torn") from error


def _check(folder: Path) -> None:
    entries = list(_entries(read_inside(folder, _INDEX, most=_LARGEST)))
    if not entries:
        raise ValueError("it is torn")
    (top, stored), *rest = entries
    header = BundleHeaderProto.FromString(stored)
    if top or header.num_shards != 1 or header.endianness or header.SerializeToString() != stored:
        raise ValueError("its header is not one that ganlab writes")
    with open_inside(folder, _DATA) as data:
        size = data.seek(0, 2)
        graph = b""
        for name, value in rest:
            entry = BundleEntryProto.FromString(value)
            shape = [dim.size for dim in entry.shape.dim]
            plain = BundleEntryProto(dtype=entry.dtype, offset=entry.offset, size=entry.size, crc32c=entry.crc32c)
            plain.shape.SetInParent()
            for length in shape:
                plain.shape.dim.add(size=length)
            # Read and written again, an entry with anything else would differ. TensorFlow ends the process at too many
            # axes, or where a product of some of them is too large even if another is 0.
            odd = len(shape) > _MOST_AXES or math.prod(filter(None, shape)) >> _BITS
            if odd or plain.SerializeToString() != value or min([entry.offset, entry.size, *shape]) < 0:
                raise ValueError(f"its entry {_shown(name)} is not one that ganlab writes")
            if entry.offset + entry.size > size:
                raise ValueError(f"its entry {_shown(name)} ends beyond {_DATA}")
            dtype = tf.dtypes.as_dtype(entry.dtype)
            if name == _GRAPH and dtype == tf.string and not shape:
                data.seek(entry.offset)
                graph = data.read(entry.size)
            elif entry.dtype >= _REFERENCES or not (dtype.is_floating or dtype.is_integer or dtype.is_bool):
                raise ValueError(f"its entry {_shown(name)} holds no numbers")
            elif dtype.size * math.prod(shape) != entry.size:
                raise ValueError(f"its entry {_shown(name)} has another size than its type and shape")
    _check_graph(graph, {name for name, _ in rest})


def _check_graph(stored: bytes, names: set[bytes]) -> None:
    """Checks the graph of objects: a length, a checksum of four bytes, and a message of that length."""
    length, start = _varint(stored, 0)
    if len(stored) != start + 4 + length:
        raise ValueError("its graph of objects is torn")
    graph = TrackableObjectGraph.FromString(stored[start + 4 :])
    for node in graph.nodes:
        others = [child.node_id for child in node.children]
        others += [slot.slot_variable_node_id for slot in node.slot_variables]
        if not all(0 <= other < len(graph.nodes) for other in others):
            raise ValueError("its graph of objects names one that is not there")
        if not {attribute.checkpoint_key.encode() for attribute in node.attributes} <= names:
            raise ValueError("its graph of objects names a variable that is not there")


def _shown(name: bytes) -> str:
    return repr(name[:60].decode(errors="replace"))


def _entries(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(table) < _FOOTER or struct.unpack("<Q", table[-8:])[0] != _MAGIC:
        raise ValueError("it is torn")
    footer = table[-_FOOTER:]
    _, at = _place(footer, 0)  # of a block that is empty
    places, _ = _place(footer, at)
    last, left = None, _MOST_SHARED * len(table)
    for _, place in _block(table, *places):
        for name, value in _block(table, *_place(place, 0)[0]):
            # At each name, because a few bytes can repeat a block, or a long name with another ending.
            if last is not None and name <= last:
                raise ValueError("its names are not in order")
            last, left = name, left - len(name)
            if left < 0:
                raise ValueError("its names are not ones that ganlab writes")
            yield name, value


def _block(table: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block; at its end are the bytes at which some of those with a whole key begin, and how many.

    TensorFlow looks a name up from one of these bytes on. So each must be where an entry begins that is checked here.
    """
    block = table[start : start + size]
    if len(block) != size or table[start + size] != 0:
        raise ValueError("it is torn, or compressed")
    (count,) = struct.unpack("<I", block[-4:])
    end, at, key, whole = size - 4 - 4 * count, 0, b"", set()
    starts = struct.unpack(f"<{count}I", block[end:-4])
    while at < end:
        begin = at
        shared, at = _varint(block, at)
        if not shared:
            whole.add(begin)
        added, at = _varint(block, at)
        length, at = _varint(block, at)
        if shared > len(key) or shared + added > _LONGEST_NAME or at + added + length > end:
            raise ValueError("it is torn")
        key = key[:shared] + block[at : at + added]
        at += added + length
        yield key, block[at - length : at]
    if starts[:1] != (0,) or sorted(whole.intersection(starts)) != list(starts):
        raise ValueError("its names cannot be looked up")


def _place(text: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Where a block begins and how long it is, and where the next number is."""
    start, at = _varint(text, at)
    size, at = _varint(text, at)
    return (start, size), at


def _varint(text: bytes, at: int) -> tuple[int, int]:
    """A number with seven bits in each byte, the lowest first, and where the next one is."""
    value = 0
    for shift in range(0, 64, 7):
        byte = text[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("it is torn")
