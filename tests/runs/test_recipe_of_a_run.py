"""A run knows the experiment it was."""

from __future__ import annotations

import types

from ganlab import config, hookimpl, plugins
from ganlab.recipes import Recipe
from ganlab.runs import create_run


def thing(*, size: int = 2) -> object:
    """Makes something."""
    return object()


def test_the_recipe_is_that_of_its_config_file(tmp_path, monkeypatch):
    fake = types.ModuleType("fake")
    for kind in ("datasets", "architectures", "losses", "strategies", "optimizers"):
        setattr(fake, f"ganlab_{kind}", hookimpl(lambda: {"thing": thing}))
    current = plugins.Plugins()
    current.add(plugins.Plugin("fake", "fake", "1.0"), lambda: fake)
    monkeypatch.setattr(plugins, "_current", current)
    kinds = {"dataset": "datasets", "architecture": "architectures", "loss": "losses", "strategy": "strategies"}
    kinds |= {"critic_optimizer": "optimizers", "generator_optimizer": "optimizers"}
    parts = {part: Recipe(kind, "thing") for part, kind in kinds.items()}
    recipe = Recipe("", "experiment", {**parts, "dataset": Recipe("datasets", "thing", {"size": 3}), "steps": 7})
    run = create_run(tmp_path / "base", config=config.render(recipe), operative="", info={"status": "running"})
    read = run.recipe()
    assert read.arguments["steps"] == 7
    assert read.arguments["dataset"] == Recipe("datasets", "thing", {"size": 3})
    assert read == recipe
