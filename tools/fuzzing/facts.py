"""Fuzz target: statistics, networks, datasets and passports with forged JSON are read, or refused in a sentence."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st

import ganlab
from fuzzing.drawing import altered

_FACTS = {
    "data": "0123",
    "real_examples": 3,
    "features": "inception",
    "pattern": [0.5, 1.0],
    "count": 3,
    "held_out_accuracy": 0.9,
}
_ABOUT = {"classes": ["cat", "dog"], "size": 3}
_HEADER = {"mu": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"format": "np"}}
_LAYERS = {
    "input": [2],
    "layers": [{"kind": "dense", "weight": "mu"}],
    "class_name": "Dense",
    "tensors": {"mu": [0, 1]},
}
_MANIFEST = {"format": 1, "part": 8 << 20, "writer": "", "files": {"a/b": {"size": 1, "sha256": ["0" * 64]}}}
_RECORD = {"address": "s3://b/x", "manifest": ""}
_CLUSTER = {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}}


def files() -> st.SearchStrategy[bytes]:
    """A JSON text."""
    return altered([_FACTS, _ABOUT, _HEADER, _LAYERS, _CLUSTER, _MANIFEST, _RECORD])


def check(data: bytes, folder: Path) -> None:
    """Reads it at each of the places where plugins that come with ganlab read JSON."""
    from ganlab_builtin.datasets import tfrecords
    from ganlab_builtin.evaluators import published_scores, statistics_file
    from ganlab_builtin.features import storing, weights
    from ganlab_builtin.features.torch_file import UnreadableError
    from ganlab_builtin.strategies.workers import check_cluster
    from ganlab_certify.models import open_model
    from ganlab_passport import tensors
    from ganlab_remote import manifests, mirroring

    text = data.decode(errors="replace").rstrip("\0")
    for name, path in (("ganlab", folder / "statistics.npz"), ("facts", folder / "network.npz")):
        packed = io.BytesIO()
        arrays: dict[str, Any] = {"mu": np.zeros(2), "sigma": np.eye(2), name: np.array(text)}
        np.savez(packed, **arrays)
        path.write_bytes(packed.getvalue())
    with contextlib.suppress(statistics_file.UnusableError):
        found = statistics_file.read(folder / "statistics.npz")
        assert float(found.count or "nan") != 0
        published_scores._near(found.facts.get("pattern"), [0.5, 1.0])
    stored = storing.load(folder / "network.npz")
    assert stored is None or isinstance(stored.facts, dict)
    (folder / "x.safetensors").write_bytes(len(data).to_bytes(8, "little") + data + bytes(8))
    with (
        mock.patch.object(weights.inception_2015, "shapes", return_value={"mu": (2,)}),
        contextlib.suppress(UnreadableError),
    ):
        weights.read(folder / "x.safetensors")
    (folder / "x.json").write_bytes(data)
    with zipfile.ZipFile(folder / "x.keras", "w") as archive:
        archive.writestr("config.json", data)
        archive.writestr("model.weights.h5", b"")
    for path in (folder / "x.safetensors", folder / "x.keras"):
        with contextlib.suppress(ganlab.GanlabError):
            open_model(path)
    for content in (data, (folder / "x.safetensors").read_bytes()):
        with contextlib.suppress(ganlab.GanlabError):
            tensors.decode(content, "x")
    (folder / tfrecords.ABOUT).write_bytes(data)
    dataset = object.__new__(tfrecords.TFRecords)
    dataset._path = os.fspath(folder)
    with contextlib.suppress(ganlab.GanlabError):
        assert dataset._recorded_names(folder) == (json.loads(data)["classes"] or [])
    (folder / mirroring.RECORD).write_bytes(data)
    for read in (
        lambda: check_cluster(text),
        lambda: mirroring.recorded(folder),
        lambda: manifests.decode(f"mirror/00000001-{manifests.digest(data)}.json", data),
    ):
        with contextlib.suppress(ganlab.GanlabError):
            read()
