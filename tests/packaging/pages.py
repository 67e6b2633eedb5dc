"""Code blocks of the project's pages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(page):
    """The (language, name, text) of every code block of a page in the source tree, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w*) ?([\w.]*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def files_and_commands(found):
    """Of code blocks, the text of each file by its name, and the lines of shell commands."""
    files = {name: text for _, name, text in found if "." in name}
    return files, [line for language, _, text in found if language == "sh" for line in text.splitlines()]
