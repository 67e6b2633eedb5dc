"""Experiment files: reads gin into recipes and writes recipes as gin. The only package that uses gin."""

from ganlab.config.files import find_gin_file, shipped_gin_files
from ganlab.config.loader import Variant, arguments, load, load_variant, takes_fractions
from ganlab.config.parser import ONLY_IN_PYTHON
from ganlab.config.serializer import flatten, objects, render

__all__ = [
    "ONLY_IN_PYTHON",
    "Variant",
    "arguments",
    "find_gin_file",
    "flatten",
    "load",
    "load_variant",
    "objects",
    "render",
    "shipped_gin_files",
    "takes_fractions",
]
