"""A strategy whose step is compiled and never run: one device represents every core of a TPU slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.distribute import distribute_lib, one_device_strategy

# The device is the CPU, because only there can TensorFlow lower a step whose variables exist. The result is the same
# for any device.
_DEVICE = "CPU:0"


class CompileOnlyStrategy(tf.distribute.Strategy):
    """Claims `replicas` replicas, and turns their communication into XLA operations.

    A function traced under `run` becomes the program of each replica: its number is XLA's ReplicaId, and a reduction is
    an AllReduce over all of them, as under `tf.distribute.TPUStrategy`. The program can be lowered but not run.
    """

    def __init__(self, replicas: int) -> None:
        """Sets the number of replicas.

        Args:
            replicas: The number of cores of the slice.
        """
        super().__init__(_Extended(self, replicas))


class _Extended(one_device_strategy.OneDeviceExtended):
    def __init__(self, container: tf.distribute.Strategy, replicas: int) -> None:
        super().__init__(container, _DEVICE)
        self._replicas = replicas

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._replicas

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if tf.executing_eagerly():  # where TensorFlow would crash
            raise RuntimeError("CompileOnlyStrategy cannot run a step. Call it in a tf.function, and lower that.")
        with tf.device(self._device), _Context(self._container_strategy(), gen_xla_ops.xla_replica_id()):
            return fn(*args, **kwargs)

    def _reduce_to(self, reduce_op: tf.distribute.ReduceOp, value: Any, destinations: Any, options: Any) -> tf.Tensor:
        total = gen_xla_ops.xla_all_reduce(
            tf.convert_to_tensor(value),  # also the gradient of an embedding, which is not a tensor yet
            group_assignment=[list(range(self._replicas))],
            reduce_op="Add",
            mode="CrossReplica",
        )
        if reduce_op == tf.distribute.ReduceOp.MEAN:
            return total / tf.cast(self._replicas, total.dtype)
        return total

    def _batch_reduce_to(self, reduce_op: tf.distribute.ReduceOp, pairs: Any, options: Any) -> Any:
        with tf.name_scope("message"):  # GPUs send what is reduced in one call as one message
            return super()._batch_reduce_to(reduce_op, pairs, options)


class _Context(distribute_lib.ReplicaContext):
    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """Gathers all replicas' values along an axis: each pads its own with zeros, and all are summed, as on a TPU."""
        return tf.nest.map_structure(lambda x: self._gathered(tf.convert_to_tensor(x), axis), value)

    def _gathered(self, value: tf.Tensor, axis: int) -> tf.Tensor:
        axis = axis % len(value.shape)
        shape = [1] * (len(value.shape) + 1)
        shape[axis] = self.num_replicas_in_sync
        mine = tf.reshape(tf.one_hot(self.replica_id_in_sync_group, self.num_replicas_in_sync), shape)
        spread = tf.expand_dims(value, axis) * tf.cast(mine, value.dtype)
        gathered = self.all_reduce(tf.distribute.ReduceOp.SUM, spread)
        length = value.shape[axis] * self.num_replicas_in_sync
        return tf.reshape(gathered, [*value.shape[:axis], length, *value.shape[axis + 1 :]])
