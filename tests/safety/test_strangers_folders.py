"""No command executes anything of a stranger's run, sweep, benchmark, archive or working directory.

Every trap writes a file. The folders name them in all ways that are known: modules of Python's own names, plugin files
that JSON names, a git repository, settings of Matplotlib, and places that would be written.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from ganlab.cli import cli
from ganlab.config import flatten, load
from ganlab.plugins import manager as plugins
from ganlab.runs.modules import hash_of_file
from ganlab.telemetry.jsonl import to_json

EXPERIMENT = """
include 'base/wgan_gp.gin'
experiment.dataset = @datasets.gaussian_ring()
experiment.architecture = @architectures.mlp()
experiment.steps = 4
experiment.critic_steps = 1
experiment.batch_size = 16
experiment.log_every = 1
experiment.checkpoint_every = 2
experiment.evaluate_every = 0
architectures.mlp.width = 8
"""
# What a stranger adds to the experiment.
WRITING = """
experiment.evaluators = [@evaluators.published_scores()]
evaluators.published_scores.features = @features.pixels()
evaluators.published_scores.statistics = '{trap}/real.npz'
evaluators.published_scores.samples = 64
evaluators.published_scores.real_examples = 64
evaluators.published_scores.subsets = 0
evaluators.published_scores.splits = 0
evaluators.published_scores.nearest = 0
"""
SUITE = """
title = "Tiny"
about = "For tests."

[tasks.cost]
kind = "cost"
experiment = "exp.gin"
rounds = 2
seconds = 0.02
figures.ratio = { better = "lower", label = "cost" }

[tasks.loss]
title = "Loss"
experiment = "exp.gin"
steps = 4
seeds = [0]
figures.loss = { metric = "critic/loss", better = "lower", label = "loss", absolute = true }

[[tasks.loss.report]]
name = "Ring"
"""
PLUGIN = """
import ganlab
open({trap!r} + '/{name}', 'w').close()

@ganlab.hookimpl
def ganlab_losses():
    return {{}}
"""
# Without those that `python -m` itself imports.
MODULES = (
    *("json", "typing", "re", "random", "shutil", "tempfile", "subprocess", "sitecustomize", "usercustomize"),
    *("numpy", "tensorflow", "keras", "matplotlib", "click", "gin", "pluggy", "ganlab_builtin", "venv", "pip"),
)
GIT = '[core]\n\tfsmonitor = {touch}\n\thooksPath = hooks\n\tpager = {touch}\n[filter "own"]\n\tclean = {touch}\n'
GIT += "\tprocess = {touch}\n\trequired = true\n[diff]\n\texternal = {touch}\n"


def ganlab(*arguments, cwd, env=None):
    command = [sys.executable, "-m", "ganlab", *map(str, arguments)]
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **(env or {})}
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def made(tmp_path_factory, cpus):
    """A run, a sweep and a benchmark, before the stranger changes them."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "exp.gin").write_text(EXPERIMENT)
    (folder / "tiny.toml").write_text(SUITE)
    with plugins.using():
        from ganlab_benchmark import created as created_benchmark
        from ganlab_benchmark import planned_benchmark
        from ganlab_sweep import Request, created
        from ganlab_sweep.sweeping import planned_sweep

        command = ["run", "--gin", folder / "exp.gin", "--runs", folder / "runs", "--name", "one"]
        done = CliRunner().invoke(cli, [str(word) for word in command])
        assert done.exit_code == 0, done.output
        shutil.move(folder / "runs" / "exp" / "one", folder / "run")
        created(planned_sweep(Request(gin=[str(folder / "exp.gin")], seeds=[0])), folder / "sweep")
        _, asked = planned_benchmark(str(folder / "tiny.toml"), ["gradient_penalty"], jobs=1)
        created_benchmark(asked, folder / "benchmark")
    return folder


