"""The classifier of digits, its arithmetic under replicas, and its cache."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_builtin.features import network, training
from ganlab_builtin.features.classifier import _fits as fits
from labelled import Images

import ganlab

SMALL = {"updates": 12, "batch_size": 7, "width": 4, "features": 5, "hold_out": 4}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GANLAB_CACHE", str(tmp_path))
    return tmp_path / "features"


def classifier(**arguments):
    return ganlab.component("features", "classifier")(**arguments)


def mirrored(replicas):
    return ganlab.component("strategies", "mirrored")(virtual_replicas=replicas)


def model(seed=0):
    return network.build((6, 5, 1), 2, width=4, features=5, seed=seed)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_digits_are_learned_and_restored_with_and_without_a_strategy(cache, cpus):
    digits = ganlab.component("datasets", "digits")()
    trained = classifier()
    with mirrored(2).scope():
        trained.prepare(digits)
        beside = classifier()
        beside.prepare(digits)
    assert trained.held_out_accuracy >= 0.97
    alone = classifier()
    alone.prepare(digits)
    assert len(files(cache)) == 1
    assert trained.held_out_accuracy == beside.held_out_accuracy == alone.held_out_accuracy

    # Counted by hand: every fifth digit, of which there are 360, was held out.
    numbers = np.arange(0, 1797, 5)
    images, labels = np.asarray(digits.examples(numbers, 0)), np.asarray(digits.labels(numbers))
    probabilities = alone.probabilities(images)
    assert len(numbers) == 360
    assert np.mean(probabilities.argmax(axis=1) == labels) == pytest.approx(trained.held_out_accuracy)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(trained.probabilities(images), probabilities, atol=1e-5)
    assert alone.embed(images).shape == (360, 64)

    # Its purpose: real digits are near each other and noise is far.
    def noise(n, seed):
        return np.random.default_rng(seed).uniform(-1, 1, size=(n, 8, 8, 1)).astype(np.float32)

    figures = ganlab.component("evaluators", "frechet_distance")(features=alone).evaluate(noise, digits, None)
    assert figures["real_against_real"] < 0.05 * figures["distance"]
    scores = ganlab.component("evaluators", "classifier_score")(features=alone).evaluate(noise, digits, None)
    assert scores["score"] < 0.7 * scores["real_score"]
    assert 9 < scores["real_score"] <= 10


def test_examples_that_are_trained_on_are_not_those_that_are_held_out():
    inside, outside = training.split(11, 4)
    assert outside.tolist() == [0, 4, 8]
    assert inside.tolist() == [1, 2, 3, 5, 6, 7, 9, 10]


@pytest.mark.parametrize("replicas", [3, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 2, 4))])
def test_an_update_is_by_the_mean_of_the_global_batch_on_any_number_of_replicas(replicas, cpus):
    # Seven examples do not divide over 2, 3 or 4 replicas: the batch is padded, and the padding must not count.
    dataset = Images()
    reference = model()
    images, labels = (part.numpy() for part in (dataset.examples(np.arange(7), 0), dataset.labels(np.arange(7))))
    before = reference.get_weights()
    with tf.GradientTape() as tape:
        probabilities = tf.nn.softmax(reference(images)[1])
        chosen = tf.gather(probabilities, labels, axis=1, batch_dims=1)
        loss = -tf.reduce_mean(tf.math.log(chosen))
    gradients = [g.numpy() for g in tape.gradient(loss, reference.trainable_variables)]

    strategy = mirrored(replicas)
    with strategy.scope():
        split = model()
        sgd = keras.optimizers.SGD(0.5)
        sgd.build(split.trainable_variables)
        batch = training.filled(images, labels, 7)
        assert len(batch[0]) % replicas == 0
        assert batch[2].numpy().sum() == 7
        tf.function(lambda *b: strategy.run(training.update, args=(split, sgd, *b)))(*batch)
    for old, new, gradient in zip(before, split.get_weights(), gradients, strict=True):
        np.testing.assert_allclose(new, old - 0.5 * gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("replicas", [1, 3])
def test_accuracy_counts_every_held_out_example_once(replicas, cpus, monkeypatch):
    dataset = Images()
    monkeypatch.setattr(training, "_TEST_BATCH", 4)  # eleven are held out: batches of 4, 4 and 3
    with mirrored(replicas).scope():
        found = training.accuracy(model(3), dataset, 4)
    _, held_out = training.split(41, 4)
    logits = model(3)(dataset.examples(held_out, 0))[1]
    right = np.argmax(logits, axis=1) == dataset.labels(held_out).numpy()
    assert 0 < right.sum() < 11
    assert found == pytest.approx(right.sum() / 11)


@pytest.mark.slow
def test_the_seed_alone_decides(tmp_path, monkeypatch):
    found = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        tf.random.set_seed(len(found))  # must not matter
        monkeypatch.setenv("GANLAB_CACHE", str(tmp_path / name))
        made = classifier(**SMALL, seed=seed)
        made.prepare(Images())
        found.append(made.embed(Images()._points))
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 1e-2


def test_shifts_move_images_and_continue_their_edges():
    image = np.arange(12.0).reshape(1, 3, 4, 1)
    seen = set()
    for seed in range(60):
        (moved,) = training.shifted(image, 1, np.random.default_rng(seed))[..., 0]
        seen.add(moved.tobytes())
    padded = np.pad(image[0, ..., 0], 1, mode="edge")
    expected = {padded[y : y + 3, x : x + 4].tobytes() for y in range(3) for x in range(3)}
    assert seen == expected
    np.testing.assert_array_equal(training.shifted(image, 0, np.random.default_rng(0)), image)


@pytest.mark.slow
def test_a_network_is_trained_once_for_its_data_and_its_settings(cache, monkeypatch):
    trainings = []
    really = training.train
    monkeypatch.setattr(training, "train", lambda *arguments: trainings.append(really(*arguments)))

    def prepare(dataset, **changes):
        made = classifier(**{**SMALL, **changes})
        made.prepare(dataset)
        asked = dataset.asked
        made.prepare(dataset)
        assert dataset.asked == asked  # the second time costs nothing
        return made

    first = prepare(Images())
    again = prepare(Images())
    assert len(trainings) == 1
    x = Images()._points
    np.testing.assert_array_equal(first.embed(x), again.embed(x))
    for count, (dataset, changes) in enumerate(
        [(Images(brightness=0.4), {}), (Images(size=40), {}), (Images(), {"seed": 1}), (Images(), {"width": 3})],
        start=2,
    ):
        prepare(dataset, **changes)
        assert len(trainings) == len(files(cache)) == count


def test_a_damaged_file_is_replaced_by_a_new_training(cache):
    made = classifier(**SMALL)
    made.prepare(Images())
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    with np.load(path) as archive:
        fewer = {name: archive[name] for name in archive.files[1:]}
    for damage in (
        lambda: path.write_bytes(whole[:1000]),
        lambda: path.write_text(""),
        lambda: np.savez(path, **fewer),
    ):
        damage()
        again = classifier(**SMALL)
        again.prepare(Images())
        np.testing.assert_array_equal(again.embed(Images()._points), made.embed(Images()._points))
        assert path.stat().st_size == len(whole)
    assert list(cache.iterdir()) == [path]


def test_only_finite_weights_of_the_networks_shapes_and_dtypes_are_taken():
    weights = [np.ones((2, 3), np.float32), np.zeros(3, np.float32)]
    assert fits([array + 1 for array in weights], weights)
    for other in (np.ones(2, np.float32), np.zeros(3), np.array(["a"] * 3), np.full(3, np.nan, np.float32)):
        assert not fits([weights[0], other], weights)
    assert not fits(weights[:1], weights)


def test_a_cache_that_cannot_be_written_is_reported_before_training(cache, monkeypatch):
    monkeypatch.setattr(training, "train", lambda *_: pytest.fail("trained"))
    cache.write_text("")
    with pytest.raises(
        ganlab.ConfigError, match=r"cannot be kept in .*features: .*Set the environment variable GANLAB_"
    ):
        classifier(**SMALL).prepare(Images())


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Images(classes=None), "Images, which has no labels"),
        (Images(shape=(4,)), r"Images, which has examples of shape \(4,\) and not images"),
        (Images(size=4), "which has 4 examples, of which every 4th is held out"),
    ],
)
def test_unsuitable_data_is_refused(dataset, message):
    with pytest.raises(ganlab.IncompatibleError, match=message):
        classifier(**SMALL).prepare(dataset)


def test_an_endless_dataset_is_refused():
    dataset = Images()
    dataset.size = None
    with pytest.raises(ganlab.IncompatibleError, match="never ends"):
        classifier().prepare(dataset)


def test_prepare_must_be_called_first():
    with pytest.raises(ganlab.ContractError, match=r"call prepare\(dataset\) first"):
        classifier().embed(np.zeros((2, 6, 5, 1)))


@pytest.mark.parametrize(("accuracy", "ill"), [(0.09, True), (0.32, True), (0.33, False), (0.98, False), (None, False)])
def test_evaluators_complain_of_a_network_that_only_guesses(accuracy, ill):
    features = classifier()
    features._dataset, features.held_out_accuracy = types.SimpleNamespace(classes=10), accuracy
    # A quarter of the way from guessing, 10%, to no mistake is 32.5%.
    kinds = ("kid", "frechet_distance", "precision_recall", "density_coverage", "exact_w1", "sliced_wasserstein")
    for name in (*kinds, "classifier_score"):
        said = ganlab.component("evaluators", name)(features=features).diagnose({"distance": 4.5e9})
        assert (said is not None) == ill, name
        assert said is None or "as good as untrained" in said
    # 6.7e7 between real samples, whatever the features report.
    kid = ganlab.component("evaluators", "kid")()
    assert "not comparable" in kid.diagnose({"distance": 4.5e9, "real_against_real": 6.7e7})
    assert kid.diagnose({"distance": 0.3, "real_against_real": -0.002}) is None
    for name in kinds:
        assert ganlab.component("evaluators", name)().diagnose({"distance": 4.5e9}) is None


def test_training_reports_progress_and_accuracy(cache, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(training, "_REPORT_SECONDS", 0.0)
    made = classifier(**SMALL)
    made.prepare(Images())
    said = capsys.readouterr()
    assert said.out == ""
    first, *progress, last = said.err.splitlines()
    assert first.startswith("features.classifier: training a classifier of 2 classes on ")
    assert "12 updates. This is done once: it is kept in " in first
    assert files(cache)[0] in first
    assert len(progress) == 12
    assert progress[3].startswith("features.classifier: update 4 of 12, about ")
    assert f"accuracy {made.held_out_accuracy:.1%} on " in last
    made.prepare(Images())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"features.classifier: read from {tmp_path}")
    assert f"accuracy {made.held_out_accuracy:.1%} on " in line
    made.prepare(Images())  # as another evaluator does
    assert capsys.readouterr().err == ""
