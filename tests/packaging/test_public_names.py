"""The public names of `ganlab`: those used on pages are listed and available, and TensorFlow is imported lazily."""

import importlib
import re

import pytest
from packaging.version import Version
from pages import ROOT

import ganlab
from ganlab.plugins.manager import KINDS

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


def test_a_released_name_stays_or_warns_for_a_version():
    released = (ROOT / "tests" / "packaging" / "released_names.txt").read_text().split()
    gone = set(released) - set(ganlab.__all__) - set(ganlab._GOING)
    assert gone == set(), "List them in ganlab._GOING for a version: CONTRIBUTING.md, Names that go"
    for name, (instead, version) in ganlab._GOING.items():
        assert name not in ganlab.__all__
        assert Version(version) > Version(ganlab.__version__), "Remove it now"
        with pytest.warns(FutureWarning, match=re.escape(f"use {instead}.")):
            assert getattr(ganlab, name) is not None


def test_a_name_that_goes_says_what_to_use(monkeypatch):
    monkeypatch.setattr(ganlab, "__all__", [name for name in ganlab.__all__ if name != "sweep"])
    monkeypatch.setitem(ganlab._GOING, "sweep", ("ganlab_sweep.sweep", "0.3"))
    with pytest.warns(FutureWarning, match=r"ganlab\.sweep goes in ganlab 0\.3: use ganlab_sweep\.sweep\.") as caught:
        assert ganlab.sweep is importlib.import_module("ganlab_sweep").sweep
    assert caught[0].filename == __file__


def test_misspelt_name_gets_a_suggestion():
    with pytest.raises(AttributeError, match=r"no attribute 'Constrant'\. Did you mean 'Constraint'\?"):
        ganlab.Constrant  # noqa: B018 (only the error matters)
    assert not hasattr(ganlab, "__wrapped__")
