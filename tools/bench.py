"""What ganlab costs, as ratios measured in one run.

    python tools/bench.py guards
    python tools/bench.py constraints
    python tools/bench.py diagnostics

Absolute times mean little on shared machines, so everything is alternated with what it is compared to, several rounds,
and the medians of the paired ratios are printed with their spread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def alternate(first: Callable[[], object], second: Callable[[], object], rounds: int) -> list[tuple[float, float]]:
    """Seconds of both, in turn, `rounds` times."""
    pairs = []
    for _ in range(rounds):
        seconds = []
        for function in (first, second):
            begun = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - begun)
        pairs.append((seconds[0], seconds[1]))
    return pairs


def guards(rounds: int) -> dict[str, float]:
    """The cost of comparing the replicas' variables once a chunk, on the toy networks and two virtual replicas."""
    import tensorflow as tf

    from ganlab.composition import compose
    from ganlab.config import load
    from ganlab.training.loop import Trainer

    class Unguarded(Trainer):
        def _sums(self) -> tuple[tf.Tensor, tf.Tensor]:
            return tf.zeros([1], tf.int64), tf.zeros([1])

    params = ["strategies.mirrored.virtual_replicas=2", "architectures.mlp.width=512"]
    experiment = compose(load(["eight_gaussians"], params))
    guarded, unguarded = Trainer(experiment), Unguarded(experiment)
    for trainer in (guarded, unguarded):
        trainer.train(2)
    begun = time.perf_counter()
    guarded.train(5)
    # As many iterations as a chunk of `ganlab run` has, which lasts about a second.
    chunk = max(1, round(5 / (time.perf_counter() - begun)))
    pairs = alternate(lambda: guarded.train(chunk), lambda: unguarded.train(chunk), rounds)
    ratios = [a / b for a, b in pairs]
    alone = tf.function(lambda: experiment.strategy.run(guarded._sums), autograph=False)
    alone()
    begun = time.perf_counter()
    for _ in range(20):
        alone()
    check = (time.perf_counter() - begun) / 20
    return {
        "iterations in a chunk": chunk,
        "seconds of a chunk without": statistics.median(b for _, b in pairs),
        "seconds of the check alone": check,
        "check alone / chunk": check / statistics.median(b for _, b in pairs),
        "with / without, median": statistics.median(ratios),
        "with / without, least": min(ratios),
        "with / without, most": max(ratios),
    }


# What a constraint needs of the critic before it does anything.
_NEEDS = {"consistency": ["architectures.mlp.dropout=0.1"]}


def constraints(rounds: int) -> dict[str, float]:
    """The time of training under each constraint relative to none, on the paper's toy networks and one device."""
    from ganlab import plugins
    from ganlab.composition import compose
    from ganlab.config import load
    from ganlab.training.loop import Trainer

    def trainer(constraint: str, needs: list[str]) -> Trainer:
        made = f"[@constraints.{constraint}()]" if constraint else "[]"
        params = [
            f"experiment.constraints={made}",
            "experiment.strategy=@strategies.one_device()",
            "architectures.mlp.width=512",
        ]
        return Trainer(compose(load(["eight_gaussians"], [*params, *needs])))

    found = plugins.current()
    figures = {}
    for kind, name in sorted(found.components):
        if kind != "constraints":
            continue
        needs = _NEEDS.get(name, [])
        one, none = trainer(name, needs), trainer("", needs)
        for made in (one, none):
            made.train(2)
        pairs = alternate(lambda one=one: one.train(3), lambda none=none: none.train(3), rounds)
        figures[name] = statistics.median(a / b for a, b in pairs)
    return figures


def diagnostics(rounds: int) -> dict[str, float]:
    """The cost of every diagnostic at its default interval, on the shipped toy experiment as `ganlab run` runs it.

    A run looks once in `evaluate_every` iterations, so a look is held against a chunk of iterations, in turn, and the
    ratio is computed for the interval. What is traced at the first look is paid once a run, and shown by itself.
    """
    import tempfile
    from pathlib import Path

    from ganlab import plugins
    from ganlab.composition import compose
    from ganlab.config import load
    from ganlab.telemetry.tensorboard import TensorBoardWriter
    from ganlab.training.looking import Looks
    from ganlab.training.loop import Trainer

    names = sorted(name for kind, name in plugins.current().components if kind == "diagnostics")
    made = ", ".join(f"@diagnostics.{name}()" for name in names)
    experiment = compose(load(["eight_gaussians"], [f"experiment.diagnostics=[{made}]"]))
    trainer = Trainer(experiment)
    looks = Looks(experiment, trainer.state)
    trainer.train(2)
    chunk = 20
    with tempfile.TemporaryDirectory() as folder:
        writer = TensorBoardWriter(Path(folder))

        def look() -> None:
            looked = looks(trainer.state.step, evaluating=True, last=False)
            assert looked is not None
            step = trainer.state.step
            writer.scalars(looked.records)
            for tag, values in looked.histograms.items():
                writer.histogram(step, tag, values)
            for tag, png in looked.pictures.items():
                writer.image(step, tag, png)
            writer.flush()

        begun = time.perf_counter()
        look()
        first = time.perf_counter() - begun
        pairs = alternate(look, lambda: trainer.train(chunk), rounds)
        writer.close()
    interval = experiment.evaluate_every / chunk
    ratios = [1 + look / (interval * train) for look, train in pairs]
    seconds = statistics.median(look for look, _ in pairs)
    iteration = statistics.median(train for _, train in pairs) / chunk
    run = experiment.steps * iteration
    return {
        "iterations between looks": experiment.evaluate_every,
        "seconds of an iteration": iteration,
        "seconds of a look": seconds,
        "seconds of the first look": first,
        "with / without, median": statistics.median(ratios),
        "with / without, least": min(ratios),
        "with / without, most": max(ratios),
        "whole run, with / without": 1 + (first + experiment.steps / experiment.evaluate_every * seconds) / run,
    }


BENCHMARKS = {"guards": guards, "constraints": constraints, "diagnostics": diagnostics}


def main() -> None:
    """Runs the benchmarks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which; all by default")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = {name: BENCHMARKS[name](arguments.rounds) for name in arguments.names or BENCHMARKS}
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for name, figures in results.items():
        print(name)
        for figure, value in figures.items():
            print(f"  {figure:<28} {value:.4g}")


if __name__ == "__main__":
    main()
