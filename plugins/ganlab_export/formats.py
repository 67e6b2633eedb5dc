"""The formats that a generator is exported in: how each is written, and read back to check its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab.engine import Trained
from ganlab.errors import IncompatibleError, MissingDependencyError
from ganlab.lazy import require
from ganlab_export.latents import Array

# From arrays by the names of a file's inputs, in their order, to samples.
Generate = Callable[[Mapping[str, Array]], Array]

# The operator set; every onnxruntime since 1.12 has it.
_OPSET = 17


@dataclass(frozen=True)
class Format:
    """How to write a generator, and how to read it.

    Attributes:
        file: The name of the file or folder that is written.
        write: Writes it at a path.
        read: Loads it as a function from its inputs by name to samples; None if a package for that is not installed.
        precision: The precision that the layers must compute in; None for the run's own.
    """

    file: str
    write: Callable[[Trained, Path], None]
    read: Callable[[Path], Generate | None]
    precision: str | None = None


def _write_saved_model(trained: Trained, path: Path) -> None:
    tf.saved_model.save(module := _module(trained), str(path), signatures=_signatures(module))


def _module(trained: Trained) -> Any:
    network = trained.network
    module = tf.Module(name="generator")
    module.weights = [variable.value for variable in network.model.variables]  # TensorFlow saves what it finds here
    inputs = [tf.TensorSpec([None, trained.latent_dim], tf.float32, name="latent")] if trained.latent_dim else []
    scalars = [tf.TensorSpec([], tf.int64, name="n"), tf.TensorSpec([], tf.int64, name="seed")]
    if network.conditional:
        inputs.append(tf.TensorSpec([None], tf.int64, name="label"))
        scalars.append(tf.TensorSpec([], tf.int64, name="label"))
    for name in network.given:
        rows = tf.TensorSpec([None, *trained.sample.rows[name].shape], tf.float32, name=name)
        inputs, scalars = [*inputs, rows], [*scalars, rows]

    @tf.function(input_signature=inputs, autograph=False)
    def generate(*arguments: tf.Tensor) -> tf.Tensor:
        given = {spec.name: x for spec, x in zip(inputs, arguments, strict=True)}
        if "label" in given:
            given["labels"] = given.pop("label")
        own = network.inputs(given.pop("latent", None), given)
        return tf.cast(network.model(own, training=False), tf.float32)

    @tf.function(input_signature=scalars, autograph=False)
    def sample(n: tf.Tensor, seed: tf.Tensor, *rest: tf.Tensor) -> dict[str, tf.Tensor]:
        latents = trained.sample.latents(n, seed)
        rows = [x if x.shape.rank else tf.fill([n], x) for x in rest]
        return {"samples": generate(*([latents] if trained.latent_dim else []), *rows), "latents": latents}

    module.__call__ = generate
    module.sample = sample
    return module


def _signatures(module: Any) -> dict[str, Any]:
    specification = module.__call__.input_signature

    @tf.function(input_signature=specification, autograph=False)
    def serving_default(*arguments: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"samples": module.__call__(*arguments)}

    return {"serving_default": serving_default, "sample": module.sample}


def _read_saved_model(path: Path) -> Generate:
    generator = tf.saved_model.load(str(path))

    def generate(arrays: Mapping[str, Array]) -> Array:
        return np.asarray(generator(*map(tf.constant, arrays.values())))

    return generate


def _write_keras(trained: Trained, path: Path) -> None:
    model = trained.network.model
    if trained.network.numbers:
        raise IncompatibleError(
            f"The generator takes {', '.join(trained.network.numbers)}, which a .keras file would leave to whoever "
            "loads it. Use --format saved_model, which has the value of the checkpoint's step."
        )
    unknown = foreign(model)
    if unknown:
        raise IncompatibleError(
            f"The generator has {', '.join(unknown)}: whoever loads a .keras file needs the code of what is not Keras' "
            "own, or has to trust code inside the file. Use --format saved_model, which takes any generator."
        )
    model.save(path)


def foreign(model: keras.Model) -> list[str]:
    """Lists what a model's `.keras` file would name that is not Keras' own, or that is code; each once, sorted."""
    if not type(model).__module__.startswith("keras."):
        return [f"its own class {type(model).__name__}"]
    return sorted(set(_foreign(keras.saving.serialize_keras_object(model))))


def _foreign(value: Any) -> Iterator[str]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _foreign(item)
    elif isinstance(value, dict):
        inner = (each for item in value.values() for each in _foreign(item))
        name = value.get("class_name")
        if name is None or "module" not in value:
            yield from inner
        elif name in ("Lambda", "__lambda__"):
            yield "a Lambda layer"
        elif name == "function":
            yield str(value.get("config"))
        elif str(value["module"]).partition(".")[0] in ("keras", "builtins"):
            yield from inner
        else:
            yield str(value.get("registered_name") or name)


def _read_keras(path: Path) -> Generate:
    generator = keras.saving.load_model(path, compile=False)

    def generate(arrays: Mapping[str, Array]) -> Array:
        # The inputs that have no name of an array take the others in order.
        rest = iter([name for name in arrays if name not in {x.name for x in generator.inputs}])
        arguments = []
        for x in generator.inputs:
            name = x.name if x.name in arrays else next(rest)
            weights = name == "label" and len(x.shape) == 2
            arguments.append(np.eye(x.shape[1], dtype=np.float32)[arrays[name]] if weights else arrays[name])
        given = arguments if len(arguments) > 1 else arguments[0]
        return np.asarray(generator.predict(given, verbose=0), np.float32)

    return generate


def _write_onnx(trained: Trained, path: Path) -> None:
    tf2onnx = require("tf2onnx")
    named = _signatures(module := _module(trained))["serving_default"]
    try:
        model, _ = tf2onnx.convert.from_function(named, module.__call__.input_signature, opset=_OPSET)
    except Exception as error:  # tf2onnx raises what it likes
        reason = str(error).strip().split("\n")[0]
        raise IncompatibleError(
            f"tf2onnx cannot convert the generator: {type(error).__name__}: {reason}. Use --format saved_model, which "
            "takes any generator."
        ) from error
    path.write_bytes(model.SerializeToString())


def _read_onnx(path: Path) -> Generate | None:
    try:
        session = require("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except MissingDependencyError:
        return None

    def generate(arrays: Mapping[str, Array]) -> Array:
        return np.asarray(session.run(["samples"], dict(arrays))[0])

    return generate


# ONNX has no bfloat16 that runtimes compute in, and the weights are float32 whatever the precision.
FORMATS = {
    "saved_model": Format("generator", _write_saved_model, _read_saved_model),
    "keras": Format("generator.keras", _write_keras, _read_keras),
    "onnx": Format("generator.onnx", _write_onnx, _read_onnx, precision="float32"),
}
