"""The checksum of event files, compared with the published value and TensorBoard's own."""

import time

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.tensorflow_stub import pywrap_tensorflow as theirs

from ganlab.telemetry import event_cutting
from ganlab.telemetry.checksum import crc32c, masked_crc32c, masked_crc32c_of_rows
from ganlab.telemetry.event_file import EventFile


def test_the_checksum_of_the_published_example():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert crc32c(b"\xff" * 32) == 0x62A8AB43


@pytest.mark.parametrize("length", [0, 1, 8, 999])
def test_the_checksum_is_tensorboards_for_every_length(length):
    data = np.random.default_rng(length).integers(0, 256, (5, length), np.uint8)
    expected = [theirs.masked_crc32c(row.tobytes()) for row in data]
    assert [masked_crc32c(row.tobytes()) for row in data] == expected
    assert masked_crc32c_of_rows(data).tolist() == expected


def test_a_huge_record_is_cut_within_seconds(tmp_path):
    file = EventFile(tmp_path)
    huge = Event(step=1, wall_time=1.0)
    huge.summary.value.add(tag="a").image.encoded_image_string = bytes(32 << 20)
    file.add(huge)
    file.close()
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    began = time.process_time()
    event_cutting.cut(tmp_path, after=1)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-5] + b"x" + whole[-4:])  # torn in its data
    event_cutting.cut(tmp_path, after=1)
    assert len(path.read_bytes()) < 100
    assert time.process_time() - began < 10  # TensorBoard's checksum takes 30 s and more each time


def test_a_record_that_claims_more_than_a_run_writes_is_not_read(tmp_path, monkeypatch):
    file = EventFile(tmp_path)
    file.add(Event(step=1, wall_time=1.0, file_version="x" * 5000))
    file.close()
    (path,) = tmp_path.iterdir()
    monkeypatch.setattr(event_cutting, "_LONGEST", 4000)
    event_cutting.cut(tmp_path, after=1)
    assert 0 < path.stat().st_size < 100
