"""The tables in docs/constraints.md list every constraint and describe each correctly."""

import inspect
import re

import pytest
from pages import ROOT

import ganlab.plugins.manager

PAGE = ROOT / "docs" / "constraints.md"
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

# The networks that a constraint without a bound on slopes acts on, by the penalties that it overrides.
NETWORKS = {("penalty",): "critic", ("penalty", "generator_penalty"): "both"}


def rows(*columns):
    lines = PAGE.read_text().splitlines()
    start = lines.index(f"| constraint | {' | '.join(columns)} |")
    table = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        table[name.strip("`")] = dict(zip(columns, cells, strict=True))
    return table


BOUNDING = rows("kind", "certificate", "cost", "paper")
OTHERS = rows("on", "what it asks for", "paper")


def overrides(constraint, method):
    return getattr(constraint, method) is not getattr(ganlab.Constraint, method)


def test_tables_list_every_constraint():
    assert sorted([*BOUNDING, *OTHERS]) == sorted(COMPONENTS)


@pytest.mark.parametrize("name", OTHERS)
def test_row_names_the_network_and_the_paper(name):
    row, constraint = OTHERS[name], COMPONENTS[name]
    penalties = tuple(method for method in ("penalty", "generator_penalty") if overrides(constraint, method))
    assert row["on"] == NETWORKS.get(penalties, "generator")
    check_paper(row, constraint)


@pytest.mark.parametrize("name", BOUNDING)
def test_row_matches_the_constraint(name):
    row, constraint = BOUNDING[name], COMPONENTS[name]
    assert row["kind"] == next(kind for method, kind in KINDS.items() if overrides(constraint, method))
    assert row["certificate"] == ("yes" if overrides(constraint, "lipschitz_bound") else "no")
    assert re.fullmatch(r"\d+\.\d\d", row["cost"])
    check_paper(row, constraint)


def check_paper(row, constraint):
    author, year = re.fullmatch(r"(\S+).* (\d{4})", row["paper"]).groups()
    documentation = inspect.getdoc(constraint)
    assert author.rstrip(",") in documentation
    assert f"({year})" in documentation
