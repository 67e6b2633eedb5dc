"""A folder of trained feature networks: arrays in `.npz` files, named by training data and settings.

No setting names the folder, because a run's settings may be a stranger's.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab.bounds import Local, violation
from ganlab.lazy import tensorflow as tf

_EXAMPLES = 512
_FACTS = "facts"


@dataclass(frozen=True)
class Stored:
    """The content of a file.

    Attributes:
        arrays: The network's weights in order.
        facts: Plain values about it.
    """

    arrays: list[np.ndarray]
    facts: dict[str, Any]


def path(name: str, dataset: ganlab.Dataset, settings: Mapping[str, Any]) -> Path:
    """The file of a network in `$GANLAB_CACHE/features` or `~/.cache/ganlab/features`, named by data and settings.

    The name depends on the data's size, shape, every label and 512 examples spread over all of them: reading each pixel
    would take as long as an epoch.
    """
    assert dataset.size is not None
    size = dataset.size
    numbers = np.unique(np.linspace(0, size - 1, min(size, _EXAMPLES)).astype(np.int64))
    digest = hashlib.sha256()
    described = {"size": size, "shape": list(dataset.sample_shape), "classes": dataset.classes, **settings}
    digest.update(json.dumps(described, sort_keys=True).encode())
    digest.update(np.asarray(dataset.labels(tf.range(size, dtype=tf.int64)), np.int64).tobytes())
    digest.update(np.asarray(dataset.examples(tf.constant(numbers), 0), np.float32).tobytes())
    root = os.environ.get("GANLAB_CACHE") or Path.home() / ".cache" / "ganlab"
    if problem := violation(root, Annotated[str, Local()]):
        raise ganlab.ConfigError(f"GANLAB_CACHE = {root!r} {problem}")
    return Path(root) / "features" / f"{name}-{digest.hexdigest()[:20]}.npz"


def check(path: Path) -> None:
    """Refuses a path where no file can be written."""
    with _config_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()


def save(path: Path, arrays: Sequence[np.ndarray], facts: Mapping[str, Any]) -> None:
    """Writes arrays and plain facts into one file, completely or not at all."""
    named: dict[str, Any] = {f"{i:04d}": array for i, array in enumerate(arrays)}
    named[_FACTS] = np.array(json.dumps(facts))
    # In a temporary folder, because another run may be training the same network.
    with _config_errors(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}.") as aside:
        part = Path(aside) / path.name
        np.savez(part, **named)
        part.replace(path)


def load(path: Path) -> Stored | None:
    """Reads a file; None if it is missing or cannot be read. Nothing in it is executed."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = [archive[name] for name in sorted(set(archive.files) - {_FACTS})]
            return Stored(arrays, dict(json.loads(str(archive[_FACTS]))))
    except Exception:  # a torn file leads to errors of zipfile, zlib, tokenize, or of memory, among others
        return None


@contextlib.contextmanager
def _config_errors(path: Path) -> Iterator[None]:
    """Context manager: turns an OSError while writing into a ConfigError."""
    try:
        yield
    except OSError as error:
        raise ganlab.ConfigError(
            f"The trained feature network cannot be kept in {path.parent}: {error.strerror or error}. Set "
            "the environment variable GANLAB_CACHE to a folder that can be written."
        ) from error
