"""docs/sweeps.md: its command lines describe sweeps, and every option of `ganlab sweep` is mentioned."""

import os
import re
import sys
import time

import pytest
from ganlab_sweep import trial
from ganlab_sweep.command import sweep
from pages import ROOT, blocks, files_and_commands, invoked

from ganlab.plugins import manager as plugins

PAGE = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
_, COMMANDS = files_and_commands(blocks("docs/sweeps.md"))


@pytest.fixture(autouse=True)
def in_use(monkeypatch, tmp_path, fresh_plugins):
    monkeypatch.chdir(tmp_path)


def planned(command):
    for package, extra in (("optuna", "sweep"), ("submitit", "slurm"), ("ray", "ray")):
        if f"--search {package}" in command or f"--launcher {package}" in command:
            pytest.importorskip(package, reason=f"the extra {extra!r} is not installed")
    return invoked(command, "--dry-run")


@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_command_on_the_page_describes_a_sweep(command):
    assert planned(command)


def test_page_states_the_right_number_of_configurations():
    first, single, several, collapsing, *_ = COMMANDS
    assert "15 trials: 3 configurations, seeds 0, 1, 2, 3, 4." in planned(first)
    assert planned(single).splitlines()[:2] == ["constraints=r1", "constraints=spectral_norm"]
    assert planned(several).splitlines()[:2] == ["constraints=r1+spectral_norm", "constraints=none"]
    assert "3 configurations (1 combination gives the same experiment as another)" in planned(collapsing)


def test_every_status_search_and_launcher_is_explained():
    statuses = ("waiting", "interrupted", "pruned", "timed out")
    assert set(statuses) <= {trial.WAITING, trial.INTERRUPTED, trial.PRUNED, trial.TIMED_OUT}
    names = [name for kind, name in plugins.current().components if kind in ("launchers", "searches")]
    assert {"local", "grid", "random"} <= set(names)
    assert [name for name in (*statuses, *names) if f"`{name}`" not in PAGE] == []


def test_launcher_on_the_plugins_page_starts_a_command(tmp_path):
    (source,) = [text for _, _, text in blocks("docs/plugins.md") if "ganlab.Launcher" in text]
    (tmp_path / "ganlab_plugins.py").write_text(source)
    plugins.use_plugin_file(tmp_path / "ganlab_plugins.py")
    launcher, log = plugins.component("launchers", "polite")(), tmp_path / "log"
    code = "import os; print(os.environ['TRIAL'], os.nice(0), os.getcwd(), flush=True); os.kill(os.getpid(), 15)"
    job = launcher.start([sys.executable, "-c", code], environment={"TRIAL": "7"}, folder=tmp_path, log=log)
    deadline = time.monotonic() + 200
    while (status := job.poll()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert status == 143
    assert log.read_text() == f"7 {min(os.nice(0) + 10, 19)} {tmp_path}\n"


def test_every_option_has_a_mention():
    options = {parameter.opts[0] for parameter in sweep.params} - {"--gin", "--runs", "--plugin-file", "--no-plugin"}
    assert [option for option in options if not re.search(rf"`?{option}\b", PAGE)] == []
