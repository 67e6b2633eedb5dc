"""Images and labels in IDX files: what is read, and everything that is refused, in one sentence each."""

import gzip
import os
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from given import labels as labels_of
from idxfiles import encoded, write

import ganlab

PIXELS = np.random.default_rng(0).integers(0, 256, (7, 5, 4), np.uint8)
LABELS = np.array([3, 0, 1, 1, 2, 0, 3], np.uint8)


def idx(**arguments):
    return ganlab.component("datasets", "idx")(**arguments)


@pytest.mark.parametrize("packed", [False, True])
def test_images_and_labels_are_those_of_the_files(tmp_path, packed, through_pipeline):
    # Named as no packed file is: the content decides.
    images, labels = (write(tmp_path / name, what, packed=packed) for name, what in (("i", PIXELS), ("l", LABELS)))
    dataset = idx(images=images, labels=labels)
    assert (dataset.sample_shape, dataset.size, dataset.classes) == ((5, 4, 1), 7, 4)
    numbers = [6, 0, 3, 3]
    expected = (PIXELS[numbers].astype(np.float64) / 127.5 - 1.0)[..., None]
    np.testing.assert_allclose(through_pipeline(dataset, numbers, 2), expected, atol=1e-7)
    assert labels_of(dataset, numbers) == LABELS[numbers].tolist()


def test_rows_that_are_columns_are_turned(tmp_path):
    dataset = idx(images=write(tmp_path / "i", PIXELS), transpose=True)
    assert dataset.sample_shape == (4, 5, 1)
    expected = PIXELS[2].T.astype(np.float64) / 127.5 - 1.0
    np.testing.assert_allclose(dataset.examples(tf.constant([2], tf.int64), 0)[0, ..., 0], expected, atol=1e-7)


def test_images_are_resized(tmp_path):
    halves = np.zeros((1, 4, 4), np.uint8)
    halves[:, :, 2:] = 255
    dataset = idx(images=write(tmp_path / "i", halves), resize=2)
    assert dataset.sample_shape == (2, 2, 1)
    found = np.asarray(dataset.examples(tf.constant([0], tf.int64), 0))[0, :, :, 0]
    # The antialiased kernel weighs the pixels by 3, 3 and 1 of 7: a seventh of the other half is in each.
    np.testing.assert_allclose(found, [[-5 / 7, 5 / 7]] * 2, atol=1e-6)


def test_classes_begin_where_they_are_said_to(tmp_path):
    images, labels = write(tmp_path / "i", PIXELS), write(tmp_path / "l", LABELS + 1)
    dataset = idx(images=images, labels=labels, first_class=1, classes=26)
    assert dataset.classes == 26
    np.testing.assert_array_equal(dataset.labels(tf.range(7, dtype=tf.int64)), LABELS)


def test_other_bytes_have_another_fingerprint(tmp_path):
    def of(pixels, labels, **arguments):
        files = {"images": write(tmp_path / "i", pixels), "labels": write(tmp_path / "l", labels)}
        return idx(**files, **arguments).fingerprint()

    whole = of(PIXELS, LABELS)
    assert whole == of(PIXELS, LABELS)
    assert whole != of(PIXELS ^ (np.arange(7) == 6).astype(np.uint8)[:, None, None], LABELS)
    assert whole != of(PIXELS, LABELS[::-1])
    assert whole != of(PIXELS, LABELS, transpose=True)


HEADER = bytes([0, 0, 8, 3])


def sides(*values):
    return b"".join(value.to_bytes(4, "big") for value in values)


