"""Starts TensorFlow without its startup messages."""

from __future__ import annotations

import resource

from ganlab.lazy import no_greetings, quiet_native_stderr, require

# With less address space than this TensorFlow may abort the process without an exception.
_ADDRESSES = 2 << 30


def start_tensorflow() -> None:
    """Imports TensorFlow and Keras without their startup messages.

    Raises:
        MissingDependencyError: One is not installed, or Keras is set to another backend.
        MemoryError: A limit (ulimit -v) leaves them too little address space.
    """
    if 0 <= resource.getrlimit(resource.RLIMIT_AS)[0] < _ADDRESSES:  # no limit is -1
        raise MemoryError(f"TensorFlow needs more than {_ADDRESSES >> 20} MiB of address space")
    # Before the import, which prints pages of notes on missing devices.
    no_greetings()
    with quiet_native_stderr():
        require("tensorflow")
    require("keras")
