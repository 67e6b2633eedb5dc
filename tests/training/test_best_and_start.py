"""The best checkpoint that stays, and weights that come from another run."""

import json
from typing import ClassVar

import numpy as np
import pytest
from ganlab_compare.metrics import Metric
from small import constraint, sgd, small, values

import ganlab
from ganlab.errors import ConfigError, ContractError, RunError
from ganlab.run import train
from ganlab.telemetry import Record
from ganlab.training.actions.action import Moment
from ganlab.training.actions.best import Best, KeepBest, check_metric
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.graph.state import TrainingState
from ganlab.training.loading import find_checkpoint
from ganlab.training.starting_weights import start_from

pytestmark = pytest.mark.usefixtures("cpus")

METRIC = "evaluation/figured/figure"


class Figured(ganlab.Evaluator):
    """Returns given figures, one for each evaluation; the first is that of the trial before training."""

    better: ClassVar = {"figure": "min"}

    def __init__(self, figures):
        self.figures, self.calls = figures, -1

    def evaluate(self, sample, dataset, run):
        self.calls += 1
        return {"figure": self.figures[self.calls - 1] if self.calls else 0.0}


def run(folder, figures, steps=None, **options):
    every = {"steps": steps or 2 * len(figures), "evaluate_every": 2, "checkpoint_every": 4}
    return train(small(0, evaluators=[Figured(figures)], keep_best=f"{METRIC}:min", **every), folder, **options)


def kept(run):
    return [checkpoint.step for checkpoint in Checkpoints(run.path / "checkpoints").all()]


@pytest.fixture(scope="module")
def best(cpus, tmp_path_factory):
    return run(tmp_path_factory.mktemp("best") / "run", [5.0, 1.0, float("nan"), 3.0, 1.0, 2.0, 4.0, 8.0])


def test_the_best_checkpoint_stays_beside_the_newest_and_is_found_by_name(best):
    # Step 4 was the best, and 10 equalled it; checkpoints are of 2 (the best then), 4, 8, 12 and 16.
    assert kept(best) == [4, 8, 12, 16]
    assert (find_checkpoint(best, "best").step, find_checkpoint(best).step) == (4, 16)
    assert best.info["best"] == {"metric": METRIC, "step": 4, "value": 1.0}
    assert [one for one in ganlab.compare(best.path).metrics if one.direction] == [Metric(METRIC, "min")]


@pytest.mark.parametrize("better", [None, {"figure": ["min"]}])
def test_a_direction_is_max_or_min(tmp_path, better):
    odd = Figured([1.0])
    odd.better = better
    with pytest.raises(ContractError, match=r"Evaluator figured has better = .*; it must be a dict of"):
        train(small(0, evaluators=[odd], steps=1), tmp_path / "run")


def test_the_largest_figure_is_the_best_where_asked():
    action = KeepBest(f"{METRIC}:max", 2)
    for step, value in enumerate([5.0, float("nan"), 7.0, 7.0, 3.0]):
        action(Moment(step, False, [], [Record(step, METRIC, value)]))
    assert action.best == Best(METRIC, 2, 7.0)
    short = KeepBest("figured/figure:max", 2)
    short(Moment(0, False, [], [Record(0, METRIC, 5.0)]))
    assert short.best == Best(METRIC, 0, 5.0)
    short.resume(action.state())
    assert short.best == action.best
    other = KeepBest("evaluation/figured/another:max", 2)
    other.resume(action.state())
    assert other.best is None


def test_a_resumed_run_remembers_the_best(tmp_path):
    begun = run(tmp_path / "run", [5.0, 1.0, 6.0, 3.0])
    resumed = run(begun.path, [2.0, 9.0, 3.0, 3.0], steps=16, resume=True, allow_changes=True)
    assert resumed.info["best"] == {"metric": METRIC, "step": 4, "value": 1.0}
    assert kept(resumed) == [4, 8, 12, 16]


def test_an_unknown_figure_is_an_error_with_the_nearest():
    with pytest.raises(ConfigError, match=r"names no figure of experiment.evaluators. Did you mean 'evaluation/fig"):
        check_metric("evaluation/figured/figur:min", [METRIC])


def begun(best, said, **parts):
    experiment = small(0, start_from=str(best.path), **parts)
    state = TrainingState(experiment)
    return start_from(experiment.start_from, state, said.append, said.append), state


def test_both_networks_begin_with_the_other_run_s_weights(best):
    said = []
    found, state = begun(best, said, ema_decay=0.5)
    there = dict(find_checkpoint(best).values())
    for name, variable in state.variables().items():
        if "/weights/" in name or "/average/" in name:
            np.testing.assert_array_equal(variable.numpy(), there[name.replace("/average/", "/weights/")], name)
    assert found["step"] == 16
    assert len(found["taken"]) == sum("/weights/" in name for name in state.variables())
    assert said == [f"Weights of {best.path}, step 16: {len(found['taken'])} of {len(found['taken'])} taken."]


def test_constraints_begin_with_the_weights_taken(best):
    _, state = begun(best, [], constraints=[constraint("weight_normalization")])
    there, prefix = dict(find_checkpoint(best).values()), "constraints/weight_normalization/parameters/"
    gains = {name.removeprefix(prefix): x for name, x in values(state).items() if name.startswith(prefix)}
    assert len(gains) == 3
    for name, gain in gains.items():
        expected = np.linalg.norm(there[f"critic/weights/{name}"].astype(np.float64), axis=0)
        np.testing.assert_allclose(gain, expected, rtol=1e-6)


def test_what_does_not_fit_is_said_and_recorded(best, tmp_path):
    wider = ganlab.component("architectures", "mlp")(width=9, depth=3, activation="tanh")
    said = []
    found, _ = begun(best, said, architecture=wider)
    assert found["missing"]
    assert found["other_shape"]
    assert said[-1].startswith("What did not fit: that run does not have ")
    assert "it has in another shape " in said[-1]
    trained = train(small(0, start_from=str(best.path), steps=1), tmp_path / "run")
    assert trained.info["started_from"]["step"] == 16
    with pytest.raises(RunError, match=r"has no best checkpoint: it was trained without experiment.keep_best"):
        find_checkpoint(trained, "best")
    assert json.loads((trained.path / "run.json").read_text())["started_from"]["missing"] == []


def test_a_resumed_run_keeps_its_own_weights(best, tmp_path):
    first = train(small(0, start_from=str(best.path), steps=2, critic_optimizer=sgd(0.1)), tmp_path / "run")
    longer = small(0, start_from=str(tmp_path / "gone"), steps=3, critic_optimizer=sgd(0.1))
    resumed = train(longer, first.path, resume=True, allow_changes=True)
    assert resumed.info["step"] == 3


def test_damage_and_strangers_are_errors_before_training(best, tmp_path):
    with pytest.raises(RunError, match="is not a run"):
        train(small(0, start_from=str(tmp_path), steps=1), tmp_path / "run")
    other = ganlab.component("architectures", "mlp")(width=5, depth=1)
    stranger = train(small(0, architecture=other, steps=1), tmp_path / "other")
    variables = stranger.path / "checkpoints" / "step-00000001" / "variables.data-00000-of-00001"
    variables.write_bytes(variables.read_bytes()[:-4] + b"\0\1\2\3")
    with pytest.raises(RunError, match=r"experiment.start_from: The checkpoint .* is damaged: variables.data"):
        train(small(0, start_from=str(stranger.path), steps=1), tmp_path / "run")
    assert not (tmp_path / "run").exists()
