"""The output of commands, their exit codes, and the calls they make."""

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from cpu import against_imports

from ganlab import Run, config
from ganlab.errors import IncompatibleError, RunInUseError, TrainingFailedError
from ganlab.plugins.recipes import Recipe
from ganlab.runs import create_run


def test_dry_run_and_config_show_print_the_whole_experiment_and_write_nothing(ganlab, here, minimal):
    (here / "exp.gin").write_text(minimal)
    result = ganlab("run", "--gin", "exp.gin", "--param", "experiment.jit=off", "--seed", "3", "--dry-run")
    recipe = config.load(["exp.gin"], ["experiment.jit=off", "experiment.seed=3"])
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", config.render(recipe, defaults=True))
    for line in ("experiment.loss = @losses.plain()", "experiment.seed = 3", "optimizers.adam.beta = 0.9"):
        assert line in result.stdout.splitlines()
    assert not (here / "runs").exists()
    (here / "exp.gin").write_text(minimal + "experiment.seed = 3\n")
    shown = ganlab("config", "show", "--gin", "exp.gin", "--param", "experiment.jit='off'")
    assert (shown.exit_code, shown.stdout) == (0, result.stdout)


def test_commands_take_files_without_the_option_before_those_with_it(ganlab, here, minimal):
    (here / "exp.gin").write_text(minimal)
    (here / "longer.gin").write_text("experiment.steps = 77\n")
    with_options = ganlab("run", "--gin", "exp.gin", "--gin", "longer.gin", "--dry-run").stdout
    assert "experiment.steps = 77\n" in with_options
    assert ganlab("run", "exp.gin", "longer.gin", "--dry-run").stdout == with_options
    for words in (("run", "--dry-run"), ("config", "show")):
        assert ganlab(*words, "exp.gin", "--gin", "longer.gin").stdout == with_options
    for words in ("run", "sweep", "verify", "plan --topology cpu", "dataset show -o x.png", "config show"):
        assert "Did you mean 'quickstart'?" in ganlab(*words.split(), "quickstrat").stderr


def test_config_explain(ganlab):
    result = ganlab("config", "explain", "penalty")
    assert result.stdout == (
        f"constraints.penalty ({Path('ganlab_plugins.py').resolve()})\n\n"
        "  constraints.penalty.weight: float = 10.0\n"
        "  constraints.penalty.sides: Literal['one', 'two'] = 'two'\n\n"
        "Keeps gradients small.\n\n"
        "Args:\n"
        "    weight: How strongly.\n"
        "    sides: Which slopes count.\n"
    )
    for name in ("@datasets.table()", "datasets.table"):
        assert "  datasets.table.path: str (required)\n" in ganlab("config", "explain", name).stdout
    experiment = ganlab("config", "explain", "experiment").stdout
    assert "  experiment.batch_size: int = 64  (a whole number of at least 1 and below 2**31)\n" in experiment
    assert "    generator_steps: Generator updates in each step.\n" in experiment


def test_config_explain_of_a_setting_and_of_a_kind(ganlab):
    for name in ("constraints.penalty.weight", "penalty.weight"):
        assert ganlab("config", "explain", name).stdout == "constraints.penalty.weight: float = 10.0\n\nHow strongly.\n"
    lines = ganlab("config", "explain", "experiment.ema_start").stdout.splitlines()
    assert lines[0].startswith("experiment.ema_start: int = 0  (")
    assert " ".join(lines[2:]).endswith("0 for from the start, when it follows quickly at first.")
    lines = ganlab("config", "explain", "constraints").stdout.splitlines()
    assert lines[0] == "constraints, a kind of component"
    assert "  constraints.penalty: Keeps gradients small." in lines


# The part of a run that the last screen reads.
RAN = {
    "status": "completed",
    "step": 7,
    "steps": 10,
    "metrics": {"critic/loss": -1.25, "critic/wasserstein": 2 / 3},
    "evaluation": {"mode_coverage/modes": 8.0},
    "wall_seconds": 75.4,
}


