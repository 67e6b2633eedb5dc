"""`from ganlab.constraints import GradientPenalty`, for every component and every kind."""

import importlib
import inspect
import sys

import pytest
import stubs

import ganlab
from ganlab.plugins import manager
from ganlab.plugins.manager import KINDS

OWN = """
import ganlab

class Nearby(ganlab.Constraint):
    "Of one's own."

@ganlab.hookimpl
def ganlab_constraints():
    return {"nearby": Nearby, "made": lambda *, weight=1.0: Nearby()}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_stubs_are_those_of_the_registry(kind):
    module = getattr(ganlab, kind)
    assert module is importlib.import_module(f"ganlab.{kind}")
    components = [one for (of, _), one in manager.current().components.items() if of == kind]
    made = {one.factory.make.__name__: one for one in components}
    assert dir(module) == module.__all__ == sorted(made)
    assert len(made) == len(components)
    for name, one in made.items():
        assert getattr(module, name) is getattr(module, one.name) is ganlab.component(kind, one.name)
        assert inspect.signature(getattr(module, name)) == inspect.signature(one.factory.make)
    written = (stubs.FOLDER / kind / "__init__.pyi").read_text()
    assert written == f"# Made by tools/stubs.py.\n{stubs.stub(kind)}", "run python tools/stubs.py"
    for line in written.splitlines()[1:]:  # what an editor follows is what Python makes
        _, place, _, name, *_ = line.split()
        assert getattr(importlib.import_module(place), name) is getattr(module, name).make


def test_components_of_others_have_names_too_and_mistakes_have_a_remedy(tmp_path, fresh_plugins):
    from ganlab import constraints

    (tmp_path / "ganlab_plugins.py").write_text(OWN)
    with pytest.raises(ImportError, match="cannot import name 'Nearby'"):
        from ganlab.constraints import Nearby
    ganlab.use_plugin_file(tmp_path / "ganlab_plugins.py")
    from ganlab.constraints import Nearby, made

    assert {"Nearby", "made"} <= set(dir(constraints))
    assert isinstance(Nearby(), ganlab.Constraint)
    assert isinstance(made(weight=2.0), sys.modules["ganlab_plugins"].Nearby)
    with pytest.raises(AttributeError, match=r"ganlab\.constraints\.Nearbyy\. Did you mean 'Nearby'\?"):
        _ = constraints.Nearbyy
    assert not hasattr(constraints, "_nothing")


def test_a_name_is_a_base_and_a_type():
    penalty = ganlab.constraints.GradientPenalty

    class Doubled(penalty):
        pass

    assert issubclass(Doubled, penalty.make)
    assert isinstance(Doubled(weight=1.0), penalty)
    assert isinstance(penalty(), penalty)
    assert not isinstance(ganlab.constraints.R1(), penalty)
    assert not isinstance(object(), ganlab.optimizers.adam)
