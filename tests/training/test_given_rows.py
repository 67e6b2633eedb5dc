"""Sources and conditions: what belongs to each row beside its example and its latent vector."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify.lab import Training, differing, resumed
from ganlab_verify.testing.parts import Wasserstein
from making import loss
from networks_by_hand import Net, assert_moved, latents, sigmoid
from small import Layers, Points, assert_same, computed, sgd, small, trained, values

import ganlab
from ganlab import config
from ganlab.engine import DiagnosticSchedule, TrainingState, data_changes, data_of
from ganlab.training.graph import noise
from ganlab.training.graph.inputs import Inputs
from ganlab.training.graph.sampling import sampler
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

RATE = 0.05
TABLE = np.random.default_rng(3).normal(size=(50, 6)).astype(np.float32)
OTHER = Points(np.random.default_rng(4).normal(size=(35, 3)))


def joined(own, *given):
    """A network of two layers of its own input, if there is one, and of inputs of these names and lengths."""

    def inputs(of_own):
        rest = [keras.Input((width,), name=name) for name, width in given]
        return [keras.Input((of_own,)), *rest] if own else rest

    def network(of_own, outputs):
        ends = inputs(of_own)
        x = ends[0] if len(ends) == 1 else keras.layers.Concatenate()(ends)
        hidden = keras.layers.Dense(7, activation="tanh", name="hidden")(x)
        return keras.Model(ends if len(ends) > 1 else ends[0], keras.layers.Dense(outputs, name="out")(hidden))

    return network


class Taking(Layers):
    """Generator and critic that take what they are told to."""

    def __init__(self, generator, critic, latent_dim=3):
        super().__init__(latent_dim=latent_dim)
        self.made = generator, critic

    def generator(self, sample_shape):
        return self.made[0](self.latent_dim, sample_shape[0])

    def critic(self, sample_shape):
        return self.made[1](sample_shape[0], 1)


class Rows(ganlab.Dataset):
    """A table with a pair and a condition in each row."""

    sample_shape, source_shape, condition_shape, size = (2,), (3,), (1,), 50

    def examples(self, numbers, seed):
        return tf.gather(TABLE[:, :2], numbers)

    def sources(self, numbers, seed):
        return tf.gather(TABLE[:, 2:5], numbers)

    def conditions(self, numbers, seed):
        return tf.gather(TABLE[:, 5:], numbers)


SOURCE, CONDITIONS = ("source", 3), ("conditions", 1)
MAP = {"architecture": Taking(joined(False, SOURCE), joined(True), latent_dim=0), "source": OTHER}
PAIRED = {"architecture": Taking(joined(True, CONDITIONS, SOURCE), joined(True, CONDITIONS, SOURCE)), "dataset": Rows()}


def parts(kind, **changed):
    return {"loss": loss("non_saturating"), "optimizer": sgd(RATE), "critic_steps": 2, **kind, **changed}


def beside(experiment):
    return [name for name in experiment.given if name != "labels"]


def by_hand(experiment, first, steps):
    """The weights after a loop of the same game, written without ganlab and TensorFlow but for the numbers drawn."""
    generator, critic = (Net(first, role) for role in ("generator", "critic"))
    rows, inputs, names = experiment.batch_size, Inputs(experiment), beside(experiment)
    wide = experiment.architecture.latent_dim

    def given(found, prefix="", k=...):
        return [found[prefix + name][k].astype(np.float64) for name in names]

    def latent(update, stream):
        return [latents(update, stream, rows, wide)] if wide else []

    def seen(x, others):  # by a critic that takes what the generator takes, if it takes anything
        return np.concatenate([x, *others], axis=1) if experiment.source is None else x

    for step in range(steps):
        found = {name: x.numpy() for name, x in inputs.of(tf.constant(step, tf.int64), 0).items()}
        for k in range(2):
            others = given(found, k=k)
            fake = generator(np.concatenate([*latent(2 * step + k, noise.FAKE_LATENT), *others], axis=1))
            of_real = critic.back(-sigmoid(-critic(seen(found["real"][k].astype(np.float64), others))) / rows)[0]
            of_fake = critic.back(sigmoid(critic(seen(fake, others))) / rows)[0]
            critic.descend(RATE, of_real, of_fake)
        others = given(found, "generator/")
        fake = generator(np.concatenate([*latent(step, noise.LATENT), *others], axis=1))
        _, by_critic = critic.back(-sigmoid(-critic(seen(fake, others))) / rows)
        generator.descend(RATE, generator.back(by_critic[:, : fake.shape[1]])[0])
    return {name: w for net in (generator, critic) for name, w in zip(net.names, net.weights, strict=True)}


@pytest.mark.parametrize(
    "kind", [PAIRED, pytest.param(MAP, marks=pytest.mark.slow)], ids=["pairs with conditions", "a source of its own"]
)
def test_twenty_updates_are_those_of_a_loop_by_hand(kind):
    training = trained(1, **parts(kind))
    assert_moved(training, by_hand(small(0, **parts(kind)), training.start, 20))


@pytest.mark.parametrize("kind", [MAP, PAIRED], ids=["a source of its own", "pairs with conditions"])
@pytest.mark.slow
@computed
def test_they_train_the_same_however_they_are_computed(kind, replicas, changed):
    assert_same(trained(0, **parts(kind)), trained(replicas, **parts(kind, **changed)))


def test_pairs_stay_together_and_a_source_has_an_order_of_its_own():
    step = tf.constant(4, tf.int64)
    paired = Inputs(small(0, **parts(PAIRED))).of(step, 0)
    rows = np.concatenate([paired["real"], paired["source"], paired["conditions"]], axis=-1).reshape(-1, 6)
    assert all((row == TABLE).all(axis=1).any() for row in rows)
    pairs = Inputs(small(0, **parts(PAIRED, loss=ganlab.component("losses", "relativistic")()))).of(step, 0)
    rows = np.concatenate([pairs[f"generator/{name}"] for name in ("real", "source", "conditions")], axis=-1)
    assert all((row == TABLE).all(axis=1).any() for row in rows)

    inputs = Inputs(small(0, **parts(MAP, batch_size=35, critic_steps=1)))
    for name in ("source", "generator/source"):
        one, other = (inputs.of(tf.constant(i, tf.int64), 0)[name].numpy().reshape(35, 3) for i in (0, 1))
        for epoch in (one, other):  # each example of the source once
            np.testing.assert_array_equal(np.sort(epoch, axis=0), np.sort(OTHER._points, axis=0))
        assert not np.array_equal(one, other)

    itself = Points(TABLE[:, :3])
    both = Inputs(small(0, **parts(MAP, dataset=itself, source=itself, batch_size=25))).of(step, 0)
    assert not np.array_equal(both["real"], both["source"])


def test_a_source_of_its_own_replaces_that_of_pairs():
    taking = Taking(joined(False, SOURCE), joined(True), latent_dim=0)
    inputs = Inputs(small(0, **parts({"architecture": taking, "dataset": Rows(), "source": OTHER})))
    found = inputs.of(tf.constant(0, tf.int64), 0)
    assert all((OTHER._points == row).all(axis=1).any() for row in found["source"].numpy().reshape(-1, 3))


@pytest.mark.parametrize("kind", [MAP, PAIRED], ids=["a source of its own", "pairs with conditions"])
def test_samples_are_the_generators_of_rows_that_repeat(kind):
    experiment = small(0, **parts(kind))
    trainer = Trainer(experiment)
    draw = sampler(experiment, trainer.state)
    given = draw.given(40, 7)
    assert list(given) == beside(experiment)
    for name, x in draw.given(10, 7, start=20).items():
        np.testing.assert_array_equal(x, given[name][20:30])
    assert not np.array_equal(draw.given(40, 8)["source"], given["source"])
    net = Net(values(trainer.state), "generator")
    latents = draw.latents(40, 7).numpy()
    expected = net(np.concatenate([latents, *given.values()], axis=1))
    np.testing.assert_allclose(draw(40, 7), expected, rtol=1e-5, atol=1e-5)
    other = np.ones((40, 3), np.float32)
    expected = net(np.concatenate([latents, *{**given, "source": other}.values()], axis=1))
    np.testing.assert_allclose(draw(40, 7, source=other), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ganlab.errors.ContractError, match=r"takes source of shape \(40, 3\).*was given \(40, 2\)"):
        draw(40, 7, source=other[:, :2])


class Called(Wasserstein):
    """The generator called with other sources than the batch's, as a cycle does."""

    def generator(self, fake_scores, batch, networks):
        generator = networks["generator"]
        twice = generator({"source": tf.concat([batch.source, -batch.source], axis=0)})
        rows = batch.source.shape[0]
        same = generator(batch.latent) - twice[:rows]
        return -fake_scores + tf.reduce_sum(same**2 + (twice[rows:] - batch.fake) ** 2, axis=1)


