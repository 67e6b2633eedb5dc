"""The reference's names of ganlab's weights, and their layout there."""

from __future__ import annotations

import keras
import numpy as np

from fidelities.recipe import Case

_VARIABLES = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}
_MIMICRY = {
    "convolution_1": "c1",
    "convolution_2": "c2",
    "shortcut": "c_sc",
    "1_normalization": "b1",
    "2_normalization": "b2",
}
_BIGGAN = {
    "convolution_1": "conv1",
    "convolution_2": "conv2",
    "shortcut": "conv_sc",
    "1_normalization_gain": "bn1.gain",
    "1_normalization_bias": "bn1.bias",
    "2_normalization_gain": "bn2.gain",
    "2_normalization_bias": "bn2.bias",
}
_BIGGAN_DEEP = {
    "convolution_3": "conv3",
    "convolution_4": "conv4",
    "3_normalization_gain": "bn3.gain",
    "3_normalization_bias": "bn3.bias",
    "4_normalization_gain": "bn4.gain",
    "4_normalization_bias": "bn4.bias",
}
_R3GAN = {
    "expand/kernel": "LinearLayer1.Layer.weight",
    "expand/bias": "NonLinearity1.Bias",
    "grouped/kernel": "LinearLayer2.Layer.weight",
    "grouped/bias": "NonLinearity2.Bias",
    "reduce/kernel": "LinearLayer3.Layer.weight",
}
_ATTENTION = {"query": "theta", "key": "phi", "value": "g", "merge": "o"}


def name_of(case: Case, role: str, model: keras.Model, path: str) -> str:
    """The reference's name of a weight."""
    if case.kind == "r3gan":
        return _r3gan(model, path)
    return _biggan(case, role, model, path) if case.kind.startswith("biggan") else _mimicry(case, role, model, path)


def to_reference(case: Case, model: keras.Model, path: str, array: np.ndarray) -> np.ndarray:
    """A weight in the layout of PyTorch: outputs first, channels before places."""
    if case.kind == "r3gan":
        if path.startswith("basis/"):
            array = array.transpose(2, 0, 1)
            return array if _draws(model) else array[:, None]
        return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T
    if path.startswith("project/"):
        wide = array.reshape(-1, *model.get_layer("base").output.shape[1:])
        wide = wide.transpose(3, 1, 2, 0).reshape(-1, len(wide))
        return wide if path.endswith("kernel") else wide[:, 0]
    if "label_embedding/" in path:
        return array.reshape(case.classes, -1)
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def from_reference(case: Case, model: keras.Model, path: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A weight of the reference in ganlab's layout and shape: `to_reference` only moves numbers, and is reversed."""
    places = to_reference(case, model, path, np.arange(array.size).reshape(shape))
    found = np.empty(array.size, array.dtype)
    found[places.ravel()] = array.ravel()
    return found.reshape(shape)


def _mimicry(case: Case, role: str, model: keras.Model, path: str) -> str:
    layer, variable = path.split("/")
    names = {v.path.split("/")[0] for v in model.trainable_variables}
    blocks = len({"_".join(name.split("_")[:2]) for name in names if name.startswith("block_")})
    if layer.startswith("block_"):
        _, number, part = layer.split("_", 2)
        # The generator's first block is the reference's second: the dense layer counts.
        name = f"block{int(number) + (role == 'generator')}.{_MIMICRY[part]}"
    elif layer == "score":
        # With 48 pixels and spectral normalization the reference calls a block and the last layer 5.
        name = "l5" if (case.kind, case.side) == ("sngan", 48) else f"l{blocks + 1}"
    else:
        last = blocks + 2
        name = {"project": "l1", "last_normalization": f"b{last}", "last_convolution": f"c{last}"}[layer]
    return f"{name}.{_VARIABLES[variable]}"


def _biggan(case: Case, role: str, model: keras.Model, path: str) -> str:
    layer, *inner, variable = path.split("/")
    if layer.startswith(("block_", "stage_")):
        place, part = _place(case, role, layer)
        name = _BIGGAN.get(part) or _BIGGAN_DEEP[part]
        return f"blocks.{place[0]}.{place[1]}.{name}.{_VARIABLES[variable]}"
    if layer == "attention":
        # Behind the block whose result it takes.
        (source,) = model.get_layer("attention").input._keras_history.operation.name.split("/")[-1:]
        (first, second), _ = _place(case, role, source)
        part = f"{_ATTENTION[inner[0]]}.weight" if inner else "gamma"
        return f"blocks.{first}.{second + 1}.{part}"
    if layer == "last_normalization":
        return f"output_layer.0.{ {'gamma': 'gain', 'beta': 'bias'}[variable] }"
    names = {
        "project": "linear",
        "first_convolution": "input_conv",
        "last_convolution": "output_layer.2",
        "label_embedding": "shared",
        "projection/score": "linear",
        "projection/label_embedding": "embed",
    }
    return f"{names['/'.join([layer, *inner])]}.{_VARIABLES[variable]}"


def _place(case: Case, role: str, layer: str) -> tuple[tuple[int, int], str]:
    """Where the reference has a block, and the part of the block."""
    if case.kind == "biggan":
        _, number, *part = layer.split("_", 2)
        return (int(number) - 1, 0), "".join(part)
    _, stage, _, number, *part = layer.split("_", 4)
    # The generator has a list for each block, the critic one for each stage; both have two blocks in a stage.
    first, second = int(stage) - 1, int(number) - 1
    return ((2 * first + second, 0) if role == "generator" else (first, second)), "".join(part)


def _r3gan(model: keras.Model, path: str) -> str:
    layer, variable = path.split("/")
    if layer.startswith("stage_"):
        _, stage, _, block, part = layer.split("_", 4)
        # In a generator's stage the layer that resizes is the first, in a critic's the last.
        return f"MainLayers.{int(stage) - 1}.Layers.{int(block) - (not _draws(model))}.{_R3GAN[f'{part}/{variable}']}"
    stages = len({v.path.split("_")[1] for v in model.trainable_variables if v.path.startswith("stage_")})
    blocks = len({v.path.split("_")[3] for v in model.trainable_variables if v.path.startswith("stage_")})
    first, last = "MainLayers.0.Layers.0", f"MainLayers.{stages - 1}.Layers.{blocks}"
    names = {
        "label_embedding": "EmbeddingLayer.weight",
        "project": f"{first}.LinearLayer.weight",
        "basis": f"{first}.Basis" if _draws(model) else f"{last}.Basis.weight",
        "pixels": "AggregationLayer.Layer.weight",
        "extract": "ExtractionLayer.Layer.weight",
        "features": f"{last}.LinearLayer.weight",
    }
    return names[layer]


def _draws(model: keras.Model) -> bool:
    return model.name == "generator"
