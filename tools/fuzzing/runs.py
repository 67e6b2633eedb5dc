"""Fuzz target: reading a forged run folder gives an answer or a `GanlabError`, and executes nothing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from ganlab_compare.loaded_runs import read_run, with_rows
from ganlab_runs.listing import look_at
from hypothesis import strategies as st

from fuzzing.drawing import changed, deep, json_values, mutated
from ganlab import config
from ganlab.errors import GanlabError
from ganlab.run import Run
from ganlab.runs import lock

_KEYS = [
    *("status", "step", "steps", "seed", "replicas", "strategy"),
    *("chief", "compiled", "settings", "sample_shape", "metrics", "evaluation"),
    *("diagnostics", "wall_seconds", "provenance", "plugins", "started", "argv"),
    *("health", "warnings", "resumed", "process", "signal"),
]
_LOCK = {"host": "elsewhere", "pid": 1, "started": "7", "beat": 3}
_INFO = {
    "status": "running",
    "step": 3,
    "steps": 10,
    "seed": 0,
    "replicas": 2,
    "settings": {"dataset": "digits", "experiment.seed": 0},
    "sample_shape": [8, 8, 1],
    "metrics": {"critic/loss": 0.5},
    "wall_seconds": 1.5,
    "provenance": {"plugins": {"ganlab_plugins": {"distribution": "/x/ganlab_plugins.py"}}, "started": "2026-08-01"},
}


def folders() -> st.SearchStrategy[dict[str, bytes]]:
    """The bytes of each file."""
    gin = config.render(config.load(["quickstart"])).encode()
    fields = st.dictionaries(st.sampled_from(_KEYS), json_values(_KEYS), max_size=4)
    locks = st.dictionaries(st.sampled_from(list(_LOCK)), json_values(), max_size=4)
    row = b'{"step": 1, "metrics": {"critic/loss": {"reduced": 0.5}}}\n'
    return st.fixed_dictionaries(
        {
            "run.json": st.one_of(
                changed([{}, _INFO], fields), mutated([json.dumps(_INFO).encode()]), _any(json_values(_KEYS))
            ),
            "config.gin": mutated([gin], [b"include '/etc/passwd'\n", b"include '../x.gin'\n", b"import os\n"]),
            "operative.gin": mutated([gin]),
            "metrics.jsonl": mutated([row, row * 3]),
        },
        optional={
            "lock.json": st.one_of(changed([{}, _LOCK], locks), _any(json_values())),
        },
    )


def check(files: dict[str, bytes], folder: Path) -> None:
    """Reads a folder in every way that does not train or evaluate."""
    path = folder / "run"
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)
    run = Run(path)
    readers: tuple[Callable[[], Any], ...] = (
        lambda: run.info,
        lambda: run.config,
        lambda: run.operative,
        run.metrics,
        run.recipe,
        run.check,
        lambda: look_at(path),
        lambda: lock.holder(path),
        lambda: with_rows(read_run(path), {"critic/loss": "min"}),
        lambda: _take_over(run),
    )
    with mock.patch.object(lock, "_STILL_SECONDS", 0.0):
        for read in readers:
            with contextlib.suppress(GanlabError):
                read()


def _take_over(run: Run) -> None:
    with lock.locked(run):
        pass


def _any(values: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    return st.one_of(values.map(lambda value: json.dumps(value).encode()), deep(), st.binary(max_size=40))
