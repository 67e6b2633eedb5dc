"""The applications `ganlab verify` and the conformance kit: is an experiment, or a component, what it claims to be?

The checks of an experiment: trained on any number of replicas, compiled, resumed, and on a TPU. `ganlab_verify.testing`
has the tests of components. The names below are for other applications as well: work in a process of its own (`call`),
the compiler for TPUs that are not there (`tpu`), a function in float64 (`Double`), and components with settings
(`settings`, `maker`) in small experiments (`lab`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ganlab_verify import lab, tpu
    from ganlab_verify.checks import CHECKS, Options, run
    from ganlab_verify.doubling import Double
    from ganlab_verify.process import ProcessError, call
    from ganlab_verify.report import Row, Source
    from ganlab_verify.testing.settings import maker, settings
    from ganlab_verify.tpu.strategy import CompileOnlyStrategy
    from ganlab_verify.trainings import recipe_of
    from ganlab_verify.verifying import shipped_experiments, started, verify

# Loaded when first used: every run of pytest imports this package, for the plugin in `ganlab_verify.testing`.
_LAZY = {
    "CHECKS": "checks",
    "CompileOnlyStrategy": "tpu.strategy",
    "Double": "doubling",
    "Options": "checks",
    "ProcessError": "process",
    "Row": "report",
    "Source": "report",
    "call": "process",
    "lab": "",
    "maker": "testing.settings",
    "recipe_of": "trainings",
    "run": "checks",
    "settings": "testing.settings",
    "shipped_experiments": "verifying",
    "started": "verifying",
    "tpu": "",
    "verify": "verifying",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ganlab_verify' has no attribute {name!r}")
    if not _LAZY[name]:
        return importlib.import_module(f"ganlab_verify.{name}")
    return getattr(importlib.import_module(f"ganlab_verify.{_LAZY[name]}"), name)


__all__ = [
    "CHECKS",
    "CompileOnlyStrategy",
    "Double",
    "Options",
    "ProcessError",
    "Row",
    "Source",
    "call",
    "lab",
    "maker",
    "recipe_of",
    "run",
    "settings",
    "shipped_experiments",
    "started",
    "tpu",
    "verify",
]
