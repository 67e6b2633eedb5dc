import functools
import importlib.metadata
import shutil
from pathlib import Path

import pytest
from command_lines import MINIMAL, invoke, mistake_in

TOYS = Path(__file__).parents[1] / "config" / "ganlab_plugins.py"


@pytest.fixture
def here(tmp_path, monkeypatch, fresh_plugins):
    """A working directory with the toy plugin beside the experiment files, and no installed plugins but commands."""
    monkeypatch.chdir(tmp_path)
    found = importlib.metadata.entry_points
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [] if group == "ganlab" else found(group=group)
    )
    monkeypatch.delenv("GANLAB_PLUGINS", raising=False)
    monkeypatch.delenv("GANLAB_STRICT_PLUGINS", raising=False)
    shutil.copy(TOYS, tmp_path / "ganlab_plugins.py")
    return tmp_path


@pytest.fixture
def ganlab(here):
    """Runs a command line: `ganlab("run", "--gin", "exp.gin")` returns click's result."""
    return invoke


@pytest.fixture
def mistake(here):
    """The message of a wrong command line: one line, exit code 2, and no new files."""
    return functools.partial(mistake_in, here)


@pytest.fixture
def minimal():
    """Six lines that make an experiment from the toy components."""
    return MINIMAL