WHOLE = encoded(PIXELS)
HOSTILE = {
    "empty": (b"", r"begins with the bytes \(none\); an IDX file of images begins with 00 00 08 03 and sizes"),
    "labels": (encoded(LABELS), r"begins with the bytes 00 00 08 01; an IDX file of images"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(40), r"begins with the bytes 89 50 4e 47; an IDX file of images"),
    "floats": (bytes([0, 0, 13, 3]) + WHOLE[4:], r"begins with the bytes 00 00 0d 03"),
    "header alone": (WHOLE[:9], r"begins with the bytes 00 00 08 03; an IDX file of images .* and sizes of 4 bytes"),
    "no images": (HEADER + sides(0, 5, 4), r"says that it has 0 x 5 x 4 values; there must be at least one"),
    "no pixels": (HEADER + sides(7, 0, 4), r"says that it has 7 x 0 x 4 values"),
    "a billion": (HEADER + sides(2**32 - 1, 2**32 - 1, 2**32 - 1), r"and at most 1,073,741,824\.$"),
    "truncated": (WHOLE[:-1], r"is truncated: it says that it has 7 x 5 x 4 values, and 155 bytes cannot hold"),
    "longer": (WHOLE + b"\0", r"says that it has 7 x 5 x 4 values, and has more\.$"),
    "packed, empty": (gzip.compress(b""), r"begins with the bytes \(none\)"),
    "packed, truncated": (gzip.compress(WHOLE[:-1]), r"it says that it has 7 x 5 x 4 values, and ends after 139\.$"),
    "packed, longer": (gzip.compress(WHOLE) + gzip.compress(b"\0"), r"and has more\.$"),
    "packed, then other bytes": (gzip.compress(WHOLE) + b"more", r"cannot be read: .*Download or copy it anew\.$"),
    "packed, cut off": (gzip.compress(WHOLE)[:-9], r"cannot be read: .*Download or copy it anew\.$"),
    "packed, damaged": (gzip.compress(WHOLE)[:-8] + bytes(8), r"cannot be read: CRC check failed"),
    "packed badly": (b"\x1f\x8b" + bytes(60), r"cannot be read: Unknown compression method"),
    "packed, a claim": (gzip.compress(HEADER + sides(2**10, 2**10, 2**10)), r"cannot hold them\.$"),
}


@pytest.mark.parametrize(("data", "rule"), HOSTILE.values(), ids=HOSTILE)
def test_another_file_is_refused_in_a_sentence(tmp_path, data, rule):
    path = tmp_path / "images"
    path.write_bytes(data)
    with pytest.raises(ganlab.ConfigError, match=f"^datasets\\.idx\\.images = '{path}' .*{rule}") as caught:
        idx(images=str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message", "limit"),
    [
        # A bomb: 1 MiB of values and buffers, where all has 16 MiB.
        (gzip.compress(HEADER + sides(4, 512, 512) + bytes(1 << 24)), "4 x 512 x 512 values, and has more", 1 << 23),
        (HEADER + sides(2**10, 2**10, 2**10) + bytes(100), "is truncated", 1 << 22),
    ],
    ids=["packed bomb", "claim"],
)
def test_a_small_file_takes_no_more_memory_than_its_header_promises(tmp_path, data, message, limit):
    assert len(data) < 1 << 15
    (tmp_path / "file").write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(ganlab.ConfigError, match=message):
            idx(images=str(tmp_path / "file"))
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("labels", "more", "rule"),
    [
        (LABELS[:-1], {}, "has 6 labels, and '.*' has 7 images: each must have one"),
        (np.append(LABELS, 0), {}, "has 8 labels, and '.*' has 7 images"),
        (LABELS, {"classes": 3}, "has label 3 at number 0, and classes are 0 to 2. Set datasets.idx.first_class and"),
        (LABELS, {"first_class": 1}, "has label 0 at number 1, and classes are 1 to 3"),
        (PIXELS, {}, "begins with the bytes 00 00 08 03; an IDX file of labels begins with 00 00 08 01 and a size of"),
    ],
)
def test_labels_that_are_not_one_for_each_image_are_refused(tmp_path, labels, more, rule):
    path = write(tmp_path / "l", labels)
    with pytest.raises(ganlab.ConfigError, match=f"^datasets\\.idx\\.labels = '{path}' {rule}"):
        idx(images=write(tmp_path / "i", PIXELS), labels=path, **more)


def test_a_folder_and_a_pipe_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none"):
        with pytest.raises(ganlab.ConfigError, match=r"is not there: no file"):
            idx(images=str(path))
