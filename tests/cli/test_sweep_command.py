import json
import signal

import pytest
from command_lines import invoke, mistake_in
from ganlab_sweep import Sweep

WEIGHT = "constraints.gradient_penalty.weight"
CONSTRAINTS = "experiment.constraints"

# Ends at once without training; a weight of 666 fails, and one of 777 never ends.
PRETEND = """
import itertools
import json
import re
from pathlib import Path

import ganlab
from ganlab.run import Run
from ganlab.runs import create_run


class Pretend(ganlab.Launcher):
    def __init__(self, *, value: float = 1.0):
        self.value = value  # the last one of the critic's loss

    def start(self, command, *, environment, folder, log):
        options = dict(itertools.pairwise(command))
        log.write_text(json.dumps([command, environment]) + "\\n")
        if "--resume" in options:
            return Done(Run(options["--resume"]), self.value, "completed", 0)
        gin = Path(options["--gin"])
        weight = re.search(r"gradient_penalty.weight = (\\S+)", gin.read_text())
        status, code = {"666": ("failed", 1), "777": ("interrupted", 143)}.get(weight and weight[1], ("completed", 0))
        info = {"status": "running", "steps": 10, "step": 0, "metrics": {}}
        run = create_run(Path(options["--runs"]) / gin.stem / options["--name"], config="", operative="", info=info)
        return Done(run, self.value, status, code)


class Done(ganlab.Job):
    def __init__(self, run, value, status, code):
        run.update(status=status, step=10, metrics={"critic/loss": value}, wall_seconds=2.0)
        if value > 1e6:
            run.update(health=[f"critic/loss: It is {value:g}."])
        self.code = code

    def poll(self):
        return self.code

    def stop(self):
        pass


class Learner(ganlab.Search):
    needs_objective = True

    def start(self, space, *, budget, seed, direction, history=()):
        ((self.name, _),) = space.items()
        self.next = ["8", "4", "2"][len(history):]

    def propose(self):
        return {self.name: self.next.pop(0)} if self.next else None


@ganlab.hookimpl
def ganlab_launchers():
    return {"pretend": Pretend}


@ganlab.hookimpl
def ganlab_searches():
    return {"learner": Learner}
"""


