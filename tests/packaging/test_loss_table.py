"""The tables in docs/losses.md list every loss and every augmentation, with its paper; the page's doctests pass."""

import doctest
import inspect
import re

import pytest
from pages import ROOT

import ganlab.plugins.manager

PAGE = ROOT / "docs" / "losses.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", TEXT.partition("## The losses")[2], re.MULTILINE))
COMPONENTS = {
    component.name: component.factory.make
    for component in ganlab.plugins.manager.current().components.values()
    if component.plugin.name in ("ganlab_losses", "ganlab_augmentations")
}


def test_the_examples_of_the_page():
    outcome = doctest.testfile(str(PAGE), module_relative=False)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_tables_list_every_component():
    assert sorted(ROWS) == sorted(COMPONENTS)


@pytest.mark.parametrize("name", ROWS)
def test_row_names_the_papers_of_the_docstring(name):
    documentation = inspect.getdoc(COMPONENTS[name])
    for paper in ROWS[name].split(", "):
        for author in re.findall(r"[A-Z][\w-]+", paper):
            assert author in documentation
        for year in re.findall(r"\d{4}", paper):
            assert f"({year})" in documentation
