import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from ganlab_builtin.datasets import TfdsImages
from ganlab_builtin.datasets.pixels import random_square

import ganlab

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(0, 256, (7, 6, 4, 3), np.uint8)


class Source:
    """A data source like those of TensorFlow Datasets: examples by Python integers, one or a list."""

    def __init__(self, images, decoders=None):
        self.images, self.decoded = images, decoders is None
        features = {"label": types.SimpleNamespace(num_classes=len(images)), "image": types.SimpleNamespace()}
        self.dataset_info = types.SimpleNamespace(features=features)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, number):
        assert type(number) is int
        return {"image": self.images[number] if self.decoded else b"", "label": number}

    def __getitems__(self, numbers):
        assert type(numbers) is list
        return [self[number] for number in numbers]


@pytest.fixture
def tfds(monkeypatch):
    """Replaces the module tensorflow_datasets: `tfds(images)` or `tfds(error)`; returns the calls made."""

    def place(result):
        calls = []

        def data_source(name, **arguments):
            calls.append((name, arguments))
            if isinstance(result, Exception):
                raise result
            return Source(result, arguments.get("decoders"))

        module = types.ModuleType("tensorflow_datasets")
        module.data_source = data_source
        module.decode = types.SimpleNamespace(SkipDecoding=lambda: "skipped")
        monkeypatch.setitem(sys.modules, "tensorflow_datasets", module)
        return calls

    return place


def test_images_are_read_by_number_without_a_download(tfds, through_pipeline):
    calls = tfds(IMAGES)
    images = TfdsImages(name="tiny", split="train[:90%]", data_dir="/data")
    assert calls == [("tiny", {"split": "train[:90%]", "data_dir": "/data", "download": False})]
    assert (images.size, images.sample_shape) == (7, (6, 4, 3))
    numbers = [6, 0, 2, 2]
    np.testing.assert_allclose(through_pipeline(images, numbers, batch=2), IMAGES[numbers] / 127.5 - 1, atol=1e-6)


def test_labels_are_read_without_decoding_images(tfds):
    calls = tfds(IMAGES)
    images = TfdsImages(name="tiny", labels="label")
    assert images.classes == 7
    assert calls[1] == ("tiny", {**calls[0][1], "decoders": {"image": "skipped"}})
    graph = tf.function(lambda numbers: images.labels(numbers))
    np.testing.assert_array_equal(graph(tf.constant([6, 0, 2], tf.int64)), [6, 0, 2])
    assert TfdsImages(name="tiny").classes is None


def test_a_missing_class_is_named(tfds, monkeypatch):
    tfds(IMAGES)
    images = TfdsImages(name="tiny", labels="label")
    monkeypatch.setattr(Source, "__getitem__", lambda self, number: {"image": b"", "label": -1})
    with pytest.raises(Exception, match=r"tfds\.labels = 'label' is missing in example 3 of 'tiny'"):
        images.labels(tf.constant([3], tf.int64))


def test_resize_takes_the_central_square_of_images_of_any_shape(tfds, through_pipeline):
    tfds([IMAGES[0], np.swapaxes(IMAGES[1], 0, 1), IMAGES[2, :4]])
    images = TfdsImages(name="tiny", resize=4)
    assert images.sample_shape == (4, 4, 3)
    expected = np.stack([IMAGES[0, 1:5], np.swapaxes(IMAGES[1], 0, 1)[:, 1:5], IMAGES[2, :4]]) / 127.5 - 1
    np.testing.assert_allclose(through_pipeline(images, [0, 1, 2], batch=3), expected, atol=1e-6)