@pytest.fixture
def ganlab(tmp_path, monkeypatch, fresh_plugins):
    """Runs a command line in a folder with b.gin and the pretended launcher: `ganlab("sweep", ...)`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ganlab_sweep.engine._POLL_SECONDS", 0.001)
    (tmp_path / "ganlab_plugins.py").write_text(PRETEND)
    (tmp_path / "b.gin").write_text("include 'quickstart'\n")
    return invoke


@pytest.fixture
def sweep(ganlab):
    """`ganlab sweep --gin b.gin --launcher pretend --name s ...`."""
    return lambda *arguments: ganlab("sweep", "--gin", "b.gin", "--launcher", "pretend", "--name", "s", *arguments)


def test_a_sweep_ends_with_a_table_of_its_trials(sweep):
    result = sweep("--grid", f"{WEIGHT}=[0.1, 10]", "--seeds", "0..1")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["configuration", "seed", "status", "step", "critic/loss", "health", "warnings", "time"]
    assert [line.split() for line in lines[1:5]] == [
        ["gradient_penalty.weight=0.1", "0", "completed", "10/10", "1", "2.0", "s"],
        ["1", "completed", "10/10", "1", "2.0", "s"],
        ["gradient_penalty.weight=10", "0", "completed", "10/10", "1", "2.0", "s"],
        ["1", "completed", "10/10", "1", "2.0", "s"],
    ]
    assert lines[6] == "4 completed of 4 trials. Sweep: runs/s"
    assert "gradient_penalty.weight=10/s1: completed at step 10/10 in 2.0 s, critic/loss 1" in result.stderr


def test_trials_use_the_plugins_and_threads_of_the_sweep(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr("ganlab_sweep.sweeping.cores", lambda: 8)
    assert sweep("--jobs", "3", "--no-plugin", "ganlab_augmentations").exit_code == 0
    log = (tmp_path / "runs" / "s" / "trials" / "base-s0.log").read_text()
    command, environment = json.loads(log)
    assert command[-4:] == ["--no-plugin", "ganlab_augmentations", "--plugin-file", str(tmp_path / "ganlab_plugins.py")]
    assert environment["TF_NUM_INTRAOP_THREADS"] == environment["TF_NUM_INTEROP_THREADS"] == "2"
    # They keep them when the sweep is resumed with other jobs or another launcher.
    assert Sweep(tmp_path / "runs" / "s").info["threads"] == 2


def test_sweep_reports_health_complaints_of_trials(sweep):
    result = sweep("--grid", f"{WEIGHT}=[0.1, 10]", "--launcher-option", "value=1e12")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.split()[5] for line in lines[1:3]] == ["critic/loss"] * 2
    assert "2 completed of 2 trials, 2 unhealthy. Sweep: " in result.stdout
    health = "Health: critic/loss reports a problem in 2 trials. In gradient_penalty.weight=0.1/s0: It is 1e+12."
    assert health in result.stderr.splitlines()


def test_json_has_the_trials_and_nothing_else(sweep, tmp_path):
    result = sweep("--grid", f"{WEIGHT}=[0.1, 666]", "--json", "--launcher-option", "value=2")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    named = {"configuration", "seed", "status", "step", "steps", "metric", "value", "seconds", "health", "warnings"}
    assert {*data["trials"][0]} == named | {"changes", "run", "log", "error"}
    assert data["trials"][0]["run"] == str(tmp_path / "runs" / "s" / "gradient_penalty.weight=0.1" / "s0")
    assert data["sweep"] == str(tmp_path / "runs" / "s")
    assert [(trial["status"], trial["value"]) for trial in data["trials"]] == [("completed", 2.0), ("failed", 2.0)]
    assert data["trials"][0]["log"] == str(tmp_path / "runs" / "s" / "trials" / "gradient_penalty.weight=0.1-s0.log")


def test_failed_trials_are_listed_with_their_log_and_the_next_command(sweep, ganlab):
    result = sweep("--grid", f"{WEIGHT}=[666, 1]")
    assert result.exit_code == 1
    *_, failure, again = result.stderr.splitlines()
    assert failure.startswith("gradient_penalty.weight=666/s0 failed: ")
    assert failure.endswith("(log: runs/s/trials/gradient_penalty.weight=666-s0.log)")
    assert again == "Retry failed trials: ganlab sweep --resume runs/s --retry-failed"
    assert ganlab("sweep", "--resume", "runs/s").exit_code == 1
    retried = ganlab("sweep", "--resume", "runs/s", "--retry-failed")
    assert retried.exit_code == 0
    assert "2 completed of 2 trials" in retried.stdout


def test_a_cut_name_has_all_settings_beside_it(sweep):
    grids = {"optimizers.adam.learning_rate": "[0.000123456, 0.000223456]", WEIGHT: "[0.1234567, 0.2234567]"}
    grids |= {"experiment.critic_steps": "[1, 2]", "experiment.batch_size": "[32, 64]"}
    words = [word for name, values in grids.items() for word in ("--grid", f"{name}={values}")]
    first, *_ = sweep(*words, "--dry-run").stdout.splitlines()
    assert "~" in first
    assert first.endswith(f"{WEIGHT}=0.1234567, experiment.critic_steps=1, experiment.batch_size=32)")


def test_commands_to_resume_name_a_plugin_file_of_another_folder(sweep, tmp_path, monkeypatch):
    (tmp_path / "below").mkdir()
    (tmp_path / "ganlab_plugins.py").rename(tmp_path / "below" / "ganlab_plugins.py")
    result = sweep("--grid", f"{WEIGHT}=[777]", "--plugin-file", "below/ganlab_plugins.py")
    resume = "Resume it: ganlab sweep --resume runs/s --plugin-file below/ganlab_plugins.py"
    assert result.stderr.splitlines()[-1] == resume


def test_resume_continues_an_interrupted_sweep(sweep, ganlab, tmp_path):
    result = sweep("--grid", f"{WEIGHT}=[777]", "--seeds", "4")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "Resume it: ganlab sweep --resume runs/s"
    (tmp_path / "b.gin").write_text("this is no longer gin")  # every experiment was saved
    again = ganlab("sweep", "--resume", "runs/s", "--jobs", "4")
    assert again.exit_code == 0, again.output
    assert "gradient_penalty.weight=777     4  completed" in again.stdout
    assert Sweep(tmp_path / "runs" / "s").request.jobs == 4


@pytest.mark.parametrize(
    ("given", "jobs", "threads"),
    [
        ("", 2, 2),
        ("--jobs 7", 7, 2),
        ("--threads 9", 2, 9),
        ("--jobs 12 --threads 64", 12, 64),
        ("--launcher pretend", 12, 64),  # whose machines have cores of their own
    ],
)
def test_a_folder_asks_for_no_more_than_the_cores(sweep, ganlab, tmp_path, monkeypatch, given, jobs, threads):
    monkeypatch.setattr("ganlab_sweep.command.cores", lambda: 2)
    assert sweep("--grid", f"{WEIGHT}=[777]", "--jobs", "12", "--threads", "64").exit_code == 1
    again = ganlab("sweep", "--resume", "runs/s", *given.split())
    assert f"{jobs} at a time, threads: {threads} each." in again.stderr
    said = "runs/s: sweep.json has more than this machine's cores. To take that: --jobs 12 --threads 64\n"
    assert (said in again.stderr) == (jobs == 2 or threads == 2)
    log = next((tmp_path / "runs" / "s" / "trials").glob("*.log")).read_text()
    assert json.loads(log)[1]["OMP_NUM_THREADS"] == str(threads)


def test_learning_search_is_asked_as_results_come_in(sweep, ganlab, tmp_path):
    arguments = ["--grid", f"{WEIGHT}=[2, 4, 8]", "--search", "learner", "--objective", "critic/loss", "--budget", "4"]
    assert sweep(*arguments).exit_code == 0
    found = [(each.configuration, each.value) for each in Sweep(tmp_path / "runs" / "s").proposals]
    assert found == [(f"gradient_penalty.weight={weight}", 1.0) for weight in (8, 4, 2)]
    # Resuming a search reads the file again, so the file must be unchanged.
    (tmp_path / "b.gin").write_text("include 'quickstart'\nexperiment.steps = 7\n")
    changed = ganlab("sweep", "--resume", "runs/s")
    assert changed.exit_code == 2
    assert "the experiment has changed since the sweep began" in changed.stderr


def test_dry_run_lists_the_configurations_and_writes_nothing(sweep, tmp_path):
    constraints = f"{CONSTRAINTS}=[@constraints.gradient_penalty(), @constraints.spectral_norm()]"
    grid = ["--grid", constraints, "--grid", f"{WEIGHT}=[1, 10]"]
    arguments = [*grid, "--seeds", "0,5", "--jobs", "2", "--threads", "3"]
    result = sweep(*arguments, "--dry-run")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "constraints=gradient_penalty,gradient_penalty.weight=1",
        "constraints=gradient_penalty,gradient_penalty.weight=10",
        "constraints=spectral_norm",
        "",
        "6 trials: 3 configurations (1 combination gives the same experiment as another), seeds 0, 5. 2 at a time, "
        "threads: 3 each.",
    ]
    data = json.loads(sweep(*arguments, "--dry-run", "--json").stdout)
    assert data["configurations"][2] == {
        "configuration": "constraints=spectral_norm",
        "settings": {CONSTRAINTS: "[@constraints.spectral_norm()]"},
        "seeds": [0, 5],
    }
    assert not (tmp_path / "runs").exists()


def test_seed_defaults_to_the_experiments_own(sweep):
    assert json.loads(sweep("--param", "experiment.seed=9", "--json").stdout)["trials"][0]["seed"] == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "Missing experiment: name a FILE, for example 'ganlab sweep quickstart', or pass --resume SWEEP."),
        (
            "b.gin --grid constraints.gradient_penalty.wait=[1]",
            "setting 'constraints.gradient_penalty.wait': constraints.gradient_penalty has no parameter 'wait'. Did "
            "you mean 'weight'?",
        ),
        ("b.gin --launcher pretent", "Unknown component launchers.pretent. Did you mean 'launchers.pretend'?"),
        (
            "b.gin --launcher pretend --launcher-option values=1",
            "--launcher-option 'values=1': launchers.pretend has no parameter 'values'. Did you mean 'value'?",
        ),
        (
            "b.gin --search learner --objective modes --grid "
            "experiment.evaluators=[[@evaluators.mode_coverage()],[@evaluators.exact_w1()]]",
            "A search needs its objective in every configuration. In one: The experiment logs no metric ",
        ),
        ("b.gin --search learner", "searches.learner needs an objective: name a metric, for example "),
        ("b.gin --objective critic/los", "The experiment logs no metric 'critic/los'. Did you mean 'critic/loss'?"),
        ("b.gin --maximize", "--maximize needs an objective: name a metric, for example "),
        ("b.gin --name a/b", "Invalid sweep name 'a/b': use at most 60 printable "),
        ("--gin b.gin --name= --dry-run", "Invalid sweep name '': use at most 60 printable "),
        ("b.gin --retry-failed", "--retry-failed works only with --resume SWEEP: leave it out for a new "),
        ("--resume s b.gin", "--resume continues a sweep unchanged: leave out FILE and --gin. Only "),
        ("--resume s --seeds 1", "--resume continues a sweep unchanged: leave out --seeds. Only --jobs, "),
        ("--resume s", "No sweep at "),
    ],
)
@pytest.mark.usefixtures("ganlab")
def test_a_mistake_is_one_message_and_leaves_nothing(tmp_path, arguments, message):
    assert mistake_in(tmp_path, "sweep", *arguments.split()).startswith(message)


def test_taken_sweep_name_suggests_resume(sweep, tmp_path):
    assert sweep().exit_code == 0
    again = sweep("--seeds", "3")
    assert again.exit_code == sweep("--seeds", "3", "--dry-run").exit_code == 2
    assert again.stderr == (
        f"Error: {tmp_path / 'runs' / 's'} already exists. Choose another --name, or resume it: "
        f"ganlab sweep --resume {tmp_path / 'runs' / 's'}\n"
    )
    assert Sweep(tmp_path / "runs" / "s").request.seeds == [0]


@pytest.mark.parametrize(("number", "exit_status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_stop_a_sweep_after_its_trials_are_saved(sweep, tmp_path, number, exit_status):
    plugin = tmp_path / "ganlab_plugins.py"
    # A job that runs until it is stopped; meanwhile it sends the signal to the sweep.
    plugin.write_text(
        plugin.read_text()
        .replace("        return self.code\n", f"        os.kill(os.getpid(), {int(number)})\n")
        .replace("class Done", "import os\n\n\nclass Done")
        .replace("        pass\n", "        Done.poll = lambda self: 143\n")
    )
    result = sweep("--grid", f"{WEIGHT}=[777, 778]")
    assert result.exit_code == exit_status, result.output
    assert "1 queued, 1 interrupted of 2 trials" in result.stdout
    assert result.stderr.splitlines()[-1] == "Resume it: ganlab sweep --resume runs/s"
