"""This machine's CPU: the first iterations of an experiment, trained and timed."""

from __future__ import annotations

import os
import time
from typing import Any

from ganlab_verify import Source, recipe_of

from ganlab.engine import Trainer, compose
from ganlab_plan import tracing

# Iterations are timed for so long, in seconds.
_SECONDS = 2.0


def measured(source: Source) -> dict[str, Any]:
    """Trains the first iterations of an experiment, with its own strategy, if they fit into this machine's memory.

    Args:
        source: The experiment.

    Returns:
        `tracing.facts` of one replica, with the `seconds` of an iteration, None if it does not fit; and the `capacity`
        in bytes for a replica, the `cores` and the `load` of this machine.

    Raises:
        GanlabError: The experiment is invalid.
    """
    load, recipe = os.getloadavg()[0], recipe_of(source)
    experiment = compose(recipe)
    facts = tracing.facts(*tracing.traced(recipe, experiment.replicas))
    capacity = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / experiment.replicas
    seconds = _seconds(Trainer(experiment)) if facts["memory"] <= capacity else None
    return {**facts, "seconds": seconds, "capacity": capacity, "load": load, "cores": os.cpu_count()}


def _seconds(trainer: Trainer) -> float:
    trainer.train(1)  # traces
    begun, spent, done, count = time.perf_counter(), 0.0, 0, 1
    while spent < _SECONDS:
        trainer.train(count)
        spent, done, count = time.perf_counter() - begun, done + count, 2 * count
    return spent / done
