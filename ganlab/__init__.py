"""ganlab: the lab bench for Lipschitz-constrained GANs.

What a plugin author or a notebook imports. Importing ganlab does not import TensorFlow; the names that need it are
loaded when first used.
"""

from __future__ import annotations

import sys

# `python -m ganlab` has the working directory first, which may be a stranger's and have modules of any name.
if not sys.flags.safe_path and sys.argv[:1] == ["-m"] and "-m ganlab" in " ".join(sys.orig_argv):
    del sys.path[0]

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from ganlab.errors import (
    ConfigError,
    ContractError,
    GanlabError,
    IncompatibleError,
    MissingDependencyError,
    PluginError,
    RunError,
    TrainingFailedError,
    nearest,
)
from ganlab.interfaces import (
    Architecture,
    Augmentation,
    Batch,
    Choices,
    Constraint,
    Critic,
    CriticLayer,
    CriticView,
    Dataset,
    Diagnostic,
    Evaluator,
    Features,
    Findings,
    Generator,
    Job,
    Launcher,
    Loss,
    LossGradients,
    Network,
    Proposal,
    Range,
    Replica,
    Schedule,
    Search,
)
from ganlab.interfaces.hookspecs import CONTRACT, hookimpl
from ganlab.plugins.manager import component, use_plugin_file
from ganlab.version import __version__ as __version__

if TYPE_CHECKING:
    from ganlab_compare import compare
    from ganlab_sweep import sweep
    from ganlab_verify import verify

    from ganlab import (
        architectures,
        augmentations,
        bounds,
        commands,
        comparing,
        constraints,
        datasets,
        diagnostics,
        engine,
        errors,
        evaluators,
        exporting,
        features,
        files,
        fingerprints,
        functional,
        launchers,
        layers,
        lazy,
        lipschitz,
        losses,
        optimizers,
        pictures,
        roles,
        schedules,
        searches,
        strategies,
        testing,
        transport,
    )
    from ganlab.composition import Experiment, experiment
    from ganlab.run import Run, load, preload, train
    from ganlab.support.atomic import new_folder
    from ganlab.support.paths import open_regular
    from ganlab.support.processes import python_command, start_process
    from ganlab.telemetry import Record

# Names that are loaded when they are first used, with their modules; every other lazy name is a module of ganlab's.
_LAZY = {
    "benchmark": "ganlab_benchmark",
    "compare": "ganlab_compare",
    "Experiment": "ganlab.composition",
    "load": "ganlab.run",
    "experiment": "ganlab.composition",
    "Record": "ganlab.telemetry",
    "new_folder": "ganlab.support.atomic",
    "open_regular": "ganlab.support.paths",
    "python_command": "ganlab.support.processes",
    "start_process": "ganlab.support.processes",
    "Run": "ganlab.run",
    "preload": "ganlab.run",
    "sweep": "ganlab_sweep",
    "train": "ganlab.run",
    "verify": "ganlab_verify",
}
# Public names that go, which are lazy and no longer listed: what to use instead, and the version without them.
_GOING: dict[str, tuple[str, str]] = {}


def __getattr__(name: str) -> Any:
    if name in _GOING:
        instead, version = _GOING[name]
        warnings.warn(f"ganlab.{name} goes in ganlab {version}: use {instead}.", FutureWarning, stacklevel=2)
    elif name not in __all__:
        near = "" if name.startswith("_") else nearest(name, __all__)
        raise AttributeError(f"module 'ganlab' has no attribute {name!r}.{near}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    return importlib.import_module(f"ganlab.{name}")


def __dir__() -> list[str]:
    """The public names, those that are loaded when first used too."""
    return sorted({*__all__, *globals()})


__all__ = [
    "CONTRACT",
    "Architecture",
    "Augmentation",
    "Batch",
    "Choices",
    "ConfigError",
    "Constraint",
    "ContractError",
    "Critic",
    "CriticLayer",
    "CriticView",
    "Dataset",
    "Diagnostic",
    "Evaluator",
    "Experiment",
    "Features",
    "Findings",
    "GanlabError",
    "Generator",
    "IncompatibleError",
    "Job",
    "Launcher",
    "Loss",
    "LossGradients",
    "MissingDependencyError",
    "Network",
    "PluginError",
    "Proposal",
    "Range",
    "Record",
    "Replica",
    "Run",
    "RunError",
    "Schedule",
    "Search",
    "TrainingFailedError",
    "__version__",
    "architectures",
    "augmentations",
    "benchmark",
    "bounds",
    "commands",
    "compare",
    "comparing",
    "component",
    "constraints",
    "datasets",
    "diagnostics",
    "engine",
    "errors",
    "evaluators",
    "experiment",
    "exporting",
    "features",
    "files",
    "fingerprints",
    "functional",
    "hookimpl",
    "launchers",
    "layers",
    "lazy",
    "lipschitz",
    "load",
    "losses",
    "new_folder",
    "open_regular",
    "optimizers",
    "pictures",
    "preload",
    "python_command",
    "roles",
    "schedules",
    "searches",
    "start_process",
    "strategies",
    "sweep",
    "testing",
    "train",
    "transport",
    "use_plugin_file",
    "verify",
]
