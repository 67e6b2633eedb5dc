"""The doctests on the pages in docs/ pass."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["losses.md"])
def test_the_examples_of_a_page(page):
    outcome = doctest.testfile(str(DOCS / page), module_relative=False)
    assert outcome.attempted > 0
    assert outcome.failed == 0
