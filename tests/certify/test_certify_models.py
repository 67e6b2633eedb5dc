"""`ganlab certify --model`: critics of foreign files have the numbers of the same network elsewhere, and no way in."""

import io
import json
import os
import time
import zipfile
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
import tf2onnx
from command_lines import command
from critics import RUN, weights_of
from ganlab_certify import certify_model
from ganlab_certify.certifying import restored
from ganlab_certify.models import open_model
from onnx import TensorProto, helper
from safetensors.numpy import save

import ganlab
from ganlab.engine import Scorer
from ganlab.functional import named_weights
from ganlab.layers import ProjectionHead
from ganlab.lipschitz import certificate

layers = keras.layers


def convolutional():
    x = keras.Input((8, 8, 2))
    y = layers.Conv2D(4, 4, strides=2, padding="same", activation="tanh")(x)
    y = layers.AveragePooling2D(2)(layers.LeakyReLU(0.2)(layers.Conv2D(3, 3, padding="same")(y)))
    return keras.Model(x, layers.Dense(1)(layers.Flatten()(y)))


def residual():
    x, label = keras.Input((8, 8, 2)), keras.Input((3,))
    y = layers.Conv2D(4, 3, padding="same")(layers.ReLU()(layers.Conv2D(4, 3, padding="same")(x)))
    shortcut = layers.Conv2D(4, 1, use_bias=False, padding="same")(layers.AveragePooling2D(2)(x))
    y = layers.Add()([shortcut, layers.AveragePooling2D(2)(y)])
    y = layers.GlobalAveragePooling2D()(layers.ReLU()(y))
    return keras.Model([x, label], ProjectionHead()([y, label]))


def planes():
    x, label = keras.Input((8, 8, 2)), keras.Input((3,))
    pixels = layers.UpSampling2D((8, 8))(layers.Reshape((1, 1, 3))(label))
    y = layers.Conv2D(4, 4, strides=2, padding="same", activation="relu")(layers.Concatenate()([x, pixels]))
    return keras.Model([x, label], layers.Dense(1)(layers.Flatten()(y)))


def vectors():
    x, label = keras.Input((3,)), keras.Input((2,))
    y = layers.Dense(4, activation="sigmoid")(layers.Concatenate()([x, label]))
    return keras.Model([x, label], layers.Dense(1)(y))


def made(make):
    model, random = make(), np.random.default_rng(1)
    for variable in model.weights:
        variable.assign(0.5 * random.normal(size=variable.shape))
    return model


def write_both(model, folder):
    """The model as `.keras` and as ONNX."""
    model.save(folder / "critic.keras")
    inputs = [tf.TensorSpec((None, *x.shape[1:]), tf.float32, name=f"x{i}") for i, x in enumerate(model.inputs)]
    (folder / "critic.onnx").write_bytes(tf2onnx.convert.from_keras(model, inputs, opset=17)[0].SerializeToString())
    return [folder / "critic.keras", folder / "critic.onnx"]


def inputs_of(model):
    x = np.random.default_rng(2).normal(size=(6, *model.inputs[0].shape[1:])).astype(np.float32)
    return [x, *(np.eye(y.shape[1], dtype=np.float32)[np.arange(6) % y.shape[1]] for y in model.inputs[1:])]


@pytest.mark.parametrize("make", [convolutional, residual, planes, vectors])
def test_a_file_is_the_network_that_was_written(make, tmp_path):
    model = made(make)
    for path in write_both(model, tmp_path):
        read = open_model(path)()
        np.testing.assert_allclose(read(inputs_of(model)), model(inputs_of(model)), rtol=1e-5, atol=1e-5)
        assert certificate(read)(weights_of(read)) == certificate(model)(weights_of(model))


def test_a_file_that_is_exchanged_is_the_one_that_was_checked(tmp_path):
    first, second = made(vectors), made(convolutional)
    path = tmp_path / "critic.keras"
    first.save(path)
    read = open_model(path)
    second.save(path)
    np.testing.assert_allclose(read()(inputs_of(first)), first(inputs_of(first)), rtol=1e-6)


