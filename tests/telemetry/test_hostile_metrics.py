"""Reading a metrics.jsonl takes time that depends on what the file holds, never on what it claims."""

import contextlib
import json
import time

import pytest
from ganlab_sweep.metric_follower import MetricFollower
from ganlab_tensorboard.preview import newest, preview, tags_at_ends

from ganlab.errors import RunError
from ganlab.telemetry.jsonl import logged_tags, read_metrics
from ganlab.telemetry.jsonl_repair import repair

ROW = b'{"step": 1, "metrics": {"a": {"reduced": 1.0, "replicas": []}}}\n'


def hole(path):
    with path.open("r+b") as file:
        file.truncate(1 << 40)


def holes(path):
    """Holes between newlines, shorter than the longest line."""
    with path.open("r+b") as file:
        for at in range(1 << 23, 1 << 36, 1 << 23):
            file.seek(at)
            file.write(b'\n{"step"')


CONTENTS = {
    "one hole": hole,
    "many holes": holes,
    "no end": lambda path: path.write_bytes(ROW + b"{" * (100 << 20)),
    "blank lines": lambda path: path.write_bytes(ROW + b"\n" * (8 << 20)),
    "open objects": lambda path: path.write_bytes(ROW + b"{\n" * (4 << 20)),
    "escaped quotes": lambda path: path.write_bytes(ROW + b'{"step": 2, ' + b'\\"' * (4 << 20) + b"\n"),
    "strings without end": lambda path: path.write_bytes(ROW + b'{"step": 2, "' + b'\\"' * 15_000 + b"\n"),
    "spaces": lambda path: path.write_bytes(ROW + b'{"step": 2, ' + b'"a"      ' * (1 << 18) + b"\n"),
    "nested": lambda path: path.write_bytes(ROW + b'{"step": 2, "metrics": ' + b"[" * (8 << 20) + b"\n"),
    "digits": lambda path: path.write_bytes(ROW + b'{"step": ' + b"9" * (8 << 20) + b"}\n"),
}
READERS = {
    "read_metrics": lambda path: list(read_metrics(path)),
    "read some": lambda path: list(read_metrics(path, ["a"])),
    "logged_tags": logged_tags,
    "repair": repair,
    "follow": lambda path: MetricFollower(path.parent, "a").follow(),
    "preview": lambda path: (preview(path, ["a"]), newest(path, ["a"]), tags_at_ends(path)),
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", CONTENTS)
def test_hostile_file_is_read_within_seconds(tmp_path, content, reader):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(ROW)
    CONTENTS[content](path)
    began = time.process_time()
    with contextlib.suppress(RunError):
        READERS[reader](path)
    assert time.process_time() - began < 4


@pytest.mark.parametrize("content", CONTENTS)
def test_rows_before_the_damage_are_followed(tmp_path, content):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(ROW)
    CONTENTS[content](path)
    follower = MetricFollower(tmp_path, "a")
    follower.follow()
    assert follower.values == {1: 1.0}
    assert "a" in logged_tags(path)


def test_names_of_metrics_are_found_whatever_they_hold(tmp_path):
    path = tmp_path / "metrics.jsonl"
    tags = ["a", 'b"c', "d\\", 'e\\"f', "reduced", "replicas", "größe", "g: {", ""]
    path.write_text(json.dumps({"step": 1, "metrics": {tag: {"reduced": 1.0, "replicas": []} for tag in tags}}) + "\n")
    assert logged_tags(path) == set(tags)
    assert tags_at_ends(path) == set(tags)