@pytest.fixture
def training(here, minimal, monkeypatch):
    """Replaces composing and training of exp.gin; `training.result` is how that ends, `training.calls` the calls."""
    (here / "exp.gin").write_text(minimal)
    fake = types.SimpleNamespace(calls=[], result={})

    def train(experiment, path, *, resume, resume_or_start, allow_changes, console):
        fake.calls.append((experiment, path, resume_or_start or resume, console))
        if isinstance(fake.result, BaseException):
            raise fake.result
        return types.SimpleNamespace(path=path, info={**RAN, **fake.result})

    monkeypatch.setattr("ganlab.run.train", train)
    monkeypatch.setattr("ganlab.cli.run.compose", lambda recipe: recipe)
    monkeypatch.setattr("ganlab.lazy.require", lambda name: None)
    return fake


@pytest.mark.parametrize("option", ["--name", "--resume-or-start"])
def test_run_trains_the_recipe_and_prints_the_last_figures(ganlab, training, option):
    result = ganlab("run", "--gin", "exp.gin", "--seed", 5, "--runs", "out", option, "first")
    ((experiment, path, resume, console),) = training.calls
    assert experiment.arguments["seed"] == 5
    assert experiment.arguments["dataset"] == Recipe("datasets", "points")
    assert (path, resume, console) == (Path("out/exp/first"), option != "--name", True)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "\nCompleted at step 7 of 10 in 1 min 15 s.\n\n"
        "Last metrics:\n"
        "  critic/loss         -1.25\n"
        "  critic/wasserstein  0.666667\n\n"
        "Last evaluation:\n"
        "  mode_coverage/modes  8\n\n"
        "Run: out/exp/first\n"
        "See it: ganlab tensorboard out\n"
    )


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_interrupted_run_exits_with_the_shells_code_for_the_signal(ganlab, training, signal, code):
    training.result = {"status": "interrupted", "signal": signal, "metrics_step": 5}
    result = ganlab("run", "--gin", "exp.gin", "--name", "it")
    assert result.exit_code == code
    assert "\nResume it: ganlab run --resume runs/exp/it\n" in result.stdout
    assert "\nInterrupted at step 7 of 10 in 1 min 15 s.\n\nLast metrics, at step 5:\n" in result.stdout


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (IncompatibleError("these do not fit"), 2, "Error: these do not fit\n"),
        (RunInUseError("another process trains it"), 75, "Error: another process trains it\n"),
        (TrainingFailedError("the loss is nan at step 3"), 1, "Error: the loss is nan at step 3\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
    ],
)
def test_errors_become_messages_and_exit_codes(ganlab, training, error, code, message):
    training.result = error
    result = ganlab("run", "--gin", "exp.gin")
    assert (result.exit_code, result.stderr) == (code, message)


def test_debug_prints_the_traceback(ganlab, training):
    training.result = IncompatibleError("these do not fit")
    result = ganlab("--debug", "run", "--gin", "exp.gin")
    assert result.exit_code == 2
    assert result.stderr.startswith("Traceback (most recent call last):\n")
    assert result.stderr.endswith("\nError: these do not fit\n")


def test_internal_error_is_not_hidden(ganlab, training):
    training.result = ZeroDivisionError("a bug")
    assert ganlab("run", "--gin", "exp.gin").exception is training.result


