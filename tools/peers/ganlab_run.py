"""Runs ganlab, as `ganlab run` does, while another process times it.

    python tools/peers/ganlab_run.py mlp '{"log_every": 1, "run": "/tmp/run"}'

Options, all of them optional: `run`, a directory that the run is written to with all telemetry (without it nothing is
written, and only training is timed); `device`, `cpu` or `gpu`; `replicas`, the number of virtual ones; `workers`,
whether `TF_CONFIG` selects one of several processes; and settings of the experiment that are numbers or words. With
`source` as the model it has `source`, the fields of a `Source`: experiment files and overrides.

Prints a line of JSON for each line on standard input, a number of iterations: how many were made, at least those, and
how long they took. A run is paused only where its processes agree on how to continue, after a chunk's rows are written.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import cases
from ganlab_verify import Source, recipe_of

import ganlab
from ganlab.composition import Experiment, compose
from ganlab.lazy import tensorflow as tf
from ganlab.training.graph.trainer import Trainer
from peers import serving


class Paced:
    """Pauses a run whenever it has made the requested number of iterations."""

    def __init__(self) -> None:
        self._from, self._until, self._begun = 0, 0, 0.0
        self._agree = Trainer.agree

    def install(self) -> None:
        """Makes every trainer wait for a request before it continues."""
        paced = self

        def agree(trainer: Trainer, values: Any) -> list[float]:
            agreed = paced._agree(trainer, values)
            paced.reached(trainer.state.step)
            return agreed

        Trainer.agree = agree

    def wait(self, step: int) -> None:
        """Waits for the next number of iterations; ends the process if there is none."""
        line = sys.stdin.readline()
        if not line:
            os._exit(0)
        self._from, self._until, self._begun = step, step + int(line), time.perf_counter()

    def reached(self, step: int) -> None:
        """Answers if enough iterations were made."""
        if step >= self._until:
            serving.answer(step - self._from, time.perf_counter() - self._begun)
            self.wait(step)


def _of_source(fields: dict[str, Any]) -> Experiment:
    made = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    return compose(recipe_of(Source(**made)))


def main() -> None:
    """Trains until standard input ends."""
    kind, options = sys.argv[1], json.loads(sys.argv[2] if len(sys.argv) > 2 else "{}")
    folder, replicas, workers = options.pop("run", None), options.pop("replicas", 0), options.pop("workers", False)
    device = options.pop("device", "cpu")
    if device == "gpu" and not tf.config.list_physical_devices("GPU"):
        serving.refuse("TensorFlow sees no GPU. Install the extra `gpu`, and a driver, or use --device cpu.")
    if workers:
        options["strategy"] = ganlab.component("strategies", "multi_worker")()
    elif replicas:
        options["strategy"] = ganlab.component("strategies", "mirrored")(virtual_replicas=replicas)
    elif device == "gpu":
        options["strategy"] = ganlab.component("strategies", "one_device")(device="GPU:0")
    experiment = _of_source(options["source"]) if kind == "source" else cases.CASES[kind](**options)
    paced = Paced()
    paced.wait(0)
    if folder is not None:
        paced.install()
        ganlab.train(experiment, folder)
        return
    trainer = Trainer(experiment)
    while True:
        trainer.train(paced._until - trainer.state.step)
        paced.reached(trainer.state.step)


if __name__ == "__main__":
    main()
