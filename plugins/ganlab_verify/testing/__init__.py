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
    from ganlab_verify.testing.architecture import ArchitectureConformance
    from ganlab_verify.testing.augmentation import AugmentationConformance
    from ganlab_verify.testing.conformance import Conformance
    from ganlab_verify.testing.constraint import ConstraintConformance
    from ganlab_verify.testing.dataset import DatasetConformance
    from ganlab_verify.testing.diagnostic import DiagnosticConformance
    from ganlab_verify.testing.evaluator import EvaluatorConformance
    from ganlab_verify.testing.features import FeaturesConformance
    from ganlab_verify.testing.generator_constraint import GeneratorConstraintConformance
    from ganlab_verify.testing.hooks import CommandConformance, TrackerConformance
    from ganlab_verify.testing.launcher import LauncherConformance
    from ganlab_verify.testing.loss import LossConformance
    from ganlab_verify.testing.optimizer import OptimizerConformance
    from ganlab_verify.testing.schedule import ScheduleConformance
    from ganlab_verify.testing.search import SearchConformance
    from ganlab_verify.testing.strategy import StrategyConformance

# Loaded when first used: pytest imports this package in every run, for its plugin, and must not pay for TensorFlow.
_LAZY = {
    "TrackerConformance": "ganlab_verify.testing.hooks",
    "ScheduleConformance": "ganlab_verify.testing.schedule",
    "SearchConformance": "ganlab_verify.testing.search",
    "LauncherConformance": "ganlab_verify.testing.launcher",
    "GeneratorConstraintConformance": "ganlab_verify.testing.generator_constraint",
    "FeaturesConformance": "ganlab_verify.testing.features",
    "DiagnosticConformance": "ganlab_verify.testing.diagnostic",
    "CommandConformance": "ganlab_verify.testing.hooks",
    "ArchitectureConformance": "ganlab_verify.testing.architecture",
    "AugmentationConformance": "ganlab_verify.testing.augmentation",
    "Conformance": "ganlab_verify.testing.conformance",
    "ConstraintConformance": "ganlab_verify.testing.constraint",
    "DatasetConformance": "ganlab_verify.testing.dataset",
    "EvaluatorConformance": "ganlab_verify.testing.evaluator",
    "LossConformance": "ganlab_verify.testing.loss",
    "OptimizerConformance": "ganlab_verify.testing.optimizer",
    "StrategyConformance": "ganlab_verify.testing.strategy",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ganlab.testing' has no attribute {name!r}")
    importlib.import_module("ganlab_verify.testing.conformance")  # raises a clear error if pytest is missing
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
