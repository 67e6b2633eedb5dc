"""The public names of `ganlab`: those used on pages are listed and available, and TensorFlow is imported lazily."""

import re
from pathlib import Path

import pytest

import ganlab
from ganlab.plugins.manager import KINDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_every_public_name_is_listed_and_available():
    assert set(ganlab.__all__) <= set(dir(ganlab))
    assert len(set(ganlab.__all__)) == len(ganlab.__all__)
    for name in ganlab.__all__:
        assert getattr(ganlab, name) is not None


def test_every_public_name_has_an_entry_on_the_page_of_the_api():
    page = (ROOT / "docs" / "api.md").read_text()
    entries = set(re.findall(r"^\.\. [\w:]+:: ganlab\.(\w+)$", page, re.MULTILINE))
    roles = re.search(r"automodule:: ganlab.interfaces\n   :members: (.*)", page).group(1)
    assert all(f"`ganlab.{kind}`" in page for kind in KINDS)
    assert set(ganlab.__all__) - entries - set(roles.split(", ")) - set(vars(ganlab.errors)) == set(KINDS)
    assert entries - set(ganlab.__all__) == {"interfaces"}
    assert set(roles.split(", ")) <= set(ganlab.__all__)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_names_used_on_pages_are_public(page):
    code = re.findall(r"```python.*?\n(.*?)```", page.read_text(), re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    used = {name for text in [*code, *spans] for name in re.findall(r"(?<![\w./'\[-])ganlab\.([A-Za-z_]\w*)", text)}
    # PLACES are subpackages that pages mention as locations in the code, and a group of entry points.
    assert sorted(used - set(ganlab.__all__) - PLACES) == []


PLACES = {"composition", "config", "doctor", "hookspecs", "interfaces", "paths", "runs", "terminal"}


def test_misspelt_name_gets_a_suggestion():
    with pytest.raises(AttributeError, match=r"no attribute 'Constrant'\. Did you mean 'Constraint'\?"):
        ganlab.Constrant  # noqa: B018 (only the error matters)
    assert not hasattr(ganlab, "__wrapped__")
