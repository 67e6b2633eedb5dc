"""Looks at the devices that TensorFlow can train on, for `ganlab doctor`: a GPU's kernels, libraries and numbers."""

from ganlab_devices.examining import examine

__all__ = ["examine"]
