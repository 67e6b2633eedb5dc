"""`ganlab benchmark` from its request to its results, with trials and measurements that are pretended."""

import json
import signal

import pytest
from click.testing import CliRunner
from command_lines import mistake_in
from ganlab_benchmark import running
from ganlab_sweep import take_up
from small_suites import SUITE, write_suite

import ganlab
from ganlab.cli import cli
from ganlab.runs import create_run

GP, SN = "gradient_penalty", "spectral_norm"


@pytest.fixture
def pretended(monkeypatch):
    """Pretends to measure and to train: a constraint's loss is -rate * weight, seed 1 of spectral norm diverges.

    Returns what was done, and what to do: a signal to raise in the n-th sweep.
    """
    done = {"measured": [], "trained": [], "side by side": [], "raise": {}, "lose": set()}

    def measured(request, *, threads, limit, stopped):
        done["measured"].append(request["what"])
        if request["what"] == "certificates":
            return {"certificates": {name: {"lower": 2.0, "upper": 3.0, "note": ""} for name in request["runs"]}}
        if "constraints.lecam" in request["constrained"]:
            return {"error": "it cannot be", "kind": "refused"}
        return {"ratios": [1.6, 1.7, 1.62] if GP in request["constrained"] else [0.9, 1.0, 1.02]}

    def run_trials(sweep, launcher, search, *, screen, retry_failed, stopped):
        number = len(done["trained"])
        done["side by side"].append((sweep.request.jobs, sweep.threads))
        done["trained"].append(str(sweep.path.relative_to(sweep.path.parents[1])))
        if number in done["raise"]:
            signal.raise_signal(done["raise"][number])
            return take_up(sweep)
        settings = {one.name: one.settings for one in sweep.configurations()}
        for trial in take_up(sweep, retry_failed=retry_failed):
            if trial.name in done["lose"] or trial.run.exists():
                continue
            mine = settings[trial.configuration]
            rate = float(mine["optimizers.adam.learning_rate"])
            loss = -1000 * rate * float(mine.get(f"constraints.{GP}.weight", 2.0)) - trial.seed
            info = {"status": "running", "steps": int(mine["experiment.steps"]), "step": 0, "metrics": {}}
            run = create_run(trial.run, config="", operative="", info=info)
            ill = SN in mine["experiment.constraints"] and trial.seed == 1
            run.update(status="diverged" if ill else "completed", metrics={"critic/loss": loss}, wall_seconds=1.0)
            if ill:
                trial.log.write_text("Error: critic/loss is not finite\n")
        return take_up(sweep)

    monkeypatch.setattr(running, "measured", measured)
    monkeypatch.setattr(running, "run_trials", run_trials)
    return done


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_suite(tmp_path)
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(cli, ["benchmark", *map(str, arguments)])


def begin(*arguments, names=(GP, SN)):
    chosen = [word for name in names for word in ("--constraint", name)]
    return invoke("--suite", "tiny.toml", "--name", "b", "--jobs", 2, *chosen, *arguments)


def read(here):
    return json.loads((here / "runs/b/results.json").read_text())


