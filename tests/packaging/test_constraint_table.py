"""The table in docs/constraints.md lists every constraint and describes each correctly."""

import inspect
import re
from pathlib import Path

import pytest

import ganlab.plugins.manager

PAGE = Path(__file__).parents[2] / "docs" / "constraints.md"
COMPONENTS = {
    component.name: component.factory.make
    for component in ganlab.plugins.manager.current().components.values()
    if component.kind == "constraints" and component.plugin.name == "ganlab_constraints"
}
# The kind of a constraint by the method that it overrides; the first match counts.
KINDS = {
    "project": "projection",
    "reparameterize": "reparameterization",
    "transform": "transform",
    "weight_penalty": "penalty on weights",
    "penalty": "penalty",
}


def rows():
    lines = PAGE.read_text().splitlines()
    start = lines.index("| constraint | kind | certificate | cost | paper |")
    table = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        table[name.strip("`")] = dict(zip(("kind", "certificate", "cost", "paper"), cells, strict=True))
    return table


def overrides(constraint, method):
    return getattr(constraint, method) is not getattr(ganlab.Constraint, method)


def test_table_lists_every_constraint():
    assert sorted(rows()) == sorted(COMPONENTS)


@pytest.mark.parametrize("name", COMPONENTS)
def test_row_matches_the_constraint(name):
    row, constraint = rows()[name], COMPONENTS[name]
    assert row["kind"] == next(kind for method, kind in KINDS.items() if overrides(constraint, method))
    assert row["certificate"] == ("yes" if overrides(constraint, "lipschitz_bound") else "no")
    assert re.fullmatch(r"\d+\.\d\d", row["cost"])
    author, year = re.fullmatch(r"(\S+).* (\d{4})", row["paper"]).groups()
    documentation = inspect.getdoc(constraint)
    assert author.rstrip(",") in documentation
    assert f"({year})" in documentation
