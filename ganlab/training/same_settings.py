"""Whether all workers train the same experiment: each composes its own, and none sees another's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ganlab import config
from ganlab.composition import Experiment
from ganlab.errors import ConfigError
from ganlab.fingerprints import digest
from ganlab.support.formatting import listed
from ganlab.training.graph.gathering import Gather
from ganlab.training.graph.tf_errors import of_several, translated_errors

# The places of a table. Each setting has a place in either of two, so that it rarely shares both with another one.
_PLACES = 1024
_RESUMED = "--resume"


def check_same_settings(experiment: Experiment, *, resume: bool) -> None:
    """Makes sure that all workers have the same settings; for one process this does nothing.

    Before any variable is made: the values that the others hand over for one of another shape would be waited for.

    Raises:
        ConfigError: They differ; the message names those of this worker that others do not have.
        WorkerLostError: Another worker is gone.
    """
    if not of_several(experiment.strategy):
        return
    settings = settings_of(experiment, resume=resume)
    mine = numbers_of(settings)
    with translated_errors(experiment, 0):
        smallest, largest = Gather(experiment.strategy).extremes(mine)
    differ = {int(i) for i in np.flatnonzero(smallest != largest)}
    if differ:
        raise ConfigError(_differing({name: value for name, value in settings.items() if differ >= _places(name)}))


def settings_of(experiment: Experiment, *, resume: bool) -> dict[str, Any]:
    """Every setting of a worker, and whether it resumes a run: these must be equal in all workers."""
    return {**config.flatten(experiment.recipe), _RESUMED: resume}


def numbers_of(settings: Mapping[str, Any]) -> list[float]:
    """Numbers, exact in float32, of which those at a setting's places are equal if its value is."""
    kept: list[list[Any]] = [[] for _ in range(2 * _PLACES)]
    for name in sorted(settings):
        for place in _places(name):
            kept[place].append([name, settings[name]])
    return [float(int(digest(json.dumps(some).encode())[:6], 16)) for some in kept]


def _places(name: str) -> set[int]:
    hexadecimal = digest(name.encode())
    return {int(hexadecimal[:8], 16) % _PLACES, _PLACES + int(hexadecimal[8:16], 16) % _PLACES}


def _differing(settings: Mapping[str, Any]) -> str:
    if not settings:
        what = "another one has settings that this one lacks"
    elif _RESUMED in settings:
        one, other = ("this one", "another one") if settings[_RESUMED] else ("another one", "this one")
        what = f"{one} resumes a run and {other} does not"
    else:
        named = [f"{name} = {value!r}" for name, value in settings.items()]
        what = f"not all have {listed(named)}, as this one has"
    return (
        f"The workers do not all have the same settings: {what}. Start the same command, with the same files, in every "
        "process."
    )
