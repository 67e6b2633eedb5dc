"""Documents as Markdown and LaTeX: every text from a run passes through the one door of each language."""

from __future__ import annotations

import re
from typing import Any

from ganlab.files import line
from ganlab_compare.pages import environment

# Characters that mean something in a line of Markdown, in a table or in HTML.
_MARKUP = re.compile(r"[\\`*_{}\[\]<>|#&~$]")
# A minus before a number; and what LaTeX obeys or joins, or what the usual fonts of pdfLaTeX lack.
_SPECIAL = re.compile(r"(?P<minus>(?<![\w)\]])-(?=\d))|-(?=-)|'(?=')|[^-'A-Za-z0-9 .,:;!?@+/=()À-ÏÑ-ÖØ-Ýß-ïñ-öø-ýÿ]")
_LATEX = {
    **{char: f"\\{char}" for char in "{}$&#%"},
    **{char: f"{{{char}}}" for char in "[]*-'`"},
    **{char: rf"\text{name}{{}}" for char, name in zip("<>|", ("less", "greater", "bar"), strict=True)},
    **{char: rf"\textascii{name}{{}}" for char, name in zip("^~", ("circum", "tilde"), strict=True)},
    "\\": r"\textbackslash{}",
    '"': "''",
    "_": r"\_\allowbreak{}",  # a long name may be wrapped
}


def markdown_escaped(text: object) -> str:
    """A text as one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\g<0>", line(text))


def latex_escaped(text: object) -> str:
    """A text as one line that pdfLaTeX prints as it is; a character that its fonts lack is printed as its number."""

    def letter(found: re.Match[str]) -> str:
        return "$-$" if found["minus"] else _LATEX.get(found.group(), f"U+{ord(found.group()):04X}")

    return _SPECIAL.sub(letter, line(text))


def rendered(template: str, language: str, **values: Any) -> str:
    """A document from a template, to which the file with macros of the language, `markdown` or `latex`, is `macros`.

    Every text is escaped where it stands.
    """
    door = {"markdown": markdown_escaped, "latex": latex_escaped}[language]
    text = environment("ganlab_compare", door).get_template(template).render(macros=f"{language}.txt", **values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
