"""A plugin package from its template: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from string import Template

import ganlab
from ganlab.authoring.names import check_free, names
from ganlab.errors import PluginError
from ganlab.plugins import discover

# What can be made, with the name that experiment files have for it.
TEMPLATES = {
    "constraint": "constraints",
    "architecture": "architectures",
    "dataset": "datasets",
    "loss": "losses",
    "evaluator": "evaluators",
    "strategy": "strategies",
    "optimizer": "optimizers",
}
_FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class NewPlugin:
    """A package that was written.

    Attributes:
        folder: Its folder.
        module: The file with the component.
        experiment: The experiment file that uses it.
        selector: The component's name in experiment files.
    """

    folder: Path
    module: Path
    experiment: Path
    selector: str


def new_plugin(name: str, kind: str, directory: Path) -> NewPlugin:
    """Writes an installable package with a component that works, its tests, an experiment and a README.

    Args:
        name: What the distribution is called, and the folder.
        kind: One of `TEMPLATES`.
        directory: Where the folder goes.

    Returns:
        What was written.

    Raises:
        PluginError: The name cannot be used or is taken, or the folder cannot be written. Nothing is left then.
    """
    called = names(name, TEMPLATES[kind])
    folder = directory / name
    check_free(called, folder, discover())
    files = {
        "pyproject.toml": _FOLDER / "pyproject.toml.in",
        "README.md": _FOLDER / "README.md.in",
        ".gitignore": _FOLDER / "gitignore.in",
        f"{called.component}.gin": _FOLDER / kind / "experiment.gin.in",
        f"src/{called.module}/__init__.py": _FOLDER / kind / "component.py.in",
        f"tests/test_{called.component}.py": _FOLDER / kind / "test.py.in",
    }
    values = {
        "distribution": called.distribution,
        "module": called.module,
        "component": called.component,
        "class_name": called.class_name,
        "selector": called.selector,
        "kind": kind,
        "kinds": called.kind,
        "contract": str(ganlab.CONTRACT),
        "ganlab": ".".join(ganlab.__version__.split(".")[:2]),
    }
    try:
        # Beside its place, so that moving it there is one step.
        with tempfile.TemporaryDirectory(dir=directory, prefix=".ganlab-new-") as work:
            for path, template in files.items():
                target = Path(work, name, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                text = Template(template.read_text(encoding="utf-8")).substitute(values)
                target.write_text(text, encoding="utf-8")
            os.rename(Path(work, name), folder)
    except OSError as error:
        raise PluginError(f"{folder} cannot be written: {error.strerror}. Choose another --directory.") from None
    module = folder / "src" / called.module / "__init__.py"
    return NewPlugin(folder, module, folder / f"{called.component}.gin", called.selector)
