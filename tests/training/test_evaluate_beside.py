"""Evaluation in a process of its own: the same run, however it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Pipe

import pytest
from whole_runs import assert_equal_runs, checkpointed, everything, lines, train

import ganlab
from ganlab.plugins.plugin_errors import Running
from ganlab.telemetry import JsonLinesWriter, Record
from ganlab.training.beside import Beside
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


def experiment(**parts):
    # Of twelve steps the last evaluation is the trainer's; that of five has its checkpoint to itself.
    return everything(**{"steps": 12, "checkpoint_every": 4, "evaluate_every": 5, "evaluate_beside": True, **parts})


@pytest.fixture(scope="module")
def usual(cpus, tmp_path_factory):
    return train(experiment(evaluate_beside=False), tmp_path_factory.mktemp("usual") / "run")


@pytest.mark.slow
def test_the_run_is_the_same_bit_for_bit(usual, tmp_path):
    run = train(experiment(), tmp_path / "run")
    assert_equal_runs(usual, run)
    assert [row["step"] for row in lines(run) if "evaluation/mode_coverage/modes" in row["metrics"]] == [5, 10, 12]
    for picture in (usual.path / "samples").iterdir():
        assert (run.path / "samples" / picture.name).read_bytes() == picture.read_bytes()
    assert run.info["health"] == usual.info["health"]


@pytest.mark.slow
def test_training_goes_on_beside_an_evaluation_until_the_next_checkpoint(tmp_path, monkeypatch):
    waited, log = [], []
    original = Beside.answer

    def answer(self, *, wait=False):
        if self.asked is not None:
            waited.append((self.asked, wait))
        if not wait:  # as if it took long
            return None
        return original(self, wait=wait)

    class Single(Trainer):
        def train(self, count):
            log.append(self.state.step)
            return super().train(1)

    monkeypatch.setattr(Beside, "answer", answer)
    train(experiment(checkpoint_every=0), tmp_path / "run", trainer=Single)
    steps = [step for step, wait in waited if not wait]
    assert steps.count(5) == 5  # after each of the steps from 6 to 10
    assert [step for step, wait in waited if wait] == [5, 10]  # by the next evaluation, and by the last
    assert log == list(range(12))


@pytest.mark.slow
def test_a_stop_during_an_evaluation_resumes_where_it_began(usual, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Beside, "answer", lambda self, wait=False: None)
        run = train(experiment(), tmp_path / "run", stop_at=7)
    assert run.info["status"] == "interrupted"
    assert Checkpoints(run.path / "checkpoints").latest().step == 5
    assert [row["step"] for row in lines(run)] == [3, 6]
    run = train(experiment(), run.path, resume=True)
    assert_equal_runs(usual, run)
    assert not run.info.get("warnings")


@pytest.mark.slow
def test_a_stop_while_training_waits_for_an_evaluation(usual, tmp_path, monkeypatch):
    def answer(self, *, wait=False):
        if wait and self.asked == 5:
            signal.raise_signal(signal.SIGTERM)
        return None

    with monkeypatch.context() as patch:
        patch.setattr(Beside, "answer", answer)
        run = train(experiment(), tmp_path / "run")
    assert run.info["status"] == "interrupted"
    assert checkpointed(run)[0] == 5
    assert_equal_runs(usual, train(experiment(), run.path, resume=True))


@pytest.mark.slow
def test_a_process_that_dies_fails_the_run_which_resumes(usual, tmp_path, monkeypatch):
    original = Beside.ask

    def ask(self, step, checkpoint):
        original(self, step, checkpoint)
        self._child.kill()

    with monkeypatch.context() as patch:
        patch.setattr(Beside, "ask", ask)
        with pytest.raises(ganlab.TrainingFailedError, match=r"evaluates beside training ended.* with exit status -9"):
            train(experiment(), tmp_path / "run")
    run = ganlab.Run(tmp_path / "run")
    assert run.info["status"] == "failed"
    assert_equal_runs(usual, train(experiment(), run.path, resume=True))


def test_what_another_process_cannot_make_is_refused(tmp_path):
    class Mine(ganlab.Evaluator):
        def evaluate(self, samples, dataset, run):
            return {"figure": 1.0}

    with pytest.raises(ganlab.ConfigError, match=r"cannot make experiment\.evaluators = .*Mine object"):
        train(experiment(evaluators=[Mine()]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


PLUGIN = """
import ctypes, os, time
import ganlab

