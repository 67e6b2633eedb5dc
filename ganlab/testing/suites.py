"""Which conformance class goes with which component, for checks of what is installed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import ganlab.testing
from ganlab.errors import IncompatibleError, MissingDependencyError
from ganlab.plugins import Component

# The kinds that there are classes for. A class is looked up by name when it is wanted: it needs TensorFlow.
CLASSES = {
    "constraints": "ConstraintConformance",
    "architectures": "ArchitectureConformance",
    "datasets": "DatasetConformance",
    "losses": "LossConformance",
    "evaluators": "EvaluatorConformance",
    "strategies": "StrategyConformance",
    "optimizers": "OptimizerConformance",
}


def suite(component: Component, arguments: Mapping[str, Any] | None = None, **attributes: Any) -> type:
    """The conformance class of a component.

    Args:
        component: As a plugin offers it.
        arguments: What it is made with; its defaults otherwise.
        attributes: Attributes and methods of the class in place of the inherited ones.
    """
    base = getattr(ganlab.testing, CLASSES[component.kind])
    given = dict(arguments or {})

    def make(self: Any) -> Any:
        return component.factory(**given)

    return type(f"Test_{component.kind}_{component.name}", (base,), {"make": make, **attributes})


def obstacle(component: Component, arguments: Mapping[str, Any] | None = None) -> str:
    """Why a component cannot be checked on this machine with these arguments; empty where it can.

    Whether it can be made at all is found out by making it, which starts TensorFlow.
    """
    if component.kind not in CLASSES:
        return f"There is no conformance class for {component.kind}."
    parameters = inspect.signature(component.factory.make).parameters.items()
    needed = [name for name, parameter in parameters if parameter.default is inspect.Parameter.empty]
    missing = [name for name in needed if name not in (arguments or {})]
    if missing:
        return (
            f"It needs {', '.join(missing)}, without a default. Check it in a test of its own, with "
            f"ganlab.testing.{CLASSES[component.kind]}."
        )
    try:
        component.factory(**(arguments or {}))
    except (IncompatibleError, MissingDependencyError) as error:
        return f"It cannot be made here: {error}"
    except Exception:  # the suite will tell
        return ""
    return ""
