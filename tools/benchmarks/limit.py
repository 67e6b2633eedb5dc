"""ganlab against the limit that its own matrix products and convolutions set."""

from __future__ import annotations

from benchmarks import cases
from benchmarks.pairs import Figure, Ratio, compare

_BARS = {"mlp": 1.25, "dcgan": 1.12}


def limit(rounds: int) -> list[Ratio | Figure]:
    """Training against the products and convolutions of the same iterations alone, in one process.

    They are read from the graph that the training runs, so that those that ganlab leaves out are not among them.
    """
    from benchmarks.skeleton import Alone, iteration_of, products_of
    from ganlab.training.graph.trainer import Trainer

    rows: list[Ratio | Figure] = []
    for kind, bar in _BARS.items():
        trainer, products = Trainer(cases.CASES[kind]()), products_of(iteration_of(cases.CASES[kind]()))
        name = f"{kind.upper()}: ganlab / its {len(products)} products alone"
        rows.append(compare(name, trainer.train, Alone(products), rounds, seconds=2.0, bar=bar))
    return rows
