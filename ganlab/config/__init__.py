"""Experiment files: reading gin into recipes and writing recipes as gin. The only package that knows gin."""

from ganlab.config.files import find_gin_file, shipped_gin_files
from ganlab.config.loading import load
from ganlab.config.writing import flatten, render

__all__ = ["find_gin_file", "flatten", "load", "render", "shipped_gin_files"]
