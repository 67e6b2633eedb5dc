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
import re
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
def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ganlab.testing' has no attribute {name!r}")
    base = importlib.import_module("ganlab_verify.testing.conformance")  # raises a clear error if pytest is missing
    if name == "Conformance":
        return base.Conformance
    # GeneratorConstraintConformance is in generator_constraint.py.
    words = re.findall("[A-Z][a-z]+", name.removesuffix("Conformance"))
    module = "hooks" if words[0] in ("Command", "Tracker") else "_".join(words).lower()
    return getattr(importlib.import_module(f"ganlab_verify.testing.{module}"), name)


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
