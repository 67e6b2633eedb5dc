"""The Inception network of 2015-12-05, whose features published Fréchet and kernel distances are measured in.

Szegedy et al., "Rethinking the inception architecture for computer vision" (2016), as in the graph that TensorFlow
published on that day: average pooling leaves padding out, the last block pools by the maximum, and there are 1,008
outputs. A layer has two names: one in PyTorch's state dict of these weights, and one in TensorFlow's graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ganlab.lazy import tensorflow as tf

SIDE, FEATURES, CLASSES = 299, 2048, 1008
_EPSILON = 1e-3  # of batch normalization


class Layer(NamedTuple):
    """A convolution with batch normalization.

    Attributes:
        name: Its name in the state dict, for example `Mixed_5b.branch1x1`.
        graph: Its name in the graph, for example `mixed/conv`.
        shape: The kernel's `(height, width, inputs, outputs)`.
    """

    name: str
    graph: str
    shape: tuple[int, int, int, int]


class _Conv(NamedTuple):
    name: str
    height: int
    width: int
    outputs: int


@dataclass(frozen=True)
class _Branch:
    """Convolutions one after the other, after pooling by `pool`, and perhaps two next to each other at the end."""

    graph: str
    convs: tuple[_Conv, ...]
    fork: tuple[_Conv, ...] = ()
    pool: str = ""


@dataclass(frozen=True)
class _Block:
    """Branches whose outputs are concatenated; one that halves the image also has its maxima."""

    name: str
    graph: str
    inputs: int
    branches: tuple[_Branch, ...]
    halves: bool = False


def _early(name: str, graph: str, inputs: int, pooled: int) -> _Block:
    double = (_Conv("branch3x3dbl_1", 1, 1, 64), _Conv("branch3x3dbl_2", 3, 3, 96), _Conv("branch3x3dbl_3", 3, 3, 96))
    branches = (
        _Branch("", (_Conv("branch1x1", 1, 1, 64),)),
        _Branch("tower/", (_Conv("branch5x5_1", 1, 1, 48), _Conv("branch5x5_2", 5, 5, 64))),
        _Branch("tower_1/", double),
        _Branch("tower_2/", (_Conv("branch_pool", 1, 1, pooled),), pool="AVG"),
    )
    return _Block(name, graph, inputs, branches)


def _middle(name: str, graph: str, width: int) -> _Block:
    single = (
        _Conv("branch7x7_1", 1, 1, width),
        _Conv("branch7x7_2", 1, 7, width),
        _Conv("branch7x7_3", 7, 1, 192),
    )
    double = (
        _Conv("branch7x7dbl_1", 1, 1, width),
        _Conv("branch7x7dbl_2", 7, 1, width),
        _Conv("branch7x7dbl_3", 1, 7, width),
        _Conv("branch7x7dbl_4", 7, 1, width),
        _Conv("branch7x7dbl_5", 1, 7, 192),
    )
    branches = (
        _Branch("", (_Conv("branch1x1", 1, 1, 192),)),
        _Branch("tower/", single),
        _Branch("tower_1/", double),
        _Branch("tower_2/", (_Conv("branch_pool", 1, 1, 192),), pool="AVG"),
    )
    return _Block(name, graph, 768, branches)


def _late(name: str, graph: str, inputs: int, pool: str) -> _Block:
    def fork(first: str, second: str) -> tuple[_Conv, ...]:
        return (_Conv(first, 1, 3, 384), _Conv(second, 3, 1, 384))

    double = (_Conv("branch3x3dbl_1", 1, 1, 448), _Conv("branch3x3dbl_2", 3, 3, 384))
    branches = (
        _Branch("", (_Conv("branch1x1", 1, 1, 320),)),
        _Branch("tower/", (_Conv("branch3x3_1", 1, 1, 384),), fork("branch3x3_2a", "branch3x3_2b")),
        _Branch("tower_1/", double, fork("branch3x3dbl_3a", "branch3x3dbl_3b")),
        _Branch("tower_2/", (_Conv("branch_pool", 1, 1, 192),), pool=pool),
    )
    return _Block(name, graph, inputs, branches)


_STEM = (
    Layer("Conv2d_1a_3x3", "conv", (3, 3, 3, 32)),
    Layer("Conv2d_2a_3x3", "conv_1", (3, 3, 32, 32)),
    Layer("Conv2d_2b_3x3", "conv_2", (3, 3, 32, 64)),
    Layer("Conv2d_3b_1x1", "conv_3", (1, 1, 64, 80)),
    Layer("Conv2d_4a_3x3", "conv_4", (3, 3, 80, 192)),
)
_BLOCKS = (
    _early("Mixed_5b", "mixed", 192, 32),
    _early("Mixed_5c", "mixed_1", 256, 64),
    _early("Mixed_5d", "mixed_2", 288, 64),
    _Block(
        "Mixed_6a",
        "mixed_3",
        288,
        (
            _Branch("", (_Conv("branch3x3", 3, 3, 384),)),
            _Branch(
                "tower/",
                (
                    _Conv("branch3x3dbl_1", 1, 1, 64),
                    _Conv("branch3x3dbl_2", 3, 3, 96),
                    _Conv("branch3x3dbl_3", 3, 3, 96),
                ),
            ),
        ),
        halves=True,
    ),
    _middle("Mixed_6b", "mixed_4", 128),
    _middle("Mixed_6c", "mixed_5", 160),
    _middle("Mixed_6d", "mixed_6", 160),
    _middle("Mixed_6e", "mixed_7", 192),
    _Block(
        "Mixed_7a",
        "mixed_8",
        768,
        (
            _Branch("tower/", (_Conv("branch3x3_1", 1, 1, 192), _Conv("branch3x3_2", 3, 3, 320))),
            _Branch(
                "tower_1/",
                (
                    _Conv("branch7x7x3_1", 1, 1, 192),
                    _Conv("branch7x7x3_2", 1, 7, 192),
                    _Conv("branch7x7x3_3", 7, 1, 192),
                    _Conv("branch7x7x3_4", 3, 3, 192),
                ),
            ),
        ),
        halves=True,
    ),
    _late("Mixed_7b", "mixed_9", 1280, "AVG"),
    _late("Mixed_7c", "mixed_10", 2048, "MAX"),
)


def layers() -> Iterator[Layer]:
    """Every convolution."""
    yield from _STEM
    for block in _BLOCKS:
        for branch in block.branches:
            inputs = block.inputs
            for place, conv in enumerate(branch.convs):
                yield _layer(block, branch.graph, place, conv, inputs)
                inputs = conv.outputs
            for place, conv in enumerate(branch.fork):
                yield _layer(block, f"{branch.graph}mixed/", place, conv, inputs)


def _layer(block: _Block, folder: str, place: int, conv: _Conv, inputs: int) -> Layer:
    graph = f"{block.graph}/{folder}conv" + (f"_{place}" if place else "")
    return Layer(f"{block.name}.{conv.name}", graph, (conv.height, conv.width, inputs, conv.outputs))


def shapes() -> dict[str, tuple[int, ...]]:
    """The shape of every array of the state dict, in PyTorch's layout, by name."""
    shapes_by_name: dict[str, tuple[int, ...]] = {}
    for layer in layers():
        height, width, inputs, outputs = layer.shape
        shapes_by_name[f"{layer.name}.conv.weight"] = (outputs, inputs, height, width)
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes_by_name[f"{layer.name}.bn.{part}"] = (outputs,)
    return {**shapes_by_name, "fc.weight": (CLASSES, FEATURES), "fc.bias": (CLASSES,)}


