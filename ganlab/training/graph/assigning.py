"""How an update changes a network's variables other than by its optimizer."""

from __future__ import annotations

from typing import Any

from ganlab.errors import IncompatibleError
from ganlab.training.graph.networks import Network
from ganlab.training.graph.replica import Draws
from ganlab.training.graph.stack import ConstraintStack
from ganlab.training.graph.state import assign, read
from ganlab.training.graph.values import Tensors


def assign_changed(variables: dict[str, Any], values: Tensors, before: Tensors) -> None:
    """Assigns the values that are other tensors than before."""
    changed = [name for name in variables if values[name] is not before[name]]
    assign([variables[name] for name in changed], [values[name] for name in changed])


def project(stack: ConstraintStack, variables: dict[str, Any]) -> None:
    """Moves weights to where the constraints allow them."""
    if stack.overrides_projection:
        weights = read(variables)
        assign_changed(variables, stack.project(weights), weights)


def check_buffers(network: Network, draws: Draws, before: Tensors, after: Tensors) -> None:
    """Refuses buffers that a part of a batch has changed.

    Raises:
        IncompatibleError: They are statistics of the whole batch.
    """
    changed = [name for name, value in before.items() if after[name] is not value]
    if changed and not draws.whole:
        raise of_whole_batch(f"The {network.role}'s {changed[0]!r}")


def of_whole_batch(what: str) -> IncompatibleError:
    """The error that names what cannot be trained in microbatches."""
    return IncompatibleError(
        f"{what} takes statistics of the whole batch, which its parts do not know. Set experiment.microbatches = 1, or "
        "use a layer that normalizes each example alone, for example ganlab.layers.LayerNormalization."
    )
