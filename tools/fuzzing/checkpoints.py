"""Fuzz target: a checkpoint whose files were altered is not used, and a forged one is a `GanlabError`."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from fuzzing.drawing import json_values, mutated
from ganlab.errors import GanlabError

if TYPE_CHECKING:
    from ganlab.training.checkpoints import Checkpoint

_KEYS = ("step", "replicas", "metrics", "owed", "watch", "variables", "files", "bytes", "sha256", "critic/loss")
_KEYS += ("warnings", "diagnostics", "warned", "ill", "complaints", "said", "rows", "largest", "gp")
_FILES = {"variables.index": b"index", "variables.data-00000-of-00001": b"data"}


def folders() -> st.SearchStrategy[tuple[str, dict[str, Any], bytes, bool]]:
    """A folder's name, the manifest's changed fields, the bytes of pending.npy, and whether checksums are right."""
    names = st.one_of(st.sampled_from(["step-00000003", "step-", "step-x", "step--1", "step-²", "step-" + "9" * 200]))
    changed = st.dictionaries(st.sampled_from(_KEYS), json_values(_KEYS), max_size=3)
    pending = mutated([_npy(np.zeros((1, 2, 3), np.float32)), _npy(np.array([{}], object)), b""])
    return st.tuples(names, changed, pending, st.booleans())


def check(drawn: tuple[str, dict[str, Any], bytes, bool], folder: Path) -> None:
    """Reads a folder of checkpoints as resuming does."""
    from ganlab.training.checkpoints import Checkpoints

    name, changed, pending, right = drawn
    path = folder / "checkpoints" / name
    path.mkdir(parents=True)
    files = {**_FILES, "pending.npy": pending}
    for file, data in files.items():
        (path / file).write_bytes(data)
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
            lambda: sound.owed,
            lambda: sound.watch,
            lambda: sound.warned,
            lambda: _watched(sound),
            lambda: sound.check_fits([], 2),
            lambda: sound.pending().astype(np.float32),
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


def _npy(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=True)
    return file.getvalue()
