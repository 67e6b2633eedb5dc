"""A resumed run equals one that never stopped, whatever stopped it and whatever the clock says, warnings included."""

import itertools
import shutil
import signal
import time

import numpy as np
import pytest
from ganlab_archive.removing import remove
from small import constraint, small
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from whole_runs import Graph, assert_equal_runs, copied, edit, events, everything, lines, scalars, texts, train

import ganlab
from ganlab.support.signals import STOPPING
from ganlab.telemetry import event_cutting
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


@pytest.fixture
def killed(completed, tmp_path):
    """The folder of a run that was killed after its checkpoint of step 8: its rows go further."""
    folder = copied(completed, tmp_path / "run", status="running", step=9)
    shutil.rmtree(folder / "checkpoints" / "step-00000010")
    return folder


class Signalled:
    """A trainer during whose work on one step a signal arrives."""

    def __init__(self, trainer, step, sent):
        self._trainer, self._step, self._sent = trainer, step, sent

    def __getattr__(self, name):
        return getattr(self._trainer, name)

    def train(self, count):
        values = self._trainer.train(min(count, self._step - self.state.step))
        if self.state.step == self._step:
            signal.raise_signal(self._sent)
        return values


@pytest.mark.parametrize(
    ("step", "sent"),
    [(5, signal.SIGINT), *(pytest.param(7, sent, marks=pytest.mark.slow) for sent in (signal.SIGTERM, signal.SIGHUP))],
)
def test_resume_after_a_signal_equals_an_uninterrupted_run(completed, whole, tmp_path, step, sent):
    def start(**options):
        if sent is signal.SIGTERM:  # once without anything shared, as in two processes
            return train(everything(), tmp_path / "run", **options)
        return whole.train(tmp_path / "run", **options)

    def signalled(experiment):
        shared = sent is not signal.SIGTERM
        return Signalled(whole.trainer if shared else Trainer(experiment), step, sent)

    handlers = [signal.getsignal(number) for number in STOPPING]
    run = start(trainer=signalled)

    assert [signal.getsignal(number) for number in STOPPING] == handlers
    assert run.info["status"] == "interrupted"
    assert run.info["signal"] == sent.name
    assert run.info["step"] == Checkpoints(run.path / "checkpoints").latest().step == step
    assert max(line["step"] for line in lines(run)) <= step
    assert run.info["metrics_step"] == step // 3 * 3

    resumed = start(resume=True)
    assert_equal_runs(completed, resumed)
    assert resumed.info["signal"] is None


def test_a_run_killed_at_the_very_end_writes_no_row_twice(completed, whole, tmp_path):
    folder = copied(completed, tmp_path / "run", status="running")
    assert_equal_runs(completed, whole.train(folder, resume=True))


def test_resume_cuts_torn_records_from_event_files(completed, whole, killed):
    (path,) = killed.glob("events.out.tfevents.*")
    sound = path.read_bytes()
    path.write_bytes(sound + sound[100:130])  # not a record: the checksum does not match its length

    assert_equal_runs(completed, whole.train(killed, resume=True))
    assert len(list(killed.glob("events.out.tfevents.*"))) == 2


def test_damage_inside_files_is_reported_and_later_rows_stay(completed, whole, killed, capsys):
    edit(killed / "metrics.jsonl", '{"step": 3,', '{"step": 9,')
    (path,) = killed.glob("events.out.tfevents.*")
    data = bytearray(path.read_bytes())
    data[data.index(b"evaluation/mode_coverage", data.index(b"replica/0/"))] ^= 4  # of step 5
    path.write_bytes(data)

    resumed = whole.train(killed, resume=True, console=True)
    metrics, spoilt = (next(w for w in resumed.info["warnings"] if name in w) for name in (".jsonl", "tfevents"))
    assert "line 1 has the step 9, which is out of order" in metrics
    assert "2 rows stay; 1 of the 3 that were written are missing" in metrics
    assert "whole events after them are read" in spoilt
    assert "out of order" in " ".join(capsys.readouterr().err.split())
    expected = [line for line in lines(completed) if line["step"] != 3]
    assert lines(resumed) == expected
    assert {step for step, _, _ in scalars(resumed)} == {step for step, _, _ in scalars(completed)} - {5}
    tags = [value.tag for _, value in events(resumed)]
    for tag in SETTINGS:
        assert tags.count(tag) == 1  # if it was damaged, it is written again


