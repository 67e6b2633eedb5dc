"""Every first-party component passes the conformance kit that plugin authors use."""

import atexit
import functools
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from ganlab_verify.testing.suites import CLASSES, suite

import ganlab
from ganlab.lazy import tensorflow as tf
from ganlab.plugins import manager as plugins

pytestmark = pytest.mark.conformance

# By component, why it is left out.
LEFT_OUT = {
    "strategies.multi_worker": "needs a process on each of several machines: tests/strategies trains on two",
    "strategies.tpu": "needs a TPU; `ganlab verify` compiles for one",
    "datasets.keras": "downloads a set; tests/datasets has a stand-in for it",
    "datasets.tfds": "needs a set of TensorFlow Datasets; tests/datasets has a stand-in for it",
    "features.inception": "needs a file of weights; tests/features writes one",
    "features.onnx": "needs a file of a network; tests/features writes one",
    "evaluators.class_frechet_distance": "asks for classes; tests/evaluators has a conditional generator",
    "evaluators.label_accuracy": "asks for classes; tests/evaluators has a conditional generator",
    "evaluators.published_scores": "measures in a feature network; tests/evaluators has one",
    "evaluators.classifier_score": "needs a trained classifier; tests/evaluators has one",
    "evaluators.stacked_modes": "measures stacked digits; tests/evaluators has some",
}


