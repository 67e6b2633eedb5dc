"""Every numeric parameter of a component: an invalid weight, size or rate is refused by name."""

import inspect
import math

import pytest

import ganlab
from ganlab.config import types
from ganlab.errors import GanlabError
from ganlab.plugins import manager as plugins
from ganlab.plugins.annotations import UNKNOWN, annotation

# Arguments that a component requires besides the tested number.
NEEDED = {
    "architectures.data_plus_noise": {"dataset": None, "critic": None},
    "architectures.fixed_samples": {"dataset": None, "critic": None},
    **{
        f"architectures.{name}": {"architecture": ganlab.component("architectures", "mlp")(width=8)}
        for name in ("latents", "packed", "unit_pixels", "with_head", "with_side")
    },
    "constraints.augmentation_consistency": {"augmentation": None},
    "features.onnx": {"path": "encoder.onnx"},
    "datasets.arrays": {"path": "data.npy"},
    "datasets.convex_pairs": {"path": "pairs.npz"},
    "datasets.idx": {"images": "images"},
    "datasets.image_folder": {"path": "pictures"},
    "datasets.keras": {"name": "mnist"},
    "datasets.moved_examples": {"dataset": None},
    "datasets.tfds": {"name": "mnist"},
    "datasets.tfrecords": {"path": "records"},
    "datasets.varied": {"dataset": ganlab.component("datasets", "digits")(), "flip": True},
    "evaluators.classifier_score": {"features": None},
    "evaluators.label_accuracy": {"features": None},
    "evaluators.published_scores": {"features": None},
    "features.inception": {"path": "weights.h5"},
    "schedules.linear": {"start": 1.0, "end": 0.0},
    "schedules.cosine": {"start": 1.0, "end": 0.0},
    "schedules.constant_then_linear": {"start": 1.0, "turn": 1},
    "schedules.warmup": {"value": 1.0, "over": 1},
}
# Numbers of any sign: the ends of schedules, targets of least squares, means of signs, margins of cosines, the colours
# of a picture, and the range of an array's values.
SIGNED = {
    *("losses.least_squares.a", "losses.least_squares.b", "losses.least_squares.c"),
    *(f"schedules.{name}.start" for name in ("linear", "cosine", "constant_then_linear")),
    *(f"schedules.{name}.end" for name in ("linear", "cosine", "constant_then_linear")),
    "schedules.warmup.value",
    *("augmentations.ada.target", "augmentations.diffusion.target"),
    *("losses.d2d_ce.positive_margin", "losses.d2d_ce.negative_margin"),
    *("datasets.two_images.dark", "datasets.two_images.bright", "datasets.arrays.low", "datasets.arrays.high"),
}
# The norm of infinite order is the largest component.
INFINITE = {"constraints.banach_penalty.ord"}
# Launchers and searches need a cluster or a package; TensorFlow itself refuses layers that are too wide.
APART, WIDE = ("launchers", "searches"), ("architectures", "constraints", "diagnostics", "features", "strategies")


def numbers(*, fractions):
    """Each numeric parameter of a first-party component: the component's name, and its own."""
    for (kind, name), component in sorted(plugins.current().components.items()):
        # `every` of a diagnostic is checked on composition, for third-party ones too.
        skipped = {"every"} if kind == "diagnostics" else set()
        for parameter in inspect.signature(component.factory.make).parameters.keys() - skipped:
            hint = annotation(component.factory.make, parameter)
            if kind in APART or hint is UNKNOWN or types.fits("text", hint) or types.fits(component, hint):
                continue
            if types.fits(3, hint) and types.fits(0.5, hint) == fractions:
                yield f"{kind}.{name}", parameter


def impossible(*, fractions):
    """Invalid numbers: the component's name, the parameter and the value."""
    for selector, parameter in sorted(numbers(fractions=fractions)):
        full = f"{selector}.{parameter}"
        if not fractions:
            yield from [(selector, parameter, -1)]
            yield from [] if selector.startswith(WIDE) else [(selector, parameter, 2**70)]
            continue
        yield from [] if full in SIGNED else [(selector, parameter, -1.0)]
        yield from [] if full in INFINITE else [(selector, parameter, math.inf)]
        yield selector, parameter, math.nan


@pytest.mark.parametrize(
    ("selector", "parameter", "value"), [*impossible(fractions=True), *impossible(fractions=False)]
)
def test_invalid_number_is_refused_by_name(selector, parameter, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.h5").touch()
    factory = plugins.current().component(*selector.split(".")).factory
    with pytest.raises(GanlabError) as error:
        factory(**{**NEEDED.get(selector, {}), parameter: value})
    message = str(error.value)
    # For a pair that must be given together, the message names the other parameter.
    assert message.startswith(f"{selector}.{parameter} = {value!r} ") or f"{selector}.{parameter}" in SIGNED, message


def test_numbers_of_all_kinds_are_covered():
    tried = {
        f"{selector}.{parameter}" for fractions in (True, False) for selector, parameter in numbers(fractions=fractions)
    }
    assert tried >= {
        *("constraints.gradient_penalty.weight", "constraints.weight_clipping.limit", "constraints.r1.every"),
        *("optimizers.adam.learning_rate", "datasets.gaussian_ring.std", "architectures.mlp.width"),
        *("evaluators.kid.samples", "evaluators.classifier_score.seed", "features.classifier.updates"),
        *("losses.least_squares.a", "diagnostics.surface.half_width", "strategies.mirrored.virtual_replicas"),
    }
    assert len(tried) > 100


@pytest.mark.parametrize(
    ("count", "rule"),
    [
        *((count, "a whole number of at least 1 and at most 256") for count in (0, 257, 2**70)),
        (True, r"int \| None, not bool"),
    ],
)
def test_invalid_virtual_replicas_are_refused(count, rule):
    with pytest.raises(GanlabError, match=rf"virtual_replicas = {count} must be {rule}"):
        plugins.current().component("strategies", "mirrored").factory(virtual_replicas=count)
