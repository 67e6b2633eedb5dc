from pathlib import Path

import pytest
from command_lines import MINIMAL

from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe


@pytest.fixture(autouse=True)
def toy_plugins(monkeypatch, fresh_plugins):
    """Only the components of ganlab_plugins.py in this folder."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    return plugins.use(plugins.discover(local=Path(__file__).with_name("ganlab_plugins.py")))


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes files in an empty working directory: `write(exp="experiment.steps = 1")` makes exp.gin."""
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.gin"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def minimal():
    """The lines that every experiment needs."""
    return f"\n{MINIMAL}"


@pytest.fixture
def parts():
    """The recipes of those lines."""
    return {
        "dataset": Recipe("datasets", "points"),
        "architecture": Recipe("architectures", "small"),
        "loss": Recipe("losses", "plain"),
        "strategy": Recipe("strategies", "one"),
        "critic_optimizer": Recipe("optimizers", "adam"),
        "generator_optimizer": Recipe("optimizers", "adam"),
    }
