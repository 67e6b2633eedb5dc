"""HTML as a tree of elements: all text is escaped, and every opened element is closed."""

from __future__ import annotations

import base64
import hashlib
import re
from xml.etree import ElementTree as ET

Child = ET.Element | str | None

# Control characters and separators of lines other than newline and tab, and halves of surrogate pairs: HTML has no
# character for most of them, and JSON can hold them all.
# Beside them, marks that turn the direction of writing: a reader would take one name for another.
_UNSPEAKABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> ET.Element:
    """An element with its children.

    Args:
        tag: Its name.
        *children: Elements and texts, in order; None is left out.
        **attributes: By name; a trailing underscore is dropped (`class_`) and others become dashes (`data_value`).
            True is an attribute without a value, None and False none at all.
    """
    made = ET.Element(tag)
    for name, value in attributes.items():
        if value is not None and value is not False:
            made.set(name.rstrip("_").replace("_", "-"), "" if value is True else clean(str(value)))
    for child in children:
        if isinstance(child, ET.Element):
            made.append(child)
        elif child is not None:
            _append_text(made, clean(child))
    return made


def breakable(text: str) -> ET.Element:
    """A name that may be wrapped after its separators, and is whole when copied."""
    made = element("span")
    for number, part in enumerate(parts_of(text)):
        if number:
            made.append(element("wbr"))
        _append_text(made, clean(part))
    return made


def parts_of(name: str) -> list[str]:
    """A name's parts, each with its trailing separator."""
    return re.split(r"(?<=[/._=])(?=\w{3})", name)


def clean(text: str) -> str:
    """The text with every character that a page cannot hold replaced."""
    return _UNSPEAKABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def page(title: str, style: str, *body: Child) -> str:
    """A page without requests or scripts: a policy of its own forbids everything that is not in the file.

    Args:
        title: Its title.
        style: Its style sheet, which must not come from a run.
        *body: The content.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", style),
    )
    return document(element("html", head, element("body", *body), lang="en"))


def _policy(style: str) -> str:
    """The policy that allows pictures in the file and this one style sheet, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def document(root: ET.Element) -> str:
    """A page's text. Style sheets are written as they are, so they must not come from a run."""
    return "<!DOCTYPE html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def _append_text(parent: ET.Element, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text
