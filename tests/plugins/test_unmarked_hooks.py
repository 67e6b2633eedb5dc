"""Functions meant as hooks that lack `@ganlab.hookimpl` are reported by name."""

import importlib.metadata
import json
import types
import warnings

import pluggy
import pytest
from click.testing import CliRunner

import ganlab
from ganlab.cli import cli
from ganlab.errors import PluginError
from ganlab.plugins import manager as plugins
from ganlab.plugins import validation

HEAD = "import ganlab\n\n\n"
GOOD = "@ganlab.hookimpl\ndef ganlab_losses():\n    return {}\n\n\n"


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """Loads a single-file plugin; returns its row and the warnings."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    path = tmp_path / "ganlab_plugins.py"

    def loaded(source):
        path.write_text(HEAD + source)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (row,) = plugins.discover(local=path).rows
        return row, [str(warning.message) for warning in caught if warning.category is UserWarning]

    return loaded


@pytest.mark.parametrize("beside", ["", GOOD], ids=["alone", "beside one that is right"])
@pytest.mark.parametrize(
    ("name", "hook"),
    [
        ("ganlab_constraints", ""),
        ("ganlab_metrics", ""),
        ("ganlab_register_commands", ""),
        ("ganlab_constraint", "ganlab_constraints"),
        ("ganlab_datasest", "ganlab_datasets"),
        ("Ganlab_Losses", "ganlab_losses"),
        ("ganlabevaluators", "ganlab_evaluators"),
        ("ganlb_features", "ganlab_features"),
        ("ganlab_commands", "ganlab_register_commands"),
        ("ganlab_on_run_start", "ganlab_run_start"),
        ("ganlab_metric", "ganlab_metrics"),
    ],
)
def test_unmarked_function_similar_to_a_hook_is_reported(loaded, name, hook, beside):
    row, warned = loaded(f"{beside.replace('ganlab_losses', 'ganlab_searches')}def {name}():\n    return {{}}\n")
    assert row.status == "loaded"
    (warning,) = warned
    assert row.warnings == (warning,)
    assert f"{row.distribution} has a function {name!r} without @ganlab.hookimpl" in warning
    assert "Put @ganlab.hookimpl above it" in warning
    assert (f"call it {hook!r}" in warning) == bool(hook)


@pytest.mark.parametrize(
    "source",
    [
        "def helper():\n    pass\n",
        "def ganlab_version():\n    pass\n",
        "from ganlab.plugins.manager import discover\nfrom ganlab.interfaces import *\n",
        "def make_losses():\n    pass\n",
        "class Losses(ganlab.Loss):\n    pass\n",
    ],
)
def test_other_functions_are_not_reported(loaded, source):
    row, warned = loaded(GOOD + source)
    assert (row.status, row.warnings, warned) == ("loaded", (), [])


def test_plugin_without_hooks_gets_a_suggestion(loaded):
    _, (warning,) = loaded("def losses():\n    return {}\n")
    assert "has no hook, so it offers nothing. Is 'losses' meant to be 'ganlab_losses'?" in warning


def test_marker_of_another_project_does_not_count(loaded):
    _, (warning,) = loaded(
        "import pluggy\nhookimpl = pluggy.HookimplMarker('ganlabs')\n@hookimpl\ndef ganlab_losses():\n    return {}\n"
    )
    assert "'ganlab_losses' without @ganlab.hookimpl" in warning


def test_unmarked_methods_of_objects_are_reported():
    class Plugin:
        def ganlab_losses(self):
            return {}

        @property
        def ganlab_datasets(self):
            raise AssertionError("not to be asked for") from None

    (complaint,) = validation.unmarked(Plugin())
    assert "'ganlab_losses'" in complaint
    marked = types.SimpleNamespace(ganlab_losses=ganlab.hookimpl(lambda: {}), ganlab_datasets=pluggy)
    assert list(validation.unmarked(marked)) == []


def test_strict_mode_raises_on_an_unmarked_hook(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    path = tmp_path / "ganlab_plugins.py"
    path.write_text(HEAD + "def ganlab_losses():\n    return {}\n")
    with pytest.warns(UserWarning, match="without @ganlab"):
        found = plugins.discover(local=path)
    found.check(strict=False)
    with pytest.raises(PluginError, match="without @ganlab"):
        found.check(strict=True)


def test_commands_report_unmarked_hooks(tmp_path, monkeypatch, fresh_plugins):
    points = importlib.metadata.entry_points
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [] if group == "ganlab" else points(group=group)
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ganlab_plugins.py").write_text(HEAD + "def ganlab_losses():\n    return {}\n")
    with pytest.warns(UserWarning, match="without @ganlab"):
        result = CliRunner().invoke(cli, ["plugins", "--json"])
    (row,) = json.loads(result.stdout)["plugins"]
    assert "'ganlab_losses' without @ganlab.hookimpl" in row["warnings"][0]
    with pytest.warns(UserWarning, match="without @ganlab"):
        result = CliRunner().invoke(cli, ["plugins", "check", "--json"])
    assert result.exit_code == 1
    (row,) = json.loads(result.stdout)["components"]
    assert row["status"] == "failed"
    assert "'ganlab_losses' without @ganlab.hookimpl" in row["failures"]["hooks"]