def test_crop_cuts_or_pads_the_middle(tfds, through_pipeline):
    # Six rows and four columns, and three by nine: odd differences leave the smaller half above and to the left.
    wide = RANDOM.integers(0, 256, (3, 9, 3), np.uint8)
    tfds([IMAGES[0], wide])
    images = TfdsImages(name="tiny", crop=5)
    assert images.sample_shape == (5, 5, 3)
    expected = np.zeros((2, 5, 5, 3), np.uint8)
    expected[0, :, :4] = IMAGES[0, :5]
    expected[1, 1:4] = wide[:, 2:7]
    np.testing.assert_allclose(through_pipeline(images, [0, 1], batch=2), expected / 127.5 - 1, atol=1e-6)


def test_crop_comes_before_resizing(tfds, through_pipeline):
    tfds(IMAGES)
    images = TfdsImages(name="tiny", crop=2, resize=1)
    expected = IMAGES[:3, 2:4, 1:3].mean(axis=(1, 2), keepdims=True) / 127.5 - 1
    np.testing.assert_allclose(through_pipeline(images, [0, 1, 2], batch=3), expected, atol=1e-6)


@pytest.mark.slow
def test_random_squares_are_those_of_tensorflow():
    height, width, count = 40, 56, 600
    image = tf.constant(np.stack(np.meshgrid(range(height), range(width), indexing="ij"), axis=-1))
    uniform = np.random.default_rng(1).uniform(size=(count, 3)).astype(np.float32)
    mine = []
    for numbers in uniform:
        square = random_square(image, 0.5, tf.constant(numbers)).numpy()
        assert square.shape[0] == square.shape[1]
        mine.append([square.shape[0], *square[0, 0]])
    options = {"aspect_ratio_range": [1.0, 1.0], "area_range": [0.5, 1.0], "use_image_if_no_bounding_boxes": True}
    drawn = [
        tf.image.sample_distorted_bounding_box((height, width, 3), tf.zeros([0, 0, 4]), seed=i + 1, **options)
        for i in range(count)
    ]
    theirs = [[int(size[0]), int(begin[0]), int(begin[1])] for begin, size, _ in drawn]
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert set(mine[:, 0]) == set(theirs[:, 0]) == set(range(34, 41))  # from the root of half of 40 by 56
    for k, places in enumerate((7, 7, 23)):
        # Five standard errors of the difference of two means; TensorFlow never draws the last place, half a pixel less.
        error = 5 * places * np.sqrt(2 / 12 / count)
        assert mine[:, k].mean() == pytest.approx(theirs[:, k].mean(), abs=error + 0.5)
    assert (mine[:, 0] + mine[:, 1]).max() == height  # the last row and the last column are reached, not passed
    assert (mine[:, 0] + mine[:, 2]).max() == width


def test_random_crops_belong_to_number_and_epoch(tfds):
    tfds(IMAGES)
    images = TfdsImages(name="tiny", random_crop=0.3, resize=3)
    numbers = tf.range(7, dtype=tf.int64)
    whole = np.asarray(images.examples(numbers, 5))
    np.testing.assert_array_equal(images.examples(numbers[2:4], 5), whole[2:4])
    np.testing.assert_array_equal(images.examples(numbers, 5, epochs=tf.zeros([7], tf.int64)), whole)
    other = np.asarray(images.examples(numbers, 5, epochs=tf.ones([7], tf.int64)))
    assert np.any(other != whole, axis=(1, 2, 3)).mean() > 0.5


def test_an_image_without_such_a_square_is_resized_whole(tfds):
    long = np.repeat(np.arange(0, 250, 25, dtype=np.uint8)[:, None, None], 3, axis=2).repeat(2, axis=1)
    tfds([long])  # ten rows of two pixels: the largest square is a fifth of it
    images = TfdsImages(name="tiny", random_crop=0.5, resize=2)
    (image,) = np.asarray(images.examples(tf.constant([0], tf.int64), 0))
    assert image[0].mean() < -0.4  # from the first rows to the last
    assert image[1].mean() > 0.2


