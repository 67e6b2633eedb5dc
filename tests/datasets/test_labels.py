"""Labels by example number, of the datasets that have them."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from given import labels
from PIL import Image

import ganlab


@pytest.fixture
def saved(tmp_path):
    """Saves arrays in one file, and makes a dataset of them: `saved({"x": x, "y": y}, labels="y")`."""

    def saved(rows, **settings):
        np.savez(tmp_path / "rows.npz", **rows)
        return ganlab.component("datasets", "arrays")(path=str(tmp_path / "rows.npz"), **settings)

    return saved


ANEW = r"Number the classes anew: np\.unique"


@pytest.mark.parametrize(("name", "classes"), [("mnist", 10), ("cifar100", 100)])
def test_labels_of_keras_sets_are_those_of_the_split(name, classes, monkeypatch):
    images = np.zeros((4, 8, 8), np.uint8)
    train, test = np.array([3, 1, 4, 1]), np.array([[9], [5], [2], [6]])  # a column, as those of CIFAR
    loaded = (images, train), (images, test)
    monkeypatch.setattr(getattr(keras.datasets, name), "load_data", lambda: loaded)
    make = ganlab.component("datasets", "keras")
    assert labels(make(name=name), [0, 2, 3]) == [3, 4, 1]
    assert labels(make(name=name, split="test"), [3, 0]) == [6, 9]
    assert make(name=name).classes == classes


def test_subfolders_are_classes_in_the_order_of_their_names(tmp_path):
    for name in ("cat/b.png", "cat/deep/a.png", "ant/z.png", "dog/a.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / name)
    make = ganlab.component("datasets", "image_folder")
    folder = make(path=str(tmp_path), size=4)
    assert folder.classes == 3
    assert labels(folder, [0, 1, 2, 3]) == [0, 1, 1, 2]  # ant/z, cat/b, cat/deep/a, dog/a
    assert make(path=str(tmp_path / "cat"), size=4).classes is None  # a file that is in no subfolder
    assert make(path=str(tmp_path / "dog"), size=4).classes is None


def test_an_array_of_a_file_may_hold_the_labels(saved):
    arrays = {"x": np.arange(6.0).reshape(3, 2), "y": np.array([2, 0, 2], np.uint8)}
    rows = saved(arrays, labels="y")
    assert (rows.size, rows.sample_shape, rows.classes) == (3, (2,), 3)
    assert labels(rows, [2, 1]) == [2, 0]
    np.testing.assert_array_equal(rows.examples(tf.constant([1], tf.int64), 0), [[2.0, 3.0]])
    assert saved(arrays, key="x").classes is None


@pytest.mark.parametrize(
    ("wrong", "what", "remedy"),
    [
        (np.zeros(2, int), r"int64 values of shape \(2,\) in [^,]*;", "Its length is not that of the rows"),
        (np.int64(3), r"int64 values of shape \(\)", "Its length is not that of the rows"),
        (np.zeros((3, 2), int), r"int64 values of shape \(3, 2\) in [^,]*;", r".* one-hot, take np\.argmax"),
        (np.zeros(3), "float64", ANEW),
        (np.array([0.5, np.nan, 1]), "float64", "Numbers that are not whole are no classes"),
        (np.array([True, False, True]), "bool", ANEW),
        (np.array(["cat", "ant", "cat"]), "<U3", ANEW),
        (np.array([0, -1, 1]), r".*, with -1 in row 1", ANEW),
    ],
)
def test_labels_that_are_not_a_class_a_row_are_refused(saved, wrong, what, remedy):
    rule = rf"arrays\.labels = 'y' has {what}.* each of the 3 rows\. {remedy}"
    with pytest.raises(ganlab.ConfigError, match=rule):
        saved({"x": np.zeros((3, 2)), "y": wrong}, labels="y")


ENERGIES = np.array([0.5, 1.25, 3.0])


@pytest.mark.parametrize("given", [ENERGIES, np.stack([ENERGIES, -ENERGIES], 1), np.array([5, 7, 9])])
def test_an_array_of_a_file_may_hold_conditions(saved, given):
    arrays = {"x": np.arange(6.0).reshape(3, 2), "y": np.array([1, 0, 1]), "e": given}
    rows = saved(arrays, labels="y", conditions="e")
    assert (rows.sample_shape, rows.classes, rows.condition_shape) == ((2,), 2, given.shape[1:] or (1,))
    np.testing.assert_array_equal(rows.conditions(tf.constant([2, 0], tf.int64), 0), given.reshape(3, -1)[[2, 0]])
    assert "conditions" in rows.fingerprint()
    mlp = ganlab.component("architectures", "mlp")(conditions=True)
    experiment = ganlab.experiment(dataset=rows, architecture=mlp, batch_size=4, steps=1)
    assert experiment.given["conditions"].shape == rows.condition_shape


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (ENERGIES[:2], r"float64 values of shape \(2,\); it must have numbers for each of the 3 rows"),
        (np.array(["a", "b", "c"]), r"<U1 values"),
        (np.zeros((3, 0)), r"shape \(3, 0\)"),
        (np.array([0.0, 1e39, np.nan]), "a value in row 1 that is not finite in float32"),
    ],
)
def test_conditions_that_are_not_numbers_a_row_are_refused(saved, wrong, what):
    with pytest.raises(ganlab.ConfigError, match=rf"arrays\.conditions = 'e' has .*{what}"):
        saved({"x": np.zeros((3, 2)), "e": wrong}, conditions="e")


@pytest.mark.parametrize(
    ("labels", "classes", "rule"),
    [
        (range(1, 11), 11, r"11 classes, of which 1 does not occur: 0\. If they are numbered from 1, save labels - 1"),
        ([0, 2, 5], 6, r"6 classes, of which 3 do not occur: 1, 3, 4\. If that is not meant: Number the classes"),
        ([5, 5], 6, r"of which 5 do not occur: 0, 1, 2, 3, 4\. If that"),
        ([0, 9], 10, r"of which 8 do not occur: 1, 2, 3, 4, 5 and 3 more\. If that"),
    ],
)
def test_classes_without_an_example_are_named(saved, labels, classes, rule):
    with pytest.warns(UserWarning, match=rule):
        assert saved({"x": np.zeros((len(labels), 2)), "y": labels}, labels="y").classes == classes


@pytest.mark.parametrize(
    ("name", "settings", "rule"),
    [
        ("data.npz", {"labels": "z"}, r"labels = 'z' must name an array of .*, which has x, y\."),
        ("data.npz", {"key": "x", "labels": "z"}, r"labels = 'z' must name an array of .*, which has x, y\."),
        ("data.npz", {"key": "w", "labels": "y"}, r"key = 'w' must name an array of .*, which has x, y\."),
        ("rows.npy", {"labels": "y"}, r"labels = 'y' is for \.npz files"),
    ],
)
def test_arrays_that_the_file_does_not_have_are_named_with_all_that_it_has(tmp_path, name, settings, rule):
    np.savez(tmp_path / "data.npz", x=np.zeros((3, 2)), y=np.arange(3))
    np.save(tmp_path / "rows.npy", np.zeros((3, 2)))
    with pytest.raises(ganlab.ConfigError, match=rf"arrays\.{rule}"):
        ganlab.component("datasets", "arrays")(path=str(tmp_path / name), **settings)


def test_the_class_of_a_mixture_is_the_mode_it_was_drawn_from():
    ring = ganlab.component("datasets", "gaussian_ring")()
    numbers = tf.range(500, dtype=tf.int64)
    for seed in (0, 7):
        points, shown = ring.examples(numbers, seed).numpy(), ring.labels(numbers, seed).numpy()
        apart = np.linalg.norm(points[:, None] - ring.modes[None], axis=2)
        np.testing.assert_array_equal(apart.argmin(1), shown)
    assert set(shown) == set(range(8))


def test_numbers_that_are_no_classes_are_noticed(saved):
    with pytest.raises(ganlab.ConfigError, match=r"has the number 1099511627776 in row 1 of .* below 100000\. Number"):
        saved({"x": np.zeros((3, 2)), "y": [0, 2**40, 1]}, labels="y")
