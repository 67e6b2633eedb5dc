"""Fuzz target: `ganlab sweep --resume` with a forged sweep.json prints its trials or one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

from ganlab_sweep import command, sweeping
from hypothesis import strategies as st

import ganlab
from fuzzing.drawing import altered, call
from ganlab.plugins.manager import current
from ganlab.runs import create_run

_WEIGHT = "constraints.gradient_penalty.weight"
_PROPOSAL = {"settings": {_WEIGHT: "1"}, "configuration": "a", "value": 0.5, "ended": True, "given_up": False}
ASKED = {
    "gin": ["quickstart"],
    "params": ["experiment.steps=3"],
    "grid": [f"{_WEIGHT}=[1, 2]"],
    "ranges": [],
    "seeds": [0, 1],
    "jobs": 2,
    "timeout": None,
    "launcher": "local",
    "launcher_options": [],
    "search": "grid",
    "search_options": [],
    "search_seed": 0,
    "budget": None,
    "objective": "critic/loss",
    "maximize": False,
    "no_plugin": [],
    "plugin_file": None,
}
INFO = {
    "ganlab": "0.1.0",
    "created": "2026-08-01T12:00:00+00:00",
    "folder": "/",
    "threads": 1,
    "asked": ASKED,
    "proposals": [_PROPOSAL, {**_PROPOSAL, "value": "NaN", "ended": False, "last_step": 3, "error": "no"}],
    "trials": {"a/s1": {"status": "failed", "error": "no"}, "b/s1": {"status": "pruned", "error": ""}},
    "configurations": {"a": {"settings": {_WEIGHT: "1"}}, "b": {"settings": {_WEIGHT: "2"}}},
}
RANDOM = {**ASKED, "search": "random", "ranges": [f"{_WEIGHT}=1..9:log"], "grid": [], "budget": 3}


def files() -> st.SearchStrategy[bytes]:
    """The bytes of sweep.json."""
    return altered([INFO, INFO, {**INFO, "asked": RANDOM}])


class _Launcher(ganlab.Launcher):
    """Starts jobs that end at once."""

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> ganlab.Job:
        """Starts nothing."""
        assert folder.is_dir()
        return _Job()

    def wait(self, seconds: float) -> None:
        """Does not wait."""


class _Job(ganlab.Job):
    def poll(self) -> int:
        return 1

    def stop(self) -> None:
        """Has ended."""

    def kill(self) -> None:
        """Has ended."""


def check(data: bytes, folder: Path) -> None:
    """Resumes a sweep, of which one trial has a run; trials end without a run."""
    path = folder / "s"
    (path / "trials").mkdir(parents=True)
    for name in "ab":
        (path / "trials" / f"{name}.gin").write_text("experiment.steps = 3\n")
    info = {"status": "completed", "step": 3, "steps": 3, "metrics": {"critic/loss": 0.5}}
    create_run(path / "a" / "s0", config="", operative="", info=info)
    (path / "sweep.json").write_bytes(data)
    # The plugins are found once, and a plugin file is not what is tested here.
    with (
        mock.patch.object(command, "use_plugins", return_value=current()),
        mock.patch.object(sweeping, "component", _component),
    ):
        call("sweep", "--resume", str(path))


def _component(kind: str, name: str) -> object:
    return _Launcher if kind == "launchers" else ganlab.component(kind, name)
