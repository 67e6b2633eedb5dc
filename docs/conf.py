"""The documentation site: `sphinx-build -W --keep-going -n -q docs build/docs`, with the extra `docs`."""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "plugins"), str(ROOT / "docs")]

from pygments.lexers.python import PythonLexer  # noqa: E402
from sphinx.highlighting import lexers  # noqa: E402

from ganlab.version import __version__  # noqa: E402

project = "ganlab"
author = "The ganlab authors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "component_reference"]
exclude_patterns = ["results/*/*.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]

autodoc_typehints = "none"  # signatures have them
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False

# Types of packages whose inventories a build without a network cannot fetch.
nitpick_ignore_regex = [
    (r"py:.*", r"(tf|tensorflow|np|numpy|keras|collections|pathlib|click)\..*"),
    (r"py:exc", r"ganlab\.\w+Error"),  # documented where they are defined, in ganlab.errors
    (r"py:class", r"Shape|ganlab_sweep\.trial\.Trial"),
    (r"py:class", r"ganlab\.layers\.(base\.Layer|\w+\._\w+)"),  # what layers share
]
# Links to files outside docs/, which tests/packaging/test_papers.py holds to what is there.
suppress_warnings = ["myst.xref_missing"]

lexers["gin"] = PythonLexer()

html_theme = "furo"
html_title = f"ganlab {release}"
html_static_path: list[str] = []


def _names(app: Any, what: str, name: str, module: Any, options: Any, lines: list[str]) -> None:
    """Lists the names of the modules for applications; the docstring of each describes it."""
    if name in ("ganlab.commands", "ganlab.comparing", "ganlab.engine", "ganlab.files"):
        lines += [", ".join(f"``{public}``" for public in module.__all__) + ".", ""]


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _names)
