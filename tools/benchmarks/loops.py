"""ganlab against the same training without it: speed, precision, memory, and the time to the first iteration."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.pairs import Figure, Ratio
from benchmarks.processes import Child, compare
from benchmarks.setting import Setting, environment

KINDS = ("mlp", "dcgan")
# Written by hand for one device, in the graph.
HAND = "tf_loop.py"
_LABELS = {"mlp": "MLP", "dcgan": "DCGAN"}
# The largest ratios that are good enough.
_BARS = {
    ("mlp", HAND): 0.75,
    ("dcgan", HAND): 0.82,
    ("mlp", "torch_eager.py"): 0.50,
    ("dcgan", "torch_eager.py"): 0.85,
}
_CPU = Setting()


def ganlab_run(kind: str, folder: str | Path | None, **options: object) -> Child:
    """A run of ganlab that logs every step into `folder`; without one, its training alone."""
    given = {"log_every": 1, "evaluate_every": 0, "checkpoint_every": 0, **options}
    if folder is not None:
        given["run"] = str(Path(folder) / f"run-{time.monotonic_ns()}")
    return Child("ganlab_run.py", kind, json.dumps(given), env=environment("cpu"))


def loops(rounds: int, setting: Setting = _CPU) -> list[Ratio | Figure]:
    """Runs with all telemetry against the loop written by hand, Keras' `fit`, PyTorch and JAX; memory on the way."""
    return [row for kind in KINDS for row in _against_peers(kind, "float32", rounds, setting)]


def precision(rounds: int, setting: Setting = _CPU) -> list[Ratio | Figure]:
    """`precision = "mixed_bfloat16"` against the float32 loop written by hand, and against others in bfloat16."""
    return [row for kind in KINDS for row in _against_peers(kind, "mixed_bfloat16", rounds, setting)]


def _against_peers(kind: str, precision: str, rounds: int, setting: Setting) -> list[Ratio]:
    label, full = _LABELS[kind], precision == "float32"
    peers = [] if full else [(HAND, "hand-written TensorFlow", sys.executable)]
    with (
        tempfile.TemporaryDirectory() as folder,
        ganlab_run(kind, folder, precision=precision) as ours,
        _peer(HAND, kind) as hand,
    ):
        ours.ready()
        hand.ready()
        name = "ganlab / hand-written TensorFlow" if full else "ganlab in mixed_bfloat16 / hand-written in float32"
        bar = _BARS[kind, HAND] if full else 0.75
        rows = [compare(f"{label}: {name}", ours, hand, rounds, bar=bar)]
        if full:
            rows.append(Ratio(f"{label}: peak memory, ganlab / hand-written", [(ours.bytes, hand.bytes)], 1.10))
        for script, name, python in [*peers, *_peers(setting)]:
            title = f"{label}: ganlab / {name}" + ("" if full else ", both in bfloat16")
            peer, least = _peer(script, kind, python, precision), _BARS.get((kind, script)) if full else None
            rows += _compared(title, ours, peer, rounds, least)
    return rows


def _compared(title: str, ours: Child, peer: Child, rounds: int, bar: float | None = None) -> list[Ratio]:
    """The ratio to a peer; none, and a message, if the peer cannot train: the others' figures took long."""
    with peer:
        try:
            peer.ready()
            return [compare(title, ours, peer, rounds, bar=bar)]
        except RuntimeError as error:
            print(f"  {title}: not measured. {error}", file=sys.stderr, flush=True)
            return []


def _peers(setting: Setting) -> list[tuple[str, str, str]]:
    """Script, name and interpreter of what ganlab is compared with beside the loop written by hand."""
    found = [("keras_fit.py", "Keras fit", sys.executable)]
    if setting.torch:
        found.append(("torch_eager.py", "PyTorch eager", setting.torch))
        found.append(("torch_compiled.py", "PyTorch torch.compile", setting.torch))
    if setting.jax:
        found.append(("jax_loop.py", "JAX", setting.jax))
    return found


def _peer(script: str, kind: str, python: str = sys.executable, precision: str = "float32") -> Child:
    return Child(script, kind, "--precision", precision, python=python, env=environment("cpu"))


def telemetry(rounds: int) -> list[Ratio | Figure]:
    """A run that writes every metric of every step, and one that saves often, against training alone."""
    rows: list[Ratio | Figure] = []
    for kind, every in (("mlp", 100), ("dcgan", 20)):
        label = _LABELS[kind]
        with (
            tempfile.TemporaryDirectory() as folder,
            ganlab_run(kind, None) as silent,
            ganlab_run(kind, folder) as logging,
            ganlab_run(kind, folder, checkpoint_every=every) as saving,
        ):
            for child in (silent, logging, saving):
                child.ready()
            rows.append(compare(f"{label}: every step logged / nothing", logging, silent, rounds, bar=1.02))
            # Turns are long enough that each has its share of checkpoints.
            seconds = {"mlp": 8.0, "dcgan": 16.0}[kind] if rounds > 3 else 2.0
            name = f"{label}: a checkpoint every {every} iterations / none"
            rows.append(compare(name, saving, logging, min(rounds, 5), seconds=seconds))
    return rows


def starting(rounds: int) -> list[Ratio | Figure]:
    """The time until the first iteration is done, from nothing."""
    rounds = min(rounds, 5)
    imports, runs, firsts = [], [], []
    for _ in range(rounds):
        imports.append(_seconds([sys.executable, "-c", "import tensorflow, keras"]))
        runs.append(_until_first_iteration("eight_gaussians"))
    for _ in range(min(rounds, 3)):
        with ganlab_run("mlp", None) as ours, _peer(HAND, "mlp") as hand:
            ours.ready()
            with hand:
                begun = time.perf_counter()
                hand.train(1)
                firsts.append((ours.first, time.perf_counter() - begun))
    beyond = statistics.median(run - importing for run, importing in zip(runs, imports, strict=True))
    return [
        Figure("importing TensorFlow and Keras", statistics.median(imports), "s"),
        Figure("ganlab run eight_gaussians: to the first iteration", statistics.median(runs), "s"),
        Figure("... beyond TensorFlow's import", beyond, "s", 5.0),
        Figure("MLP: a process of ganlab to its first iteration", statistics.median(f for f, _ in firsts), "s"),
    ]


def _seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begun


def _until_first_iteration(gin: str) -> float:
    """Seconds from the start of `ganlab run` to the first iteration's metrics, where a plugin ends the process."""
    plugin = Path(__file__).with_name("first_iteration.py")
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "noted"
        ganlab = [sys.executable, "-c", "from ganlab.cli import main; main()"]
        what = ["--gin", gin, "--runs", folder, "--plugin-file", str(plugin), "--param", "experiment.log_every=1"]
        begun = time.time()
        subprocess.run(
            [*ganlab, "run", *what],
            check=False,
            capture_output=True,
            env={**os.environ, "GANLAB_BENCH_NOTE": str(noted)},
        )
        return float(noted.read_text()) - begun
