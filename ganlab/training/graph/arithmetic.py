"""How products and sums are computed: switches of TensorFlow, each one for the whole process; and on what."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf

from ganlab.composition import Experiment

_REWRITES = "arithmetic_optimization"


def on_gpu(experiment: Experiment) -> bool:
    """Whether the experiment trains on GPUs: a machine that has some may run it on its CPU."""
    devices = experiment.strategy.extended.worker_devices
    return any(tf.DeviceSpec.from_string(device).device_type == "GPU" for device in devices)


def set_repeatable(experiment: Experiment) -> None:
    """Has GPUs repeat every bit, if the experiment is to be deterministic; set before anything is built.

    By default a GPU's kernels are chosen by timing them, and some add in the order in which threads finish: two runs of
    one seed differ from the first row on. A CPU's do not, and there TensorFlow's switch would only slow reading down.
    """
    if experiment.deterministic and on_gpu(experiment):
        tf.config.experimental.enable_op_determinism()


def set_arithmetic(precision: str) -> None:
    """Sets what training in a precision needs; set again before each use, because others may set it too.

    Float32 numbers are multiplied as float32 if that is the precision: by default recent GPUs and TPUs use the mantissa
    of TensorFloat-32 or bfloat16. Kernels read that switch as they run, a TPU's as they are traced.

    Sums are computed in the order in which they are written. TensorFlow's arithmetic optimizer joins a sum of three
    tensors or more into one AddN, which begins with whichever input's memory is free at that moment: a value that is
    also logged may still be in use, or no longer. Two runs of one experiment then differ by rounding, and training
    magnifies it.
    """
    tf.config.experimental.enable_tensor_float_32_execution(precision != "float32")
    if tf.config.optimizer.get_experimental_options().get(_REWRITES) is not False:
        tf.config.optimizer.set_experimental_options({_REWRITES: False})


@contextlib.contextmanager
def in_float32(model: keras.Model) -> Iterator[None]:
    """Context manager: a model that is called computes in float32, whatever precision it was built for.

    Rounding to bfloat16 is not Lipschitz: scores of near points may differ by more than any bound on weights allows.
    """
    switch = tf.config.experimental
    factors_are_rounded = switch.tensor_float_32_execution_enabled()
    layers = [model, *model._flatten_layers(include_self=False, recursive=True)]
    policies = [layer.dtype_policy for layer in layers]
    try:
        switch.enable_tensor_float_32_execution(False)
        for layer in layers:
            layer.dtype_policy = "float32"
        yield
    finally:
        for layer, policy in zip(layers, policies, strict=True):
            layer.dtype_policy = policy
        switch.enable_tensor_float_32_execution(factors_are_rounded)


def faster_precision(experiment: Experiment) -> str:
    """A sentence about TensorFloat-32 where float32 trains on GPUs that have it, from Ampere on; elsewhere empty."""
    if experiment.precision != "float32" or not on_gpu(experiment):
        return ""
    cards = map(tf.config.experimental.get_device_details, tf.config.get_visible_devices("GPU"))
    if not all(card.get("compute_capability", (0, 0)) >= (8, 0) for card in cards):
        return ""
    return (
        "This GPU has TensorFloat-32: experiment.precision = 'tensorfloat32' multiplies faster, with factors rounded "
        "to 10 bits, where float32 rounds none."
    )
