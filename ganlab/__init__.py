"""ganlab: the lab bench for Lipschitz-constrained GANs.

What a plugin author or a notebook imports. Importing ganlab does not import TensorFlow; the names that need it are
loaded when first used.
"""

from __future__ import annotations

import importlib
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
)
from ganlab.hookspecs import CONTRACT, hookimpl
from ganlab.plugins import component, use_plugin_file
from ganlab.roles import (
    Architecture,
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
    Job,
    Launcher,
    Loss,
    LossGradients,
    Proposal,
    Range,
    Replica,
    Search,
)

if TYPE_CHECKING:
    from ganlab import functional, layers, lipschitz, transport
    from ganlab.comparing import compare
    from ganlab.composition import Experiment, experiment
    from ganlab.runs import Run
    from ganlab.training import train

__version__ = "0.1.0"

_LAZY = {
    "compare": "ganlab.comparing",
    "Experiment": "ganlab.composition",
    "experiment": "ganlab.composition",
    "Run": "ganlab.runs",
    "train": "ganlab.training",
    "functional": "ganlab.functional",
    "layers": "ganlab.layers",
    "lipschitz": "ganlab.lipschitz",
    "transport": "ganlab.transport",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ganlab' has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    return module if _LAZY[name] == f"ganlab.{name}" else getattr(module, name)


__all__ = [
    "CONTRACT",
    "Architecture",
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
    "IncompatibleError",
    "Job",
    "Launcher",
    "Loss",
    "LossGradients",
    "MissingDependencyError",
    "PluginError",
    "Proposal",
    "Range",
    "Replica",
    "Run",
    "RunError",
    "Search",
    "TrainingFailedError",
    "compare",
    "component",
    "experiment",
    "functional",
    "hookimpl",
    "layers",
    "lipschitz",
    "train",
    "transport",
    "use_plugin_file",
]