class Stranger:
    """A folder as it was received, with everything in it, and what the traps have written."""

    def __init__(self, made, folder):
        self.traps, self.folder = folder / "traps", shutil.copytree(made, folder / "received")
        self.traps.mkdir()
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("latex", "dvipng", "pdflatex"):
            self._script(self.bin / name)
        for place in (self.folder, *(self.folder / name for name in ("run", "sweep", "benchmark"))):
            self._plant(place)
        self._name_plugins()

    def _script(self, path):
        path.write_text(f"#!/bin/sh\ntouch {self.traps}/{path.name}\ncat\n")
        path.chmod(0o755)

    def _plant(self, place):
        for name in MODULES:
            (place / f"{name}.py").write_text(f"open({str(self.traps)!r} + '/{name}', 'w').close()\n")
        (place / "matplotlibrc").write_text("text.usetex: True\nbackend: module://trap\n")
        for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "x"]):
            identity = ["-c", "user.name=Eve", "-c", "user.email=eve@example.org"]
            subprocess.run(["git", *identity, *command], cwd=place, check=True, capture_output=True)
        (place / ".gitattributes").write_text("* filter=own\n")
        (place / "hooks").mkdir()
        self._script(place / "hooks" / "post-index-change")
        with (place / ".git" / "config").open("a") as file:
            file.write(GIT.format(touch=f"touch {self.traps}/git"))

    def _name_plugins(self):
        for kind in ("run", "sweep", "benchmark"):
            file = self.folder / kind / "ganlab_plugins.py"
            file.write_text(PLUGIN.format(trap=str(self.traps), name=f"plugin of the {kind}"))
            named = {"plugin_file": str(file), "plugin_content": hash_of_file(file)}
            path = self.folder / kind / f"{kind}.json"
            info = json.loads(path.read_text())
            if kind == "run":
                row = {"distribution": str(file), "version": "", "status": "loaded", "content": hash_of_file(file)}
                info["provenance"]["plugins"]["ganlab_plugins"] = row
            else:
                info["asked"] |= named
            if kind == "sweep":
                info["folder"] = str(self.folder)
            path.write_text(json.dumps(info))
        config = self.folder / "run" / "config.gin"
        kept = config.read_text().replace("experiment.evaluators = []\n", "")
        config.write_text(kept + WRITING.format(trap=self.traps))
        path = self.folder / "run" / "run.json"
        settings = to_json(flatten(load([config])))  # as the run would have them, or it is refused
        path.write_text(json.dumps({**json.loads(path.read_text()), "settings": settings}))

    def caught(self):
        return sorted(path.name for path in self.traps.iterdir())


@pytest.fixture
def stranger(made, tmp_path):
    return Stranger(made, tmp_path)


@pytest.fixture(scope="module")
def shared(made, tmp_path_factory):
    """For commands that change nothing of it."""
    return Stranger(made, tmp_path_factory.mktemp("shared"))


# The command, and whether it succeeds on a stranger's folder.
QUICK = {
    "list": (["runs", "list", "."], 0),
    "show": (["runs", "show", "run"], 0),
    "archive": (["runs", "archive", "run", "-o", "out.tar.gz"], 0),
    "compare": (["compare", "run", "sweep"], 0),
    "config": (["config", "show", "--gin", "run/config.gin"], 0),
    "explain": (["config", "explain", "experiment"], 0),
    "dry run": (["run", "--gin", "run/config.gin", "--dry-run"], 0),
    "plugins": (["plugins"], 0),
    "help": (["--help"], 0),
    "unknown command": (["frobnicate"], 2),
    "resume a sweep": (["sweep", "--resume", "sweep"], 2),
    "resume a benchmark": (["benchmark", "--resume", "benchmark"], 2),
    "dry sweep": (["sweep", "--gin", "run/config.gin", "--dry-run"], 0),
    "dry sweep of a trial": (["sweep", "--gin", "sweep/trials/base.gin", "--dry-run"], 0),
}
# Commands like those that are tried always.
OTHERS = ("archive", "config", "explain", "plugins", "help", "unknown command", "dry sweep of a trial")
SLOW = {
    "sample": (["sample", "run", "-o", "out.png"], 0),
    "export": (["export", "run", "-o", "out"], 0),
    "evaluate": (["evaluate", "run"], 0),
    "certify": (["certify", "run", "--seconds", "1"], 0),
    "replay": (["replay", "run", "--step", "3", "--diagnostics", "slopes"], 0),
    "bisect": (["bisect", "run", "critic/loss > 1e9"], 1),
    "fork": (["fork", "run", "--at", "2", "--name", "twin"], None),
    "resume": (["run", "--resume", "run"], None),
    "resume changed": (["run", "--resume", "run", "--allow-changes"], None),
    "train": (["run", "--gin", "run/config.gin", "--runs", "new"], 0),
    "verify": (["verify", "--gin", "run/config.gin", "--checks", "microbatches"], None),
    "plan": (["plan", "--gin", "run/config.gin"], None),
    "check": (["plugins", "check", "losses.wasserstein"], 0),
    "doctor": (["doctor"], None),
}
PLACES = {"beside": ".", "in the run": "run", "in the sweep": "sweep", "in the benchmark": "benchmark"}