def test_settings_are_chosen_on_the_tuning_problem_and_reported_on_another(here, pretended):
    done = begin("--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found == read(here)
    assert pretended["trained"] == [f"{GP}/w1-tune", f"{GP}/w1", f"{SN}/w1-tune", f"{SN}/w1"]
    gp, sn = (found["constraints"][name] for name in (GP, SN))
    # |loss| = 1000 rate weight + seed, lower is better: the smallest rate and weight.
    assert gp["settings"]["w1"] == {"optimizers.adam.learning_rate": "0.0001", f"constraints.{GP}.weight": "1"}
    assert (gp["ratio"], gp["steps"]) == (1.6, {"w1": 25})
    assert gp["tasks"]["cost"]["figures"]["ratio"]["mean"] == 1.62
    loss = gp["tasks"]["w1"]["figures"]["loss"]
    assert (loss["mean"], loss["n"]) == (pytest.approx(0.6), 2)  # 0.1 and 1.1
    assert loss["high"] == pytest.approx(1.1)  # two seeds have a range
    # Tuning figures 7 + 1000 rate weight: 8, 17, 7.1 and 8; 7.1 / 0.9 is 7.9.
    assert gp["tasks"]["fraction"]["figures"]["fraction"]["mean"] == 0.25
    assert gp["tasks"]["bound"]["figures"]["ratio"]["mean"] == 1.5
    assert (sn["ratio"], sn["tasks"]["w1"]["status"]) == (1.0, "partial")
    assert "1 of 2 trials diverged: critic/loss is not finite" in sn["tasks"]["w1"]["reason"]
    assert found["complete"]
    assert (here / "runs/b/report.html").read_text().startswith("<!DOCTYPE html>")


def test_a_refused_constraint_is_listed_with_its_reason_and_stops_nothing(here, pretended):
    done = begin(names=("lecam", "augmentation_consistency", GP))
    assert done.exit_code == 0, done.output
    found = read(here)["constraints"]
    assert {task["status"] for task in found["lecam"]["tasks"].values()} == {"refused"}
    assert "lecam (all tasks): refused. it cannot be" in done.stdout
    assert "augmentation" in found["augmentation_consistency"]["tasks"]["w1"]["reason"]
    assert found[GP]["tasks"]["w1"]["status"] == "completed"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_benchmark_resumes_where_it_was(here, pretended, number, code):
    pretended["raise"] = {2: number}
    done = begin()
    assert done.exit_code == code
    assert "Resume it: ganlab benchmark --resume runs/b" in done.stderr
    assert not read(here)["complete"]
    assert read(here)["constraints"][SN]["tasks"]["w1"]["status"] == "pending"
    before = {path: path.stat().st_mtime_ns for path in (here / "runs/b" / GP).rglob("run.json")}
    pretended["raise"].clear()
    again = invoke("--resume", "runs/b")
    assert again.exit_code == 0, again.output
    assert pretended["trained"][3:] == [f"{SN}/w1-tune", f"{SN}/w1"]
    assert pretended["measured"].count("cost") == 2  # one for each constraint, none again
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert read(here)["complete"]
    invoke("--resume", "runs/b")
    assert len(pretended["trained"]) == 5  # nothing was left


def test_full_disk_stops_a_benchmark_and_resuming_measures_again(here, pretended, monkeypatch):
    usual, full = running.measured, {"error": "OSError: [Errno 28] No space left on device", "kind": "failed"}
    monkeypatch.setattr(running, "measured", lambda request, **options: full)
    done = begin(names=[GP])
    assert done.exit_code == 2
    assert "because the disk is full: OSError" in done.stderr
    assert f"resume: ganlab benchmark --resume {here}/runs/b" in done.stderr
    monkeypatch.setattr(running, "measured", usual)
    assert invoke("--resume", "runs/b").exit_code == 0
    assert read(here)["constraints"][GP]["tasks"]["cost"]["status"] == "completed"


def test_nothing_is_chosen_while_a_setting_is_still_to_be_tried(here, pretended):
    pretended["lose"] = {"setting-3/s7"}  # the best one, whose process was killed
    done = begin(names=[GP])
    assert done.exit_code == 1
    assert read(here)["constraints"][GP]["tasks"]["w1"]["status"] == "pending"
    assert pretended["trained"] == [f"{GP}/w1-tune"]
    pretended["lose"].clear()
    assert invoke("--resume", "runs/b").exit_code == 0
    assert read(here)["constraints"][GP]["settings"]["w1"]["optimizers.adam.learning_rate"] == "0.0001"


def test_results_stand_beside_a_reference(here, pretended):
    assert begin(names=[GP]).exit_code == 0
    (here / "runs/b/results.json").rename(here / "other.json")
    done = invoke("--suite", "tiny.toml", "--name", "c", "--constraint", SN, "--against", "other.json")
    assert done.exit_code == 0, done.output
    assert f"{GP} (reference)" in done.stdout
    assert "Warning" not in done.stderr
    assert list(json.loads((here / "runs/c/results.json").read_text())["references"][0]["constraints"]) == [GP]
    write_suite(here, SUITE.replace("steps = 40", "steps = 50"))
    refused = invoke("--suite", "tiny.toml", "--name", "d", "--constraint", SN, "--against", "other.json")
    assert refused.exit_code == 2
    assert "other.json was made with another suite" in refused.stderr
    assert not (here / "runs/d").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--suite", "gone.toml"], "Suite 'gone.toml' not found"),
        (["--suite", "tiny.toml", "--quick"], "--quick means --suite quick"),
        (["--suite", "tiny.toml", "--constraint", "spectral_nrom"], "Did you mean 'constraints.spectral_norm'?"),
        (["--suite", "tiny.toml", "--retry-failed"], "works only with --resume"),
        (["--suite", "tiny.toml", "--name", "../up", "--constraint", GP], "benchmark name"),
        (["--suite", "tiny.toml", "--constraint", "augmentation_consistency"], "augmentation"),
        (["--suite", "tiny.toml", "--constraint", GP, "--against", "gone.json"], "--against gone.json cannot be read"),
        (["--resume", "gone"], "No benchmark at"),
        (["--resume", "gone", "--constraint", GP], "leave out --constraint"),
        (["--resume", "gone", "--dry-run"], "--dry-run works only for a new benchmark"),
    ],
)
def test_a_mistake_is_one_message_and_leaves_nothing(here, pretended, arguments, said):
    assert said in mistake_in(here, "benchmark", *arguments)
    assert not pretended["measured"]


