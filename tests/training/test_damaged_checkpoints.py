"""A damaged checkpoint is named, and the one before it is used."""

import hashlib
import json
import struct

import pytest
import tensorflow as tf
from google.protobuf.internal.encoder import _VarintBytes as number
from small import constraint, sgd
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto
from whole_runs import assert_equal_runs, copied, edit, everything

import ganlab
from ganlab.training import bundle_index, checkpoints
from ganlab.training.checkpoints import Checkpoints, restore
from ganlab.training.graph.state import TrainingState

pytestmark = pytest.mark.usefixtures("cpus")


def flip_bit(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def flip_bytes(path):
    data = bytearray(path.read_bytes())
    path.write_bytes(bytes(255 - byte for byte in data))


FORGED = {
    "warnings": {"watch": {"x": 1}},
    "complaints": {"watch": {"warnings": {"ill": [], "complaints": {}, "said": [], "rows": 1, "largest": 1}}},
}


@pytest.mark.parametrize("changed", FORGED.values(), ids=FORGED)
def test_forged_manifest_is_one_sentence(brief, tmp_path, changed):
    run = brief.train(tmp_path / "run")
    run.update(status="interrupted")
    path = Checkpoints(run.path / "checkpoints").latest().path / "manifest.json"
    forge(path, **changed)
    with pytest.raises(ganlab.RunError, match=r"is damaged: manifest\.json: \S+ is not what ganlab writes"):
        brief.train(run.path, resume=True)


def forge(path, **changed):
    """Changes a manifest, with the right checksum."""
    manifest = {**json.loads(path.read_text()), **changed}
    del manifest["checksum"]
    path.write_text(json.dumps({**manifest, "checksum": checkpoints._checksum(manifest)}))


def forge_index(path):
    """Changes an entry of the index, with the right checksums, so that TensorFlow would end the process."""
    index = path / "variables.index"
    data = bytearray(index.read_bytes())
    at = data.index(b"_CHECKPOINTABLE_OBJECT_GRAPH") + len("_CHECKPOINTABLE_OBJECT_GRAPH")
    data[at : at + 3] = b"\xff\xff\xff"
    size = next(n for n in range(len(data)) if data[n] == 0 and data[n + 1 : n + 5] == crc(index.read_bytes()[: n + 1]))
    data[size + 1 : size + 5] = crc(bytes(data[: size + 1]))
    index.write_bytes(data)
    files = json.loads((path / "manifest.json").read_text())["files"]
    files["variables.index"]["sha256"] = hashlib.sha256(data).hexdigest()
    forge(path / "manifest.json", files=files)


def crc(data):
    return struct.pack("<I", masked_crc32c(data))


def saved(folder, names=("a", "b")):
    """A file of variables and its index, as the entries by their names."""
    tf.train.Checkpoint(variables={name: tf.Variable([1.0, 2.0]) for name in names}).write(str(folder / "variables"))
    return dict(bundle_index._entries((folder / "variables.index").read_bytes()))


def write_index(folder, entries, restarts=(0,), more=b"", times=1):
    """An index of one block, without the checksums, which are TensorFlow's to check.

    The block ends with `more` entries as they are stored, and is named several times.
    """

    def block(pairs, starts, more=b""):
        body = b"".join(number(0) + number(len(name)) + number(len(value)) + name + value for name, value in pairs)
        return body + more + struct.pack(f"<{len(starts) + 1}I", *starts, len(starts))

    first = block(sorted(entries.items()), restarts, more)
    second = block([(b"~", number(0) + number(len(first)))] * times, (0,))
    ends = number(0) + number(0) + number(len(first) + 5) + number(len(second))
    footer = ends.ljust(40, b"\0") + struct.pack("<Q", bundle_index._MAGIC)
    (folder / "variables.index").write_bytes(first + bytes(5) + second + bytes(5) + footer)


def altered(entries, name, **fields):
    """An entry with other fields."""
    entry = BundleEntryProto.FromString(entries[name])
    shape = fields.pop("shape", None)
    if shape is not None:
        del entry.shape.dim[:]
        for length in shape:
            entry.shape.dim.add(size=length)
    for field, value in fields.items():
        setattr(entry, field, value)
    return {**entries, name: entry.SerializeToString()}


A = b"variables/a/.ATTRIBUTES/VARIABLE_VALUE"
# TensorFlow ends the process at each of these.
ENTRIES = {
    "a reference": ({"dtype": 101}, "holds no numbers"),
    "too many axes": ({"shape": [1] * 300, "size": 4}, "is not one that ganlab writes"),
    "too large a product": ({"shape": [2**62, 2**62, 0], "size": 0}, "is not one that ganlab writes"),
}


@pytest.mark.parametrize(("fields", "message"), ENTRIES.values(), ids=ENTRIES)
def test_an_index_with_a_forged_entry_is_refused(tmp_path, fields, message):
    entries = saved(tmp_path)
    write_index(tmp_path, entries)
    bundle_index.check_index(tmp_path)
    write_index(tmp_path, altered(entries, A, **fields))
    with pytest.raises(ValueError, match=f"its entry 'variables/a/.*' {message}"):
        bundle_index.check_index(tmp_path)


@pytest.mark.parametrize("starts", [(), (4,), (0, 4), (0, 0)], ids=repr)
def test_an_index_that_is_looked_up_from_within_an_entry_is_refused(tmp_path, starts):
    write_index(tmp_path, saved(tmp_path), starts)
    with pytest.raises(ValueError, match="its names cannot be looked up"):
        bundle_index.check_index(tmp_path)


def test_an_index_that_says_much_with_few_bytes_is_refused_before_it_takes_memory(tmp_path):
    entries = saved(tmp_path)
    write_index(tmp_path, entries, times=2)
    with pytest.raises(ValueError, match="its names are not in order"):
        bundle_index.check_index(tmp_path)
    ends = (struct.pack(">H", end) for end in range(1 << 12))
    more = b"".join(number(3998) + number(2) + number(0) + end for end in ends)
    write_index(tmp_path, {**entries, b"w" * 3998 + b"\0": b""}, more=more)
    assert (tmp_path / "variables.index").stat().st_size < 40_000
    with pytest.raises(ValueError, match="its names are not ones that ganlab writes"):
        bundle_index.check_index(tmp_path)


def test_an_index_of_several_blocks_is_sound(tmp_path):
    entries = saved(tmp_path, [f"{index}{'é' * 1500}" for index in range(100)])
    assert sum(map(len, entries)) > 1 << 18  # a block's size
    bundle_index.check_index(tmp_path)


DAMAGES = {
    "a forged index": (forge_index, "variables.index: it is torn. It"),
    "a forged warning": (
        lambda path: forge(path / "manifest.json", watch={"warned": ["a"]}),
        "manifest.json: watch.warned = ['a'] must be an object of fields or null",
    ),
    "a forged row": (
        lambda path: forge(path / "manifest.json", owed=[["critic/loss", "much", []]]),
        "manifest.json: owed[0][1] = 'much' must be a number",
    ),
    "no data": (
        lambda path: (path / "variables.data-00000-of-00001").write_bytes(b""),
        # How many bytes there were depends on the names that TensorFlow gives to objects made before in this process.
        "variables.data-00000-of-00001 is not what was written: 0 of 1",
    ),
    "other data": (
        lambda path: flip_bytes(path / "variables.data-00000-of-00001"),
        "variables.data-00000-of-00001 is not what was written. It",
    ),
    "one bit": (lambda path: flip_bit(path / "pending.npy"), "pending.npy is not what was written. It"),
    "no index": (lambda path: (path / "variables.index").unlink(), "variables.index cannot be read (No such file"),
    "a torn array": (lambda path: (path / "pending.npy").write_bytes(b"\x93NUMPY"), "pending.npy is not what"),
    "a torn manifest": (lambda path: truncate(path / "manifest.json"), "manifest.json is torn"),
    "an edited manifest": (
        lambda path: edit(path / "manifest.json", '"replicas": 2', '"replicas": 3'),
        "manifest.json has changed since it was written",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_resume_names_a_damaged_checkpoint_and_uses_the_one_before(completed, whole, tmp_path, capsys, damage, message):
    folder = copied(completed, tmp_path / "run", status="interrupted")
    damage(folder / "checkpoints" / "step-00000010")

    resumed = whole.train(folder, resume=True)
    said = capsys.readouterr().err
    assert f"step-00000010 is damaged: {message}" in said
    assert (folder / "checkpoints" / "damaged-step-00000010").is_dir()
    assert resumed.info["resumed"][0]["step"] == 8
    assert_equal_runs(completed, resumed)


def test_resume_with_all_checkpoints_damaged_starts_again(completed, whole, tmp_path, capsys):
    folder = copied(completed, tmp_path / "run", status="interrupted")
    for path in (folder / "checkpoints").iterdir():
        flip_bit(path / "pending.npy")

    resumed = whole.train(folder, resume=True)
    said = capsys.readouterr().err
    assert said.count("is damaged") == 3
    assert "run has no sound checkpoint: training begins again from step 0" in said
    assert resumed.info["resumed"][0]["step"] == 0
    assert_equal_runs(completed, resumed)


@pytest.mark.parametrize(
    "parts",
    [
        lambda: {"ema_decay": 0.0},
        lambda: {"constraints": []},
        lambda: {
            "constraints": [constraint("gradient_penalty"), constraint("spectral_norm"), constraint("spectral_norm")]
        },
        lambda: {"critic_optimizer": sgd()},
        lambda: {"architecture": ganlab.component("architectures", "mlp")(width=4, depth=2, latent_dim=3)},
    ],
    ids=["no average", "no state", "more state", "another optimizer", "another width"],
)
def test_a_checkpoint_of_another_experiment_does_not_fit(completed, parts):
    checkpoint = Checkpoints(completed.path / "checkpoints").latest()
    with pytest.raises(ganlab.RunError, match="step-00000010 does not fit this experiment"):
        restore(checkpoint, TrainingState(everything(**parts())).variables())
