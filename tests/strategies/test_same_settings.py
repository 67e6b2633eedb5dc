"""Workers that were started with different settings stop before they train."""

import signal
import time

import numpy as np
import pytest
import workers
from small import small

import ganlab
from ganlab.training import same_settings

SMALL = workers.EXPERIMENT.format(optimizer="sgd") + (
    "experiment.strategy = @strategies.multi_worker()\nexperiment.steps = 2\nexperiment.evaluate_every = 0\n"
)


@pytest.fixture
def experiment(cpus):
    def experiment(**changes):
        penalty = [ganlab.component("constraints", "gradient_penalty")()]
        return small(**{"constraints": penalty, "steps": 2, **changes})

    return experiment


@pytest.fixture
def beside(monkeypatch):
    """Checks the experiment of a worker beside one that may have another: `beside(mine, theirs, resume=True)`."""

    def beside(mine, theirs, *, resume=False, they_resume=False):
        settings = same_settings.settings_of(theirs, resume=they_resume)
        others = same_settings.numbers_of(settings)

        class Two:
            def __init__(self, strategy):
                pass

            def extremes(self, values):
                both = np.float32([values, others])
                return both.min(axis=0), both.max(axis=0)

        monkeypatch.setattr(same_settings, "Gather", Two)
        monkeypatch.setattr(same_settings, "of_several", lambda strategy: True)
        same_settings.check_same_settings(mine, resume=resume)

    return beside


def test_equal_settings_pass(experiment, beside):
    beside(experiment(), experiment())
    beside(experiment(seed=3), experiment(seed=3), resume=True, they_resume=True)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 5}, "not all have experiment.seed = 0, as this one has"),
        ({"steps": 3}, "not all have experiment.steps = 2, as this one has"),
        (
            {"constraints": [ganlab.component("constraints", "gradient_penalty")(weight=1000.0)]},
            r"not all have constraints.gradient_penalty.weight = 10.0, as this one has",
        ),
        ({"constraints": []}, "not all have constraints = 'gradient_penalty', .* and 1 more, as this one has"),
    ],
)
def test_a_setting_that_another_worker_lacks_is_named(experiment, beside, changes, named):
    with pytest.raises(ganlab.ConfigError, match=f"The workers do not all have the same settings: {named}. Start the"):
        beside(experiment(), experiment(**changes))


def test_settings_that_only_another_worker_has_are_mentioned(experiment, beside):
    with pytest.raises(ganlab.ConfigError, match="another one has settings that this one lacks"):
        beside(experiment(constraints=[]), experiment())


def test_one_that_resumes_beside_one_that_does_not_is_refused(experiment, beside):
    with pytest.raises(ganlab.ConfigError, match="this one resumes a run and another one does not"):
        beside(experiment(), experiment(), resume=True)
    with pytest.raises(ganlab.ConfigError, match="another one resumes a run and this one does not"):
        beside(experiment(), experiment(), they_resume=True)


@pytest.mark.slow
def test_two_processes_with_different_weights_of_a_penalty_train_nothing(tmp_path):
    (tmp_path / "e.gin").write_text(SMALL)
    other = ["--param", "constraints.gradient_penalty.weight=1000"]
    hosts = workers.free_addresses(2)
    started = [
        workers.start(tmp_path, "--gin", "e.gin", "--name", "x", *more, TF_CONFIG=workers.config(hosts, index))
        for index, more in enumerate(([], other))
    ]
    codes, outputs = workers.ended(started)
    assert codes == [2, 2], "\n".join(outputs)
    for output, weight in zip(outputs, ("10.0", "1000"), strict=True):
        assert f"not all have constraints.gradient_penalty.weight = {weight}, as this one has" in output
        assert "Traceback" not in output
    assert not list(tmp_path.rglob("run.json"))


@pytest.mark.slow
def test_ctrl_c_ends_a_worker_that_waits_for_another(tmp_path):
    (tmp_path / "e.gin").write_text(SMALL)
    hosts = workers.free_addresses(2)
    waiting = workers.start(tmp_path, "--gin", "e.gin", TF_CONFIG=workers.config(hosts, 0))
    said = waiting.stdout.readline()
    while "waiting for" not in said and waiting.poll() is None:
        said = waiting.stdout.readline()
    assert f"strategies.multi_worker: waiting for all of 2 workers: {', '.join(hosts)}." in said
    time.sleep(2)  # TensorFlow waits by now
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(20) == -signal.SIGINT
