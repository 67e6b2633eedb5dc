"""Bounds of parameters."""

from __future__ import annotations

import math

import ganlab


def check_at_least(selector: str, least: float, **values: float) -> None:
    """Refuses parameters that are too small, infinite or not a number.

    Args:
        selector: The component in experiment files: `constraints.r1`.
        least: The smallest value.
        **values: The parameters by name.

    Raises:
        ConfigError: One is below that, or is not finite.
    """
    for name, value in values.items():
        if not least <= value < math.inf:
            raise ganlab.ConfigError(f"{selector}.{name} = {value!r} must be at least {least:g} and finite.")
