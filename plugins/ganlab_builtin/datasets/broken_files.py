"""Finds broken picture files before training: by their first and last bytes, or by decoding every one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from ganlab.lazy import tensorflow as tf

_PARALLEL = 16  # files in work at a time; more were not faster
_LARGEST = 1 << 30  # bytes of a picture; TensorFlow would take memory for any size that a file claims

# First bytes of each format, with the last bytes of a whole file if the format defines them.
_ENDS = (
    (b"\x89PNG\r\n\x1a\n", b"\x00\x00\x00\x00IEND\xaeB`\x82"),
    (b"\xff\xd8", b"\xff\xd9"),
    (b"GIF8", b";"),
)


def suspicious(path: bytes) -> bool:
    """Whether a file does not begin and end like a whole PNG, JPEG, GIF or BMP file.

    Reads a few bytes of it, so that a folder of a million files takes a minute and not a day. A file that was cut off
    is always found; so is one with other bytes after its picture, and only decoding can distinguish the two.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(8)
            size = file.seek(0, 2)
            file.seek(max(0, size - 12))
            end = file.read(12)
    except OSError:
        return True
    if size > _LARGEST:
        return True
    if start[:2] == b"BM":
        return int.from_bytes(start[2:6], "little") != size  # the header's own size
    return not any(start.startswith(first) and end.endswith(last) for first, last in _ENDS)


def undecodable(paths: Sequence[bytes], decode: Callable[[tf.Tensor], tf.Tensor]) -> list[bytes]:
    """The files that cannot be read or decoded, in order.

    Args:
        paths: The files to try; each is read completely.
        decode: Converts a path, a string tensor, to pixels.
    """
    sizes = [os.path.getsize(path) if os.path.isfile(path) else _LARGEST + 1 for path in paths]
    readable = [path for path, size in zip(paths, sizes, strict=True) if size <= _LARGEST]
    if not readable:
        return list(paths)
    tried = tf.data.Dataset.from_tensor_slices(readable).enumerate()
    # With a number that needs the pixels: TensorFlow would leave out a decoding that nothing depends on.
    tried = tried.map(
        lambda at, path: (at, tf.reduce_max(decode(path))), num_parallel_calls=_PARALLEL, deterministic=False
    )
    came = {readable[int(at)] for at, _ in tried.ignore_errors().as_numpy_iterator()}
    return [path for path in paths if path not in came]
