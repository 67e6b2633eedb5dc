"""The generator's averages, and `experiment.ema_buffers`: its moving statistics are averaged beside its weights."""

import numpy as np
import pytest
from small import Layers, normalized_generator, small, trained, values
from whole_runs import assert_equal_runs, train

import ganlab
from ganlab.training.evaluation import Evaluation
from ganlab.training.graph.trainer import Trainer
from ganlab.training.loading import find_checkpoint
from ganlab.training.starting_weights import start_from

pytestmark = pytest.mark.usefixtures("cpus")
AVERAGE, BUFFERS = "generator/average_buffers/", "generator/buffers/"


def normalized(replicas=0, **parts):
    return small(replicas, **{"architecture": Layers(generator=normalized_generator), "ema_buffers": True, **parts})


def images(replicas=0, **parts):
    """A registered generator with batch normalization: a run's folder can make it again."""
    return small(
        replicas,
        **{
            "dataset": ganlab.component("datasets", "digits")(),
            "architecture": ganlab.component("architectures", "dcgan")(channels=2, kernel_size=2, latent_dim=3),
            "ema_decay": 0.5,
            "ema_buffers": True,
            "steps": 6,
            **parts,
        },
    )


def of(prefix, given):
    return {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}


FOLLOWED = {AVERAGE: BUFFERS, "generator/average/": "generator/weights/"}


@pytest.fixture(scope="module")
def whole(cpus, tmp_path_factory):
    """A run of `images`; not to be changed."""
    return train(images(), tmp_path_factory.mktemp("runs") / "whole")


@pytest.mark.parametrize(
    ("replicas", "settings"),
    [
        (2, {"ema_decay": 0.3}),
        (0, {"ema_half_life": 48.0, "generator_batch_size": 24, "ema_start": 1}),
        pytest.param(0, {"ema_decay": 0.7, "ema_start": 2}, marks=pytest.mark.slow),
        pytest.param(2, {"ema_half_life": 48.0, "generator_batch_size": 24, "ema_start": 1}, marks=pytest.mark.slow),
        pytest.param(2, {"ema_decay": 0.7, "ema_start": 2}, marks=pytest.mark.slow),
    ],
)
def test_averages_are_their_recursion(replicas, settings):
    trainer = Trainer(normalized(replicas, critic_steps=2, **settings))
    start = values(trainer.state)
    following = {f"{kept}{name}": f"{now}{name}" for kept, now in FOLLOWED.items() for name in of(now, start)}
    assert {name for name in start if name.startswith(tuple(FOLLOWED))} == following.keys()
    assert sum(name.startswith(AVERAGE) for name in following) == 2  # the moving mean and variance
    average = {name: start[now].astype(np.float64) for name, now in following.items()}
    for name, value in average.items():
        np.testing.assert_array_equal(start[name], value)
    for step in range(5):
        trainer.train(1)
        now = values(trainer.state)
        # After a half-life of two of the generator's batches of 24, half of the weight is left.
        decay = settings.get("ema_decay", 0.5**0.5)
        # It follows more quickly at first: the decay is (1 + t) / (10 + t) until that exceeds what is asked for.
        early = 0.0 if step < settings.get("ema_start", 0) else decay
        decay = early if "ema_start" in settings else min(decay, (1 + step) / (10 + step))
        average = {name: decay * v + (1 - decay) * now[following[name]] for name, v in average.items()}
    for name, value in average.items():
        np.testing.assert_allclose(now[name], value, rtol=1e-5, atol=1e-7, err_msg=name)
        if name.startswith(AVERAGE):
            assert np.abs(value - now[following[name]]).max() > 1e-4


def test_averaged_buffers_change_nothing_else():
    parts = {"architecture": Layers(generator=normalized_generator), "ema_decay": 0.9, "count": 4}
    off, on = (trained(0, ema_buffers=flag, **parts) for flag in (False, True))
    assert of(AVERAGE, off.values) == {}
    assert {name for name in on.values if not name.startswith(AVERAGE)} == off.values.keys()
    for name, value in off.values.items():
        np.testing.assert_array_equal(on.values[name], value, name)


def test_samples_are_normalized_by_averaged_buffers():
    experiment = normalized(0, ema_decay=0.9)
    trainer = Trainer(experiment)
    trainer.train(6)
    sample = Evaluation(experiment, trainer.state)._sample
    now = values(trainer.state)
    weights = list(of("generator/average/", now).values())
    kernel, bias, gain, offset, last_kernel, last_bias = (w.astype(np.float64) for w in weights)
    mean, variance = (now[f"{AVERAGE}batch_normalization/{kind}"] for kind in ("moving_mean", "moving_variance"))
    hidden = np.asarray(sample.latents(40, seed=5), np.float64) @ kernel + bias
    hidden = np.tanh((hidden - mean) / np.sqrt(variance + 1e-3) * gain + offset)
    np.testing.assert_allclose(sample(40, seed=5), hidden @ last_kernel + last_bias, rtol=1e-4, atol=1e-5)


def test_generator_of_a_run_has_averaged_buffers(whole):
    saved = dict(find_checkpoint(whole).values())
    model = ganlab.Run(whole.path).generator()
    statistics = sorted(v.numpy().tolist() for v in model.non_trainable_variables if "moving" in v.path)
    assert statistics == sorted(value.tolist() for name, value in saved.items() if name.startswith(AVERAGE))
    assert statistics != sorted(value.tolist() for name, value in saved.items() if name.startswith(BUFFERS))


def test_resume_restores_averaged_buffers(whole, tmp_path):
    train(images(), tmp_path / "run", stop_at=3)
    resumed = train(images(), tmp_path / "run", resume=True)
    assert_equal_runs(whole, resumed, kinds=("average_buffers",))


def test_start_from_begins_averaged_buffers_with_those_taken(whole):
    experiment = images(start_from=str(whole.path))
    trainer = Trainer(experiment)
    start_from(experiment.start_from, trainer.state, str, str)
    now = values(trainer.state)
    for name, value in of(AVERAGE, now).items():
        np.testing.assert_array_equal(value, now[f"{BUFFERS}{name}"])
        assert np.abs(value - (1.0 if "variance" in name else 0.0)).max() > 1e-4