class Odd(ganlab.Evaluator):
    def __init__(self, *, how: str = "fails") -> None:
        self.how = how

    def evaluate(self, samples, dataset, run):
        print("not an answer")
        if run is not None and self.how == "fails":
            raise ValueError("odd")
        if run is not None and self.how == "hangs":
            time.sleep(600)
        if run is not None and self.how == "exits":
            os._exit(3)
        if run is not None and self.how == "holds":
            with open("holding", "w") as file:
                file.write(str(os.getpid()))
            ctypes.PyDLL(None).sleep(600)  # no thread of Python runs meanwhile
        return {"figure": 1.0}

@ganlab.hookimpl
def ganlab_evaluators():
    return {"odd": Odd}
"""


@pytest.fixture
def run_of_odd(tmp_path):
    """Starts a run whose evaluator is odd; a module in the working directory must not be imported."""
    (tmp_path / "ganlab_plugins.py").write_text(PLUGIN)
    (tmp_path / "queue.py").write_text("raise RuntimeError('imported from the working directory')")
    (tmp_path / "mine.gin").write_text(
        "include 'base/method.gin'\nexperiment.dataset = @datasets.gaussian_ring()\n"
        "experiment.architecture = @architectures.mlp()\n"
        "experiment.evaluators = [@evaluators.odd()]\nexperiment.steps = 40\n"
        "experiment.evaluate_every = 10\nexperiment.evaluate_beside = True\n"
    )

    def start(how):
        command = [sys.executable, "-P", "-m", "ganlab", "run", "--gin", "mine.gin", "--runs", "runs", "--name", "one"]
        command += ["--param", f"evaluators.odd.how='{how}'"]
        limited = {**os.environ, "GANLAB_EVALUATOR_SECONDS": "3"}
        return subprocess.Popen(command, cwd=tmp_path, text=True, stderr=subprocess.PIPE, env=limited)

    return start


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("fails", "evaluators.odd failed in evaluate: ValueError: odd"),
        ("hangs", "in evaluate, beside training; the limit is GANLAB_EVALUATOR_SECONDS=3."),
        ("holds", "in evaluate, beside training; the limit is GANLAB_EVALUATOR_SECONDS=3."),
        ("exits", "ended in evaluators.odd, evaluate, with exit status 3"),
    ],
)
def test_an_evaluator_that_fails_is_named(run_of_odd, tmp_path, how, told):
    with run_of_odd(how) as run:
        said = run.communicate(timeout=120)[1]
    assert run.returncode == 1, said
    assert told in said
    assert "evaluators.odd" in said
    assert "Traceback" not in said
    (info,) = (json.loads(path.read_text()) for path in tmp_path.glob("runs/**/one/run.json"))
    assert info["status"] == "failed"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux ends a process with its parent")
def test_the_process_ends_with_a_trainer_that_is_killed(run_of_odd, tmp_path):
    with run_of_odd("holds") as run:
        await_(lambda: (tmp_path / "holding").exists() and (tmp_path / "holding").read_text())
        run.kill()
        run.communicate()
    process = int((tmp_path / "holding").read_text())
    await_(lambda: not os.path.exists(f"/proc/{process}"))


def await_(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_message_that_was_cut_off_is_an_end():
    beside = Beside.__new__(Beside)
    beside.asked, beside._running, beside._limit, beside._how = 5, None, 60.0, lambda: " with exit status -9"
    beside._connection, theirs = Pipe()
    theirs.send(Running("evaluators.odd", "evaluate", time.monotonic()))
    os.write(theirs.fileno(), b"\0\0\0\x64half of it")
    theirs.close()
    with pytest.raises(ganlab.GanlabError, match=r"ended in evaluators.odd, evaluate, with exit status -9\.$"):
        beside.answer(wait=True)


def records(step, **values):
    return [Record(step, name.replace("_", "/"), value) for name, value in values.items()]


def test_rows_wait_for_late_metrics_and_keep_their_order(tmp_path):
    path = tmp_path / "metrics.jsonl"
    writer = JsonLinesWriter(path)
    writer.scalars(records(1, critic_loss=1.0))
    writer.hold()
    writer.scalars(records(2, critic_loss=2.0, diagnostics_mine=0.5))
    writer.scalars(records(3, critic_loss=3.0))
    assert (writer.rows, writer.held) == (3, 2)
    writer.flush()
    assert len(path.read_text().splitlines()) == 1
    writer.release(records(2, evaluation_mine=7.0))
    writer.hold()
    writer.scalars(records(6, critic_loss=6.0))
    writer.release(records(5, evaluation_mine=8.0))
    writer.hold()
    writer.scalars(records(7, critic_loss=7.0))
    writer.close()  # without what was to come
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3, 5, 6, 7]
    assert writer.rows == 6
    assert list(rows[1]["metrics"]) == ["critic/loss", "evaluation/mine", "diagnostics/mine"]
    assert list(rows[3]["metrics"]) == ["evaluation/mine"]
