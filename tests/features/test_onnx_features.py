"""Encoders of ONNX files: held against numpy and Pillow; files of strangers are refused."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from small import Points

import ganlab

KERNEL = np.random.default_rng(0).normal(size=(3 * 8 * 8, 5)).astype(np.float32)


class Images(Points):
    def __init__(self, shape=(20, 20, 3)):
        super().__init__(np.random.default_rng(1).uniform(-1, 1, size=(40, *shape)))
        self.x = self._points


def model(shape=("n", 3, 8, 8), last="y", tokens=False, nodes=(), elem=TensorProto.FLOAT, **arguments):
    """A linear encoder of images of 8 x 8 pixels, with a second output of a sequence of tokens."""
    parts = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("MatMul", ["flat", "kernel"], ["y"]),
        helper.make_node("Unsqueeze", ["y", "axes"], ["one"]),
        helper.make_node("Neg", ["one"], ["minus"]),
        helper.make_node("Concat", ["minus", "one"], ["tokens"], axis=1),
        *nodes,
    ]
    initializers = [numpy_helper.from_array(KERNEL, "kernel"), numpy_helper.from_array(np.array([1]), "axes")]
    graph = helper.make_graph(
        parts,
        "encoder",
        [helper.make_tensor_value_info("x", elem, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (last, "tokens")],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, **arguments)


def features(folder, made=None, **settings):
    (folder / "encoder.onnx").write_bytes((made or model()).SerializeToString())
    return ganlab.component("features", "onnx")(path=str(folder / "encoder.onnx"), size=8, **settings)


@pytest.mark.parametrize(("filter", "named"), [("bicubic", "BICUBIC"), ("bilinear", "BILINEAR")])
def test_images_are_prepared_as_by_pillow(tmp_path, filter, named):
    data, mean, std = Images(), (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    made = features(tmp_path, filter=filter, mean=mean, std=std, order="bgr", range="signed")
    made.prepare(data)
    expected = []
    for image in np.rint((data.x + 1) * 127.5):
        planes = [Image.fromarray(image[..., c]).resize((8, 8), Image.Resampling[named]) for c in (2, 1, 0)]
        planes = [np.clip(np.asarray(plane, np.float64), 0, 255) / 127.5 - 1 for plane in planes]
        planes = [(plane - m) / s for plane, m, s in zip(planes, mean, std, strict=True)]
        expected.append(np.ravel(planes) @ KERNEL)
    np.testing.assert_allclose(made.embed(data.x), expected, rtol=1e-4, atol=1e-3)


def test_outputs_lengths_and_batches(tmp_path):
    grey = Images((8, 8, 1))
    plain = {"range": "bytes", "mean": (0, 0, 0), "std": (1, 1, 1)}
    pixels = np.rint((grey.x + 1) * 127.5).reshape(40, 1, 64).repeat(3, axis=1).reshape(40, -1)
    cases = [(None, {}), (None, {"output": "tokens"}), (None, {"unit_length": True})]
    made = []
    for given, settings in (*cases, (model((16, 3, 8, 8)), {}), (model(("n", 8, 8, 3)), {})):
        made.append(features(tmp_path, given, **plain, **settings))
        made[-1].prepare(grey)
    one, tokens, unit, fixed, last = made
    expected = pixels @ KERNEL.astype(np.float64)
    np.testing.assert_allclose(one.embed(grey.x), expected, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(tokens.embed(grey.x), -expected, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(np.linalg.norm(unit.embed(grey.x), axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(fixed.embed(grey.x), one.embed(grey.x), rtol=1e-5, atol=1e-3)
    by_pixel = pixels.reshape(40, 3, 64).transpose(0, 2, 1).reshape(40, -1)
    np.testing.assert_allclose(last.embed(grey.x), by_pixel @ KERNEL, rtol=1e-4, atol=1e-2)
    assert one.fingerprint() != unit.fingerprint()


def outside():
    made = model()
    made.graph.initializer[0].ClearField("raw_data")
    made.graph.initializer[0].data_location = TensorProto.EXTERNAL
    made.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")
    return made


def in_a_constant():
    made = model(nodes=[helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(KERNEL, "c"))])
    made.graph.node[-1].attribute[0].t.data_location = TensorProto.EXTERNAL
    return made


LOOP = helper.make_node("Loop", ["m", "c"], ["l"], body=helper.make_graph([], "body", [], []))
FUNCTION = helper.make_function("own", "F", ["a"], ["b"], [], [helper.make_opsetid("", 17)])


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (outside, "arrays are in another file"),
        (in_a_constant, "arrays are in another file"),
        (lambda: model(nodes=[LOOP]), "Loop has an inner graph"),
        (lambda: model(nodes=[helper.make_node("Own", ["y"], ["z"], domain="mine")]), "is of the domain 'mine'"),
        (lambda: model(functions=[FUNCTION]), "functions"),
        (lambda: model(("n", 3, 9, 9)), r"images of 8 pixels a side, and has \(0, 3, 9, 9\)"),
        (lambda: model(("n", 192)), "images of 8 pixels"),
        (lambda: model((-1, 3, 8, 8)), "images of 8 pixels"),
        (lambda: model(elem=TensorProto.INT32), "images of 8 pixels"),
        (lambda: model(last="flat2"), "encoder that can be used"),
    ],
)
def test_files_of_strangers_are_refused(tmp_path, made, reason):
    with pytest.raises(ganlab.ConfigError, match=rf"features\.onnx\.path = .*{reason}"):
        features(tmp_path, made()).prepare(Images())


def test_damaged_files_and_wrong_settings_are_refused(tmp_path):
    made = features(tmp_path)
    whole = (tmp_path / "encoder.onnx").read_bytes()
    for data in (b"", whole[:200], bytes(reversed(whole))):
        (tmp_path / "encoder.onnx").write_bytes(data)
        with pytest.raises(ganlab.ConfigError, match="is not of an encoder"):
            made.prepare(Images())
    with pytest.raises(ganlab.ConfigError, match="its outputs are y, tokens, and not 'z'"):
        features(tmp_path, output="z").prepare(Images())
    with pytest.raises(ganlab.ConfigError, match=r"mean = .* must be three numbers"):
        features(tmp_path, mean=(0.5,))
    with pytest.raises(ganlab.IncompatibleError, match="1 or 3 channels"):
        features(tmp_path).prepare(Images((8, 8, 2)))
    with pytest.raises(ganlab.ConfigError, match="is not there"):
        ganlab.component("features", "onnx")(path=str(tmp_path / "none.onnx"))


def test_evaluators_share_the_vectors(tmp_path, monkeypatch):
    data, made, seen = Images(), features(tmp_path), []
    embed = type(made).embed
    monkeypatch.setattr(type(made), "embed", lambda self, x: seen.append(len(x)) or embed(self, x))

    def sample(n, seed):
        return data.x[:n] * np.float32(0.9)

    for again in (made, features(tmp_path)):  # another one of the same file
        for name in ("frechet_distance", "kid", "mind", "vendi_score"):
            ganlab.component("evaluators", name)(features=again).evaluate(sample, data, None)
    assert seen == [20, 20, 20]
    ganlab.component("evaluators", "kid")(features=features(tmp_path, range="bytes")).evaluate(sample, data, None)
    assert seen == [20] * 6
