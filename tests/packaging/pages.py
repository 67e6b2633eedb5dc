"""Code blocks of the project's pages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(page):
    """The (language, name, text) of every code block of a page in the source tree, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w*) ?([\w.]*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
