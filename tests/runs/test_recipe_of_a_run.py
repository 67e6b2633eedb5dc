"""A run restores the recipe of its experiment."""

from __future__ import annotations

import shutil
import types

import pytest

import ganlab
from ganlab import config, hookimpl
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe
from ganlab.runs import create_run


def thing(*, size: int = 2) -> object:
    """Makes something."""
    return object()


def test_recipe_is_read_from_config_gin(tmp_path, monkeypatch):
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


PLUGIN = """
import ganlab

class Mine(ganlab.Loss):
    def __init__(self, *, margin: float = 1.0) -> None:
        self.margin = margin

@ganlab.hookimpl
def ganlab_losses():
    return {"mine": Mine}
"""
CONFIG = """
experiment.dataset = @datasets.digits()
experiment.architecture = @architectures.dcgan()
experiment.loss = @losses.mine()
experiment.strategy = @strategies.one_device()
experiment.critic_optimizer = @optimizers.adam()
experiment.generator_optimizer = @optimizers.adam()
losses.mine.margin = 2.0
"""


def test_errors_name_the_plugin_file_of_a_run(tmp_path, monkeypatch):
    file = tmp_path / "mine" / "ganlab_plugins.py"
    file.parent.mkdir()
    file.write_text(PLUGIN)
    info = {"provenance": {"plugins": {"ganlab_plugins": {"distribution": str(file)}}}}
    run = create_run(tmp_path / "run", config=CONFIG, operative="", info=info)
    monkeypatch.setattr(plugins, "_current", None)
    shutil.copy(file, run.path)  # a file in a run is not executed

    with pytest.raises(ganlab.PluginError) as caught:
        run.recipe()
    assert str(caught.value) == (
        f"Add --plugin-file {file}: the run was made with this file (in Python: ganlab.use_plugin_file), and code that "
        f"a folder names is executed only if you name it, too. Without it: {run.path}/config.gin:4: Unknown component "
        "losses.mine."
    )
    ganlab.use_plugin_file(file)
    assert run.recipe().arguments["loss"] == Recipe("losses", "mine", {"margin": 2.0})
    assert ganlab.component("losses", "mine")(margin=3.0).margin == 3.0

    # With the file in use, errors do not mention it.
    (run.path / "config.gin").write_text(CONFIG.replace("digits", "digit"))
    with pytest.raises(ganlab.ConfigError) as caught:
        run.recipe()
    assert "plugin-file" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"), [(None, "is not a file"), ("1 / 0\n", "cannot be used: ZeroDivisionError: division by zero")]
)
def test_unusable_plugin_file_is_refused(tmp_path, monkeypatch, text, message):
    monkeypatch.setattr(plugins, "_current", None)
    before = plugins.current()
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ganlab.PluginError, match=message):
        ganlab.use_plugin_file(tmp_path / "mine.py")
    assert plugins.current() is before
