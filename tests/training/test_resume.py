"""A resumed run equals one that never stopped, whatever stopped it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import tensorflow as tf
from small import constraint, sgd, small
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from whole_runs import Graph, assert_equal_runs, everything, lines, scalars, stopped_at, texts

import ganlab
from ganlab import config
from ganlab.run import train
from ganlab.runs import create_run
from ganlab.runs.removing import remove
from ganlab.runs.resuming import check_resumable
from ganlab.support.signals import STOPPING
from ganlab.telemetry import event_cutting
from ganlab.training import checkpoints
from ganlab.training.checkpoints import Checkpoints, restore
from ganlab.training.graph.state import TrainingState

pytestmark = pytest.mark.usefixtures("cpus")


@pytest.fixture(scope="module")
def whole(cpus):
    """The graph of `everything`. What does not use it builds its own, as a new process does."""
    return Graph(everything())


@pytest.fixture(scope="module")
def brief(cpus):
    return Graph(small(0, steps=4))


def flip_bit(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def edit(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def flip_bytes(path):
    data = bytearray(path.read_bytes())
    path.write_bytes(bytes(255 - byte for byte in data))


@pytest.mark.parametrize(
    ("step", "sent"), [pytest.param(7, signal.SIGTERM, marks=pytest.mark.slow), (5, signal.SIGINT), (7, signal.SIGHUP)]
)
def test_resume_after_a_signal_equals_an_uninterrupted_run(completed, whole, tmp_path, monkeypatch, step, sent):
    def start(**options):
        if sent is signal.SIGTERM:  # once without anything shared, as in two processes
            return train(everything(), tmp_path / "run", **options)
        return whole.train(tmp_path / "run", **options)

    handlers = [signal.getsignal(number) for number in STOPPING]
    with monkeypatch.context() as patch:
        stopped_at(patch, step, sent)
        run = start()

    assert [signal.getsignal(number) for number in STOPPING] == handlers
    assert run.info["status"] == "interrupted"
    assert run.info["signal"] == sent.name
    assert run.info["step"] == Checkpoints(run.path / "checkpoints").latest().step == step
    assert max(line["step"] for line in lines(run)) <= step
    assert run.info["metrics_step"] == step // 3 * 3

    resumed = start(resume=True)
    assert_equal_runs(completed, resumed)
    assert resumed.info["signal"] is None


@pytest.mark.slow
def test_resume_after_a_kill_continues_from_the_checkpoint(completed, tmp_path):
    # The state after kill -9: rows ahead of the newest checkpoint, one torn line, a checkpoint half written.
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    shutil.rmtree(folder / "checkpoints" / "step-00000010")
    (folder / "checkpoints" / ".step-00000010.torn").mkdir()
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 11, "metr')
    ganlab.Run(folder).update(status="running", step=9)

    resumed = train(everything(), folder, resume=True)
    assert_equal_runs(completed, resumed)
    assert not [warning for warning in resumed.info.get("warnings", []) if "damaged" in warning]


def test_a_run_killed_at_the_very_end_writes_no_row_twice(completed, whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    ganlab.Run(folder).update(status="running")
    assert_equal_runs(completed, whole.train(folder, resume=True))


@pytest.mark.slow
def test_a_run_killed_at_any_checkpoint_has_written_all_before_it(completed, tmp_path, monkeypatch):
    save, copies = Checkpoints.save, []

    def save_and_copy(self, step, *arguments, **named):
        saved = save(self, step, *arguments, **named)
        copies.append(tmp_path / f"killed-{step}")
        shutil.copytree(tmp_path / "run", copies[-1])
        return saved

    graph = Graph(everything(checkpoint_every=5))
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_copy)
        graph.train(tmp_path / "run")
    assert [copy.name for copy in copies] == ["killed-5", "killed-10"]
    for copy in copies:
        resumed = graph.train(copy, resume=True)
        assert lines(resumed) == lines(completed)
        assert scalars(resumed) == scalars(completed)
        for field in ("status", "step", "metrics", "evaluation"):
            assert resumed.info[field] == completed.info[field]


def test_resume_cuts_torn_records_from_event_files(completed, whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    shutil.rmtree(folder / "checkpoints" / "step-00000010")
    ganlab.Run(folder).update(status="running", step=9)
    (path,) = folder.glob("events.out.tfevents.*")
    sound = path.read_bytes()
    path.write_bytes(sound + sound[100:130])  # not a record: the checksum does not match its length

    assert_equal_runs(completed, whole.train(folder, resume=True))
    assert len(list(folder.glob("events.out.tfevents.*"))) == 2


def test_damage_inside_files_is_reported_and_later_rows_stay(completed, whole, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    shutil.rmtree(folder / "checkpoints" / "step-00000010")
    ganlab.Run(folder).update(status="running", step=9)
    edit(folder / "metrics.jsonl", '{"step": 3,', '{"step": 9,')
    (path,) = folder.glob("events.out.tfevents.*")
    data = bytearray(path.read_bytes())
    data[data.index(b"evaluation/mode_coverage", data.index(b"replica/0/"))] ^= 4  # of step 5
    path.write_bytes(data)

    resumed = whole.train(folder, resume=True, console=True)
    metrics, spoilt = (next(w for w in resumed.info["warnings"] if name in w) for name in (".jsonl", "tfevents"))
    assert "line 1 has the step 9, which is out of order" in metrics
    assert "2 rows stay; 1 of the 3 that were written are missing" in metrics
    assert "whole events after them are read" in spoilt
    assert "out of order" in " ".join(capsys.readouterr().err.split())
    expected = [line for line in lines(completed) if line["step"] != 3]
    assert lines(resumed) == expected
    assert {step for step, _, _ in scalars(resumed)} == {step for step, _, _ in scalars(completed)} - {5}
    files = sorted(folder.glob("events.out.tfevents.*"))
    tags = [value.tag for file in files for event in EventFileLoader(str(file)).Load() for value in event.summary.value]
    for tag in SETTINGS:
        assert tags.count(tag) == 1  # if it was damaged, it is written again


SETTINGS = ("_hparams_/session_start_info", "custom_scalars__config__", "experiment")


def settings(run):
    """The settings in the event files by tag, without the start time, which differs between runs."""
    files = sorted(run.path.glob("events.out.tfevents.*"))
    events = [event for file in files for event in EventFileLoader(str(file)).Load()]
    values = [(event.step, value) for event in events for value in event.summary.value if value.tag in SETTINGS]
    return sorted((value.tag, step, value.tensor.SerializeToString()) for step, value in values)


@pytest.mark.parametrize(
    "lost",
    [SETTINGS[:1], SETTINGS[1:2], SETTINGS[2:], SETTINGS],
    ids=["hyperparameters", "layout", "experiment", "all"],
)
def test_resume_rewrites_settings_lost_in_a_kill(completed, whole, tmp_path, lost):
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    shutil.rmtree(folder / "checkpoints" / "step-00000010")
    ganlab.Run(folder).update(status="running", step=9)
    event_cutting.cut(folder, after=9, without=lost)
    assert {tag for tag, *_ in settings(ganlab.Run(folder))}.isdisjoint(lost)
    resumed = whole.train(folder, resume=True)
    assert settings(resumed) == settings(completed)
    assert len(settings(resumed)) == len(SETTINGS)
    assert_equal_runs(completed, resumed)


class Slow(ganlab.Evaluator):
    """Takes a minute at one step, receives a signal during it, and swallows every exception."""

    at = None

    def evaluate(self, sample, dataset, run):
        if Slow.at and run and run.info["step"] >= Slow.at - 2:
            signal.raise_signal(signal.SIGTERM)
            try:
                time.sleep(60)
            except Exception:
                time.sleep(60)
        return {"mean": float(sample(10, 0).mean())}


@pytest.fixture(scope="module")
def slow(cpus, tmp_path_factory):
    """A graph of `everything` with that evaluator, and a run that no signal reached."""
    graph = Graph(everything(evaluators=[Slow()]))
    return graph, graph.train(tmp_path_factory.mktemp("slow") / "run")


@pytest.mark.slow
@pytest.mark.parametrize("at", [5, 10], ids=["between", "at the end"])
def test_resume_does_the_evaluation_that_a_signal_abandoned(slow, tmp_path, monkeypatch, at):
    graph, uninterrupted = slow
    monkeypatch.setattr(Slow, "at", at)
    begun = time.monotonic()
    run = graph.train(tmp_path / "run")
    assert time.monotonic() - begun < 50
    assert (run.info["status"], run.info["step"], run.info["signal"]) == ("interrupted", at, "SIGTERM")
    assert Checkpoints(run.path / "checkpoints").latest().step == at

    monkeypatch.setattr(Slow, "at", None)
    assert_equal_runs(uninterrupted, graph.train(tmp_path / "run", resume=True))
    assert Checkpoints(run.path / "checkpoints").latest().owed is None


FORGED = {
    "warnings": {"watch": {"x": 1}},
    "complaints": {"watch": {"warnings": {"ill": [], "complaints": {}, "said": [], "rows": 1, "largest": 1}}},
    "warned": {"watch": {"warned": ["a"]}},
    "owed": {"owed": [["critic/loss", "much", []]]},
}


@pytest.mark.parametrize("changed", FORGED.values(), ids=FORGED)
def test_forged_manifest_is_one_sentence(brief, tmp_path, changed):
    run = brief.train(tmp_path / "run")
    run.update(status="interrupted")
    path = Checkpoints(run.path / "checkpoints").latest().path / "manifest.json"
    manifest = {**json.loads(path.read_text()), **changed}
    del manifest["checksum"]
    path.write_text(json.dumps({**manifest, "checksum": checkpoints._checksum(manifest)}))
    with pytest.raises(ganlab.RunError, match=r"is damaged: manifest\.json: \S+ is not what ganlab writes"):
        brief.train(run.path, resume=True)


def clipped():
    """An experiment that warns of weights at their limits in its tenth row, and evaluates with no row since."""
    parts = {"constraints": [constraint("weight_clipping", limit=1e-4)], "steps": 14, "log_every": 1}
    return small(2, **parts, evaluate_every=6, checkpoint_every=4)


@pytest.fixture(scope="module")
def warning(cpus):
    return Graph(clipped())


@pytest.fixture(scope="module")
def warned(warning, tmp_path_factory):
    return warning.train(tmp_path_factory.mktemp("warned") / "run")


def assert_warned_as(run, other):
    warnings = other.info["warnings"]
    assert [warning.split(": ")[0] for warning in warnings] == ["weight_clipping", "critic/wasserstein"]
    assert texts(other, "warnings") == [(10, warning.encode()) for warning in warnings]
    assert other.info["health"] == run.info["health"] != []
    for tag in ("warnings", "health", "experiment"):
        assert texts(run, tag) == texts(other, tag)
    assert run.info["warnings"] == warnings


@pytest.mark.slow
@pytest.mark.parametrize("step", [8, 10, 12], ids=["before", "at the warning", "at an evaluation"])
def test_resumed_run_warns_like_an_uninterrupted_one(warning, warned, tmp_path, monkeypatch, step):
    with monkeypatch.context() as patch:
        stopped_at(patch, step)
        warning.train(tmp_path / "run")
    assert_warned_as(warning.train(tmp_path / "run", resume=True), warned)


@pytest.mark.parametrize("kept", [["step-00000004", "step-00000008"], []], ids=["from before", "from the start"])
def test_a_killed_run_warns_again(warning, warned, tmp_path, kept):
    # run.json already has the warning, and its text is cut.
    folder = tmp_path / "run"
    shutil.copytree(warned.path, folder)
    for path in (folder / "checkpoints").iterdir():
        if path.name not in kept:
            shutil.rmtree(path)
    ganlab.Run(folder).update(status="running", checkpointed=bool(kept))
    assert_warned_as(warning.train(folder, resume=True), warned)


def test_a_run_that_begins_again_has_its_charts_and_hyperparameters(completed, whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    shutil.rmtree(folder / "checkpoints")
    for path in folder.glob("events.out.tfevents.*"):  # killed before any of it was on disk
        path.write_bytes(b"")
    ganlab.Run(folder).update(status="running", checkpointed=False)
    resumed = whole.train(folder, resume=True)
    assert_equal_runs(completed, resumed)
    layout = "custom_scalars__config__"
    assert texts(resumed, layout) == texts(completed, layout) != []
    assert len(texts(resumed, "_hparams_/session_start_info")) == 1


def test_a_run_that_begins_again_says_what_it_discards_and_has_no_figures_at_first(
    completed, whole, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    shutil.rmtree(folder / "checkpoints")
    ganlab.Run(folder).update(status="running", checkpointed=False, health=["odd"], best={"step": 4})
    with monkeypatch.context() as patch:
        stopped_at(patch, 1)
        run = whole.train(folder, resume=True)
    rows = len(lines(completed))
    said = f"run has no checkpoint yet: training begins again from step 0, and its {rows} rows of metrics are discarded"
    assert said in capsys.readouterr().err
    assert (run.info["status"], run.info["step"], run.info["metrics"], run.info["evaluation"]) == (
        "interrupted",
        1,
        {},
        {},
    )
    assert "best" not in run.info
    assert "odd" not in run.info.get("health", ())
    assert_equal_runs(completed, whole.train(folder, resume=True))


def test_resume_of_a_run_whose_checkpoints_were_removed_is_refused_and_its_rows_stay(completed, whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    run = ganlab.Run(folder)
    run.update(status="interrupted")
    remove(run, keep_metrics=True)
    message = r"run \(interrupted\) has no checkpoints any more: .* ganlab run --gin .*run/config.gin"
    with pytest.raises(ganlab.RunError, match=message):
        whole.train(folder, resume=True, allow_changes=True)
    assert lines(run) == lines(completed)


def test_run_is_completed_only_once_its_files_are_written(completed, whole, tmp_path, monkeypatch):
    from ganlab.telemetry.tensorboard_writer import TensorBoardWriter

    def full(self):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(TensorBoardWriter, "close", full)
        with pytest.raises(ganlab.TrainingFailedError, match="No space left"):
            whole.train(tmp_path / "run")
    assert ganlab.Run(tmp_path / "run").info["status"] == "failed"
    assert_equal_runs(completed, whole.train(tmp_path / "run", resume=True))


def test_full_disk_at_the_start_is_one_sentence(brief, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stopped_at(patch, 2)
        run = brief.train(tmp_path / "run")

    def full(room):
        """Makes a write function that has room for this many files."""
        written = []

        def write(path, text):
            if len(written) == room:
                raise OSError(28, "No space left on device")
            written.append(path.write_text(text))

        return write

    for room in range(4):
        with monkeypatch.context() as patch:
            patch.setattr("ganlab.runs.directory.write_text", full(room))
            with pytest.raises(ganlab.TrainingFailedError, match=r"run cannot be written: .*No space left"):
                brief.train(run.path, resume=True)
    assert brief.train(run.path, resume=True).info["status"] == "completed"


def test_resume_of_a_completed_run_is_refused(completed):
    with pytest.raises(ganlab.RunError, match="is completed"):
        train(everything(), completed.path, resume=True)


DAMAGES = {
    "no data": (
        lambda path: (path / "variables.data-00000-of-00001").write_bytes(b""),
        # How many bytes there were depends on the names that TensorFlow gives to objects made before in this process.
        "variables.data-00000-of-00001 is not what was written: 0 of 1",
    ),
    "other data": (
        lambda path: flip_bytes(path / "variables.data-00000-of-00001"),
        "variables.data-00000-of-00001 is not what was written. It",
    ),
    "one bit": (lambda path: flip_bit(path / "pending.npy"), "pending.npy is not what was written. It"),
    "no index": (lambda path: (path / "variables.index").unlink(), "variables.index cannot be read (No such file"),
    "a torn array": (lambda path: (path / "pending.npy").write_bytes(b"\x93NUMPY"), "pending.npy is not what"),
    "a torn manifest": (lambda path: truncate(path / "manifest.json"), "manifest.json is torn"),
    "an edited manifest": (
        lambda path: edit(path / "manifest.json", '"replicas": 2', '"replicas": 3'),
        "manifest.json has changed since it was written",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_resume_names_a_damaged_checkpoint_and_uses_the_one_before(completed, whole, tmp_path, capsys, damage, message):
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    ganlab.Run(folder).update(status="interrupted")
    damage(folder / "checkpoints" / "step-00000010")

    resumed = whole.train(folder, resume=True)
    said = capsys.readouterr().err
    assert f"step-00000010 is damaged: {message}" in said
    assert (folder / "checkpoints" / "damaged-step-00000010").is_dir()
    assert resumed.info["resumed"][0]["step"] == 8
    assert_equal_runs(completed, resumed)


def test_resume_with_all_checkpoints_damaged_starts_again(completed, whole, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(completed.path, folder)
    ganlab.Run(folder).update(status="interrupted")
    for path in (folder / "checkpoints").iterdir():
        flip_bit(path / "pending.npy")

    resumed = whole.train(folder, resume=True)
    said = capsys.readouterr().err
    assert said.count("is damaged") == 3
    assert "run has no sound checkpoint: training begins again from step 0" in said
    assert resumed.info["resumed"][0]["step"] == 0
    assert_equal_runs(completed, resumed)


@pytest.mark.parametrize(
    "parts",
    [
        lambda: {"ema_decay": 0.0},
        lambda: {"constraints": []},
        lambda: {
            "constraints": [constraint("gradient_penalty"), constraint("spectral_norm"), constraint("spectral_norm")]
        },
        lambda: {"critic_optimizer": sgd()},
        lambda: {"architecture": ganlab.component("architectures", "mlp")(width=4, depth=2, latent_dim=3)},
    ],
    ids=["no average", "no state", "more state", "another optimizer", "another width"],
)
def test_a_checkpoint_of_another_experiment_does_not_fit(completed, parts):
    checkpoint = Checkpoints(completed.path / "checkpoints").latest()
    with pytest.raises(ganlab.RunError, match="step-00000010 does not fit this experiment"):
        restore(checkpoint, TrainingState(everything(**parts())).variables())


def test_resume_of_a_run_in_training_is_refused(brief, tmp_path, monkeypatch):
    from ganlab.runs.lock import locked

    stopped_at(monkeypatch, 2)
    run = brief.train(tmp_path / "run")
    assert run.info["status"] == "interrupted"
    with locked(run), pytest.raises(ganlab.RunError, match=r"is being trained by process \d+ on "):
        brief.train(run.path, resume=True)


def test_resume_with_changed_settings_is_refused_and_differences_are_listed(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        stopped_at(patched, 2)
        run = train(small(0, steps=4, log_every=1), tmp_path / "run")
    other = {"constraints": [constraint("gradient_penalty", weight=2.0)], "steps": 6, "log_every": 1}
    with pytest.raises(ganlab.RunError) as refused:
        train(small(2, **other), run.path, resume=True)
    said = str(refused.value)
    for line in (
        "experiment.steps: 4, and now 6",
        "constraints: not set, and now 'gradient_penalty'",
        "constraints.gradient_penalty.weight: not set, and now 2.0",
        "strategy: 'one_device', and now 'mirrored'",
        "allow-changes",
    ):
        assert line in said
    assert "batch_size" not in said
    assert run.info["status"] == "interrupted"


def test_resume_with_fewer_steps_than_the_newest_checkpoint_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stopped_at(patch, 3)
        run = train(small(0, steps=4), tmp_path / "run")
    before = run.info
    message = r"experiment.steps = 2 is below the step of the newest checkpoint of .*run, 3: there is nothing to train"
    with pytest.raises(ganlab.ConfigError, match=message):
        train(small(0, steps=2), run.path, resume=True, allow_changes=True)
    assert run.info == before
    assert train(small(0, steps=3), run.path, resume=True, allow_changes=True).info["status"] == "completed"


def test_steps_left_at_their_default_count_when_a_run_is_resumed(tmp_path):
    recipe = small(0).recipe
    recipe = replace(recipe, arguments={name: value for name, value in recipe.arguments.items() if name != "steps"})
    steps = config.flatten(recipe)["experiment.steps"]
    run = create_run(tmp_path / "run", config="", operative="", info={"status": "completed", "step": steps})
    (run.path / "checkpoints" / "step-00000040").mkdir(parents=True)
    with pytest.raises(ganlab.RunError, match="is completed: there is nothing to resume"):
        check_resumable(run, recipe, allow_changes=True)


def test_allowed_changes_are_recorded(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        stopped_at(patched, 2)
        run = train(small(0, steps=4, log_every=1), tmp_path / "run")
    longer = small(0, steps=6, log_every=1)
    train(longer, run.path, resume=True, allow_changes=True)
    info = run.info
    assert (info["status"], info["step"], info["steps"]) == ("completed", 6, 6)
    assert info["resumed"][0]["changes"] == ["experiment.steps: 4, and now 6"]
    assert info["settings"]["experiment.steps"] == 6
    assert run.recipe().arguments["steps"] == 6
    # No step depends on the total number of steps: the numbers equal those of a run with six from the start.
    whole = train(longer, tmp_path / "whole")
    assert (run.path / "metrics.jsonl").read_text() == (whole.path / "metrics.jsonl").read_text()


@pytest.mark.slow
def test_resume_with_other_replicas_is_possible_if_allowed(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        stopped_at(patched, 2)
        run = train(small(0, steps=4, log_every=3), tmp_path / "run")
    with pytest.raises(ganlab.RunError, match="strategy: 'one_device', and now 'mirrored'"):
        train(small(2, steps=4, log_every=3), run.path, resume=True)
    train(small(2, steps=4, log_every=3), run.path, resume=True, allow_changes=True)
    assert (run.info["status"], run.info["replicas"], run.info["strategy"]) == ("completed", 2, "MirroredStrategy")


def test_resume_is_recorded_in_run_json(brief, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        stopped_at(patched, 2)
        run = brief.train(tmp_path / "run")
    brief.train(run.path, resume=True)
    (again,) = run.info["resumed"]
    assert again["step"] == 2
    assert again["packages"]["tensorflow"] == tf.__version__


def test_sigterm_to_the_command_line(tmp_path):
    (tmp_path / "long.gin").write_text(
        """
experiment.dataset = @datasets.gaussian_ring()
experiment.architecture = @architectures.mlp()
experiment.loss = @losses.wasserstein()
experiment.constraints = [@constraints.weight_clipping()]
experiment.strategy = @strategies.mirrored()
experiment.critic_optimizer = @optimizers.sgd()
experiment.generator_optimizer = @optimizers.sgd()
experiment.critic_steps = 1
experiment.batch_size = 8
experiment.steps = 100_000_000
experiment.log_every = 1
architectures.mlp.width = 4
strategies.mirrored.virtual_replicas = 2
"""
    )
    command = [sys.executable, "-m", "ganlab", "run", "--gin", "long.gin", "--runs", "runs", "--name", "long"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        metrics = tmp_path / "runs" / "long" / "long" / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()

    assert process.returncode == 143, err
    run = ganlab.Run(metrics.parent)
    assert run.info["status"] == "interrupted"
    assert run.info["step"] == Checkpoints(run.path / "checkpoints").latest().step > 0
    assert "--resume" in out
    assert "Traceback" not in err