def check(stranger, command, code, place="."):
    done = ganlab(*command, cwd=stranger.folder / place, env={"PATH": f"{stranger.bin}:{os.environ['PATH']}"})
    assert stranger.caught() == [], done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert code is None or done.returncode == code, done.stdout + done.stderr


@pytest.mark.parametrize("command", [pytest.param(c, marks=pytest.mark.slow) if c in OTHERS else c for c in QUICK])
def test_quick_commands_execute_nothing(shared, command):
    check(shared, *QUICK[command])


@pytest.mark.parametrize("command", ["help", "plugins", "unknown command"])
@pytest.mark.parametrize(
    "place",
    ["in the run", *(pytest.param(f"in the {kind}", marks=pytest.mark.slow) for kind in ("sweep", "benchmark"))],
)
def test_commands_in_a_strangers_folder_execute_nothing(shared, command, place):
    check(shared, QUICK[command][0], None, PLACES[place])


@pytest.mark.slow
@pytest.mark.parametrize("command", SLOW)
def test_commands_that_need_tensorflow_execute_nothing(stranger, command):
    check(stranger, *SLOW[command])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sweep", "benchmark"])
def test_a_plugin_file_that_is_named_again_is_executed(stranger, kind):
    file = stranger.folder / kind / "ganlab_plugins.py"
    done = ganlab(kind, "--resume", kind, "--plugin-file", file, cwd=stranger.folder)
    assert stranger.caught() == [f"plugin of the {kind}"], done.stderr


def change(path, **asked):
    info = json.loads(path.read_text())
    info["asked"] |= asked
    path.write_text(json.dumps(info))


def test_options_of_a_launcher_must_be_named_again(stranger):
    options = ["slurm={'qos': 'x\\n/bin/sh y'}", "partition=gpu"]
    change(stranger.folder / "sweep" / "sweep.json", plugin_file=None, launcher="submitit", launcher_options=options)
    done = ganlab("sweep", "--resume", "sweep", cwd=stranger.folder)
    assert done.returncode == 2
    words = ["--launcher", "submitit", "--launcher-option", options[0], "--launcher-option", "partition=gpu"]
    command = shlex.join(["ganlab", "sweep", "--resume", "sweep", *words])
    assert done.stderr.startswith(f"Error: Repeat the command as {command}: such options can name machines")


@pytest.mark.slow
def test_a_benchmarks_sweep_names_no_plugin_file_and_no_launcher(stranger):
    folder = stranger.folder / "benchmark"
    change(folder / "benchmark.json", plugin_file=None)
    info = json.loads((folder / "benchmark.json").read_text())
    info["constraints"] = {"gradient_penalty": {"cost": {"ratio": 1.0, "low": 1.0, "high": 1.0, "ratios": [1.0]}}}
    (folder / "benchmark.json").write_text(json.dumps(info))
    (folder / "gradient_penalty").mkdir()
    inner = shutil.copytree(stranger.folder / "sweep", folder / "gradient_penalty" / "loss")
    change(inner / "sweep.json", launcher="submitit", launcher_options=["partition=gpu"])
    done = ganlab("benchmark", "--resume", "benchmark", cwd=stranger.folder)
    assert done.returncode == 0, done.stderr
    assert json.loads((inner / "base" / "s0" / "run.json").read_text())["status"] == "completed"
    assert stranger.caught() == []


def test_a_run_is_archived_unpacked_and_removed_and_nothing_is_executed(stranger):
    done = ganlab("runs", "archive", "run", "-o", "../run.tar.gz", cwd=stranger.folder)
    assert done.returncode == 0, done.stderr
    check(stranger, ["runs", "unarchive", "../run.tar.gz", "-o", "unpacked"], 0)
    check(stranger, ["runs", "rm", "run", "--yes"], 0)


PYPLOT = "import matplotlib.pyplot as p"
TRIGGERS = {
    "json": [sys.executable, "-c", "import json"],
    "git": ["git", "status"],
    "latex": [sys.executable, "-P", "-c", f"{PYPLOT}; p.switch_backend('agg'); p.title('x'); p.savefig('x')"],
    "plugin of the run": [sys.executable, "-P", "ganlab_plugins.py"],
}


def test_each_trap_works(stranger):
    place = stranger.folder / "run"
    variables = {**os.environ, "PATH": f"{stranger.bin}:{os.environ['PATH']}"}
    for command in TRIGGERS.values():
        subprocess.run(command, cwd=place, env=variables, capture_output=True)
    assert set(TRIGGERS) <= set(stranger.caught())
