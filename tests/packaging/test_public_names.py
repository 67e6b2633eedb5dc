"""The names of `ganlab`: those that pages use are listed, and can be had, without TensorFlow before its time."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ganlab

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_everything_public_is_listed_and_can_be_had():
    assert set(ganlab.__all__) <= set(dir(ganlab))
    assert len(set(ganlab.__all__)) == len(ganlab.__all__)
    for name in ganlab.__all__:
        assert getattr(ganlab, name) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_names_that_pages_use_are_public(page):
    code = re.findall(r"```python.*?\n(.*?)```", page.read_text(), re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    used = {name for text in [*code, *spans] for name in re.findall(r"(?<![\w./'\[-])ganlab\.([A-Za-z_]\w*)", text)}
    # Those that are not attributes: subpackages that pages name as places in the code.
    assert sorted(used - set(ganlab.__all__) - PLACES) == []


PLACES = {"composition", "config", "hookspecs", "interfaces", "paths", "terminal"}


def test_importing_and_listing_does_not_import_tensorflow():
    code = (
        "import sys, ganlab\ndir(ganlab)\nganlab.errors, ganlab.pictures, ganlab.testing, ganlab.lazy, ganlab.roles\n"
        "print({'tensorflow', 'keras'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


def test_a_name_that_is_nearly_right():
    with pytest.raises(AttributeError, match=r"no attribute 'Constrant'\. Did you mean 'Constraint'\?"):
        ganlab.Constrant  # noqa: B018 (the error is what is looked at)
    assert not hasattr(ganlab, "__wrapped__")
