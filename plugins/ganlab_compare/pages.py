"""Pages of one HTML file from templates: all text is escaped, and nothing in a page runs or is requested."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# Control characters and separators of lines other than newline and tab, and halves of surrogate pairs: HTML has no
# character for most of them, and JSON can hold them all.
# Beside them, marks that turn the direction of writing: a reader would take one name for another.
_UNSPEAKABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def page(package: str, template: str, *, title: str, style: str = "", **values: Any) -> str:
    """A page without requests or scripts: a policy of its own forbids everything that is not in the file.

    Args:
        package: The package whose folder `templates` has the template. It may extend this package's `page.html`, for
            which it sets `sections`, and import the macros of `parts.html`.
        template: The template's name.
        title: The page's title.
        style: Rules beyond those of every page, which must not come from a run.
        **values: What the template uses. Every text is escaped where it stands.
    """
    style = resources.files(__package__).joinpath("templates", "page.css").read_text(encoding="utf-8") + style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    from markupsafe import Markup

    compiled = environment(package).get_template(template)
    text = compiled.render(title=title, style=Markup(style), policy=Markup(policy), **values)
    return _UNSPEAKABLE.sub("\N{REPLACEMENT CHARACTER}", text) + "\n"


@functools.cache
def environment(package: str, door: Callable[[object], str] | None = None) -> Environment:
    """The templates of a package; with a door, texts pass through it in place of HTML's."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    jinja = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("ganlab_compare")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
        finalize=door and (lambda value: value if isinstance(value, Markup) else Markup(door(value))),
    )
    jinja.filters.update(breakable=_breakable, label=_label, exact=repr, tenths=lambda value: f"{float(value):.1f}")
    return jinja


def _breakable(name: str) -> Markup:
    """A name that may be wrapped after its separators, and is whole when copied."""
    from markupsafe import Markup

    return Markup("<span>{}</span>").format(Markup("<wbr>").join(_parts_of(name)))


def _label(name: str) -> str:
    """A name for an attribute, that may be wrapped after its separators."""
    return "\N{ZERO WIDTH SPACE}".join(_parts_of(name))


def _parts_of(name: str) -> list[str]:
    return re.split(r"(?<=[/._=])(?=\w{3})", name)
