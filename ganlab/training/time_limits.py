"""Time limits for plugins: how long training waits for their code."""

from __future__ import annotations

import math
import os

from ganlab.errors import ConfigError

# Seconds without an answer after which a notice names the plugin; the next comes after twice as many, and so on.
NOTICE_SECONDS = 10.0
# Seconds that a plugin has left once the run is to stop.
STOPPING_SECONDS = 5.0

_DEFAULTS = {"GANLAB_TRACKER_SECONDS": 60.0, "GANLAB_EVALUATOR_SECONDS": 4 * 3600.0}


def limit(name: str) -> float:
    """A limit in seconds, from the environment or by default.

    Args:
        name: `GANLAB_TRACKER_SECONDS`, for each call of a tracker, or `GANLAB_EVALUATOR_SECONDS`, for each call of an
            evaluator or a diagnostic.

    Raises:
        ConfigError: The value in the environment is not a number above 0.
    """
    given = os.environ.get(name, "")
    if not given:
        return _DEFAULTS[name]
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise ConfigError(f"{name} = {given!r} in the environment must be a number of seconds above 0.")
    return seconds


def check() -> None:
    """Raises ConfigError if a limit in the environment is invalid."""
    for name in _DEFAULTS:
        limit(name)
