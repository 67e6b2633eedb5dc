"""Which conformance class goes with which component, for checks of what is installed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import ganlab.testing
from ganlab.errors import IncompatibleError, MissingDependencyError
from ganlab.plugins.manager import Component
from ganlab.testing.settings import maker

# The kinds that there are classes for. A class is looked up by name when it is wanted: it needs TensorFlow.
CLASSES = {
    "constraints": "ConstraintConformance",
    "architectures": "ArchitectureConformance",
    "datasets": "DatasetConformance",
    "losses": "LossConformance",
    "evaluators": "EvaluatorConformance",
    "strategies": "StrategyConformance",
    "optimizers": "OptimizerConformance",
    "diagnostics": "DiagnosticConformance",
    "features": "FeaturesConformance",
    "launchers": "LauncherConformance",
    "searches": "SearchConformance",
}
# Those whose classes have a `sample_shape` to be tried with.
SHAPED = ("constraints", "architectures", "evaluators", "diagnostics", "features")


def suite(component: Component, given: Mapping[str, Any] | None = None, **attributes: Any) -> type:
    """The conformance class of a component.

    Args:
        component: As a plugin offers it.
        given: What it is made with, recipes for components; None for its defaults.
        attributes: Attributes and methods of the class in place of the inherited ones.
    """
    base = getattr(ganlab.testing, CLASSES[component.kind])

    made = maker(component, given or {})

    def make(self: Any) -> Any:
        return made()

    return type(f"Test_{component.kind}_{component.name.replace('.', '_')}", (base,), {"make": make, **attributes})


def obstacle(component: Component, given: Mapping[str, Any] | None = None) -> str:
    """Why a component cannot be checked on this machine with these parameters, or its defaults; empty where it can.

    Whether it can be made at all is found out by making it, which starts TensorFlow.
    """
    if component.kind not in CLASSES:
        return f"There is no conformance class for {component.kind}."
    parameters = inspect.signature(component.factory.make).parameters.items()
    needed = [name for name, parameter in parameters if parameter.default is inspect.Parameter.empty]
    if missing := [name for name in needed if name not in (given or {})]:
        selector = f"{component.kind}.{component.name}"
        return (
            f"It needs {', '.join(missing)}, without a default. Give it (--param {selector}.{missing[0]}=VALUE), or "
            f"check it in a test of its own, with ganlab.testing.{CLASSES[component.kind]}."
        )
    try:
        maker(component, given or {})()
    except (IncompatibleError, MissingDependencyError) as error:
        return f"It cannot be made here: {error}"
    except Exception:  # the suite will tell
        return ""
    return ""