def test_a_loss_calls_the_generator_with_another_source():
    training = trained(count=1, **parts(MAP, loss=Called(), critic_steps=1))
    net, critic = Net(training.start, "generator"), Net(training.values, "critic")
    source = Inputs(training.trainer.experiment).of(tf.constant(0, tf.int64), 0)
    one, other = (net(sign * source["generator/source"].numpy().astype(np.float64)) for sign in (1.0, -1.0))
    expected = np.mean(-critic(one)[:, 0] + ((other - one) ** 2).sum(axis=1))
    assert training.metric("generator/loss")[0, 0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"source": None}, "The generator .* has an input 'source' of shape .3,., and the experiment has none: set"),
        ({"source": Points(np.zeros((9, 4)))}, r"'source' of shape \(3,\), and the experiment has one of shape \(4,\)"),
        (
            {"architecture": Taking(joined(True, CONDITIONS), joined(True))},
            "input 'conditions' of shape .1,., and the experiment has none: use a dataset that has",
        ),
        ({"architecture": Taking(joined(True), joined(True))}, r"source = .*Points.* has no input 'source'. Leave"),
    ],
)
def test_refusals_name_the_input(changed, message):
    with pytest.raises(ganlab.errors.ConfigError, match=message):
        Trainer(small(0, **parts(MAP, **changed)))


