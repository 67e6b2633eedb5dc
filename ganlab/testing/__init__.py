"""The conformance kit: base classes whose tests check a plugin's component against the contract.

A constraint's author writes one method and inherits every test:

    from ganlab.testing import ConstraintConformance

    class TestMine(ConstraintConformance):
        def make(self):
            return Mine(weight=10.0)

`pytest` then trains it on one, two and four replicas, compiled, resumed and stacked. The kit needs pytest (`pip install
pytest`) and TensorFlow. `ganlab plugins check NAME` runs the same tests on an installed plugin.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ganlab.testing.architecture import ArchitectureConformance
    from ganlab.testing.augmentation import AugmentationConformance
    from ganlab.testing.conformance import Conformance
    from ganlab.testing.constraint import ConstraintConformance
    from ganlab.testing.dataset import DatasetConformance
    from ganlab.testing.diagnostic import DiagnosticConformance
    from ganlab.testing.evaluator import EvaluatorConformance
    from ganlab.testing.features import FeaturesConformance
    from ganlab.testing.generator_constraint import GeneratorConstraintConformance
    from ganlab.testing.hooks import CommandConformance, TrackerConformance
    from ganlab.testing.launcher import LauncherConformance
    from ganlab.testing.loss import LossConformance
    from ganlab.testing.optimizer import OptimizerConformance
    from ganlab.testing.schedule import ScheduleConformance
    from ganlab.testing.search import SearchConformance
    from ganlab.testing.strategy import StrategyConformance

# Loaded when first used: pytest imports this package in every run, for its plugin, and must not pay for TensorFlow.
_LAZY = {
    "TrackerConformance": "ganlab.testing.hooks",
    "ScheduleConformance": "ganlab.testing.schedule",
    "SearchConformance": "ganlab.testing.search",
    "LauncherConformance": "ganlab.testing.launcher",
    "GeneratorConstraintConformance": "ganlab.testing.generator_constraint",
    "FeaturesConformance": "ganlab.testing.features",
    "DiagnosticConformance": "ganlab.testing.diagnostic",
    "CommandConformance": "ganlab.testing.hooks",
    "ArchitectureConformance": "ganlab.testing.architecture",
    "AugmentationConformance": "ganlab.testing.augmentation",
    "Conformance": "ganlab.testing.conformance",
    "ConstraintConformance": "ganlab.testing.constraint",
    "DatasetConformance": "ganlab.testing.dataset",
    "EvaluatorConformance": "ganlab.testing.evaluator",
    "LossConformance": "ganlab.testing.loss",
    "OptimizerConformance": "ganlab.testing.optimizer",
    "StrategyConformance": "ganlab.testing.strategy",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ganlab.testing' has no attribute {name!r}")
    importlib.import_module("ganlab.testing.conformance")  # raises a clear error if pytest is missing
    return getattr(importlib.import_module(_LAZY[name]), name)


__all__ = [
    "ArchitectureConformance",
    "AugmentationConformance",
    "CommandConformance",
    "Conformance",
    "ConstraintConformance",
    "DatasetConformance",
    "DiagnosticConformance",
    "EvaluatorConformance",
    "FeaturesConformance",
    "GeneratorConstraintConformance",
    "LauncherConformance",
    "LossConformance",
    "OptimizerConformance",
    "ScheduleConformance",
    "SearchConformance",
    "StrategyConformance",
    "TrackerConformance",
]
