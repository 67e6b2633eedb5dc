"""Every component refuses words that it does not know, and numbers beyond the ends of its ranges, by name."""

import inspect
import math
from typing import Literal, get_origin

import pytest
from test_component_numbers import NEEDED

from ganlab.errors import ConfigError
from ganlab.plugins import manager as plugins
from ganlab.plugins.annotations import annotation

# Parameters that take any text: names of things elsewhere, and files. Its own tests hold what each refuses.
TEXTS = {
    *("augmentations.ada.changes", "augmentations.diff_augment.policy", "datasets.glyphs.characters"),
    *("datasets.arrays.path", "datasets.image_folder.path", "datasets.tfrecords.image", "datasets.tfrecords.label"),
    *("datasets.tfrecords.path", "datasets.tfds.name", "datasets.tfds.split", "datasets.tfds.key"),
    *(
        "datasets.idx.images",
        "datasets.convex_pairs.path",
        "architectures.with_head.output",
        "architectures.with_side.side",
    ),
    *("features.inception.path", "features.onnx.output", "features.onnx.path"),
    *("losses.feature_matching.output", "strategies.tpu.address"),
}
# Its networks are partly another's, which names the parameter.
SHARED = {"architectures.lip_convnet.generator_normalization": "architectures.dcgan.generator_normalization"}
# Zeros and upper ends; test_component_numbers.py has what no parameter takes.
BEYOND = [
    ("architectures.dcgan", "kernel_size", 1),
    ("architectures.with_side", "side", "a b"),
    ("augmentations.diffusion", "least", 1001),
    ("architectures.mlp", "dropout", 1.0),
    *(("architectures.mlp", parameter, 0) for parameter in ("width", "latent_dim")),
    *((f"architectures.{name}", "channels", 0) for name in ("dcgan", "sndcgan", "resnet")),
    ("constraints.banach_penalty", "ord", 0.5),
    ("constraints.banach_penalty", "target", 0.0),
    ("constraints.bidirectional_spectral_norm", "scale", 0.0),
    *(("constraints.bjorck", parameter, 0) for parameter in ("iterations", "order")),
    ("constraints.gram_norm", "density", 1),
    ("constraints.parseval", "beta", 0.6),
    ("constraints.polar_projection", "iterations", 0),
    *((f"constraints.{name}", "every", 0) for name in ("dragan", "gradient_penalty", "r1", "r2", "wgan_div")),
    *((f"constraints.{name}", "power_iterations", 0) for name in ("spectral_norm", "spectral_projection")),
    ("constraints.spectral_norm", "target", 0.0),
    ("constraints.spectral_regularization", "power_iterations", 0),
    ("constraints.spectral_soft_cap", "step", 0.5),
    ("constraints.stable_rank", "rank", 1.5),
    ("constraints.weight_clipping", "limit", 0.0),
    ("constraints.wgan_div", "p", 1.0),
    ("datasets.gaussian_ring", "modes", 0),
    ("datasets.gaussian_ring", "std", 0.0),
    ("datasets.gaussian_grid", "scale", 0),
    ("datasets.image_folder", "size", 0),
    ("datasets.showers", "high", 0.5),
    ("datasets.sines", "high", 100.0),
    *(("datasets.swiss_roll", parameter, 0.0) for parameter in ("noise", "scale")),
    ("datasets.tfds", "resize", 0),
    ("datasets.translated_gaussians", "std", 0.0),
    ("datasets.two_images", "bright", 1.5),
    ("datasets.two_images", "fraction", 0.0),
    ("diagnostics.slopes", "target", 0.0),
    ("diagnostics.lipschitz_interval", "points", 1),
    *((f"diagnostics.{name}", "points", 0) for name in ("surface", "wasserstein_error")),
    ("evaluators.density_coverage", "neighbours", 0),
    ("evaluators.exact_w1", "samples", 1),
    ("evaluators.frechet_distance", "samples", True),
    ("evaluators.kid", "degree", 1.5),
    ("evaluators.mode_coverage", "samples", 0),
    ("evaluators.mode_coverage", "sigmas", 0.0),
    *(("evaluators.sliced_wasserstein", parameter, 0) for parameter in ("projections", "order")),
    ("features.classifier", "hold_out", 1),
    ("features.classifier", "updates", 0),
    ("features.classifier", "learning_rate", 0.0),
    ("features.inception", "size", 74),
    *(("launchers.local", "grace_seconds", seconds) for seconds in (-1, math.inf, math.nan)),
    *(("optimizers.adam", parameter, 1.0) for parameter in ("beta_1", "beta_2", "final_fraction")),
    *(("optimizers.adam", parameter, 0.0) for parameter in ("epsilon", "learning_rate")),
    ("optimizers.adam", "decay_steps", 0),
    ("optimizers.rmsprop", "rho", 1.0),
    ("optimizers.sgd", "momentum", 1.0),
]


def parameters():
    """The name of each component, its parameters, and what they may be."""
    for (kind, name), component in sorted(plugins.current().components.items()):
        for parameter in inspect.signature(component.factory.make).parameters:
            yield f"{kind}.{name}", parameter, annotation(component.factory.make, parameter)


WORDS = [(selector, parameter) for selector, parameter, hint in parameters() if get_origin(hint) is Literal]


def refused(selector, parameter, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.h5").touch()
    with pytest.raises(ConfigError) as error:
        plugins.current().component(*selector.split(".")).factory(**{**NEEDED.get(selector, {}), parameter: value})
    name = SHARED.get(f"{selector}.{parameter}", f"{selector}.{parameter}")
    assert str(error.value).startswith(f"{name} = {value!r} must be "), error.value


@pytest.mark.parametrize(("selector", "parameter"), WORDS)
def test_an_unknown_word_is_refused_by_name(selector, parameter, tmp_path, monkeypatch):
    refused(selector, parameter, "another", tmp_path, monkeypatch)


def test_a_parameter_that_takes_words_says_which():
    assert {f"{selector}.{parameter}" for selector, parameter, hint in parameters() if _is_text(hint)} == TEXTS
    assert len(WORDS) > 40


def _is_text(hint):
    return getattr(hint, "__origin__", hint) is str


@pytest.mark.parametrize(("selector", "parameter", "value"), BEYOND)
def test_a_number_beyond_its_range_is_refused_by_name(selector, parameter, value, tmp_path, monkeypatch):
    refused(selector, parameter, value, tmp_path, monkeypatch)
