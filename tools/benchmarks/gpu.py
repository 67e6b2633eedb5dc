"""Milliseconds of an iteration on a GPU: ganlab, loops written by hand, PyTorch, JAX and torch-mimicry.

The processes of a section start side by side, because each compiles for up to minutes; they are then timed in turn.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.processes import Child, each
from benchmarks.setting import Setting, environment

SECTIONS = {
    "mlp": "WGAN-GP, the toy networks, batch 256",
    "dcgan": "WGAN-GP, the MNIST networks, batch 64",
    "sngan": "SNGAN on 32 pixels, gin/published/mimicry_sngan_32.gin on random images, batch 64",
}
_SPAN_SECONDS = 0.8
_EVERY_STEP = {"log_every": 1, "evaluate_every": 0, "checkpoint_every": 0}


@dataclass(frozen=True)
class Plan:
    """A process to be timed.

    Attributes:
        name: What it trains.
        script: Of tools/peers.
        arguments: The script's.
        python: The interpreter.
    """

    name: str
    script: str
    arguments: tuple[str, ...]
    python: str = sys.executable

    def start(self, device: str) -> Child:
        """Starts it."""
        return Child(self.script, *self.arguments, python=self.python, env=environment(device))


@dataclass(frozen=True)
class Timed:
    """A process that was timed.

    Attributes:
        name: What it trains.
        first: Seconds from its start to the end of its first iteration, beside the others.
        rounds: Seconds of an iteration, in each round.
        failure: Why it could not train; empty if it could.
    """

    name: str
    first: float = 0.0
    rounds: Sequence[float] = ()
    failure: str = ""

    def cells(self) -> list[str]:
        """The columns of the table: name, median, range, and the time to the first iteration."""
        if self.failure:
            return [self.name, "not measured", self.failure.replace("|", "/"), ""]
        low, middle, high = (f"{1e3 * f(self.rounds):.4g}" for f in (min, statistics.median, max))
        return [self.name, middle, f"{low} to {high}", f"{self.first:.1f}"]


def plans(section: str, setting: Setting, folder: str) -> list[Plan]:
    """The processes of a section: ganlab with all telemetry, into `folder`, and what it is compared with."""
    made = []
    for precision in setting.precisions:
        for jit in setting.jits:
            run = {"run": str(Path(folder) / f"{precision}-{jit}"), "device": setting.device}
            options = run | (_of_file(precision, jit) if section == "sngan" else {"precision": precision, "jit": jit})
            kind = "source" if section == "sngan" else section
            if kind != "source":
                options |= _EVERY_STEP
            made.append(Plan(f"ganlab, {precision}, jit = {jit!r}", "ganlab_run.py", (kind, json.dumps(options))))
        peers = _MIMICRY if section == "sngan" else _PEERS
        for name, script, library in peers:
            python = {"": sys.executable, "torch": setting.torch, "jax": setting.jax}[library]
            if python:
                arguments = (section, "--device", setting.device, "--precision", precision)
                made.append(Plan(f"{name}, {precision}", script, arguments, python))
    return made


_PEERS = [
    ("hand-written TensorFlow, one graph", "tf_loop.py", ""),
    ("hand-written TensorFlow, each update compiled", "tf_compiled.py", ""),
    ("Keras fit", "keras_fit.py", ""),
    ("PyTorch eager", "torch_eager.py", "torch"),
    ("PyTorch torch.compile", "torch_compiled.py", "torch"),
    ("JAX, one program", "jax_loop.py", "jax"),
]
_MIMICRY = [("torch-mimicry's steps", "mimicry_steps.py", "torch")]


def _of_file(precision: str, jit: str) -> dict[str, object]:
    """A published experiment on random images, as the source that ganlab_run.py takes."""
    settings = {f"experiment.{name}": value for name, value in _EVERY_STEP.items()}
    settings |= {"experiment.precision": repr(precision), "experiment.jit": repr(jit), "experiment.steps": 10**6}
    settings |= {"experiment.dataset": "@datasets.table()", "datasets.table.shape": (32, 32, 3)}
    settings |= {"experiment.strategy": "@strategies.one_device()", "experiment.evaluators": []}
    params = [f"{name}={value}" for name, value in settings.items()]
    images = str(Path(__file__).with_name("cases.py"))
    return {"source": {"gin_files": ["published/mimicry_sngan_32"], "params": params, "plugin_file": images}}


def measure(section: str, setting: Setting, rounds: int) -> list[Timed]:
    """Starts the processes of a section side by side, and times them in turn."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        children = {p.name: running.enter_context(p.start(setting.device)) for p in plans(section, setting, folder)}
        return in_turn(children, rounds, setting.start)


def in_turn(children: Mapping[str, Child], rounds: int, start: float) -> list[Timed]:
    """Times processes that have just started; one that fails, or is not ready in `start` seconds, is ended."""
    failures: dict[str, str] = {}

    def ready(name: str) -> None:
        limit = threading.Timer(start, children[name].kill)
        limit.start()
        try:
            children[name].ready()
        except RuntimeError as error:
            failures[name] = f"not ready within {start:g} s" if limit.finished.is_set() else str(error)
        finally:
            limit.cancel()

    with ThreadPoolExecutor(len(children)) as pool:
        list(pool.map(ready, children))
    counts: dict[str, int] = {}
    spans: dict[str, list[float]] = {name: [] for name in children}
    for turn in range(rounds + 1):
        for name, child in children.items():
            if name not in failures:
                try:
                    if not turn:
                        counts[name] = max(1, round(_SPAN_SECONDS / each(child, _SPAN_SECONDS)))
                    spans[name].append(child.train(counts[name]))
                except RuntimeError as error:
                    failures[name] = str(error)
    # The first of them warms up.
    return [Timed(n, child.first, spans[n][1:], failures.get(n, "")) for n, child in children.items()]


def table(results: Mapping[str, Sequence[Timed]], card: str) -> str:
    """The times as Markdown, a table for each section."""
    lines = [f"On {card}, milliseconds of an iteration: five updates of the critic and one of the generator.", ""]
    for section, rows in results.items():
        lines += [f"**{section}.** {SECTIONS[section]}", "", "| what | median | range | first iteration, s |"]
        lines += ["|---|---|---|---|", *("| " + " | ".join(row.cells()) + " |" for row in rows), ""]
    return "\n".join(lines)


def as_json(results: Mapping[str, Sequence[Timed]], card: str) -> str:
    """The same, with every round."""
    return json.dumps({"card": card, "sections": {n: [asdict(row) for row in r] for n, r in results.items()}}, indent=2)
