"""The parts of a step that are functions of tensors alone, and whether XLA compiles them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import IncompatibleError
from ganlab.training.graph.networks import Tensors
from ganlab.training.graph.noise import Draw, draw
from ganlab.training.graph.replica import Draws, Log, Metric


class Gradients:
    """A part of the step without variables or communication, compiled by XLA where asked.

    The random numbers of a compiled part are drawn outside and passed in, because XLA's would differ.

    Attributes:
        communicates: The constraint that communicates with other replicas in this part; empty if there is none, or
            before the part is traced.
    """

    def __init__(self, part: Callable[..., Any], experiment: Experiment, *, compiled: bool) -> None:
        self._part, self._experiment, self._compiled = part, experiment, compiled
        self._function: Callable[..., Any] | None = None
        self._spec: list[Draw] = []
        self._metrics: list[Metric] = []
        self.communicates = ""

    def __call__(
        self, *arguments: Any, step: tf.Tensor, replica: tf.Tensor
    ) -> tuple[tuple[list[tf.Tensor], Tensors, tf.Tensor], list[Metric]]:
        """Runs the part; returns (gradients, buffers, values of the metrics) and the metrics."""
        seed, local = self._experiment.seed, self._experiment.local_batch
        if self._compiled and self._function is None:
            self._prepare(arguments)
        if self._function is None:
            draws = Draws(seed, local, step, replica)
            result = self._run(draws, arguments)
            self.communicates = draws.collective
            return result, self._metrics
        given = [draw(spec, seed=seed, step=step, replica=replica) for spec in self._spec]
        return self._function(arguments, step, replica, given), self._metrics

    @property
    def compiled(self) -> bool:
        """Whether XLA compiles this part; known once it has been traced."""
        return self._function is not None

    def _run(self, draws: Draws, arguments: Any) -> tuple[list[tf.Tensor], Tensors, tf.Tensor]:
        log = Log()
        gradients, buffers = self._part(draws, log, *arguments)
        self._metrics = log.metrics
        return gradients, buffers, tf.stack(log.values)

    def _prepare(self, arguments: Any) -> None:
        """Traces on a scratch graph to record draws and communication between replicas; then decides on compiling."""
        seed, local = self._experiment.seed, self._experiment.local_batch
        seen: list[Draws] = []

        def scratch(arguments: Any, step: tf.Tensor, replica: tf.Tensor) -> Any:
            seen.append(Draws(seed, local, step, replica, scratch=True))
            return self._run(seen[-1], arguments)

        specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), arguments)
        integer = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int32)
        tf.function(scratch, autograph=False).get_concrete_function(specs, *integer)
        self.communicates = seen[-1].collective
        penalty = f"The penalty of constraint {self.communicates}" if self.communicates else ""
        if not may_compile(self._experiment, penalty):
            self._compiled = False
            return
        self._spec = seen[-1].recorded

        def compiled(arguments: Any, step: tf.Tensor, replica: tf.Tensor, given: list[tf.Tensor]) -> Any:
            return self._run(Draws(seed, local, step, replica, given=given), arguments)

        self._function = tf.function(compiled, jit_compile=True, autograph=False)


def may_compile(experiment: Experiment, communicates: str) -> bool:
    """Whether a part can be compiled, given the name of what communicates with other replicas in it; empty for none.

    Raises:
        IncompatibleError: It cannot be compiled, though experiment.jit asks for it.
    """
    # A single replica under a mirrored strategy communicates too, with itself; under one device there is nothing to do.
    if not communicates or isinstance(experiment.strategy, tf.distribute.OneDeviceStrategy):
        return True
    if experiment.jit == "on":
        raise IncompatibleError(
            f"{communicates} communicates between replicas, which cannot be compiled here, and experiment.jit is 'on'. "
            "Set experiment.jit = 'auto', or avoid it: a constraint can communicate in its advance method, and a "
            "network can normalize each example alone (ganlab.layers.LayerNormalization)."
        )
    return False


def compiles(experiment: Experiment) -> bool:
    """Whether XLA compiles the gradients: as the experiment asks, or with "auto" if it is known to be faster.

    On a CPU it is not, as docs/performance.md shows: dense networks take between 3% less and half as long again, by
    width and batch, because the kernels skip the same zeros, and convolutions seven times as long. A TPU compiles the
    whole step anyway.
    """
    if experiment.jit != "auto":
        return experiment.jit == "on"
    # The strategy's devices, not the machine's: a machine with GPUs may run this experiment on its CPU.
    devices = experiment.strategy.extended.worker_devices
    return any(tf.DeviceSpec.from_string(device).device_type == "GPU" for device in devices)


def set_products(experiment: Experiment) -> None:
    """Sets how float32 numbers are multiplied: as float32 if the experiment's precision is float32.

    By default recent GPUs and TPUs use the mantissa of TensorFloat-32 or bfloat16. The switch is one for the whole
    process; kernels read it as they run, a TPU's as they are traced, so it is set before either.
    """
    tf.config.experimental.enable_tensor_float_32_execution(experiment.precision != "float32")