@pytest.mark.slow
def test_a_run_and_its_critic_in_files_have_the_same_numbers(trained, tmp_path):
    run = trained(RUN)
    _, state = restored(ganlab.Run(run))
    model = state.critic.network.model
    for name, variable in named_weights(model).items():
        variable.assign(Scorer(state).effective()[name])
    answers = []
    for source in ([run], *(["--model", path] for path in write_both(model, tmp_path))):
        found = json.loads(command("certify", *source, "--seconds", "5", "--json"))
        answers.append({each["rung"]: each["bound"] for each in found["rungs"]})
    for answer in answers[1:]:
        for name in ("products", "averaged", "semidefinite", "exact"):
            assert answer[name] == pytest.approx(answers[0][name], rel=1e-9)


def test_a_network_of_pytorch_is_described(tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    nn = torch.nn
    network = nn.Sequential(
        *(nn.Conv2d(2, 6, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(6, 4, 3, 2, 1, groups=2, bias=False)),
        *(nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 1)),
    )
    network(torch.randn(64, 2, 8, 8))  # moves the averages of the normalization
    network.eval()
    arrays = {name: np.float32(value.numpy()) for name, value in network.state_dict().items() if value.ndim}
    (tmp_path / "critic.safetensors").write_bytes(save(arrays))
    statistics = {"mean": "3.running_mean", "variance": "3.running_var"}
    described = [
        {"kind": "conv", "weight": "0.weight", "bias": "0.bias", "strides": 2, "padding": 1},
        {"kind": "leaky_relu", "slope": 0.2},
        {"kind": "conv", "weight": "2.weight", "strides": 2, "padding": 1, "groups": 2},
        {"kind": "batch_norm", "weight": "3.weight", "bias": "3.bias", **statistics},
        *({"kind": "relu"}, {"kind": "flatten"}, {"kind": "dense", "weight": "6.weight", "bias": "6.bias"}),
    ]
    (tmp_path / "critic.json").write_text(json.dumps({"input": [2, 8, 8], "layers": described}))
    x = torch.randn(5, 2, 8, 8)
    model = open_model(tmp_path / "critic.safetensors")()
    np.testing.assert_allclose(model(x.numpy()), network(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    found = certify_model(tmp_path / "critic.safetensors", rungs=["products"], seconds=1)
    assert 0 < found.lower <= found.upper
    assert found.step is None


def test_a_residual_critic_of_labels_is_described(tmp_path):
    model = made(residual)
    arrays = weights_of(model)
    (tmp_path / "critic.safetensors").write_bytes(save(arrays))
    names = list(arrays)  # two convolutions, the shortcut, the projection
    first, second, shortcut = (name for name in names if name.startswith("conv2d") and name.endswith("kernel"))
    biases = [name for name in names if name.startswith("conv2d") and name.endswith("bias")]
    described = [
        {"kind": "conv", "weight": first, "bias": biases[0], "padding": "same"},
        *({"kind": "relu"}, {"kind": "conv", "weight": second, "bias": biases[1], "padding": "same"}),
        {"kind": "average_pool", "size": 2, "name": "branch"},
        {"kind": "average_pool", "of": "input", "size": 2},
        {"kind": "conv", "weight": shortcut, "name": "shortcut"},
        *({"kind": "add", "of": ["shortcut", "branch"]}, {"kind": "relu"}),
        {"kind": "global_average_pool", "name": "features"},
        {
            "kind": "projection",
            "of": ["features", "label"],
            "weight": next(name for name in names if "score/kernel" in name),
            "bias": next(name for name in names if "score/bias" in name),
            "embedding": next(name for name in names if "embedding" in name),
        },
    ]
    content = {"input": [8, 8, 2], "classes": 3, "layout": "keras", "layers": described}
    (tmp_path / "critic.json").write_text(json.dumps(content))
    read = open_model(tmp_path / "critic.safetensors")()
    np.testing.assert_allclose(read(inputs_of(model)), model(inputs_of(model)), rtol=1e-5, atol=1e-5)
    assert certificate(read)(weights_of(read)) == certificate(model)(weights_of(model))


def archived(config, **members):
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {"config.json": config, "metadata.json": "{}", "model.weights.h5": b"", **members}.items():
            archive.writestr(name, data)
    return file.getvalue()


def network_of(kind, **settings):
    inside = {"module": "keras.layers", "class_name": kind, "config": {"name": "a", **settings}}
    start = {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [None, 3], "name": "x"}}
    return json.dumps(
        {"module": "keras", "class_name": "Sequential", "config": {"name": "m", "layers": [start, inside]}}
    )


def graph_of(*nodes, tensors=(), shape=(None, 4)):
    given, score = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y"))
    graph = helper.make_graph(list(nodes), "g", [given], [score], [helper.make_tensor(*each) for each in tensors])
    return helper.make_model(graph)


def elsewhere():
    model = graph_of(END, tensors=[W])
    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return model


def enormous():
    model = graph_of(END, tensors=[W])
    model.graph.initializer[0].dims[:] = [2**31, 2**31]
    return model


def weights_that(change):
    with h5py.File(file := io.BytesIO(), "w") as weights:
        change(weights)
    return file.getvalue()


def dense(weights):
    return archived(network_of("Dense", units=1), **{"model.weights.h5": weights})


TWO = {"data": np.ones(2, np.float32), "maxshape": (None,)}
WEIGHTS = {
    "promised": lambda weights: weights.create_dataset("w", (10**7, 10**7), "f4", chunks=(64, 64)),
    "linked": lambda weights: weights.update(w=h5py.ExternalLink("/etc/passwd", "w")),
    "external": lambda weights: weights.create_dataset("w", (2,), "f4", external=[("/etc/passwd", 0, 8)]),
    "expanding": lambda weights: weights.create_dataset("w", **TWO, chunks=(10**7,), compression="gzip"),
}
FOUR = weights_that(lambda weights: weights.create_dataset("w", data=np.ones(4, np.float32)))
# Constants of which one is too large, or all together, and weights of which all together are.
N = 30000
W = ("w", 1, [4, 1], [1.0] * 4)
LONG = [("a", 1, [N, 1], [1.0] * N), ("b", 1, [1, N], [1.0] * N), ("i", 7, [N], [0] * N), W]
WIDE = [("w", 1, [2048, 1], [1.0] * 2048), ("v", 1, [2048, 2048], np.ones(2**22, np.float32))]
FOLDED = {
    **{kind: [helper.make_node(kind, ["a", "b"], ["c"])] for kind in ("Add", "MatMul")},
    "Gather": [helper.make_node("Gather", ["b", "i"], ["c"])],
    "Concat": [helper.make_node("Concat", ["a"] * N, ["c"], axis=0)],
    "chain": [helper.make_node("Concat", ["a"] * 100, [f"c{i}"], axis=0) for i in range(10)],
}
END = helper.make_node("MatMul", ["x", "w"], ["y"])
AGAIN = [helper.make_node("MatMul", ["x", "v"], [f"y{i}"]) for i in range(80)]
EYE = [helper.make_node("Mul", ["x", "w"], ["z"])]
TILE = (helper.make_node("Tile", ["c", "r"], ["d"]), helper.make_node("MatMul", ["x", "d"], ["y"]))
HOSTILE = {
    "damaged.keras": lambda: b"PK\3\4 and so on",
    "bomb.keras": lambda: dense(bytes(3 * 10**7)),
    "code.keras": lambda: archived(network_of("Lambda", function="whatever")),
    "program.keras": lambda: archived(network_of("TFSMLayer", filepath="/tmp/else")),
    "deep.keras": lambda: archived("[" * 10**6),
    "wide.keras": lambda: archived(network_of("Dense", units=2**34), **{"model.weights.h5": FOUR}),
    **{f"{name}.keras": lambda change=change: dense(weights_that(change)) for name, change in WEIGHTS.items()},
    "tall.keras": lambda: archived(network_of("RepeatVector", n=2**24), **{"model.weights.h5": FOUR}),
    "unlike.keras": lambda: dense(FOUR),
    "damaged.onnx": lambda: b"\x08\x07:\xff\xff\xff\xff\x7f",
    "empty.onnx": lambda: b"",
    "elsewhere.onnx": elsewhere,
    "enormous.onnx": enormous,
    "loop.onnx": lambda: graph_of(helper.make_node("Loop", ["x"], ["y"])),
    "undefined.onnx": lambda: graph_of(helper.make_node("Relu", ["z"], ["y"])),
    "repeated.onnx": lambda: graph_of(*TILE, tensors=[("c", *W[1:]), ("r", 7, [2], [2**31, 2**31])]),
    **{f"{name}.onnx": lambda nodes=nodes: graph_of(*nodes, END, tensors=LONG) for name, nodes in FOLDED.items()},
    "again.onnx": lambda: graph_of(*AGAIN, END, tensors=WIDE, shape=(None, 2048)),
    "eye.onnx": lambda: graph_of(*EYE, tensors=[("w", 1, [1], [1.0])], shape=(None, N)),
    "axes.onnx": lambda: graph_of(helper.make_node("Relu", ["x"], ["y"]), shape=[2**62] * 10**5),
    "infinite.onnx": lambda: graph_of(END, tensors=[("w", 1, [4, 1], [np.nan] * 4)]),
    "foreign.onnx": lambda: graph_of(helper.make_node("Relu", ["x"], ["y"], domain="else")),
    "two.onnx": lambda: graph_of(helper.make_node("Relu", ["x"], ["y"])),
    "headless.safetensors": lambda: b"\xff" * 8,
    "short.safetensors": lambda: save({"w": np.ones((4, 1), np.float32)})[:-4],
    "undescribed.safetensors": lambda: save({}),
    "padded.safetensors": lambda: save({"w": np.ones((1, 1, 1, 1), np.float32)}),
    "other.txt": lambda: b"",
}


@pytest.mark.parametrize("name", [*HOSTILE, "pipe.onnx", "missing.keras"])
def test_hostile_files_end_in_one_sentence_within_a_second(name, tmp_path):
    path = Path(tmp_path, name)
    if name in HOSTILE:
        content = HOSTILE[name]()
        path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    elif name.startswith("pipe"):
        os.mkfifo(path)
    layer = {"kind": "conv", "weight": "w", "padding": 10**9}
    Path(tmp_path, "padded.json").write_text(json.dumps({"input": [1, 4, 4], "layers": [layer]}))
    keras.layers  # noqa: B018 (imported before the clock starts)
    began = time.monotonic()
    with pytest.raises(ganlab.ConfigError) as caught:
        open_model(path)()
    assert time.monotonic() - began < 1
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert len(message) < 500


def test_a_class_that_only_calls_itself_ours_is_not_looked_up(tmp_path):
    named = network_of("StringLookup", vocabulary="/etc/passwd").replace(
        '{"mod', '{"registered_name": "ganlab>X", "mod'
    )
    path = Path(tmp_path, "named.keras")
    path.write_bytes(archived(named, **{"model.weights.h5": FOUR}))
    with pytest.raises(ganlab.ConfigError, match="'ganlab>X', which is not a layer of ganlab"):
        open_model(path)()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Name a run, or a critic's file by --model: one of the two."),
        (["run", "--model", "critic.onnx"], "one of the two"),
        (["--model", "critic.onnx", "--distance"], "leave out --rung and --model"),
        (["--model", "critic.onnx"], "cannot be certified: No such file or directory."),
    ],
)
def test_a_mistake_is_one_line(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in " ".join(command("certify", *options, code=2).split())
