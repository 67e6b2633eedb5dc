"""Fuzz target: a checkpoint whose files were altered is not used, and a forged one is a `GanlabError`.

TensorFlow ends the process at some forged indexes, and with it the fuzzer: the input is then in `last-index` of the
folder of temporary files.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from fuzzing.drawing import json_values, mutated, weighted
from ganlab.errors import GanlabError

if TYPE_CHECKING:
    from ganlab.training.checkpoints import Checkpoint

_KEYS = ("step", "replicas", "metrics", "owed", "watch", "variables", "files", "bytes", "sha256", "critic/loss")
_KEYS += ("warnings", "diagnostics", "warned", "ill", "complaints", "said", "rows", "largest", "gp")
_INDEX, _DATA = "variables.index", "variables.data-00000-of-00001"
_SHAPES = {"critic/weights/a": (3, 4), "generator/weights/b": (5,), "constraints/r1/state/s": ()}
# Sequences that matter in a message of protobuf or a table: long numbers, empty messages, types and tags.
_PIECES = [
    b"\xff" * 4 + b"\x7f",
    b"\xff" * 9 + b"\x01",
    b"\x12\x00",
    b"\x08\x07",
    b"\x08\x15",
    b"\x18\x01",
    b"\0",
    b"\x80",
]


def folders() -> st.SearchStrategy[tuple[str, dict[str, Any], bytes, bytes, bytes, bool]]:
    """A folder's name, the manifest's changed fields, pending.npy, index, data, and whether checksums are right."""
    return st.deferred(_folders)  # TensorFlow is not used before the first input


def _folders() -> st.SearchStrategy[tuple[str, dict[str, Any], bytes, bytes, bytes, bool]]:
    odd = st.sampled_from(["step-", "step-x", "step--1", "step-²", "step-" + "9" * 200])
    names = weighted((8, st.just("step-00000003")), (1, odd))
    fields = st.dictionaries(st.sampled_from(_KEYS), json_values(_KEYS), min_size=1, max_size=3)
    array = npy(np.zeros((1, 2, 3), np.float32))
    pending = weighted((3, st.just(array)), (1, mutated([array, npy(np.array([{}], object)), b""])))
    real = bundle()
    data = weighted((4, st.just(real[_DATA])), (1, mutated([real[_DATA]])))
    index = weighted((2, st.just(real[_INDEX])), (1, mutated([real[_INDEX]])), (4, forged(real[_INDEX])))
    right = weighted((4, st.just(True)), (1, st.just(False)))
    return st.tuples(names, weighted((2, st.just({})), (1, fields)), pending, index, data, right)


@functools.cache
def bundle() -> dict[str, bytes]:
    """The files that TensorFlow writes for some variables."""
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        tf.train.Checkpoint(variables=_variables()).write(f"{folder}/variables")
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _variables() -> dict[str, Any]:
    import tensorflow as tf

    return {name: tf.Variable(np.ones(shape, np.float32)) for name, shape in _SHAPES.items()}


@st.composite
def forged(draw: st.DrawFn, index: bytes) -> bytes:
    """An index whose first block, that of the entries, has other bytes and the right checksum."""
    changed = index
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, _size(index) - 1))
        piece = draw(st.one_of(st.sampled_from(_PIECES), st.binary(min_size=1, max_size=4)))
        changed = changed[:at] + piece + changed[at + len(piece) :]
    return sealed(changed, index)


def sealed(changed: bytes, index: bytes) -> bytes:
    """The first block of a changed index with the right checksum, and what follows it in the original."""
    block = changed[: _size(index)] + b"\0"
    return block + _crc(block) + index[_size(index) + 5 :]


def _size(index: bytes) -> int:
    """How many bytes the first block has: after it come its kind, zero, and its checksum."""
    return next(at for at in range(len(index)) if index[at] == 0 and index[at + 1 : at + 5] == _crc(index[: at + 1]))


def _crc(data: bytes) -> bytes:
    return struct.pack("<I", masked_crc32c(data))


def check(drawn: tuple[str, dict[str, Any], bytes, bytes, bytes, bool], folder: Path) -> None:
    """Reads a folder of checkpoints as resuming does."""
    from ganlab.training.checkpoints import Checkpoints, restore

    name, changed, pending, index, data, right = drawn
    (Path(tempfile.gettempdir()) / "last-index").write_bytes(index)
    path = folder / "checkpoints" / name
    path.mkdir(parents=True)
    files = {_INDEX: index, _DATA: data, "pending.npy": pending}
    for file, content in files.items():
        (path / file).write_bytes(content)
    manifest = {
        "step": 3,
        "replicas": 2,
        "metrics": ["critic/loss"],
        "owed": [["critic/loss", 0.5, [0.5, 0.5]]],
        "variables": {},
        "files": {file: {"bytes": len(b), "sha256": hashlib.sha256(b).hexdigest()} for file, b in files.items()},
        **changed,
    }
    manifest["checksum"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest() if right else "0"
    (path / "manifest.json").write_text(json.dumps(manifest))
    outside = folder / "outside"
    outside.write_bytes(b"stays")

    said: list[str] = []
    sound = _refused(lambda: Checkpoints(folder / "checkpoints").latest_sound(said.append))
    assert right or sound is None
    assert outside.read_bytes() == b"stays"
    if sound is not None:
        for read in (
            lambda: sound.pending_row,
            lambda: sound.watch,
            lambda: sound.warned,
            lambda: _watched(sound),
            lambda: sound.check_fits([], 2),
            lambda: sound.pending().astype(np.float32),
            lambda: restore(sound, _variables()),
        ):
            _refused(read)


def _watched(checkpoint: Checkpoint) -> None:
    """Uses the state of the guards, as resuming does."""
    from ganlab.training.graph.guards import Warnings

    with checkpoint.using("watch"):
        if checkpoint.watch:
            Warnings(SimpleNamespace(names=["gp"], constraints=[]), []).resume(checkpoint.watch["warnings"])


def _refused(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except GanlabError:
        return None


def npy(values: np.ndarray) -> bytes:
    """A file of an array."""
    file = io.BytesIO()
    np.save(file, values, allow_pickle=True)
    return file.getvalue()
