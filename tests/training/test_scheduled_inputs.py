"""Numbers of an architecture that follow a schedule, which its models take as inputs: a fade, by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify.lab import Training, differing, resumed
from networks_by_hand import assert_moved, latents
from small import assert_same, sgd, small, trained

import ganlab
from ganlab.engine import load_trained
from ganlab.errors import ConfigError, ContractError
from ganlab.training.graph import noise
from ganlab.training.graph.inputs import Inputs
from ganlab.training.graph.sampling import Scorer, sampler
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

RATE, OVER, STEPS = 0.05, 16, 20


class Fading(ganlab.Architecture):
    """A generator and a critic that fade from one linear layer to another, as progressive growing does."""

    scheduled = ("alpha",)

    def __init__(self, *, alpha: float = 1.0, gain: float = 1.0, latent_dim: int = 3):
        """Sets the networks.

        Args:
            alpha: The share of the new layer.
            gain: A factor of the samples.
            latent_dim: The length of latent vectors.
        """
        self.alpha, self.gain, self.latent_dim = alpha, gain, latent_dim

    def _faded(self, x, units):
        alpha = keras.Input((), name="alpha")
        share = keras.layers.Reshape((1,))(alpha)
        old, new = (keras.layers.Dense(units, use_bias=False, name=name)(x) for name in ("old", "new"))
        return keras.Model([x, alpha], (1.0 - share) * old + share * new)

    def generator(self, sample_shape):
        return self._faded(keras.Input((self.latent_dim,)), 2)

    def critic(self, sample_shape):
        return self._faded(keras.Input(sample_shape), 1)


@pytest.fixture
def fading(offered):
    offered("architectures", fading=Fading, deaf=Deaf)
    return ganlab.component("architectures", "fading")


class Deaf(Fading):
    """Declares a number that neither model takes."""

    def _faded(self, x, units):
        return keras.Model(x, keras.layers.Dense(units)(x))


def linear(**given):
    return ganlab.component("schedules", "linear")(**{"start": 0.0, "end": 1.0, "over": OVER, **given})


def parts(architecture, **changed):
    return {"architecture": architecture, "critic_steps": 2, "optimizer": sgd(RATE), **changed}


def by_hand(first, experiment):
    """The weights after a loop of the Wasserstein game, written without ganlab but for the numbers drawn."""
    weights = {
        role: [np.float64(first[f"{role}/weights/{layer}/kernel"]) for layer in ("old", "new")]
        for role in ("generator", "critic")
    }
    inputs = Inputs(experiment)

    for step in range(STEPS):
        alpha = min(1.0, step / OVER)
        shares = (1.0 - alpha, alpha)
        examples = inputs.of(tf.constant(step, tf.int64), 0)["real"].numpy()

        def mixed(role, shares=shares):
            return sum(share * w for share, w in zip(shares, weights[role], strict=True))

        for k in range(2):
            gap = examples[k].mean(0) - (latents(2 * step + k, noise.FAKE_LATENT) @ mixed("generator")).mean(0)
            critic = weights["critic"]
            weights["critic"] = [w + RATE * share * gap[:, None] for share, w in zip(shares, critic, strict=True)]
        z = latents(step, noise.LATENT).mean(0)
        slope = np.outer(z, mixed("critic")[:, 0])
        generator = weights["generator"]
        weights["generator"] = [w + RATE * share * slope for share, w in zip(shares, generator, strict=True)]
    return {
        f"{role}/weights/{layer}/kernel": w
        for role, pair in weights.items()
        for layer, w in zip(("old", "new"), pair, strict=True)
    }


def test_a_fade_is_that_of_a_loop_in_training_and_in_samples(fading):
    given = parts(fading(alpha=linear()))
    training = trained(0, count=STEPS, **given)
    assert_moved(training, by_hand(training.start, small(0, **given)))
    shares = np.minimum(1.0, np.arange(STEPS) / OVER)
    np.testing.assert_allclose(training.metric("schedules/architecture/alpha")[:, 0], shares, rtol=1e-6)


def test_samples_and_scores_have_the_value_of_their_step(fading):
    experiment = small(0, **parts(fading(alpha=linear())))
    trainer = Trainer(experiment)
    draw, score = sampler(experiment, trainer.state), Scorer(trainer.state)
    points = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    for step in (0, 4):
        trainer.train(step)
        old, new = (
            [v.numpy() for name, v in trainer.state.variables().items() if name.startswith(f"{role}/weights/")]
            for role in ("generator", "critic")
        )
        share = step / OVER
        z = draw.latents(6, 3)
        np.testing.assert_allclose(draw(6, 3), z @ ((1 - share) * old[0] + share * old[1]), rtol=1e-5, atol=1e-6)
        expected = points @ ((1 - share) * new[0] + share * new[1])
        np.testing.assert_allclose(score(points), expected[:, 0], rtol=1e-5, atol=1e-6)


def test_a_run_is_sampled_and_resumed_at_its_step(fading, tmp_path):
    settings = {"steps": 4, "checkpoint_every": 2, "evaluate_every": 2}
    run = ganlab.train(small(0, **parts(fading(alpha=linear()), **settings)), tmp_path / "run")
    assert "architectures.fading.alpha = @schedules.linear()" in (tmp_path / "run" / "config.gin").read_text()
    sampled, share = load_trained(run), 4 / OVER
    old, new = (v.numpy() for v in sampled.network.model.trainable_variables)
    z = sampled.sample.latents(5, 0)
    np.testing.assert_allclose(sampled.sample(5, 0), z @ ((1 - share) * old + share * new), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_replicas_microbatches_and_xla_agree_and_a_resumed_run_has_the_same_bits(fading):
    given = parts(fading(alpha=linear()))
    one = trained(0, count=6, **given)
    for replicas, others in ((2, {}), (0, {"jit": "on"}), (0, {"jit": "step"}), (2, {"microbatches": 3})):
        assert_same(one, trained(replicas, count=6, **given, **others))
    assert differing(*resumed(Training(small(0, **given)), 3, 3)) == []


@pytest.mark.slow
def test_a_number_needs_no_schedule(fading):
    one = trained(0, count=4, **parts(fading(alpha=0.25)))
    other = trained(0, count=4, **parts(fading(alpha=linear(start=0.25, end=0.25))))
    for name, value in one.values.items():
        np.testing.assert_allclose(other.values[name], value, rtol=1e-6, err_msg=name)


def test_what_no_model_takes_is_refused(fading):
    with pytest.raises(ConfigError, match=r"architectures\.fading\.gain cannot follow a schedule"):
        fading(gain=linear())
    deaf = small(0, **parts(ganlab.component("architectures", "deaf")(alpha=linear())))
    with pytest.raises(ContractError, match=r"deaf\.alpha follows a schedule, and neither generator nor"):
        Trainer(deaf)