def test_sources_that_are_not_finite_are_named():
    broken = np.ones((12, 3), np.float32)
    broken[5, 1] = np.nan
    with pytest.raises(ganlab.errors.ContractError, match=r"not finite .NaN or infinity., in example 5"):
        Trainer(small(0, **parts(MAP, source=Points(broken)))).trace()


def test_an_unused_setting_leaves_no_trace():
    experiment = small(0)
    assert "source" not in experiment.recipe.arguments
    assert "source" not in config.render(experiment.recipe, defaults=True).replace("architectures.mlp.source", "")
    assert not any(name.endswith("source") and "mlp" not in name for name in config.flatten(experiment.recipe))
    assert not beside(experiment)


@pytest.mark.slow
def test_diagnostics_see_samples_of_the_update_that_comes_next():
    seen = {}

    class Fakes(ganlab.Diagnostic):
        def look(self, critic):
            seen.update(fake=critic.fake, more=critic.more(30)[1], gradients=critic.gradients(0).weights)
            return ganlab.Findings()

    experiment = small(0, **parts(MAP, diagnostics=[Fakes()]))
    state = TrainingState(experiment)
    DiagnosticSchedule(experiment, state).check()
    net = Net(values(state), "generator")
    source = Inputs(experiment).of(tf.constant(0, tf.int64), 0)["source"][0].numpy()
    np.testing.assert_allclose(seen["fake"], net(source), rtol=1e-5, atol=1e-5)
    more = sampler(experiment, state).given(30, 0)["source"]
    np.testing.assert_allclose(seen["more"], net(more), rtol=1e-5, atol=1e-5)
    assert all(np.abs(gradient).max() > 0 for gradient in seen["gradients"].values())

    paired = small(0, **parts(PAIRED, diagnostics=[Fakes()]))
    with pytest.raises(ganlab.errors.IncompatibleError, match="takes more than examples, or other inputs"):
        DiagnosticSchedule(paired, TrainingState(paired)).check()


@pytest.mark.slow
def test_a_resumed_run_has_the_same_bits():
    assert differing(*resumed(Training(small(0, **parts(PAIRED))), 2, 2)) == []


def test_other_sources_and_conditions_are_other_data():
    class Shifted(Rows):
        def conditions(self, numbers, seed):
            return super().conditions(numbers, seed) + 1.0

    before = data_of(Rows(), OTHER)
    assert data_changes(before, data_of(Rows(), Points(OTHER._points))) == []
    (line,) = data_changes(before, data_of(Rows(), Points(OTHER._points + 1.0)))
    assert "source rows: content" in line
    (line,) = data_changes(before, data_of(Shifted(), OTHER))
    assert "conditions: content" in line


class Labelled(Rows):
    classes = 4

    def labels(self, numbers):
        return numbers % 4


def test_labels_and_conditions_of_a_sample_are_those_of_one_example():
    mlp = ganlab.component("architectures", "mlp")
    both = mlp(width=8, depth=1, latent_dim=3, labels="projection", conditions=True)
    experiment = small(0, **parts({"architecture": both, "dataset": Labelled()}, critic_steps=1))
    trainer = Trainer(experiment)
    trainer.train(2)
    draw = sampler(experiment, trainer.state)
    given = draw.given(40, 7)
    numbers = [int(np.flatnonzero(TABLE[:, 5] == condition)[0]) for condition in given["conditions"][:, 0]]
    np.testing.assert_array_equal(given["labels"], np.array(numbers) % 4)
    model = trainer.state.generator.network.model
    assert [x.name for x in model.inputs] == ["latent", "label", "conditions"]
    one_hot = np.eye(4, dtype=np.float32)[given["labels"]]
    expected = model([draw.latents(40, 7).numpy(), one_hot, given["conditions"]])
    np.testing.assert_allclose(draw(40, 7), expected, rtol=1e-5, atol=1e-6)
    asked = draw(40, 7, [3] * 40, conditions=given["conditions"])
    expected = model([draw.latents(40, 7).numpy(), np.eye(4, dtype=np.float32)[[3] * 40], given["conditions"]])
    np.testing.assert_allclose(asked, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"conditions": True}, "architectures.mlp with conditions = True needs a dataset with conditions"),
        ({"source": True}, "with source = True needs experiment.source, or a dataset of pairs"),
    ],
)
def test_networks_that_need_what_the_data_do_not_have_say_so(settings, message):
    mlp = ganlab.component("architectures", "mlp")(width=8, depth=1, **settings)
    with pytest.raises(ganlab.errors.ConfigError, match=message):
        Trainer(small(0, architecture=mlp))
