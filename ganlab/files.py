"""Files as ganlab reads and writes them: whole or not at all, and never trusted. Does not import TensorFlow."""

from ganlab.support.atomic import new_folder
from ganlab.support.paths import is_name, open_inside, open_regular, read_inside, walk
from ganlab.support.terminal import line

__all__ = [
    "is_name",
    "line",
    "new_folder",
    "open_inside",
    "open_regular",
    "read_inside",
    "walk",
]
