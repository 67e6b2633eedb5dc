"""The applications `ganlab verify` and the conformance kit: is an experiment, or a component, what it claims to be?

The checks of an experiment: trained on any number of replicas, compiled, resumed, and on a TPU. `ganlab_verify.testing`
has the tests of components. The names below are for other applications as well: work in a process of its own (`call`),
and the compiler for TPUs that are not there (`tpu`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ganlab_verify import tpu
    from ganlab_verify.checks import CHECKS, Options, run
    from ganlab_verify.process import ProcessError, call
    from ganlab_verify.report import Row, Source
    from ganlab_verify.tpu.strategy import CompileOnlyStrategy
    from ganlab_verify.trainings import recipe_of
    from ganlab_verify.verifying import shipped_experiments, started, verify

# Loaded when first used: every run of pytest imports this package, for the plugin in `ganlab_verify.testing`.
_LAZY = {
    "CHECKS": "checks",
    "CompileOnlyStrategy": "tpu.strategy",
    "Options": "checks",
    "ProcessError": "process",
    "Row": "report",
    "Source": "report",
    "call": "process",
    "recipe_of": "trainings",
    "run": "checks",
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
    "Options",
    "ProcessError",
    "Row",
    "Source",
    "call",
    "recipe_of",
    "run",
    "shipped_experiments",
    "started",
    "tpu",
    "verify",
]
