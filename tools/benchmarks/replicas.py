"""One global batch on one replica, on several of one CPU, and in two processes."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict

from ganlab_verify import Source

from benchmarks import cases
from benchmarks.loops import ganlab_run
from benchmarks.pairs import Figure, Ratio
from benchmarks.processes import Child, Together, compare

_BARS = {("mlp", 2): 1.03, ("mlp", 4): 1.30, ("dcgan", 2): 1.03, ("dcgan", 4): 1.30}

# The setting that recomputes activations.
_AGAIN = "experiment.rematerialize"


def replicas(rounds: int) -> list[Ratio | Figure]:
    """Virtual replicas against one device. They share its cores, so 1 is the best possible ratio."""
    rows: list[Ratio | Figure] = []
    for (kind, count), bar in _BARS.items():
        with ganlab_run(kind, None) as one, ganlab_run(kind, None, replicas=count) as several:
            one.ready()
            several.ready()
            name = f"{kind.upper()}: {count} virtual replicas / 1"
            rows.append(compare(name, several, one, rounds, bar=bar))
    return rows


def microbatches(rounds: int) -> list[Ratio | Figure]:
    """Peak memory of training a DCGAN on 512 examples, at once, in microbatches, and with recomputed activations."""
    small, parts, whole = _peak(64, 1), _peak(512, 8), _peak(512, 1)
    return [
        Ratio("DCGAN: peak memory, batch 512 in 8 microbatches / batch 64", [(parts, small)], 1.25),
        Ratio("DCGAN: peak memory, batch 512 / batch 64", [(whole, small)]),
        Ratio("DCGAN: peak memory, batch 512, activations recomputed / kept", [(_peak(512, 1, again=True), whole)]),
        Ratio(
            "SNGAN, 32 pixels: peak memory, batch 128, activations recomputed / kept",
            [_peaks_of_sngan() for _ in range(3)],
        ),
    ]


def _peak(batch: int, parts: int, *, again: bool = False) -> int:
    return _peak_of(ganlab_run("dcgan", None, batch_size=batch, microbatches=parts, rematerialize=again))


def _peaks_of_sngan() -> tuple[int, int]:
    """Peak memory of a published residual network on random images, its activations recomputed, and kept."""
    params = ("experiment.dataset=@datasets.table()", "datasets.table.shape=(32, 32, 3)", "datasets.table.size=512")
    params += ("experiment.batch_size=128", "experiment.critic_steps=2")
    files, images = ("published/mimicry_sngan_32",), str(cases.__file__)
    kept, again = (
        _peak_of(ganlab_run("source", None, source=asdict(Source(files, (*params, f"{_AGAIN}={value}"), (), images))))
        for value in (False, True)
    )
    return again, kept


def _peak_of(run: Child) -> int:
    with run as trained:
        trained.ready()
        trained.train(2)
        return trained.bytes


def processes(rounds: int) -> list[Ratio | Figure]:
    """Two processes of `multi_worker` on this machine against one device; they exchange gradients through sockets."""
    with ganlab_run("mlp", None) as one:
        one.ready()
        first, second = _workers()
        with first, second:
            both = Together([first, second])
            both.train(1)
            return [compare("MLP: 2 processes / 1", both, one, rounds)]


def _workers() -> tuple[Child, Child]:
    hosts = [f"localhost:{_free_port()}" for _ in range(2)]
    options = json.dumps({"workers": True, "log_every": 1, "evaluate_every": 0, "checkpoint_every": 0})

    def worker(index: int) -> Child:
        config = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}}
        return Child("ganlab_run.py", "mlp", options, env={"TF_CONFIG": json.dumps(config)})

    return worker(0), worker(1)


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("localhost", 0))
        return int(opened.getsockname()[1])
