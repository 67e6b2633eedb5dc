"""The results of a reproduction: tables, pictures, and claims that hold or do not."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Claim:
    """A statement with a number in it.

    Attributes:
        statement: The claim, in words that a reader can check against the table.
        figure: The measured figure.
        relation: The required relation of the figure to the limit.
        limit: The limit.
    """

    statement: str
    figure: float
    relation: Literal["at least", "at most"]
    limit: float

    @property
    def holds(self) -> bool:
        """Whether the claim holds; never for a figure that is NaN."""
        return bool(self.figure >= self.limit if self.relation == "at least" else self.figure <= self.limit)

    def row(self) -> list[str]:
        """The claim as cells of a table."""
        limit = f"{self.relation} {self.limit:g}"
        return [self.statement, number(self.figure, 4), limit, "yes" if self.holds else "**no**"]


@dataclass(frozen=True)
class Table:
    """Rows of text.

    Attributes:
        title: The title, with units.
        header: The columns' names.
        rows: One cell per column.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table in Markdown, its columns aligned."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [self.header, ["-" * width for width in widths], *self.rows]
        cells = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
        return "\n".join([f"{self.title}\n", *(f"| {' | '.join(line)} |" for line in cells)]) + "\n"


@dataclass(frozen=True)
class Report:
    """The outcome of one reproduction.

    Attributes:
        tables: The measurements.
        claims: The claims about them.
        pictures: PNGs by name, without the suffix.
    """

    tables: Sequence[Table]
    claims: Sequence[Claim]
    pictures: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every claim holds."""
        return all(claim.holds for claim in self.claims)

    def markdown(self) -> str:
        """The tables, and the claims as one more."""
        claims = Table("Claims:", ["claim", "measured", "limit", "holds"], [claim.row() for claim in self.claims])
        return "\n".join(table.markdown() for table in [*self.tables, claims])

    def write(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """Writes `table.md`, `claims.json` and the pictures.

        Args:
            folder: The folder, made if it does not exist.
            facts: Further fields of claims.json: the reproduction's name, its size, the command, the commit.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "table.md").write_text(self.markdown(), encoding="utf-8")
        for name, png in self.pictures.items():
            (folder / f"{name}.png").write_bytes(png)
        claims = [
            {
                "statement": claim.statement,
                "figure": float(claim.figure) if math.isfinite(claim.figure) else str(claim.figure),  # as JSON can
                "relation": claim.relation,
                "limit": claim.limit,
                "holds": claim.holds,
            }
            for claim in self.claims
        ]
        text = json.dumps({**facts, "passed": self.passed, "claims": claims}, indent=2)
        (folder / "claims.json").write_text(text + "\n", encoding="utf-8")


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, as in tables; with two if it is very large or small."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{digits}g}" if 1e-3 <= abs(value) < 10**digits else f"{value:.1e}"
