"""Keeps native libraries' greetings off the screen."""

from __future__ import annotations

import resource

from ganlab.plugins.import_guard import no_greetings, quiet_native_stderr

__all__ = ["quiet_native_stderr", "start_tensorflow"]

# With fewer addresses than this TensorFlow may abort the process, which no exception reports.
_ADDRESSES = 2 << 30


def start_tensorflow() -> None:
    """Imports TensorFlow and Keras without their greetings.

    Raises:
        MissingDependencyError: One is not installed, or Keras is set to another backend.
        MemoryError: A limit (ulimit -v) leaves it too few addresses.
    """
    if 0 <= resource.getrlimit(resource.RLIMIT_AS)[0] < _ADDRESSES:  # no limit is -1
        raise MemoryError(f"TensorFlow needs more than {_ADDRESSES >> 20} MiB of addresses")
    # Before the import, which greets with pages of notes on devices that are not there.
    no_greetings()
    from ganlab.lazy import require

    with quiet_native_stderr():
        require("tensorflow")
    require("keras")
