"""The documentation of components and of their parameters, from docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

_ARGS = re.compile(r"^Args:\n((?:    .*\n?|\n)+)", re.MULTILINE)


def documentation(make: Callable[..., Any]) -> str:
    """A factory's docstring; a class's is followed by that of its constructor."""
    texts = [inspect.getdoc(make) or "No documentation."]
    # A class's parameters are often documented at its constructor, which may be inherited.
    constructor = getattr(make, "__init__", None) if isinstance(make, type) else None
    if inspect.isfunction(constructor) and constructor.__doc__:
        texts.append(inspect.cleandoc(constructor.__doc__))
    return "\n\n".join(texts)


def of_parameter(make: Callable[..., Any], name: str) -> str:
    """A parameter's entry under `Args:` in a factory's docstring, on one line; empty if there is none."""
    listed = "\n".join(_ARGS.findall(documentation(make)))
    entry = re.search(rf"^    {re.escape(name)}(?: \([^)\n]*\))?:(.*(?:\n(?:     .*)?)*)", listed, re.MULTILINE)
    return " ".join(entry[1].split()) if entry else ""