@functools.cache
def folder():
    """Files for the datasets that read some."""
    path = Path(tempfile.mkdtemp(prefix="ganlab-conformance-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    random = np.random.default_rng(0)
    np.save(path / "points.npy", random.normal(size=(50, 3)).astype(np.float32))
    for number in range(14):
        pixels = random.integers(0, 256, size=(10, 12, 3), dtype=np.uint8)
        (path / f"{number}.png").write_bytes(tf.io.encode_png(pixels).numpy())
    for name, values in (("images", random.integers(0, 256, (14, 8, 8))), ("labels", np.arange(14) % 3)):
        header = bytes([0, 0, 8, values.ndim]) + b"".join(side.to_bytes(4, "big") for side in values.shape)
        (path / f"{name}.idx").write_bytes(header + values.astype(np.uint8).tobytes())
    with tf.io.TFRecordWriter(str(path / "pictures.tfrecord")) as writer:
        for _ in range(14):
            png = tf.io.encode_png(random.integers(0, 256, size=(8, 8, 3), dtype=np.uint8)).numpy()
            feature = {"image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[png]))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return path


# By component, the arguments of those without defaults, or whose defaults are too large for a test.
ARGUMENTS = {
    "architectures.ali": lambda: {"width": 8},
    "architectures.cyclegan": lambda: {"width": 8},
    "architectures.dcgan": lambda: {"channels": 4},
    "architectures.growing": lambda: {"channels": 4},
    "architectures.lip_convnet": lambda: {"channels": 4},
    "architectures.mlp": lambda: {"width": 8},
    "architectures.resnet": lambda: {"channels": 4},
    "architectures.sndcgan": lambda: {"channels": 4, "initializer": "xavier"},
    "architectures.data_plus_noise": lambda: {
        "dataset": ganlab.component("datasets", "gaussian_ring")(),
        "critic": ganlab.component("architectures", "mlp")(width=8),
        "examples": 64,
    },
    "architectures.fixed_samples": lambda: {
        "dataset": ganlab.component("datasets", "gaussian_ring")(),
        "critic": ganlab.component("architectures", "mlp")(width=8),
    },
    "architectures.biggan": lambda: {"channels": 1, "embedding_dim": 4, "latent_dim": 8, "initializer": "xavier"},
    "architectures.biggan_deep": lambda: {
        "channels": 4,
        "embedding_dim": 4,
        "latent_dim": 8,
        "blocks": 1,
        "initializer": "normal",
    },
    "architectures.r3gan": lambda: {"channels": 8, "group": 8, "blocks": 1},
    **dict.fromkeys(
        [f"architectures.{name}" for name in ("latents", "packed", "unit_pixels", "with_head", "with_side")],
        lambda: {"architecture": ganlab.component("architectures", "mlp")(width=8)},
    ),
    "architectures.unet": lambda: {"channels": 4, "depth": 2},
    "architectures.text_resnet": lambda: {"channels": 4, "blocks": 1, "latent_dim": 4},
    "architectures.infogan": lambda: {
        "architecture": ganlab.component("architectures", "mlp")(width=8, latent_dim=9),
        "categories": 4,
    },
    "datasets.varied": lambda: {"dataset": ganlab.component("datasets", "digits")(), "flip": True, "dequantize": True},
    "datasets.stacked_mnist": lambda: {"dataset": ganlab.component("datasets", "digits")()},
    "datasets.moved_examples": lambda: {"dataset": ganlab.component("datasets", "gaussian_ring")()},
    # Two that move pixels and two of colours: each more makes the graphs larger, not other.
    "augmentations.ada": lambda: {"changes": "flip,turn,shift,invert,hue"},
    "constraints.augmentation_consistency": lambda: {
        "augmentation": ganlab.component("augmentations", "diff_augment")()
    },
    "schedules.linear": lambda: {"start": 1.0, "end": 3.0},
    "schedules.cosine": lambda: {"start": 1.0, "end": 0.0},
    "schedules.constant_then_linear": lambda: {"start": 2.0, "turn": 3},
    "schedules.warmup": lambda: {"value": 2.0, "over": 4},
    "datasets.arrays": lambda: {"path": str(folder() / "points.npy")},
    "datasets.convex_pairs": lambda: {"path": str(Path(__file__).parents[2] / "tools" / "w1bench" / "convex.npz")},
    "datasets.idx": lambda: {"images": str(folder() / "images.idx"), "labels": str(folder() / "labels.idx")},
    "datasets.image_folder": lambda: {"path": str(folder()), "size": 8},
    "datasets.tfrecords": lambda: {"path": str(folder())},
    "datasets.edges": lambda: {"side": 8},
    "datasets.two_images": lambda: {"side": 8},
    # Its iterations are unrolled into the graph; tests/constraints has the default number.
    "constraints.bjorck": lambda: {"iterations": 4},
}

# By component, attributes of its class that differ from the defaults.
ATTRIBUTES = {
    # The penalty at slope 1, from each paper's formula and default weight.
    **{
        f"constraints.{name}": {"penalty_at_slope_one": 0.0}
        for name in ("gradient_penalty", "lipschitz_penalty", "dragan", "alp")
    },
    "constraints.r1": {"penalty_at_slope_one": 10.0 / 2},
    "constraints.r2": {"penalty_at_slope_one": 10.0 / 2},
    "constraints.zero_centered_penalty": {"penalty_at_slope_one": 10.0},
    "constraints.max_gradient_penalty": {"penalty_at_slope_one": 1.0},
    "constraints.wgan_div": {"penalty_at_slope_one": 2.0},
    # Its gains are trained, so it bounds nothing.
    "constraints.weight_normalization": {"lowers_slopes": False},
    # These hold scores near zero, whatever the slope.
    "constraints.score_drift": {"lowers_slopes": False},
    "constraints.closed_loop_control": {"lowers_slopes": False},
    # On a smooth critic, as the kit's, its slope includes the critic's curvature, which nothing bounds.
    "constraints.gran": {"lowers_slopes": False},
    # It needs noise, which a linear critic does not have.
    "constraints.consistency": {"penalty_at_slope_one": 0.0},
    "constraints.transport_cost": {"latent_dim": 2},  # samples are of the size of latent vectors
    "architectures.ali": {"sample_shape": (2,), "loss": lambda self: ganlab.component("losses", "ali")()},
    "architectures.cyclegan": {"sample_shape": (2,), "loss": lambda self: ganlab.component("losses", "cycle")()},
    "losses.cycle": {"architecture": lambda self: ganlab.component("architectures", "cyclegan")(width=8)},
    "evaluators.condition_accuracy": {"dataset": lambda self: ganlab.component("datasets", "showers")()},
    "losses.ali": {"architecture": lambda self: ganlab.component("architectures", "ali")(width=8)},
    "losses.info": {
        "architecture": lambda self: ganlab.component("architectures", "infogan")(
            architecture=ganlab.component("architectures", "mlp")(width=8, depth=1, latent_dim=9, activation="tanh"),
            categories=4,
            shared=False,
        )
    },
    "losses.normalized_gradient": {
        "architecture": lambda self: ganlab.component("architectures", "mlp")(width=8, depth=1, activation="tanh")
    },
    "architectures.text_resnet": {"sample_shape": (8, 5)},
    "losses.self_supervised": {
        "sample_shape": (8, 8, 1),
        "architecture": lambda self: ganlab.component("architectures", "with_head")(
            architecture=ganlab.component("architectures", "mlp")(width=8, depth=1)
        ),
    },
    "architectures.data_plus_noise": {"fixed_generator": True},
    "architectures.fixed_samples": {"fixed_generator": True},
    # Two stages of the four that 32 pixels have, since XLA compiles each of its grouped convolutions, on every replica.
    "architectures.r3gan": {"bounded_images": False, "sample_shape": (8, 8, 3)},
    "architectures.lip_convnet": {"sample_shape": (8, 8, 3)},
    "diagnostics.transport_gradient": {"dataset": lambda self: ganlab.component("datasets", "min_funnels")()},
}


def first_party():
    """The components of this distribution by their selectors."""
    own = {point.name for point in metadata.distribution("ganlab-tf").entry_points if point.group == plugins.GROUP}
    found = plugins.discover().components.values()
    return {f"{c.kind}.{c.name}": c for c in found if c.plugin.name in own}


def making(selector, component):
    """The method that makes a component of the table above; empty for one that is made with its defaults."""
    if selector not in ARGUMENTS:
        return {}
    return {"make": lambda self: component.factory(**ARGUMENTS[selector]())}


COMPONENTS = first_party()

for selector, component in COMPONENTS.items():
    if component.kind in CLASSES and selector not in LEFT_OUT:
        made = suite(component, **making(selector, component), **ATTRIBUTES.get(selector, {}))
        globals()[made.__name__] = made


def test_the_tables_name_components():
    assert set(LEFT_OUT) | set(ARGUMENTS) | set(ATTRIBUTES) <= set(COMPONENTS)
    assert not set(LEFT_OUT) & (set(ARGUMENTS) | set(ATTRIBUTES))
    assert {component.kind for component in COMPONENTS.values()} >= set(CLASSES)
