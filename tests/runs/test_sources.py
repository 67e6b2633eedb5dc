"""Hashes of the code of parts: which changes count, and which do not."""

import importlib
import linecache
import sys
import textwrap
import types

import pytest

from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe
from ganlab.runs import modules
from ganlab.runs.origins import code_changes
from ganlab.runs.sources import MADE_BY, of_parts

PACKAGE = {
    "__init__": """
        import ganlab
        from mylips.constraint import Mine
        from mylips import other

        @ganlab.hookimpl
        def ganlab_constraints():
            return {"mine": Mine, "other": other.Other, "part": other.PART}
        """,
    "constraint": """
        # A comment.
        from mylips import helper

        class Mine:
            '''A constraint.'''

            def __init__(self, *, weight: float = 1.0) -> None:
                self.weight = weight

            def penalty(self):
                from . import deep

                return helper.twice(self.weight) + deep.ONE
        """,
    "helper": """
        def twice(x):
            '''Twice.'''
            return 2 * x
        """,
    "deep": "ONE = 1\n",
    "unused": "NOTHING = 0\n",
    "other": """
        import functools

        class Other:
            def __init__(self, *, a: int = 0) -> None:
                pass

        PART = functools.partial(Other, a=3)
        """,
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A plugin package with helper modules; yields `write(name, text)`, which changes one of them."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "mylips"
    folder.mkdir()

    def write(name, text):
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
        modules._parsed.cache_clear()  # the texts may have the same length and time

    for name, text in PACKAGE.items():
        write(name, text)
    found = plugins.Plugins()
    found.add(plugins.Plugin("mylips", "mylips", "1.0"), lambda: importlib.import_module("mylips"))
    with plugins.using(found):
        yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "mylips"]:
        del sys.modules[name]


def code(*names):
    return of_parts(Recipe("", "experiment", {"constraints": [Recipe("constraints", name, {}) for name in names]}))


def test_code_of_a_part_includes_imported_modules(package):
    assert set(code("mine")["constraints.mine"]) == {MADE_BY, "mylips.constraint", "mylips.helper", "mylips.deep"}
    assert set(code("other")["constraints.other"]) == {MADE_BY, "mylips.other"}


@pytest.mark.parametrize(
    ("module", "before", "after"),
    [
        ("constraint", "weight: float = 1.0", "weight: float = 2.0"),
        ("helper", "return 2 * x", "return 3 * x"),
        ("deep", "ONE = 1", "ONE = 7"),
    ],
    ids=["default", "helper", "imported late"],
)
def test_changed_modules_are_reported(package, module, before, after):
    then = code("mine", "other")
    package(module, PACKAGE[module].replace(before, after))
    (line,) = code_changes(then, code("mine", "other"))
    assert line.startswith(f"code of constraints.mine, mylips.{module}: content ")
    assert ", and now content " in line


@pytest.mark.parametrize(
    ("module", "before", "after"),
    [
        ("constraint", "# A comment.", "# Another one.\n\n\n"),
        ("constraint", "'''A constraint.'''", '"""Keeps a critic in check."""'),
        ("helper", "return 2 * x", "return (2  *  x)  # doubled"),
        ("unused", "NOTHING = 0", "NOTHING = 1"),
        ("other", "a: int = 0", "a: int = 1"),
    ],
    ids=["comment", "docstring", "layout", "a module that is not used", "another part's module"],
)
def test_comments_layout_and_unrelated_modules_are_not_changes(package, module, before, after):
    then = code("mine")
    assert before in PACKAGE[module]
    package(module, PACKAGE[module].replace(before, after))
    assert code_changes(then, code("mine")) == []


def test_a_module_of_several_parts_is_one_change():
    then, now = ({f"constraints.{part}": {"mine": kind * 32} for part in "abcdef"} for kind in "12")
    (line,) = code_changes(then, now)
    assert line.startswith("code of constraints.a, constraints.b, constraints.c, constraints.d and 2 more, mine: ")


