"""Completion on TAB, through click and in real shells."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_lines import command, every_command
from cpu import against_imports

from ganlab.cli import cli, completing, completion

SOME_RUN = {
    "status": "completed",
    "metrics": {"critic/loss": 1.0, "critic/wasserstein": 2.0},
    "evaluation": {"kid/value": 0.5},
    "settings": {"experiment.batch_size": 64, "constraints": "r1"},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a sweep's run, another run, and an experiment file."""
    monkeypatch.chdir(tmp_path)
    for name in ("runs/mine/weight=10/s0", "runs/quickstart/20260801-120000-s0-1f2e"):
        (tmp_path / name / "checkpoints" / "step-00000400").mkdir(parents=True)
        (tmp_path / name / "checkpoints" / "step-00012000").mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps(SOME_RUN))
    (tmp_path / "runs" / "mine" / "sweep.json").write_text("{}")
    later = {**SOME_RUN, "metrics": {"generator/loss": 1.0}}
    (tmp_path / "runs/quickstart/20260801-120000-s0-1f2e/run.json").write_text(json.dumps(later))
    (tmp_path / "runs" / ".hidden").mkdir()
    (tmp_path / "ring.gin").touch()
    (tmp_path / "notes.txt").touch()
    return tmp_path


@pytest.fixture(scope="module")
def offered():
    """`offered("run", "--gin", "qui")`: the completions of the last word; items that are not plain text as `<type>`."""
    completing.install(cli)
    shell = completion.Bash(cli, {}, "ganlab", completion.VARIABLE)

    def offered(*words):
        found = shell.get_completions(list(words[:-1]), words[-1])
        return [item.value if item.type == "plain" else f"<{item.type}>" for item in found]

    return offered


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["comp"], ["completion", "compare"]),
        (["runs", "un"], ["unarchive"]),
        (["run", "--dry"], ["--dry-run"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["run", "--gin", "qui"], ["quickstart"]),
        (["run", "qui"], ["quickstart"]),
        (["dataset", "show", "qui"], ["quickstart"]),
        (["run", "--gin", "paper/mode"], ["paper/mode_coverage"]),
        (["run", "--gin", "ri"], ["ring.gin"]),
        (["run", "--gin", "ru"], ["runs/"]),
        (["run", "--gin", "./r"], ["./ring.gin", "./runs/"]),
        (["run", "--gin", "nowhere/"], []),
        (["run", "--gin=qui"], ["quickstart"]),
        (["run", "--param", "exp"], ["experiment."]),
        (["run", "--param", "experiment.see"], ["experiment.seed="]),
        (["run", "--param", "optimizers.sg"], ["optimizers.sgd."]),
        (["run", "--param", "constraints.weight_clipping.l"], ["constraints.weight_clipping.limit="]),
        (["sweep", "--grid", "constraints.weight_clipping."], ["constraints.weight_clipping.limit="]),
        (["run", "--no-plugin", "ganlab_la"], ["ganlab_launchers"]),
        (["evaluate", "--evaluator", "mode"], ["mode_coverage"]),
        (["benchmark", "--suite", "q"], ["quick"]),
        (["benchmark", "--constraint", "weight_c"], ["weight_clipping"]),
        (["sweep", "--launcher", "sub"], ["submitit"]),
        (["sweep", "--search", ""], ["grid", "optuna", "random"]),
        (["config", "explain", "losses.hi"], ["losses.hinge"]),
        (["config", "explain", "experiment.critic_s"], ["experiment.critic_steps"]),
        (["config", "explain", "critic/"], ["critic/loss", "critic/penalty", "critic/wasserstein"]),
        (["config", "explain", "constraints/weight_clipping/s"], ["constraints/weight_clipping/saturated"]),
        (["plugins", "check", "constraints.r"], ["constraints.r1", "constraints.r2"]),
        (["run", "--resume", "runs/q"], ["<dir>", "runs/quickstart/20260801-120000-s0-1f2e"]),
        (["sweep", "--resume", ""], ["<dir>", "runs/mine"]),
        (["evaluate", "runs/mine/weight=1"], ["<dir>", "runs/mine/weight=10/s0"]),
        (["runs", "show", "run"], ["<dir>", "runs/mine/weight=10/s0", "runs/quickstart/20260801-120000-s0-1f2e"]),
        (["runs", "rm", "runs/mine/weight=10/s0", "runs/q"], ["<dir>", "runs/quickstart/20260801-120000-s0-1f2e"]),
        (["evaluate", "runs/mine/weight=10/s0", "--checkpoint", "1"], ["12000"]),
        (["compare", "runs/mine", "--metric", ""], ["critic/loss", "critic/wasserstein", "evaluation/kid/value"]),
        (["compare", "runs/mine", "--by", "experiment."], ["experiment.batch_size"]),
        (["compare", "runs/quickstart", "--metric", "gen"], ["generator/loss"]),
        (["compare", "--metric", "gen"], ["generator/loss"]),
        (["sweep", "--objective", "eval"], ["evaluation/kid/value"]),
    ],
    ids=" ".join,
)
def test_completions_of_a_word(here, offered, words, expected):
    assert offered(*words) == expected


