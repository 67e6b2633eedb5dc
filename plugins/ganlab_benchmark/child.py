"""Measurements in a process of their own: the cost of a constraint, and the certificates of trained critics.

`python -m ganlab_benchmark.child`, with a request as JSON on standard input; the last line of standard output is the
answer. A fresh process has no threads, memory or compiled code of other trainings.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ganlab.commands import read_experiment, use_plugins
from ganlab.errors import GanlabError
from ganlab.files import scratch_folder


def main() -> int:
    """Answers the request on standard input."""
    request = json.loads(sys.stdin.read())
    plugin_file = request["plugin_file"]
    use_plugins(request["no_plugin"], Path(plugin_file) if plugin_file else None)
    answer = cost(request) if request["what"] == "cost" else certificates(request)
    sys.stdout.write(f"\n{json.dumps(answer)}\n")
    sys.stdout.flush()
    return 0


def cost(request: Mapping[str, Any]) -> dict[str, Any]:
    """The time of an iteration under a constraint over that without: `ratios`, one for each round; or an `error`."""
    try:
        constrained, plain = (_trainer(request[name]) for name in ("constrained", "plain"))
        for trainer in (constrained, plain):
            trainer.train(1)  # traces
            trainer.train(2)
        return {"ratios": _ratios(constrained, plain, int(request["rounds"]), float(request["seconds"]))}
    except GanlabError as error:
        return {"error": str(error), "kind": "refused"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "kind": "failed"}


def _ratios(constrained: Any, plain: Any, rounds: int, seconds: float) -> list[float]:
    """Each round times both, in turn; which of the two goes first alternates."""
    clock = _clock()
    # As many iterations as take about that long; the first ones, with cold caches, do not count.
    chunks = []
    for trainer in (constrained, plain):
        once = max(_seconds(clock, trainer, 8) / 8, 1e-6)
        chunks.append(max(1, round(seconds / once)))
        trainer.train(chunks[-1])
    pairs = []
    for number in range(rounds):
        order = (1, 0) if number % 2 else (0, 1)
        times = {which: _seconds(clock, (constrained, plain)[which], chunks[which]) / chunks[which] for which in order}
        pairs.append((times[0], times[1]))
    return [first / second for first, second in pairs]


def _seconds(clock: Callable[[], float], trainer: Any, count: int) -> float:
    begun = clock()
    trainer.train(count)
    return clock() - begun


def _clock() -> Callable[[], float]:
    """Processor time, which other programs hardly change; wall time where a GPU does the work."""
    import tensorflow as tf

    return time.perf_counter if tf.config.list_physical_devices("GPU") else time.process_time


def _trainer(text: str) -> Any:
    from ganlab.engine import Trainer, compose

    with scratch_folder("ganlab-benchmark-") as folder:
        path = Path(folder) / "experiment.gin"
        path.write_text(text, encoding="utf-8")
        return Trainer(compose(read_experiment([str(path)], [])))


def certificates(request: Mapping[str, Any]) -> dict[str, Any]:
    """For each run: `lower` and `upper` bounds of the critic's Lipschitz constant, or a `note` why there is none."""
    from ganlab import Run

    answers: dict[str, dict[str, Any]] = {}
    for name, path in request["runs"].items():
        try:
            certificate = Run(Path(path)).certify(seconds=request["seconds"], rungs=request["rungs"])
        except Exception as error:
            answers[name] = {"note": f"{type(error).__name__}: {error}"}
            continue
        notes = [rung.note for rung in certificate.rungs if rung.bound is None and rung.note]
        answers[name] = {"lower": certificate.lower, "upper": certificate.upper, "note": notes[0] if notes else ""}
    return {"certificates": answers}


def middle(ratios: list[float]) -> dict[str, float]:
    """The median of a measurement's ratios, with their quartiles."""
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return {"ratio": statistics.median(ratios), "low": low, "high": high}


if __name__ == "__main__":
    code = main()
    gc.freeze()  # the process then ends a second earlier
    sys.exit(code)
