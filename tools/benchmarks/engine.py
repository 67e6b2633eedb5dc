"""Parts of the engine against going without: constraints, guards, diagnostics, tracing; and the limit of its speed."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import cases
from benchmarks.pairs import Figure, Ratio, alternate, compare, seconds_of

_LIMITS = {"mlp": 1.25, "dcgan": 1.12}
_BARS = {"spectral_norm": 1.15, "gradient_penalty": 1.70, "r1, every 4": 1.30}
# Settings of the critic that a constraint needs to have an effect.
_NEEDS: dict[str, dict[str, Any]] = {"consistency": {"dropout": 0.1}}


def constraints(rounds: int) -> list[Ratio | Figure]:
    """Training under each constraint against training the same critic under none, on the MLP."""
    import ganlab
    from ganlab.plugins import manager as plugins
    from ganlab.training.graph.trainer import Trainer

    names = sorted(name for kind, name in plugins.current().components if kind == "constraints")
    made: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in names}
    made["r1, every 4"] = "r1", {"every": 4}
    made["finite_difference_penalty, as r1"] = "finite_difference_penalty", {"points": "real", "target": 0.0}
    plain, rows = Trainer(cases.mlp(constraints=[])), []
    for label, (name, arguments) in made.items():
        constraint = ganlab.component("constraints", name)(**arguments)
        needs, none = {}, plain
        if name in _NEEDS:
            needs = {"architecture": ganlab.component("architectures", "mlp")(width=512, **_NEEDS[name])}
            none = Trainer(cases.mlp(constraints=[], **needs))
        one = Trainer(cases.mlp(constraints=[constraint], **needs))
        rows.append(compare(f"MLP: {label} / none", one.train, none.train, rounds, bar=_BARS.get(label)))
    return rows


def guards(rounds: int) -> list[Ratio | Figure]:
    """Comparing the replicas' variables once a chunk, against a chunk of a second; two virtual replicas."""
    import tensorflow as tf

    import ganlab
    from ganlab.training.graph.trainer import Trainer

    strategy = ganlab.component("strategies", "mirrored")(virtual_replicas=2)
    trainer = Trainer(cases.mlp(strategy=strategy))
    trainer.train(2)
    chunk = max(1, round(5 / seconds_of(lambda: trainer.train(5))))
    alone = tf.function(lambda: trainer.experiment.strategy.run(trainer._sums), autograph=False)
    alone()
    pairs = alternate(lambda: [alone() for _ in range(5)], lambda: trainer.train(chunk), rounds)
    return [Ratio("MLP: a chunk with its check / without", [(b + a / 5, b) for a, b in pairs], 1.01)]


def diagnostics(rounds: int) -> list[Ratio | Figure]:
    """Every diagnostic at its default interval, on the shipped toy experiment.

    A run looks once in `evaluate_every` iterations, so a look is timed in turn with a chunk of iterations, and the
    ratio is computed for the interval. Tracing at the first look happens once per run, and is shown separately.
    """
    from ganlab.composition import compose
    from ganlab.config import load
    from ganlab.plugins import manager as plugins
    from ganlab.telemetry.tensorboard_writer import TensorBoardWriter
    from ganlab.training.diagnostics.schedule import DiagnosticSchedule
    from ganlab.training.graph.trainer import Trainer

    names = sorted(name for kind, name in plugins.current().components if kind == "diagnostics")
    made = ", ".join(f"@diagnostics.{name}()" for name in names)
    experiment = compose(load(["eight_gaussians"], [f"experiment.diagnostics=[{made}]"]))
    trainer = Trainer(experiment)
    looks = DiagnosticSchedule(experiment, trainer.state)
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

        first = seconds_of(look)
        pairs = alternate(look, lambda: trainer.train(chunk), rounds)
        writer.close()
    interval = experiment.evaluate_every / chunk
    name = f"eight_gaussians: all diagnostics every {experiment.evaluate_every} iterations / none"
    return [
        Ratio(name, [(interval * train + look, interval * train) for look, train in pairs]),
        Figure("eight_gaussians: the first look of all diagnostics, once a run", first, "s"),
    ]


def tracing(rounds: int) -> list[Ratio | Figure]:
    """Building the graph, for more critic updates an iteration and for deeper and wider networks."""
    settings: list[tuple[str, dict[str, Any]]] = [
        ("5 critic updates, depth 3, width 512", {}),
        *((f"{steps} critic updates", {"critic_steps": steps}) for steps in (1, 2, 10)),
        *((f"depth {depth}", {"depth": depth}) for depth in (6, 12)),
        ("width 1024", {"width": 1024}),
    ]
    _traced({})
    base = [_traced({}) for _ in range(min(rounds, 3))]
    rows: list[Ratio | Figure] = [Figure(f"MLP: tracing, {settings[0][0]}", sorted(base)[len(base) // 2], "s")]
    for name, parts in settings[1:]:
        pairs = [(_traced(parts), _traced({})) for _ in range(min(rounds, 3))]
        rows.append(Ratio(f"MLP: tracing, {name} / {settings[0][0]}", pairs))
    return rows


def _traced(parts: dict[str, Any]) -> float:
    from ganlab.training.graph.trainer import Trainer

    trainer = Trainer(cases.mlp(**parts))
    begun = time.perf_counter()
    trainer.trace()
    return time.perf_counter() - begun


def limit(rounds: int) -> list[Ratio | Figure]:
    """Training against the products and convolutions of the same iterations alone, in one process.

    They are read from the graph that the training runs, so that those that ganlab leaves out are not among them.
    """
    from benchmarks.skeleton import Alone, iteration_of, products_of
    from ganlab.training.graph.trainer import Trainer

    rows: list[Ratio | Figure] = []
    for kind, bar in _LIMITS.items():
        trainer, products = Trainer(cases.CASES[kind]()), products_of(iteration_of(cases.CASES[kind]()))
        name = f"{kind.upper()}: ganlab / its {len(products)} products alone"
        rows.append(compare(name, trainer.train, Alone(products), rounds, seconds=2.0, bar=bar))
    return rows