def test_images_of_several_shapes_need_a_size(tfds):
    tfds([IMAGES[0], IMAGES[1, :4]])
    images = TfdsImages(name="tiny")
    with pytest.raises(Exception, match=r"shapes \(6, 4, 3\) and \(4, 4, 3\); they must have one shape. Set data"):
        images.examples(tf.constant([0, 1], tf.int64), 0)


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ganlab.MissingDependencyError, match=r"pip install -e '\.\[tfds\]'"):
        TfdsImages(name="mnist")


# What tensorflow_datasets 4.9.10 raises with download=False: for a set in another format or none, and for none at all.
@pytest.mark.parametrize(
    "error",
    [
        NotImplementedError(
            "Random access data source for file format FileFormat.TFRECORD is not supported. Possible\n..."
        ),
        AssertionError("Dataset mnist: could not find data in /data. Please make sure to call\n..."),
    ],
)
def test_a_set_that_is_not_prepared_is_reported(error, tfds):
    tfds(error)
    with pytest.raises(ganlab.MissingDependencyError) as raised:
        TfdsImages(name="mnist", data_dir="/data")
    message = str(raised.value)
    assert message.startswith("datasets.tfds.name = 'mnist' is not prepared for random access in /data (")
    assert "tensorflow_datasets.data_source('mnist', data_dir='/data')" in message
    assert "datasets.tfds.download = True" in message
    assert "\n" not in message


def test_nothing_is_downloaded_into_a_folder_that_settings_name(tfds):
    calls = tfds(IMAGES)
    with pytest.raises(ganlab.ConfigError, match=r"datasets\.tfds\.data_dir = '/data' is only read, .* TFDS_DATA_DIR"):
        TfdsImages(name="tiny", data_dir="/data", download=True)
    assert calls == []
    TfdsImages(name="tiny", download=True)
    assert calls[0][1]["download"]


UNKNOWN = ValueError("Dataset mnst not found.\nAvailable datasets:\n\t- abstract_reasoning")
RANDOM_CROP = r"random_crop = 0\.5 needs datasets\.tfds\.resize and excludes"


@pytest.mark.parametrize(
    ("found", "settings", "message"),
    [
        (UNKNOWN, {}, r"^datasets\.tfds\.name = 'tiny' with .* 'train' cannot be opened: ValueError: .* not found\.$"),
        (IMAGES, {"key": "images"}, r"key = 'images' must be a feature of 'tiny': image, label\. Did you mean"),
        (IMAGES, {"key": "label"}, r"key = 'label' must be an image, .*; it is \(\) of int64"),
        (IMAGES, {"labels": "image"}, r"tfds\.labels = 'image' must be a class, and in 'tiny' it is not"),
        (IMAGES, {"labels": "labels"}, r"tfds\.labels = 'labels' must be a feature of 'tiny': image, label"),
        (IMAGES, {"random_crop": 0.5}, RANDOM_CROP),
        (IMAGES, {"random_crop": 0.5, "crop": 3, "resize": 3}, RANDOM_CROP),
        ([], {}, r"split = 'train' of 'tiny' is empty"),
    ],
)
def test_unknown_sets_splits_and_features_and_settings_that_do_not_fit_are_refused(tfds, found, settings, message):
    tfds(found)
    with pytest.raises(ganlab.ConfigError, match=message):
        TfdsImages(name="tiny", **settings)


@pytest.mark.parametrize("name", ["huggingface:mnist", "kubric:movi_a/128x128:1.0.0"])
def test_sets_with_foreign_code_are_refused(tfds, name):
    calls = tfds(IMAGES)
    with pytest.raises(ganlab.ConfigError, match="names a set of a namespace, whose code would be downloaded and exec"):
        TfdsImages(name=name)
    assert calls == []


@pytest.mark.parametrize("name", ["lsun/bedroom:3.1.0", "mnist:3.*.*", "mnist"])
def test_versions_are_not_namespaces(tfds, name):
    calls = tfds(IMAGES)
    TfdsImages(name=name)
    assert [called for called, _ in calls] == [name]
