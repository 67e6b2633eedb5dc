"""Fuzz targets: `ganlab benchmark` with a forged benchmark.json, and with forged reference results."""

from __future__ import annotations

import contextlib
import functools
import json
from pathlib import Path
from typing import Any
from unittest import mock

from ganlab_benchmark import benchmarking, running
from ganlab_benchmark.benchmarking import planned_benchmark
from ganlab_sweep import take_up
from hypothesis import strategies as st

from fuzzing.drawing import UNSAFE, altered, call
from ganlab.plugins.manager import current

NAME = "gradient_penalty"


@functools.cache
def _asked() -> dict[str, Any]:
    with mock.patch.object(benchmarking, "use_plugins", return_value=current()):
        return planned_benchmark("quick", [NAME], jobs=1, against=["none"])[1]


def info() -> dict[str, Any]:
    """The content of a benchmark.json."""
    cost = {"ratio": 1.5, "low": 1.25, "high": 2.0, "ratios": [1.5, 1.25, 2.0]}
    bounds = {"1-ring/s0": {"lower": 2.0, "upper": 3.0, "note": ""}, "1-ring/s1": {"note": "none"}}
    known = {"cost": cost, "chosen": {"w1": 1, "modes": None}, "certificates": {"bound": bounds}}
    return {
        "ganlab": "0.1.0",
        "created": "2026-08-01T12:00:00+00:00",
        "asked": _asked(),
        "constraints": {NAME: known, "r1": {"cost": {"error": "no", "kind": "refused"}}},
    }


@functools.cache
def reference() -> dict[str, Any]:
    """The content of another benchmark's results.json."""
    shipped = Path(__file__).resolve().parents[2] / "gin" / "benchmark" / "quick.json"
    found: dict[str, Any] = json.loads(shipped.read_text())
    return {**found, "constraints": {name: found["constraints"][name] for name in (NAME, "r1")}}


def files() -> st.SearchStrategy[bytes]:
    """The bytes of benchmark.json."""
    return st.deferred(lambda: altered([info()]))


def references() -> st.SearchStrategy[bytes]:
    """The bytes of another benchmark's results.json."""
    return st.deferred(lambda: altered([reference()]))


def check(data: bytes, folder: Path) -> None:
    """Resumes a benchmark whose measurements and trials end at once."""
    _run(folder, data)


def check_reference(data: bytes, folder: Path) -> None:
    """Shows results beside a benchmark."""
    other = folder / "other.json"
    other.write_bytes(data)
    # Its constraint could not be trained, so that every input takes less time.
    known = {NAME: {"cost": {"error": "no", "kind": "refused"}}}
    forged = {**info(), "asked": {**_asked(), "against": [str(other)]}, "constraints": known}
    _run(folder, json.dumps(forged).encode())


def _run(folder: Path, data: bytes) -> None:
    path = folder / "b"
    path.mkdir()
    (path / "benchmark.json").write_bytes(data)

    def trained(sweep: Any, *given: Any, **options: Any) -> Any:
        return take_up(sweep)

    # Nothing is trained or measured, and what costs seconds and depends on no input is found once.
    with (
        mock.patch.object(running, "run_trials", trained),
        mock.patch.object(running, "measured", return_value={"error": "not measured", "kind": "failed"}),
        mock.patch.object(benchmarking, "use_plugins", return_value=current()),
        mock.patch.object(benchmarking, "planned", _planned),
        mock.patch.object(benchmarking.plans, "fingerprint", return_value=_asked()["fingerprint"]),
    ):
        call("benchmark", "--resume", str(path))
    for page in ("report.html", "report.md"):
        with contextlib.suppress(FileNotFoundError):
            assert not UNSAFE & set((path / page).read_text())
    with contextlib.suppress(FileNotFoundError):
        json.loads((path / "results.json").read_text(), parse_constant=lambda name: 1 / 0)


_plans: dict[Any, Any] = {}


def _planned(suite: Any, contestants: Any) -> Any:
    from ganlab_benchmark.plan import planned

    key = (suite.name, *(each.name for each in contestants))
    if key not in _plans:
        _plans[key] = planned(suite, contestants)
    return _plans[key]