def test_removed_and_added_helper_modules(package, tmp_path):
    then = code("mine")
    package("constraint", PACKAGE["constraint"].replace("deep", "unused"))
    lines = code_changes(then, code("mine"))
    assert [line.partition(":")[0] for line in lines] == [
        "code of constraints.mine, mylips.constraint",
        "code of constraints.mine, mylips.unused",
    ]  # deep.py is unchanged
    (tmp_path / "mylips" / "deep.py").unlink()
    del sys.modules["mylips"].other  # irrelevant
    assert "code of constraints.mine, mylips.deep: content " in "\n".join(code_changes(then, code("mine")))


def test_bound_arguments_count_as_code(package):
    then = code("part")
    assert {"mylips", "mylips.other"} < set(then["constraints.part"])
    package("other", PACKAGE["other"].replace("a=3", "a=4"))
    assert "mylips.other" in "".join(code_changes(then, code("part")))


def test_different_class_under_the_same_name_is_a_change(package):
    then = code("mine")
    sys.modules["mylips"].Mine = sys.modules["mylips.other"].Other
    found = plugins.Plugins()
    found.add(plugins.Plugin("mylips", "mylips", "1.0"), lambda: sys.modules["mylips"])
    plugins.use(found)
    lines = code_changes(then, code("mine"))
    assert "code of constraints.mine, made by: 'mylips.constraint.Mine', and now 'mylips.other.Other'" in lines


def test_modules_imported_by_a_computed_name_are_included(package):
    text = "import importlib\nname = 'unused'\nimportlib.import_module(f'{__package__}.{name}')\n"
    package("helper", text + textwrap.dedent(PACKAGE["helper"]))
    assert "mylips.unused" in code("mine")["constraints.mine"]


def test_user_code_beside_a_plugin_file_is_included(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_numbers.py").write_text("ONE = 1\n")
    (tmp_path / "ganlab_plugins.py").write_text(
        "import json\nimport numpy\nimport my_numbers\nimport ganlab\n\nclass C(ganlab.Constraint):\n    pass\n\n"
        "@ganlab.hookimpl\ndef ganlab_constraints():\n    return {'c': C}\n"
    )
    with plugins.using(plugins.discover(local=tmp_path / "ganlab_plugins.py")):
        assert set(code("c")["constraints.c"]) == {MADE_BY, "ganlab_plugins", "my_numbers"}
    for name in ("ganlab_plugins", "my_numbers"):
        sys.modules.pop(name)


NOTEBOOK = """
SCALE = 2.0

def scaled(x):
    return SCALE * x

class Mine:
    offset = 1

    def penalty(self, x):
        return scaled(x) + self.offset

def unrelated():
    return 1
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("SCALE = 2.0", "SCALE = 3.0", False),
        ("return SCALE * x", "return SCALE + x", False),
        ("offset = 1", "offset = 5", False),
        ("return 1", "return 2", True),
    ],
)
def test_notebook_class_includes_the_definitions_it_uses(monkeypatch, before, after, same):
    def cell(text):
        main = types.ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", main)
        linecache.cache["<cell>"] = len(text), None, text.splitlines(keepends=True), "<cell>"  # as IPython does
        exec(compile(text, "<cell>", "exec"), vars(main))
        return of_parts(Recipe("", "experiment", {"constraints": [main.Mine()]}))

    then, now = cell(NOTEBOOK), cell(NOTEBOOK.replace(before, after))
    assert set(then) == {"__main__.Mine"}
    assert (code_changes(then, now) == []) is same


@pytest.mark.parametrize(
    "forged", [None, {}, {"constraints.mine": {}}, {"constraints.mine": {"mylips.helper": "x\x1b"}}]
)
def test_forged_code_record_is_compared_as_data(package, forged):
    lines = code_changes(forged, code("mine"))
    assert all(line.isprintable() for line in lines)


def test_hostile_module_names_are_escaped_and_not_imported(package, tmp_path):
    (tmp_path / "evil.py").write_text("raise SystemExit\n")
    hostile = {"evil": "x", "\x1b[2J\n": "\x1b]0;x\x07", "../../etc/passwd": "y", "a" * 500: "z", "mylips..x": None}
    then = {"constraints.mine": {**code("mine")["constraints.mine"], **hostile}}
    lines = code_changes(then, code("mine"))
    assert lines
    assert all(line.isprintable() and len(line) < 400 for line in lines)
    assert "evil" not in sys.modules
