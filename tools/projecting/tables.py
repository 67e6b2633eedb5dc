"""Projections as tables of Markdown and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ganlab_plan.places import Place
from ganlab_plan.times import Time

from projecting.model import Costs


@dataclass(frozen=True)
class Projection:
    """One experiment in one precision on slices of growing size.

    Attributes:
        precision: The experiment's.
        scaling: The batch that stays the same as the slice grows, in words.
        rows: Names and slices, with the batch of a chip and the iteration's time.
    """

    precision: str
    scaling: str
    rows: Sequence[tuple[str, Place, float, Time]]

    def as_json(self) -> dict[str, Any]:
        """Plain values, times in seconds."""
        rows = [
            {"slice": name, "chips": where.chips, "batch": batch, **asdict(spent), "total": spent.total}
            for name, where, batch, spent in self.rows
        ]
        return {"precision": self.precision, "scaling": self.scaling, "rows": rows}

    def lines(self) -> Iterator[str]:
        """A table. Ideal is the speed of a chip in the chip's smallest slice, times the chips."""
        yield f"**{self.precision}, {self.scaling}.**"
        yield ""
        heads = ["slice", "chips", "batch of a chip", "arithmetic", "memory", "all-reduces", "iteration"]
        heads += ["examples/s", "of ideal", "limit"]
        yield "| " + " | ".join(heads) + " |"
        yield "|" + "---|" * len(heads)
        first: dict[str, float] = {}
        for name, where, batch, spent in self.rows:
            speed = batch / spent.total
            ideal = first.setdefault(where.chip.name, speed)
            times = (spent.products, spent.memory, spent.reducing, spent.total)
            cells = [name, str(where.chips), f"{batch:g}", *(f"{1e3 * part:.2f} ms" for part in times)]
            cells += [f"{speed * where.chips:,.0f}", f"{speed / ideal:.0%}", spent.limit]
            yield "| " + " | ".join(cells) + " |"
        yield ""


def compiled_lines(counts: dict[str, Costs]) -> Iterator[str]:
    """The compiler's counts, by chip."""
    yield "| chip | batch of a chip | GFLOP | MB accessed | all-reduces | MB reduced |"
    yield "|---|---|---|---|---|---|"
    for chip, costs in counts.items():
        for batch, cost in ((costs.small, costs.least), (costs.large, costs.most)):
            yield (
                f"| {chip} | {batch} | {cost.flops / 1e9:.1f} | {cost.accessed / 1e6:.0f} | "
                f"{cost.all_reduces} | {cost.reduced / 1e6:.1f} |"
            )
    yield ""
