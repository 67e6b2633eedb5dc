"""Reads HTML back: elements with attributes and text, and whether every opened one is closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "img", "input", "wbr", "br", "link", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def classes(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    def all(self, tag: str | None = None, **attributes: str) -> list[Element]:
        """The elements below, in order, of a tag and with attributes (`class_` is one of the classes)."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if tag in (None, child.tag) and all(child._has(*item) for item in attributes.items()):
                    found.append(child)
                found += child.all(tag, **attributes)
        return found

    def one(self, tag: str | None = None, **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found

    def _has(self, name: str, value: str) -> bool:
        if name == "class_":
            return value in self.classes
        return self.attributes.get(name.replace("_", "-")) == value


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        made = Element(tag, dict(attrs))
        self.open[-1].children.append(made)
        if tag not in _VOID:
            self.open.append(made)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)

    def unknown_decl(self, data):
        raise AssertionError(f"<![{data}]>")

    def handle_comment(self, data):
        raise AssertionError(f"<!--{data}-->")


def read(page: str) -> Element:
    """The page's root. Raises AssertionError if it is not balanced."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> is not closed"
    return reader.open[0]
