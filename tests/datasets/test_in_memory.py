"""Arrays, sets of tf.data and of PyTorch in place of a dataset."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from small import small

import ganlab

random = np.random.default_rng(0)
BYTES = random.integers(0, 256, (12, 4, 5, 3), np.uint8)
CLASSES = np.arange(12) % 3
POINTS = random.normal(size=(12, 2))


def decoded(image):
    return tf.io.decode_image(tf.io.encode_png(image))  # of unknown shape


def tensors(values):
    return tf.data.Dataset.from_tensor_slices(values)


class Items:
    """As a dataset of PyTorch."""

    def __init__(self, *columns):
        self.columns = columns

    def __len__(self):
        return len(self.columns[0])

    def __getitem__(self, number):
        row = tuple(column[number] for column in self.columns)
        return row if len(row) > 1 else row[0]


class Broken(Items):
    def __getitem__(self, number):
        return {}["image"]


class Tensor(np.ndarray):
    """As a tensor of PyTorch, whose images have channels first."""


Tensor.__module__ = "torch"


def scaled(values, high=255):
    return values / (high / 2) - 1.0


@pytest.mark.parametrize(
    ("data", "rows", "labels"),
    [
        (BYTES, scaled(BYTES), None),
        ((BYTES, CLASSES), scaled(BYTES), CLASSES),
        ((BYTES, CLASSES[:, None]), scaled(BYTES), CLASSES),
        (BYTES.astype(np.int64), scaled(BYTES), None),
        (BYTES / 255, scaled(BYTES), None),
        (scaled(BYTES), scaled(BYTES), None),
        (BYTES[..., 0], scaled(BYTES[..., :1]), None),
        (POINTS, POINTS, None),
        (list(POINTS), POINTS, None),
        ((list(POINTS), CLASSES.tolist()), POINTS, CLASSES),
        ([Image.fromarray(image) for image in BYTES], scaled(BYTES), None),
        ([Image.fromarray(image // 51 * 51).quantize(216) for image in BYTES], scaled(BYTES // 51 * 51), None),
        ([Image.fromarray(image).convert("RGBA") for image in BYTES], scaled(BYTES), None),
        (lambda: tensors(POINTS[None]), POINTS, None),
        (lambda: tensors(POINTS), POINTS, None),
        (lambda: tensors(POINTS).batch(5), POINTS, None),
        (lambda: tensors(POINTS).batch(4, drop_remainder=True).prefetch(1), POINTS, None),
        (lambda: tensors(POINTS).batch(4).map(lambda x: x), POINTS, None),
        (lambda: tensors(POINTS).batch(4, drop_remainder=True).unbatch(), POINTS, None),
        (lambda: tensors(BYTES[..., 0]).batch(4, drop_remainder=True).flat_map(tensors), scaled(BYTES[..., :1]), None),
        (lambda: tensors(BYTES[..., 0]).batch(4, drop_remainder=True), scaled(BYTES[..., :1]), None),
        (lambda: tensors((POINTS, CLASSES)).batch(4, drop_remainder=True), POINTS, CLASSES),
        (lambda: tensors(BYTES).map(tf.io.encode_png).map(tf.io.decode_png), scaled(BYTES), None),
        (lambda: tensors((BYTES, CLASSES)).map(lambda x, y: (decoded(x), y)), scaled(BYTES), CLASSES),
        (lambda: tensors((BYTES, CLASSES)), scaled(BYTES), CLASSES),
        (lambda: tensors((BYTES, CLASSES)).batch(5), scaled(BYTES), CLASSES),
        (lambda: tensors((BYTES, CLASSES)).filter(lambda x, y: y >= 0), scaled(BYTES), CLASSES),
        (Items(POINTS), POINTS, None),
        (Items(BYTES, CLASSES), scaled(BYTES), CLASSES),
        (Items((BYTES / 255).transpose(0, 3, 1, 2).view(Tensor), CLASSES), scaled(BYTES), CLASSES),
        (BYTES.transpose(0, 3, 1, 2).view(Tensor), scaled(BYTES), None),
    ],
)
def test_data_of_python_are_a_dataset(cpus, data, rows, labels):
    dataset = small(dataset=data() if callable(data) else data).dataset  # TensorFlow starts after the collection
    numbers = tf.constant([3, 11, 0], tf.int64)
    assert dataset.sample_shape == rows.shape[1:]
    np.testing.assert_allclose(dataset.examples(numbers, 0), rows[[3, 11, 0]], rtol=2e-6, atol=2e-6)
    assert dataset.classes == (None if labels is None else 3)
    if labels is not None:
        assert dataset.labels(numbers).numpy().tolist() == labels[[3, 11, 0]].tolist()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: tensors(POINTS).repeat(), r"tf\.data\.Dataset without an end\. End it"),
        ([POINTS[0], POINTS[1][:1]], "do not fit together"),
        ([], r"experiment\.dataset has no examples"),
        ([BYTES, CLASSES], r"do not fit together.* second of a tuple of two arrays, \(examples, classes\)"),
        (np.ma.masked_less(POINTS, 0), r"has masked values\. Replace them"),
        ((BYTES, np.ma.masked_equal(CLASSES, 0)), r"has masked values\. Replace them"),
        (
            BYTES.repeat(2, 1).view(Tensor),
            r"images of shape \(8, 5, 3\), which must have channels first: images\.permute",
        ),
        (iter(POINTS), r"of type \w+, whose items have no numbers\. Give a list of them"),
        (Broken(POINTS), r"experiment\.dataset failed in __getitem__: KeyError: 'image' \(test_in_memory\.py:\d+\)"),
        (POINTS[:, 0], r"array of shape \(12,\); it must be \(n, d\)"),
        ((BYTES, CLASSES[:5]), r"labels of experiment\.dataset has int64 values of shape \(5,\)"),
        ((BYTES, CLASSES - 1), "with -1 in row 0"),
        ({"a": POINTS}, r"dataset is \{'a': array[^\n]{,200}, of type dict; it must be a ganlab\.Dataset"),
        ([{"a": 1}], r"dict of 'a'; each must be an example.*: \[\(row\['image'\], .* for row in data\]"),
        (Items(POINTS, CLASSES, CLASSES), "has items that are a tuple of 3; each must be"),
        (lambda: tensors({"image": BYTES}), "has items that have a dict of 'image'; each must be"),
        (lambda: tensors((POINTS, {"a": CLASSES})), "has items that have a dict of 'a'; each must be"),
        (lambda: tensors((POINTS, CLASSES, CLASSES)), "has items that are a tuple of 3; each must be"),
        (lambda: tensors(POINTS).window(2), r"has items that have a tf\.data\.Dataset, as windows are; each"),
        ("digits.npy", r"'digits\.npy', of type str; it must be a ganlab\.Dataset"),
        (3, r"3, of type int; it must be a ganlab\.Dataset"),
    ],
)
def test_other_data_are_refused(cpus, data, message):
    with pytest.raises(ganlab.GanlabError, match=message):
        small(dataset=data() if callable(data) else data)


def test_other_values_are_another_experiment(cpus):
    from ganlab import config

    first, changed = POINTS.copy(), POINTS.copy()
    changed[-1, -1] += 1e-9
    texts = [
        config.flatten(small(dataset=data).recipe)["dataset"]
        for data in (first, first.copy(), changed, (first, CLASSES), (first, CLASSES[::-1]))
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4
