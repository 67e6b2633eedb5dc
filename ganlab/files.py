"""Files as ganlab reads and writes them: whole or not at all, and never trusted. Does not import TensorFlow."""

from ganlab.support.atomic import new_folder
from ganlab.support.paths import open_regular

__all__ = [
    "new_folder",
    "open_regular",
]
