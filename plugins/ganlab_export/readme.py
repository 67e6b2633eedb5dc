"""Writes the page beside an exported generator: what it is and how to load it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from ganlab.files import line


def readme(info: Mapping[str, Any]) -> str:
    """The page for the content of an export.json."""
    from jinja2 import StrictUndefined, Template

    text = resources.files("ganlab_export").joinpath("templates", "README.md.jinja").read_text(encoding="utf-8")
    template = Template(text, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    given = {name: tuple(int(size) for size in shape) for name, shape in info.get("given", {}).items()}
    classes = [
        f"{number} `{line(name).replace(chr(96), chr(39))}`" for number, name in enumerate(info.get("class_names", ()))
    ]
    return template.render({**info, "given": given, "class_names": classes}, shape=tuple(info["sample_shape"]))