SETTINGS = ("_hparams_/session_start_info", "custom_scalars__config__", "experiment")


def settings(run):
    """The settings in the event files by tag, without the start time, which differs between runs."""
    found = [(step, value) for step, value in events(run) if value.tag in SETTINGS]
    return sorted((value.tag, step, value.tensor.SerializeToString()) for step, value in found)


@pytest.mark.parametrize(
    "lost",
    [SETTINGS[:1], SETTINGS[1:2], SETTINGS[2:], SETTINGS],
    ids=["hyperparameters", "layout", "experiment", "all"],
)
def test_resume_rewrites_settings_lost_in_a_kill(completed, whole, killed, lost):
    event_cutting.cut(killed, after=9, without=lost)
    assert {tag for tag, *_ in settings(ganlab.Run(killed))}.isdisjoint(lost)
    resumed = whole.train(killed, resume=True)
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
    assert Checkpoints(run.path / "checkpoints").latest().pending_row is None


def test_a_run_that_begins_again_says_what_it_discards_and_has_no_figures_at_first(completed, whole, tmp_path, capsys):
    best = {"metric": "w1/w1", "step": 4, "value": 1.0}
    folder = copied(completed, tmp_path / "run", status="running", checkpointed=False, health=["odd"], best=best)
    shutil.rmtree(folder / "checkpoints")
    for path in folder.glob("events.out.tfevents.*"):  # killed before any of it was on disk
        path.write_bytes(b"")
    run = whole.train(folder, resume=True, stop_at=1)
    rows = len(lines(completed))
    said = f"run has no checkpoint yet: training begins again from step 0, and its {rows} rows of metrics are discarded"
    assert said in capsys.readouterr().err
    assert (run.info["status"], run.info["step"]) == ("interrupted", 1)
    assert run.info["metrics"] == run.info["evaluation"] == {}
    assert "best" not in run.info
    assert "odd" not in run.info.get("health", ())
    resumed = whole.train(folder, resume=True)
    assert_equal_runs(completed, resumed)
    # Its charts and hyperparameters are there, once.
    layout = "custom_scalars__config__"
    assert texts(resumed, layout) == texts(completed, layout) != []
    assert len(texts(resumed, "_hparams_/session_start_info")) == 1


def test_resume_of_a_run_whose_checkpoints_were_removed_is_refused_and_its_rows_stay(completed, whole, tmp_path):
    folder = copied(completed, tmp_path / "run", status="interrupted")
    run = ganlab.Run(folder)
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
    run = brief.train(tmp_path / "run", stop_at=2)

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


@pytest.mark.slow
def test_clock_set_back_keeps_rows_and_events_in_order(tmp_path, monkeypatch):
    hours = itertools.count(2_000_000_000, -3600)
    monkeypatch.setattr(time, "time", lambda: float(next(hours)))
    options = {"log_every": 1, "checkpoint_every": 2}

    run = train(small(0, steps=4, **options), tmp_path / "run")
    first = run.info["wall_seconds"]
    train(small(0, steps=8, **options), run.path, resume=True, allow_changes=True)

    assert 0 <= first <= run.info["wall_seconds"] < 600
    assert [line["step"] for line in lines(run)] == list(range(1, 9))
    # In the order in which TensorBoard reads them, by the names of the files.
    tag = "critic/loss"
    read = EventAccumulator(str(run.path)).Reload().Scalars(tag)
    assert [event.step for event in read] == list(range(1, 9))
    written = [line["metrics"][tag]["reduced"] for line in lines(run)]
    np.testing.assert_allclose([event.value for event in read], written, rtol=1e-6)
    assert len(list(run.path.glob("events.out.tfevents.*"))) == 2


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
def test_resumed_run_warns_like_an_uninterrupted_one(warning, warned, tmp_path, step):
    warning.train(tmp_path / "run", stop_at=step)
    assert_warned_as(warning.train(tmp_path / "run", resume=True), warned)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [["step-00000004", "step-00000008"], []], ids=["from before", "from the start"])
def test_a_killed_run_warns_again(warning, warned, tmp_path, kept):
    # run.json already has the warning, and its text is cut.
    folder = copied(warned, tmp_path / "run", status="running", checkpointed=bool(kept))
    for path in (folder / "checkpoints").iterdir():
        if path.name not in kept:
            shutil.rmtree(path)
    assert_warned_as(warning.train(folder, resume=True), warned)
