"""Python's garbage collector in the processes of ganlab's own that build TensorFlow's graphs."""

from __future__ import annotations

import gc

# Python looks for cycles after every 700 new objects. Importing TensorFlow and building graphs make millions, most of
# them to stay: a tenth of the time would go into looking at them again and again.
_NEW_OBJECTS = 50_000


def collect_rarely() -> None:
    """Lets the collector wait for more new objects. For the beginning of a process: it holds until its end."""
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
