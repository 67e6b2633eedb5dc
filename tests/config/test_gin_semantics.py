"""Experiment files have gin's semantics: the same texts, resolved by gin itself and by ganlab."""

import random

import gin
import pytest

from ganlab.config.parser import read_text
from ganlab.config.registry import Names
from ganlab.config.resolver import Resolver
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe


@pytest.fixture
def by_gin():
    """Resolves a text with gin's own registry, each configurable recording its arguments as a recipe."""

    def recorder(kind, name):
        def record(alpha=None, beta=None):
            given = {"alpha": alpha, "beta": beta}
            return Recipe(kind, name, {key: value for key, value in given.items() if value is not None})

        return gin.external_configurable(record, name=name, module=kind)

    with gin.config.interactive_mode():
        made = {name: recorder("losses", name) for name in ("f", "g", "h")}

    def resolve(text):
        gin.clear_config()
        gin.parse_config(text)
        return made["f"]()

    yield resolve
    gin.clear_config()


@pytest.fixture
def by_ganlab():
    def make(*, alpha=None, beta=None):
        raise AssertionError("resolving makes nothing")

    class Plugin:
        @plugins.hookspecs.hookimpl
        def ganlab_losses(self):
            return {"f": make, "g": make, "h": make}

    found = plugins.Plugins()
    found.add(plugins.Plugin("letters", "tests", "1"), Plugin)
    names = Names(found)

    def resolve(text):
        # f takes the experiment's place, as its loss.
        text = f"experiment.loss = @losses.f()\n{text}"
        recipe = Resolver(names, names.complete(read_text(text, "text")), strict=True).experiment()
        return recipe.arguments["loss"]

    return resolve


def _any_text(seed):
    """A random text of scoped bindings, references, macros and containers, without cycles."""
    choose = random.Random(seed)
    scopes = ["", "", "s/", "t/", "s/t/", "m/"]
    lines = ["m = @losses.h()", "n = [1, @t/losses.h(), 'x']"]
    below = {"f": ["g", "h"], "g": ["h"], "h": []}
    for _ in range(choose.randrange(6, 20)):
        name = choose.choice("fgh")
        values = [str(choose.randrange(1, 99)), "'text'", "(1, 2)", "{'a': [True]}"]
        values += [f"@{choose.choice(scopes)}{other}()" for other in below[name]] * 3
        if name != "h":
            values += ["%m", "%n", "[%m, 1]"]
        lines.append(f"{choose.choice(scopes)}{name}.{choose.choice(['alpha', 'beta'])} = {choose.choice(values)}")
    return "\n".join(lines)


def test_random_files_resolve_as_in_gin(by_gin, by_ganlab):
    seen = set()
    for seed in range(300):
        text = _any_text(seed)
        expected = by_gin(text)
        assert by_ganlab(text) == expected, text
        seen.add(repr(expected))
    assert len(seen) > 100  # the texts do give different results
