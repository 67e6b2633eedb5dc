"""Which conformance class goes with which component, for checks of what is installed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
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


def suite(component: Component, arguments: Callable[[], Mapping[str, Any]] | None = None, **attributes: Any) -> type:
    """The conformance class of a component.

    Args:
        component: As a plugin offers it.
        arguments: Gives what it is made with; None for its defaults.
        attributes: Attributes and methods of the class in place of the inherited ones.
    """
    base = getattr(ganlab.testing, CLASSES[component.kind])

    def make(self: Any) -> Any:
        return component.factory(**(arguments() if arguments else {}))

    return type(f"Test_{component.kind}_{component.name}", (base,), {"make": make, **attributes})


def obstacle(component: Component) -> str:
    """Why a component cannot be checked on this machine with its default parameters; empty where it can.

    Whether it can be made at all is found out by making it, which starts TensorFlow.
    """
    if component.kind not in CLASSES:
        return f"There is no conformance class for {component.kind}."
    parameters = inspect.signature(component.factory.make).parameters.items()
    needed = [name for name, parameter in parameters if parameter.default is inspect.Parameter.empty]
    if needed:
        return (
            f"It needs {', '.join(needed)}, without a default. Check it in a test of its own, with "
            f"ganlab.testing.{CLASSES[component.kind]}."
        )
    try:
        component.factory()
    except (IncompatibleError, MissingDependencyError) as error:
        return f"It cannot be made here: {error}"
    except Exception:  # the suite will tell
        return ""
    return ""