def test_resume_reads_the_runs_own_config_and_executes_no_plugin_file(ganlab, here, minimal, training):
    local = {"distribution": str(here / "ganlab_plugins.py"), "version": "", "status": "loaded"}
    info = {"provenance": {"plugins": {"ganlab_plugins": local}}}
    run = create_run(here / "deep" / "run", config=f"{minimal}experiment.steps = 70\n", operative="", info=info).path
    result = ganlab("run", "--resume", run)
    assert result.exit_code == 2
    command = f"run --resume {run} --plugin-file {local['distribution']}"
    assert result.stderr.startswith(f"Error: Repeat the command as ganlab {command}: the run was made with this file")
    assert not training.calls
    result = ganlab(*command.split())
    assert result.exit_code == 0, result.output
    ((experiment, path, resume, _),) = training.calls
    assert (experiment.arguments["steps"], path, resume) == (70, run, True)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--param", "experiment.log_every=80"], "  experiment.log_every: 10, and now 80\n"),
        (["--seed", 3], "  experiment.seed: 0, and now 3\n"),
        (["--gin", "exp.gin"], "  experiment.steps: 70, and now 90\n"),
    ],
    ids=["param", "seed", "file"],
)
def test_resume_with_changed_settings_needs_allow_changes(ganlab, here, minimal, training, arguments, line):
    (here / "exp.gin").write_text(minimal + "experiment.steps = 90\n")
    run = create_run(here / "run", config=f"{minimal}experiment.steps = 70\n", operative="", info={}).path
    plugin = ["--plugin-file", here / "ganlab_plugins.py"]
    assert ganlab("run", "--resume", run, *plugin).exit_code == 0
    Run(run).update(settings=config.flatten(training.calls[0][0]), status="interrupted")
    training.calls.clear()

    refused = ganlab("run", "--resume", run, *plugin, *arguments)
    assert refused.exit_code == 2
    assert f"{run} began as another experiment:\n{line}" in refused.stderr
    assert "--allow-changes" in refused.stderr
    assert not training.calls
    assert ganlab("run", "--resume", run, *plugin, *arguments, "--allow-changes").exit_code == 0
    assert len(training.calls) == 1


def test_plugins_lists_components_and_unusable_plugins(ganlab, here):
    page = ganlab("plugins").stdout
    assert "\nconstraints: ways to keep a critic Lipschitz\n  " in f"\n{page}"
    (row,) = [line for line in page.splitlines() if line.startswith("  penalty ")]
    assert row.split(maxsplit=1)[1] == "Keeps gradients small. (ganlab_plugins.py)"
    (here / "ganlab_plugins.py").write_text("import no_such_module\n")
    row = ganlab("plugins").stdout.partition("\nnot loaded\n")[2].splitlines()[0]
    assert row.split()[:3] == ["ganlab_plugins", "broken:", "ModuleNotFoundError:"]
    assert "Traceback (most recent call last)" in ganlab("--debug", "plugins").stdout
    row = ganlab("plugins", "--no-plugin", "ganlab_plugins").stdout.partition("\nnot loaded\n")[2].splitlines()[0]
    assert row.split() == ["ganlab_plugins", "disabled", "(ganlab_plugins.py)"]


def test_long_names_are_never_cut(ganlab, here):
    name = "a_name_that_is_much_longer_than_any_other_of_its_kind"
    (here / "ganlab_plugins.py").write_text(
        f"import ganlab\nclass L(ganlab.Loss):\n    'Sums up [all] of it.'\n"
        f"@ganlab.hookimpl\ndef ganlab_losses():\n    return {{'{name}': L}}\n"
    )
    output = ganlab("plugins").stdout
    assert name in output
    assert "[all]" in output  # and brackets are not markup


def test_plugins_as_json(ganlab):
    data = json.loads(ganlab("plugins", "--json").stdout)
    assert {tuple(item) for item in data["components"]} == {
        ("kind", "name", "summary", "plugin", "distribution", "version", "status")
    }
    assert [(c["kind"], c["name"]) for c in data["components"] if c["summary"] == "Counts samples."] == [
        ("evaluators", "count")
    ]


def test_help_is_quick():
    # Measured: 1.3 to 1.45 where nothing else runs, up to 1.6 beside other work.
    assert against_imports([sys.executable, "-m", "ganlab", "--help"], 1.75) < 1.75


def test_a_mistake_in_a_real_process(here, minimal):
    (here / "exp.gin").write_text(minimal + "experiment.batch_size = 6.4\n")
    command = [sys.executable, "-X", "importtime", "-m", "ganlab", "run", "--gin", "exp.gin", "--runs", "out"]
    environment = {**os.environ, "GANLAB_PLUGINS": "ganlab_plugins"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    message = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert (done.returncode, done.stdout) == (2, "")
    assert message == ["Error: exp.gin:7: experiment.batch_size = 6.4 must be int, not float."]
    assert "| tensorflow" not in done.stderr  # found before TensorFlow starts
    assert not (here / "out").exists()