def test_a_changed_suite_cannot_be_resumed(here, pretended):
    assert begin(names=[GP]).exit_code == 0
    write_suite(here, SUITE.replace("seeds = [0, 1]", "seeds = [0]"))
    done = invoke("--resume", "runs/b")
    assert done.exit_code == 2
    assert "has changed since the benchmark began" in done.stderr
    assert invoke("--suite", "tiny.toml", "--name", "b", "--constraint", GP).exit_code == 2  # it exists


@pytest.mark.parametrize("place", [GP, f"{GP}/w1"])
def test_a_benchmark_that_would_write_elsewhere_is_refused(here, pretended, place):
    pretended["raise"] = {0: signal.SIGINT}
    assert begin(names=[GP]).exit_code == 130
    (here / "outside").mkdir()
    if (path := here / "runs/b" / place).exists():
        path.rename(here / "moved")
    path.symlink_to(here / "outside")
    done = invoke("--resume", "runs/b")
    assert (done.exit_code, len(pretended["trained"])) == (2, 1)
    assert f"{path} is a link to {here / 'outside'}, out of" in done.stderr


def test_a_resumed_benchmark_takes_no_more_than_the_cores(here, pretended, monkeypatch):
    monkeypatch.setattr("ganlab_benchmark.benchmarking.cores", lambda: 2)
    monkeypatch.setattr("ganlab_benchmark.running.cores", lambda: 2)
    pretended["raise"] = {0: signal.SIGINT, 1: signal.SIGINT}
    assert begin("--jobs", 12, names=[GP]).exit_code == 130
    info = json.loads((path := here / "runs/b/benchmark.json").read_text())
    path.write_text(json.dumps({**info, "asked": {**info["asked"], "threads": 64}}))
    assert invoke("--resume", "runs/b").exit_code == 130
    assert invoke("--resume", "runs/b", "--jobs", 9).exit_code == 0
    assert pretended["side by side"][:3] == [(12, 1), (2, 2), (9, 2)]


FILES = (
    'settings = { "experiment.dataset" = "@datasets.idx()", "datasets.idx.images" = "a.gz" }\n'
    'files = { "datasets.idx.images" = "https://example.com/" }\n'
)


@pytest.mark.slow
def test_a_task_whose_files_are_missing_is_skipped_with_a_word_until_they_are_there(here, pretended):
    figure = 'figures.loss = { metric = "critic/loss", better = "lower" }\nreport = [{ name = "x" }]\n'
    own = f'\n[tasks.own]\ntuned_by = "w1"\nexperiment = "tiny.gin"\nsteps = 10\nseeds = [0]\n{FILES}{figure}'
    write_suite(here, SUITE + own)
    said = f"Not found from {here}: a.gz. Get them from https://example.com/"
    assert f"own (training): own: skipped. {said}\n" in begin("--dry-run").stdout
    assert json.loads(begin("--dry-run", "--json").stdout)["skipped"] == {"own": said}
    done = begin(names=[GP])
    assert (done.exit_code, read(here)["complete"]) == (0, True)
    assert f"own: skipped. {said}" in done.stderr
    assert f"{GP} (own): skipped. {said}" in done.stdout
    (here / "a.gz").touch()
    for _ in range(2):  # figures stay, also where the files are gone again
        assert invoke("--resume", "runs/b").exit_code == 0
        assert read(here)["constraints"][GP]["tasks"]["own"]["status"] == "completed"
        (here / "a.gz").unlink(missing_ok=True)
    assert pretended["trained"] == [f"{GP}/w1-tune", f"{GP}/w1", f"{GP}/own"]
    write_suite(here, SUITE + own.replace('images" = "https', 'labels" = "https'))
    assert "tasks.own.files: 'datasets.idx.labels' must be a setting of its" in begin("--dry-run").stderr


def test_nothing_is_measured_where_every_task_is_skipped(here, pretended):
    write_suite(here, SUITE.replace("rounds", f"{FILES}rounds"))
    done = begin(names=[GP])
    assert (done.exit_code, pretended["measured"], pretended["trained"]) == (0, [], [])
    assert f"{GP} (all tasks): skipped. Not found" in done.stdout


def test_a_dry_run_prints_the_plan_and_writes_nothing(here, pretended):
    done = begin("--dry-run")
    assert done.exit_code == 0
    assert f"{GP}: 6 trials" in done.stdout
    assert f"{SN}: 4 trials" in done.stdout
    content = json.loads(begin("--dry-run", "--json").stdout)
    assert content["trials"] == {GP: 6, SN: 4}
    assert f"10 trials in the time of {content['updates']:,} updates" in done.stdout
    assert not (here / "runs").exists()


def test_from_python(here, pretended):
    found = ganlab.benchmark("tiny.toml", constraints=[GP], jobs=2, name="b")
    assert found.path == here / "runs" / "b"
    assert found.content["constraints"][GP]["tasks"]["w1"]["status"] == "completed"
    with pytest.raises(ganlab.ConfigError, match="jobs = 0 must be at least 1"):
        ganlab.benchmark("tiny.toml", jobs=0)
