"""The network of 2015 against the packages that publish scores, by random weights that both make for themselves."""

import base64
import io
import itertools
import json
import pickle
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import published_network
import pytest
import safetensors.numpy
from ganlab_builtin.features import inception_2015, torch_file, weights
from labelled import Images

import ganlab

REFERENCE = json.loads((Path(__file__).parent / "published_network.json").read_text())
SHAPES = inception_2015.shapes()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "random.npz"
    np.savez(path, **{name: published_network.rebuild_array(name, shape) for name, shape in SHAPES.items()})
    return path


def features(file, resizing="tensorflow"):
    made = ganlab.component("features", "inception")(path=str(file), resizing=resizing)
    made.prepare(Images(shape=(8, 8, 3)))
    return made


def as_examples(pictures):
    return pictures.astype(np.float32) / 127.5 - 1


def test_it_has_the_arrays_of_the_published_file():
    # Of the names of the package's own network; parameters are counted without the counters of batches.
    assert len(SHAPES) == REFERENCE["arrays"]
    assert sum(int(np.prod(shape)) for shape in SHAPES.values()) == REFERENCE["parameters"]


def close(found, expected):
    scale = np.abs(expected).max()
    return np.abs(np.asarray(found) - expected).max() / scale


@pytest.mark.slow
def test_features_and_logits_are_those_of_both_packages(file):
    made = {resizing: features(file, resizing) for resizing in ("tensorflow", "pytorch")}
    arrays = weights.read(file)
    last = np.asarray(arrays["fc.weight"], np.float64)
    for row in REFERENCE["images"]:
        number = published_network.SHAPES.index(tuple(row["shape"]))
        picture = as_examples(published_network.image(number, *row["shape"])[None])
        for resizing, one in made.items():
            assert close(one.embed(picture)[0, ::16], row[resizing]) < 1e-4, (resizing, row["shape"])
        embedded = made["tensorflow"].embed(picture)[0].astype(np.float64)
        assert close((last @ embedded)[::8], row["logits_unbiased"]) < 1e-4
        biased = last @ embedded + arrays["fc.bias"]
        assert close(biased[::8], row["logits"]) < 1e-4
        probabilities = made["tensorflow"].probabilities(picture)[0]
        expected = np.exp(last @ embedded - (last @ embedded).max())
        np.testing.assert_allclose(probabilities, expected / expected.sum(), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("make", [published_network.image, published_network.black_and_white])
@pytest.mark.parametrize("number", range(len(published_network.SHAPES)))
def test_clean_resizing_is_that_of_clean_fid(make, number):
    from ganlab_builtin.features import resizing

    picture = as_examples(make(number, *published_network.SHAPES[number])[None])
    found = np.asarray(resizing.prepared(picture, "clean"))[0] * 128 + 128
    expected = REFERENCE["clean_fid"][make.__name__][number]
    assert np.abs(found[published_network.ROW, :: published_network.EVERY].ravel() - expected).max() < 0.01


def test_resizings_differ():
    from ganlab_builtin.features import resizing

    picture = as_examples(published_network.image(2, 400, 313)[None])
    made = [np.asarray(resizing.prepared(picture, one)) for one in resizing.RESIZINGS]
    assert all(np.abs(one - other).max() > 0.05 for one, other in itertools.combinations(made, 2))


@pytest.mark.parametrize("resizing", ["tensorflow", "pytorch", "antialiased", "clean"])
def test_no_resizing_leaves_the_range_of_bytes(resizing):
    # As no program that publishes scores does: bilinear filters cannot, and clean-fid clips.
    from ganlab_builtin.features.resizing import prepared

    for number, shape in enumerate(published_network.SHAPES):
        picture = as_examples(published_network.black_and_white(number, *shape)[None])
        found = np.asarray(prepared(picture, resizing))
        rounding, highest = 1e-5, 1.0 if resizing == "pytorch" else 127 / 128
        assert -1.0 - rounding <= found.min() <= found.max() <= highest + rounding


def some(names=("fc.bias", "Conv2d_1a_3x3.bn.bias")):
    return {name: SHAPES[name] for name in names}


def test_files_of_torch_save_are_read_in_both_formats():
    shapes = {"a": (2, 3), "b": (2,), "absent": (9,)}
    for kind in ("zip", "old"):
        found = torch_file.read(io.BytesIO(base64.b64decode(REFERENCE["torch_files"][kind])), shapes)
        np.testing.assert_array_equal(found["a"], np.arange(4, 10, dtype=np.float32).reshape(2, 3))
        np.testing.assert_array_equal(found["b"], [0.0, 1.0])
    with pytest.raises(torch_file.UnreadableError, match="order of its elements"):
        torch_file.read(
            io.BytesIO(base64.b64decode(REFERENCE["torch_files"]["strided"])), {"a": (2, 3), "absent": (9,)}
        )
    with pytest.raises(torch_file.UnreadableError, match=r"a is of shape \(2, 3\), and must be of \(3, 2\)"):
        torch_file.read(io.BytesIO(base64.b64decode(REFERENCE["torch_files"]["zip"])), {"a": (3, 2)})


class Touch:
    """A pickle of this would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_pickle_that_would_run_something_is_refused(tmp_path, protocol):
    bad = tmp_path / "bad.pth"
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"fc.bias": Touch(tmp_path / "touched")}, protocol))
    with pytest.raises(weights.UnreadableError):
        weights.read(bad)
    assert not (tmp_path / "touched").exists()


def number(value):
    """A whole number as an instruction of a pickle."""
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def name(text):
    return b"X" + len(text).to_bytes(4, "little") + text.encode()


def storage(count):
    return b"(" + name("storage") + b"ctorch\nFloatStorage\n" + name("0") + name("cpu") + count + b"tQ"


def tensor(shape, strides=b")", count=b"K\x01", start=b"K\x00"):
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(count) + start + shape + strides + b"\x89}tR"


def tuple_of(*numbers):
    return b"(" + b"".join(map(number, numbers)) + b"t"


def nested(times):
    """A tuple of two tuples of two tuples ...: hashing, comparing or printing it takes 2**times steps."""
    return b")q\x01" + b"h\x01\x86q\x01" * times


MANY = 250_000
CLAIMS = {
    "shape of 2**124 elements": tensor(tuple_of(2**62, 2**62), tuple_of(2**62, 1)),
    "shape of digits": tensor(tuple_of(2**2000, 2**2000), tuple_of(1, 1)),
    "negative shape": tensor(tuple_of(-(2**62), -1), tuple_of(-1, 1)),
    "no elements": tensor(tuple_of(0, 2**62), tuple_of(2**62, 1)),
    "overlapping strides": tensor(tuple_of(2**20, 2**20), tuple_of(0, 0)),
    "many axes": tensor(b"(" + b"M\xff\xff" * MANY + b"t", b"(" + b"K\x01" * MANY + b"t"),
    "many axes many times": b"(" + b"M\xff\xff" * 60_000 + b"tq\x02(" + tensor(b"h\x02", b"h\x02") * 6000 + b"l",
    "storage of 2**62 numbers": tensor(tuple_of(2, 3), tuple_of(3, 1), number(2**62)),
    "storage of a nested number": tensor(tuple_of(2, 3), tuple_of(3, 1), nested(60)),
    "start beyond all": tensor(tuple_of(2, 3), tuple_of(3, 1), start=number(2**2000)),
    "nested shape": tensor(nested(60), nested(60)),
    "nested key": b"}" + nested(60) + b"K\x01s",
    "nested keys": b"}(" + nested(60) + b"K\x01u",
    "nested pairs": b"ccollections\nOrderedDict\n](" + nested(60) + b"K\x01\x86e\x85R",
    "many pairs many times": b"](" + (name("a") + b"K\x01\x86") * 9000 + b"eq\x02"
    + b"ccollections\nOrderedDict\nh\x02\x85R" * 25_000,
    "long name": b"c" + b"m" * 900_000 + b"\nn\n",
}  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS)
def test_claims_of_a_few_bytes_cost_neither_time_nor_memory(tmp_path, claim):
    made = b"\x80\x02}" + name("a") + CLAIMS[claim] + b"s."
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", made)
        archive.writestr("x/data/0", bytes(4))
    old = b"".join(pickle.dumps(part, 2) for part in (torch_file._MAGIC, 1001, {"little_endian": True})) + made
    tracemalloc.start()
    began = time.process_time()
    for content in (packed.getvalue(), old):
        with pytest.raises(torch_file.UnreadableError) as refused:
            torch_file.read(io.BytesIO(content), {"a": (2, 3)})
        assert len(str(refused.value)) < 300
    took, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 10
    assert peak < 200 << 20


def test_a_storage_is_read_once_and_all_together_are_no_larger_than_needed():
    one = tensor(tuple_of(2), tuple_of(1), number(2**20))
    names = [f"n{i}" for i in range(200)]
    content = b"\x80\x02}(" + b"".join(name(text) + one for text in names) + b"u."
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", content)
        archive.writestr("x/data/0", bytes(4 << 20))
    with pytest.raises(torch_file.UnreadableError, match="lie in storages of 1,048,576 numbers"):
        torch_file.read(packed, dict.fromkeys(names, (2,)))
    began = time.process_time()
    found = torch_file.read(packed, dict.fromkeys(names, (2,)) | {"absent": (2**19,)})
    assert time.process_time() - began < 2
    assert found["n199"].tolist() == [0.0, 0.0]


def damaged(name):
    good = base64.b64decode(REFERENCE["torch_files"]["zip"])
    return {
        "empty.pth": b"",
        "text.pth": b"not weights",
        "cut.pth": good[: len(good) // 2],
        "other.pth": good,
        "text.pb": b"\xff\xff\xff\xff",
        "empty.pb": b"",
        "empty.npz": b"",
        "short.safetensors": b"\x00",
        "long.safetensors": struct.pack("<Q", 1 << 62) + b"{}",
        "wrong.safetensors": struct.pack("<Q", 60) + json.dumps({"fc.bias": {"dtype": "F32"}}).ljust(60).encode(),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        *("empty.pth", "text.pth", "cut.pth", "other.pth", "text.pb", "empty.pb", "empty.npz"),
        *("short.safetensors", "long.safetensors", "wrong.safetensors"),
    ],
)
def test_a_damaged_file_is_one_message(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(damaged(name))
    made = ganlab.component("features", "inception")(path=str(path))
    with pytest.raises(ganlab.ConfigError, match=r"features\.inception\.path = .* does not hold the network of 2015"):
        made.prepare(Images(shape=(8, 8, 3)))


def test_arrays_of_another_shape_and_values_that_are_not_finite_are_refused(tmp_path, file):
    arrays = dict(np.load(file))
    np.savez(tmp_path / "shape.npz", **{**arrays, "fc.bias": np.zeros(1000, np.float32)})
    with pytest.raises(weights.UnreadableError, match=r"fc\.bias is of shape \(1000,\), and must be of \(1008,\)"):
        weights.read(tmp_path / "shape.npz")
    arrays["fc.bias"][3] = np.nan
    np.savez(tmp_path / "nan.npz", **arrays)
    with pytest.raises(weights.UnreadableError, match=r"fc\.bias has values that are not finite"):
        weights.read(tmp_path / "nan.npz")
    del arrays["fc.bias"]
    np.savez(tmp_path / "less.npz", **arrays)
    with pytest.raises(weights.UnreadableError, match=r"lacks fc\.bias and 0 more of 472"):
        weights.read(tmp_path / "less.npz")


def graph_file(arrays, path):
    """The arrays as constants of a frozen graph, by TensorFlow's names and in its layout."""
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef()

    def constant(name, array):
        node = graph.node.add(name=name, op="Const")
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.ascontiguousarray(array, np.float32)))

    parts = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
    for layer in inception_2015.layers():
        constant(f"{layer.graph}/conv2d_params", arrays[f"{layer.name}.conv.weight"].transpose(2, 3, 1, 0))
        for own, part in parts.items():
            constant(f"{layer.graph}/batchnorm/{own}", arrays[f"{layer.name}.bn.{part}"])
    constant("softmax/weights", arrays["fc.weight"].T)
    constant("softmax/biases", arrays["fc.bias"])
    path.write_bytes(graph.SerializeToString())


@pytest.mark.slow
def test_every_kind_of_file_gives_the_same_arrays(tmp_path, file):
    arrays = dict(np.load(file))
    graph_file(arrays, tmp_path / "a.pb")
    safetensors.numpy.save_file(arrays, tmp_path / "a.safetensors")
    digests = {weights.digest(weights.read(path)) for path in (file, tmp_path / "a.pb", tmp_path / "a.safetensors")}
    assert len(digests) == 1


def test_values_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "a.weights.h5"
    path.write_bytes(b"")
    with pytest.raises(ganlab.ConfigError, match=r"resizing = 'pytorch' is for the weights of 2015"):
        ganlab.component("features", "inception")(path=str(path), resizing="pytorch")