def network(arrays: Mapping[str, np.ndarray]) -> Callable[[Any], tuple[Any, Any]]:
    """The network with these weights.

    Returns:
        A function of images `(n, 299, 299, 3)`, in the range that the network takes (see `resizing`). It returns the
        features, `(n, 2048)`, and the logits without the last layer's bias, `(n, 1008)`, both float32. The inception
        score was published without that bias.
    """
    folded = {layer.name: _folded(layer.name, arrays) for layer in layers()}
    last = tf.constant(np.asarray(arrays["fc.weight"], np.float32).T)

    def conv(x: Any, name: str, *, stride: int = 1, padding: str = "SAME") -> Any:
        kernel, bias = folded[name]
        return tf.nn.relu(tf.nn.conv2d(x, kernel, stride, padding) + bias)

    def halved(x: Any) -> Any:
        return tf.nn.max_pool2d(x, 3, 2, "VALID")

    def run_branch(block: _Block, branch: _Branch, x: Any) -> list[Any]:
        if branch.pool:  # averages leave padding out, as TensorFlow's do
            x = tf.nn.pool(x, (3, 3), branch.pool, padding="SAME")
        *first, end = branch.convs
        for one in first:
            x = conv(x, f"{block.name}.{one.name}")
        stride, padding = (2, "VALID") if block.halves else (1, "SAME")
        x = conv(x, f"{block.name}.{end.name}", stride=stride, padding=padding)
        return [conv(x, f"{block.name}.{one.name}") for one in branch.fork] or [x]

    def run(x: Any) -> tuple[Any, Any]:
        x = conv(x, "Conv2d_1a_3x3", stride=2, padding="VALID")
        x = conv(x, "Conv2d_2a_3x3", padding="VALID")
        x = halved(conv(x, "Conv2d_2b_3x3"))
        x = conv(x, "Conv2d_3b_1x1", padding="VALID")
        x = halved(conv(x, "Conv2d_4a_3x3", padding="VALID"))
        for block in _BLOCKS:
            parts = [part for branch in block.branches for part in run_branch(block, branch, x)]
            x = tf.concat([*parts, halved(x)] if block.halves else parts, axis=-1)
        features = tf.reduce_mean(x, axis=(1, 2))
        return features, features @ last

    return run


def _folded(name: str, arrays: Mapping[str, np.ndarray]) -> tuple[Any, Any]:
    """The kernel and the bias of a convolution with its batch normalization, in TensorFlow's layout."""
    kernel = np.asarray(arrays[f"{name}.conv.weight"], np.float64).transpose(2, 3, 1, 0)
    parts = ("weight", "bias", "running_mean", "running_var")
    scale, shift, mean, variance = (np.asarray(arrays[f"{name}.bn.{part}"], np.float64) for part in parts)
    scale = scale / np.sqrt(variance + _EPSILON)
    return tf.constant((kernel * scale).astype(np.float32)), tf.constant((shift - mean * scale).astype(np.float32))