def test_every_parameter_that_names_a_run_or_an_experiment_completes(here, offered):
    parameters = [(command, parameter) for _, command in every_command() for parameter in command.params]
    wanted = {(c.name, p.name) for c, p in parameters if p.name in ("run", "runs", "resume", "gin_files", "params")}
    wanted -= {(name, "runs") for name in ("run", "fork", "sweep", "benchmark")}  # folders in which runs are created
    completed = {(c.name, p.name) for c, p in parameters if completing.completer(c, p) or p._custom_shell_complete}
    assert len(wanted) > 12
    assert wanted - completed == set()


def test_a_plugin_file_is_not_executed_for_tab(here, offered):
    (here / "ganlab_plugins.py").write_text("raise SystemExit('executed')")
    assert offered("run", "--param", "experiment.see") == ["experiment.seed="]


def test_error_during_completion_gives_no_items(here, offered, monkeypatch):
    monkeypatch.setenv("GANLAB_PLUGINS", "no-such-plugin")
    (here / "runs" / "mine" / "weight=10" / "s0" / "run.json").write_text("no JSON")
    assert offered("run", "--param", "exp") == []
    assert offered("compare", "runs/mine", "--metric", "") == []


def test_completion_is_quick_with_many_folders(here, offered):
    for number in range(3000):
        (here / "runs" / "wide" / str(number)).mkdir(parents=True)
    begun = time.monotonic()
    assert "runs/mine/weight=10/s0" in offered("runs", "show", "runs/")
    assert time.monotonic() - begun < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("line", ["ganlab run --param experiment.see", "ganlab runs show runs/q"])
def test_completion_is_quick_and_imports_nothing_heavy(here, line):
    code = "import sys; sys.argv = ['ganlab']; from ganlab.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    code += "print([m for m in ('tensorflow', 'keras', 'scipy', 'sklearn', 'matplotlib', 'ray') if m in sys.modules])"
    environment = {**os.environ, "_GANLAB_COMPLETE": "bash_complete", "COMP_WORDS": line}
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    answer, heavy = done.stdout.splitlines()[-2:]
    assert answer in ("plain,experiment.seed=", "plain,runs/quickstart/20260801-120000-s0-1f2e")
    assert heavy == "[]"
    assert against_imports(line, 6, env=environment) < 6


def needs(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"There is no {shell} here.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_names_its_file_and_is_valid(shell):
    script = command("completion", shell)
    assert f"ganlab completion {shell}" in script
    needs(shell)
    subprocess.run([shell, "--no-execute" if shell == "fish" else "-n"], input=script, text=True, check=True)


STARTS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}


class Terminal:
    def __init__(self, shell):
        self.process, self._screen = pty.fork()
        if self.process == 0:
            environment = {**os.environ, "TERM": "dumb", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
            os.execvpe(shell, STARTS[shell], environment)

    def type(self, text, until):
        """Types some keys and returns the output up to and including a text."""
        os.write(self._screen, text.encode())
        seen, end = "", time.monotonic() + 20
        while until not in seen:
            assert time.monotonic() < end, seen
            if select.select([self._screen], [], [], 0.1)[0]:
                seen += os.read(self._screen, 4096).decode(errors="replace")
        return seen

    def close(self):
        os.close(self._screen)
        os.waitpid(self.process, 0)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tab_in_a_real_shell(here, shell):
    needs(shell)
    terminal = Terminal(shell)
    try:
        prepare = "autoload -U compinit; compinit -D; " if shell == "zsh" else ""
        terminal.type(f'{prepare}eval "$(ganlab completion {shell})"; echo re""ady\n', "ready")
        for typed, completed in {
            "ganlab tens\t": "ganlab tensorboard",
            "ganlab run --gin quicks\t": "ganlab run --gin quickstart",
            "ganlab run --param experiment.see\t5": "ganlab run --param experiment.seed=5",
            "ganlab runs show runs/mine/weight=1\t": "ganlab runs show runs/mine/weight=10/s0",
        }.items():
            # Prepend a command that prints the line that TAB completed.
            terminal.type(f"{typed}\x01echo '>' \n", f"> {completed}")
    finally:
        terminal.close()


def test_tab_in_fish(here):
    needs("fish")
    script = "ganlab completion fish | source; complete -C 'ganlab runs show runs/q'; complete -C 'ganlab tens'"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["fish", "--no-config", "-c", script], env=environment, capture_output=True, text=True)
    assert "runs/quickstart/20260801-120000-s0-1f2e" in done.stdout.split()
    assert "tensorboard" in done.stdout.split()
