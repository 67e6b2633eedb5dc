"""Images in TFRecord files, those that `ganlab dataset make` writes and others."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from command_lines import invoke
from ganlab_builtin.datasets import ImageFolder, TFRecords
from PIL import Image

import ganlab

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (11, 8, 8, 3), np.uint8)


@pytest.fixture
def pictures(tmp_path):
    """Eleven pictures, in the folders of two classes."""
    for i, pixels in enumerate(PIXELS):
        place = tmp_path / "pictures" / "ab"[i % 2] / f"{i:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place)
    return tmp_path / "pictures"


ORDER = [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9]  # the first class first


def make(source, folder, *options):
    return invoke("dataset", "make", source, folder, *options)


def records(path, examples, image="image/encoded", label="image/class/label"):
    """Writes a TFRecord file of pairs of bytes and labels as another program would."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for data, number in examples:
            feature = {
                image: tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                label: tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                "image/height": tf.train.Feature(int64_list=tf.train.Int64List(value=[8])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def png(pixels):
    return tf.io.encode_png(pixels).numpy()


def test_made_files_hold_the_same_images_and_labels_in_the_same_order(pictures, tmp_path, through_pipeline):
    result = make(pictures, tmp_path / "made", "--size", "8", "--shard", "4")
    assert result.exit_code == 0, result.output
    assert "11 images of 8 x 8, 2 classes" in result.output
    data = TFRecords(path=str(tmp_path / "made"))
    assert (data.size, data.sample_shape, data.classes, data.class_names) == (11, (8, 8, 3), 2, ["a", "b"])
    numbers = [10, 0, 3, 4, 7, 8, 3, 5, 1, 2, 6, 9]
    expected = PIXELS[np.array(ORDER)[numbers]] / 127.5 - 1
    np.testing.assert_allclose(through_pipeline(data, numbers, batch=3), expected, atol=1e-6)
    np.testing.assert_array_equal(data.labels(tf.constant(numbers, tf.int64)), np.array(ORDER)[numbers] % 2)
    files = sorted(path.name for path in (tmp_path / "made").glob("*.tfrecord"))
    assert files == [f"images-0000{i}-of-00003.tfrecord" for i in range(3)]
    about = json.loads((tmp_path / "made" / "dataset.json").read_text())
    assert about["classes"] == ["a", "b"]
    assert (about["examples"], about["size"], about["channels"], about["filter"]) == (11, 8, 3, "bilinear")


def test_records_are_found_without_an_index(pictures, tmp_path, through_pipeline):
    make(pictures, tmp_path / "made", "--size", "4", "--shard", "5")
    with_index = through_pipeline(TFRecords(path=str(tmp_path / "made")), range(11), batch=11)
    for index in (tmp_path / "made").glob("*.index.npy"):
        index.unlink()
    found = through_pipeline(TFRecords(path=str(tmp_path / "made")), range(11), batch=11)
    np.testing.assert_array_equal(found, with_index)


def test_the_filter_is_the_one_that_was_named(pictures, tmp_path, through_pipeline):
    means = PIXELS[ORDER].reshape(11, 4, 2, 4, 2, 3).mean((2, 4))
    for method in ("area", "lanczos3"):
        assert make(pictures, tmp_path / method, "--size", "4", "--filter", method).exit_code == 0
        found = through_pipeline(TFRecords(path=str(tmp_path / method)), range(11), batch=11)
        pixels = np.rint((found + 1) * 127.5)
        assert (np.abs(pixels - means).max() <= 0.5 + 1e-3) == (method == "area")
    # Pillow's, channel by channel in floating point.
    channels = [[Image.fromarray(p[..., c].astype(np.float32)) for c in range(3)] for p in PIXELS[ORDER]]
    lanczos = [[np.asarray(c.resize((4, 4), Image.Resampling.LANCZOS)) for c in image] for image in channels]
    assert np.abs(pixels - np.clip(np.moveaxis(lanczos, 1, -1), 0, 255)).max() <= 0.5 + 1e-2


def test_grey_images_and_no_classes(pictures, tmp_path):
    assert make(pictures / "a", tmp_path / "made", "--size", "8", "--grey").exit_code == 0
    data = TFRecords(path=str(tmp_path / "made"))
    assert (data.size, data.sample_shape, data.classes) == (6, (8, 8, 1), None)


def test_files_of_other_programs(tmp_path, through_pipeline):
    jpeg = tf.io.encode_jpeg(PIXELS[2], quality=100).numpy()
    records(tmp_path / "train-00000-of-00002.tfrecord", [(png(PIXELS[0]), 1), (png(PIXELS[1]), 2)])
    records(tmp_path / "train-00001-of-00002.tfrecord", [(jpeg, 3)])
    data = TFRecords(path=str(tmp_path), classes=3, first_class=1)
    assert data.size == 3
    np.testing.assert_array_equal(data.labels(tf.constant([2, 0, 1], tf.int64)), [2, 0, 1])
    found = through_pipeline(data, [0, 1, 2], batch=3)
    np.testing.assert_allclose(found[:2], PIXELS[:2] / 127.5 - 1, atol=1e-6)
    np.testing.assert_allclose(found[2], np.asarray(Image.open(io.BytesIO(jpeg))) / 127.5 - 1, atol=1e-6)


def test_other_names_of_features(tmp_path):
    records(tmp_path / "a.tfrecord", [(png(PIXELS[0]), 0)], image="data", label="class")
    with pytest.raises(ganlab.ConfigError, match=r"no PNG or JPEG image in its feature 'image/encoded'.*Set datasets"):
        TFRecords(path=str(tmp_path))
    data = TFRecords(path=str(tmp_path), image="data", label="class", classes=1)
    assert data.labels(tf.constant([0], tf.int64)).numpy() == [0]


def test_what_is_no_whole_record_is_refused(tmp_path):
    def refused(message):
        with pytest.raises(ganlab.ConfigError, match=message):
            TFRecords(path=str(tmp_path))

    refused("has no record")
    file, index = tmp_path / "a.tfrecord", tmp_path / "a.tfrecord.index.npy"
    records(file, [(png(pixels), 0) for pixels in PIXELS[:3]])
    whole = file.read_bytes()
    for cut in (len(whole) - 1, 5):
        file.write_bytes(whole[:cut])
        refused(r"'a\.tfrecord', that is torn, or no TFRecord file: its record")
    file.write_bytes(whole)
    np.save(index, np.array([0, 40, len(whole) + 1]))
    refused(r"is not the index of a\.tfrecord")
    index.write_bytes(b"no array")
    refused("cannot be read")
    index.unlink()
    (tmp_path / "dataset.json").write_text("[]")
    refused(r"'dataset\.json', that is not what 'ganlab dataset make' writes")


def test_another_shape_and_another_label_stop_the_run(tmp_path):
    records(tmp_path / "a.tfrecord", [(png(PIXELS[0]), 0), (png(PIXELS[1, :4]), 5)])
    data = TFRecords(path=str(tmp_path), classes=2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        data.examples(tf.constant([0, 1], tf.int64), 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not one of the 2 classes from 0 on"):
        data.labels(tf.constant([1], tf.int64))


def test_nothing_is_overwritten_or_left_half_written(pictures, tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    result = make(pictures, tmp_path / "there", "--size", "8")
    assert "exists. Name a folder that does not" in result.output
    assert result.exit_code == 2

    def fail(self, numbers, seed):
        raise KeyboardInterrupt

    monkeypatch.setattr(ImageFolder, "examples", fail)
    assert make(pictures, tmp_path / "made", "--size", "8").exit_code != 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pictures", "there"]


def test_the_fingerprint_is_of_the_files(tmp_path):
    records(tmp_path / "a.tfrecord", [(png(PIXELS[0]), 0)])
    one = TFRecords(path=str(tmp_path)).fingerprint()
    assert one == TFRecords(path=str(tmp_path)).fingerprint()
    records(tmp_path / "a.tfrecord", [(png(PIXELS[1]), 0)])
    assert one != TFRecords(path=str(tmp_path)).fingerprint()


@pytest.mark.parametrize("way", ["other", "truncate", "zero", "append"])
def test_file_that_is_written_during_training_is_noticed(way, pictures, tmp_path, through_pipeline):
    make(pictures, tmp_path / "made", "--size", "8")
    data = TFRecords(path=str(tmp_path / "made"))
    (file,) = (tmp_path / "made").glob("*.tfrecord")
    if way == "append":
        with file.open("ab") as opened:
            opened.write(b"x")
    elif way == "other":  # images of the same length
        file.write_bytes(file.read_bytes())
    else:
        os.truncate(file, 0 if way == "zero" else file.stat().st_size - 1)
    said = r"tfrecords\.path = .*\.tfrecord' has been written since it was opened"
    with pytest.raises(tf.errors.OpError, match=said):
        through_pipeline(data, range(11), batch=11)


@pytest.mark.parametrize("reason", ["No space left on device", "Disk quota exceeded", "File too large"])
def test_full_disk_is_named_and_leaves_nothing(reason, pictures, tmp_path, monkeypatch):
    def full(self, record):
        raise tf.errors.ResourceExhaustedError(None, None, f"images.tfrecord; {reason}")

    monkeypatch.setattr(tf.io.TFRecordWriter, "write", full)
    result = make(pictures, tmp_path / "deep" / "made", "--size", "8")
    assert result.exit_code == 2
    assert result.stderr.endswith(f"cannot be written: images.tfrecord; {reason}. Nothing was left behind.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_to_make_leaves_nothing(number, pictures, tmp_path):
    command = [sys.executable, "-P", "-m", "ganlab", "dataset", "make", pictures, "deep/made", "--size", "4096"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not list(tmp_path.glob("deep/.made*/*")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]
