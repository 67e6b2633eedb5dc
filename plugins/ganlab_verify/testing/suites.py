"""The conformance class of each kind of component, for checks of installed plugins."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import ganlab_verify.testing
from ganlab import Constraint
from ganlab.commands import Component
from ganlab.errors import IncompatibleError, MissingDependencyError
from ganlab_verify.testing.settings import maker

# The kinds that have a class. It is looked up by name when it is needed, because it imports TensorFlow.
CLASSES = {
    "constraints": "ConstraintConformance",
    "architectures": "ArchitectureConformance",
    "datasets": "DatasetConformance",
    "losses": "LossConformance",
    "augmentations": "AugmentationConformance",
    "schedules": "ScheduleConformance",
    "evaluators": "EvaluatorConformance",
    "strategies": "StrategyConformance",
    "optimizers": "OptimizerConformance",
    "diagnostics": "DiagnosticConformance",
    "features": "FeaturesConformance",
    "launchers": "LauncherConformance",
    "searches": "SearchConformance",
}


def suite(component: Component, given: Mapping[str, Any] | None = None, **attributes: Any) -> type:
    """The conformance class of a component.

    Args:
        component: The component, as a plugin offers it.
        given: Its arguments, with recipes for components; None for its defaults.
        attributes: Attributes and methods of the class that replace the inherited ones.
    """
    made = maker(component, given or {})

    def make(self: Any) -> Any:
        return made()

    return type(
        f"Test_{component.kind}_{component.name.replace('.', '_')}", (base_of(component),), {"make": make, **attributes}
    )


def base_of(component: Component) -> Any:
    """The conformance class of a component's kind."""
    return getattr(ganlab_verify.testing, class_of(component))


def class_of(component: Component) -> str:
    """The name of a component's conformance class; constraints on the generator alone have one of their own."""
    made = component.factory.make
    if component.kind == "constraints" and isinstance(made, type) and issubclass(made, Constraint):
        penalizes = made.generator_penalty is not Constraint.generator_penalty
        # Of transform(generator, critic); a critic's is transform(critic).
        moves = "critic" in list(inspect.signature(made.transform).parameters)[2:]
        if made.penalty is Constraint.penalty and (penalizes or moves):
            return "GeneratorConstraintConformance"
    return CLASSES[component.kind]


def obstacle(component: Component, given: Mapping[str, Any] | None = None) -> str:
    """The reason why a component cannot be checked here with these parameters, or its defaults; empty if it can.

    The component is made to find out, which starts TensorFlow.
    """
    if component.kind not in CLASSES:
        return f"{component.kind} have no conformance class."
    parameters = inspect.signature(component.factory.make).parameters.items()
    needed = [name for name, parameter in parameters if parameter.default is inspect.Parameter.empty]
    if missing := [name for name in needed if name not in (given or {})]:
        selector = f"{component.kind}.{component.name}"
        return (
            f"It needs {', '.join(missing)}, without a default. Set it (--param {selector}.{missing[0]}=VALUE), or "
            f"check it in your own test, with ganlab.testing.{class_of(component)}."
        )
    try:
        maker(component, given or {})()
    except (IncompatibleError, MissingDependencyError) as error:
        return f"It cannot be made here: {error}"
    except Exception:  # the suite reports it
        return ""
    return ""
