"""The limits that an experiment's own matrix products and convolutions set."""

from __future__ import annotations

import ganlab
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


def shares(rounds: int) -> list[Ratio | Figure]:
    """The products and convolutions of virtual replicas, on their parts of the batch, against those of one device.

    What they take longer is no cost of ganlab's: smaller products are less efficient, and what depends on the weights
    alone is computed once per replica.
    """
    from benchmarks.skeleton import Alone, iteration_of, products_of

    # The largest first: the CPU can be split only once.
    replicas = {count: ganlab.component("strategies", "mirrored")(virtual_replicas=count) for count in (4, 2)}
    rows: list[Ratio | Figure] = []
    for kind in _BARS:
        one = products_of(iteration_of(cases.CASES[kind]()))
        for count in (2, 4):
            several = products_of(iteration_of(cases.CASES[kind](strategy=replicas[count])))
            name = f"{kind.upper()}: {len(several)} products of {count} virtual replicas / {len(one)} of 1"
            rows.append(compare(name, Alone(several), Alone(one), rounds, seconds=2.0))
    return rows
