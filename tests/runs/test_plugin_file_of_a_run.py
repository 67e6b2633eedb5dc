"""The plugin file that a run was made with: used where it is the working directory's, and otherwise never unasked."""

from __future__ import annotations

import os
import py_compile
import shutil
from pathlib import Path

import pytest

import ganlab
from ganlab.config import load
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe
from ganlab.run import Run
from ganlab.runs import RunDirectory, create_run
from ganlab.runs.modules import hash_of_file

PLUGIN = """
import ganlab

class Mine(ganlab.Loss):
    def __init__(self, *, margin: float = 1.0) -> None:
        self.margin = margin

@ganlab.hookimpl
def ganlab_losses():
    return {"mine": Mine}
"""
EXECUTED = "open('executed', 'w').close()\n"
CONFIG = """
experiment.dataset = @datasets.digits()
experiment.architecture = @architectures.dcgan()
experiment.loss = @losses.mine()
experiment.strategy = @strategies.one_device()
experiment.critic_optimizer = @optimizers.adam()
experiment.generator_optimizer = @optimizers.adam()
"""


@pytest.fixture
def made(tmp_path, monkeypatch, fresh_plugins):
    """Makes a run with a plugin file of the working directory: `made("mine.py")`."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def make(name: str = "ganlab_plugins.py", text: str = PLUGIN + EXECUTED) -> Path:
        Path(name).write_text(text)
        row = {"distribution": str(Path(name).absolute()), "version": "", "status": "loaded"}
        info = {"provenance": {"plugins": {"ganlab_plugins": {**row, "content": hash_of_file(Path(name))}}}}
        return create_run(work / "runs" / "base" / "run", config=CONFIG, operative="", info=info).path

    return make


def executed() -> bool:
    return Path("executed").exists()


@pytest.mark.parametrize("name", ["ganlab_plugins.py", "mine.py"])
@pytest.mark.parametrize("read", [lambda run: Run(run).recipe(), lambda run: load_of_gin(run)], ids=["run", "gin"])
def test_file_of_the_working_directory_is_used(made, name, read):
    assert read(made(name)).arguments["loss"].name == "mine"
    assert executed()


def load_of_gin(run):
    from ganlab.runs.experiment_source import read_experiment

    return read_experiment([str(run / "config.gin")], [])


def move_away(run):
    Path("elsewhere").mkdir()
    shutil.move("ganlab_plugins.py", "elsewhere")


def stand_in(folder):
    folder.mkdir(exist_ok=True)
    shutil.copy("ganlab_plugins.py", folder)
    os.chdir(folder)


TRAPS = {
    "other code": lambda run: Path("ganlab_plugins.py").write_text(PLUGIN + EXECUTED + "1\n"),
    "elsewhere": move_away,
    "in the run": stand_in,
    "below the run": lambda run: stand_in(run / "deep"),
    "in a sweep": lambda run: Path("sweep.json").write_text("{}"),
    "in a benchmark": lambda run: Path("benchmark.json").symlink_to("missing"),
    "excluded": lambda run: os.environ.update(GANLAB_PLUGINS="ganlab_datasets"),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_other_files_must_be_named(made, monkeypatch, trap):
    run, work = made(), Path.cwd()
    monkeypatch.setenv("GANLAB_PLUGINS", "")
    TRAPS[trap](run)
    with pytest.raises(ganlab.PluginError, match="ganlab_plugins"):
        Run(run).recipe()
    assert not executed()
    assert not (work / "executed").exists()


def test_file_that_is_no_plugin_is_not_executed(made):
    run = made("setup.py", text=EXECUTED)
    with pytest.raises(ganlab.PluginError, match="--plugin-file"):
        Run(run).recipe()
    assert not executed()


def test_comments_do_not_count(made):
    run = made()
    Path("ganlab_plugins.py").write_text(PLUGIN + EXECUTED + "# a comment\n")
    assert Run(run).recipe().arguments["loss"].name == "mine"


def test_bytecode_beside_the_file_is_not_executed(made):
    run = made(text=PLUGIN)
    source, stat = Path("ganlab_plugins.py"), Path("ganlab_plugins.py").stat()
    padding = len(PLUGIN) - len(EXECUTED)
    source.write_text(EXECUTED + "#" * padding)
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    py_compile.compile(str(source))
    source.write_text(PLUGIN)
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert Run(run).recipe().arguments["loss"].name == "mine"
    assert not executed()


def test_reading_a_run_as_data_executes_nothing(made):
    with pytest.raises(ganlab.PluginError, match="--plugin-file"):
        RunDirectory(made()).recipe()
    assert not executed()


def test_a_file_in_use_is_kept(made):
    run = made()
    Path("other.py").write_text(PLUGIN)
    ganlab.use_plugin_file("other.py")
    assert Run(run).recipe().arguments["loss"].name == "mine"
    assert not executed()
    assert load([run / "config.gin"]).arguments["loss"].name == "mine"


PATHS = ["\0.py", "x" * 5000 + ".py", "/proc/kmsg", "/dev/zero", "..", "", "a\nb.py", "missing.py"]
RECORDS = [None, 3, [], {}, {"distribution": 3}, {"distribution": "ganlab_plugins.py", "content": None}]


@pytest.mark.parametrize("odd", [*PATHS, *RECORDS])
def test_an_odd_path_or_record_is_one_error(made, odd):
    run = made()
    plugins = Run(run).info["provenance"]["plugins"]
    plugins["ganlab_plugins"] = {**plugins["ganlab_plugins"], "distribution": odd} if odd in PATHS else odd
    Run(run).update(provenance={"plugins": plugins})
    with pytest.raises(ganlab.GanlabError, match="--plugin-file" if odd in PATHS else ""):
        Run(run).recipe()
    assert not executed()


def test_errors_name_the_plugin_file_of_a_run(made, monkeypatch):
    run, file = RunDirectory(made()), Path("ganlab_plugins.py").absolute()
    shutil.copy(file, run.path)  # a file in a run is not executed
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    with pytest.raises(ganlab.PluginError) as caught:
        run.recipe()
    assert str(caught.value) == (
        f"Add --plugin-file {file}: the run was made with this file (in Python: ganlab.use_plugin_file), and code that "
        f"a folder names is executed only if you name it, too. Without it: {run.path}/config.gin:4: Unknown component "
        "losses.mine."
    )
    monkeypatch.chdir(file.parent)
    file.write_text(file.read_text() + "\n# edited\nEDITED = 1\n")
    with pytest.raises(ganlab.PluginError, match=r"made with this file, which has changed since \(in Python"):
        run.recipe()
    ganlab.use_plugin_file(file)
    assert run.recipe().arguments["loss"] == Recipe("losses", "mine", {})
    assert ganlab.component("losses", "mine")(margin=3.0).margin == 3.0

    # With the file in use, errors do not mention it.
    (run.path / "config.gin").write_text(CONFIG.replace("digits", "digit"))
    with pytest.raises(ganlab.ConfigError) as caught:
        run.recipe()
    assert "plugin-file" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"), [(None, "is not a file"), ("1 / 0\n", "cannot be used: ZeroDivisionError: division by zero")]
)
def test_unusable_plugin_file_is_refused(tmp_path, fresh_plugins, text, message):
    before = plugins.current()
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ganlab.PluginError, match=message):
        ganlab.use_plugin_file(tmp_path / "mine.py")
    assert plugins.current() is before
