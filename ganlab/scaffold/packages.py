"""A plugin package from its template: whole, or not at all."""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from string import Template

from ganlab.errors import PluginError
from ganlab.interfaces.hookspecs import CONTRACT
from ganlab.plugins.manager import discover
from ganlab.scaffold.names import check_free, names
from ganlab.version import __version__

# What can be made, with the name that experiment files have for it.
TEMPLATES = {
    "constraint": "constraints",
    "architecture": "architectures",
    "dataset": "datasets",
    "loss": "losses",
    "evaluator": "evaluators",
    "strategy": "strategies",
    "optimizer": "optimizers",
    "diagnostic": "diagnostics",
    "features": "features",
}
# And what no experiment file names: started by options of `ganlab sweep`, or by itself.
OTHERS = {"launcher": "launchers", "search": "searches", "tracker": "trackers", "command": "commands"}
# How each of these is tried.
_TRIED = {
    "launcher": "ganlab sweep --gin {gin} --seeds 0..1 --launcher {component}",
    "search": "ganlab sweep --gin {gin} --search {component} --grid 'experiment.critic_steps=[1, 5]'",
    "command": "ganlab {command} --help",
}
_FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class NewPlugin:
    """A package that was written.

    Attributes:
        folder: Its folder.
        module: The file with the component.
        experiment: The experiment file that uses it.
        selector: The component's name in experiment files; that of a tracker or a command alone.
        next: The command that tries it.
    """

    folder: Path
    module: Path
    experiment: Path | None
    selector: str
    next: str


def new_plugin(name: str, kind: str, directory: Path) -> NewPlugin:
    """Writes an installable package with a component that works, its tests, an experiment and a README.

    Args:
        name: What the distribution is called, and the folder.
        kind: One of `TEMPLATES` or `OTHERS`.
        directory: Where the folder goes.

    Returns:
        What was written.

    Raises:
        PluginError: The name cannot be used or is taken, or the folder cannot be written. Nothing is left then.
    """
    called = names(name, {**TEMPLATES, **OTHERS}[kind])
    folder = directory / name
    check_free(called, folder, discover())
    files = {
        "pyproject.toml": _FOLDER / "pyproject.toml.in",
        "README.md": _FOLDER / "README.md.in",
        ".gitignore": _FOLDER / "gitignore.in",
        f"src/{called.module}/__init__.py": _FOLDER / kind / "component.py.in",
        f"tests/test_{called.component}.py": _FOLDER / kind / "test.py.in",
    }
    has_file = (_FOLDER / kind / "experiment.gin.in").is_file()
    if has_file:
        files[f"{called.component}.gin"] = _FOLDER / kind / "experiment.gin.in"
    command = called.component.replace("_", "-")
    selector = called.component if kind == "tracker" else command if kind == "command" else called.selector
    tried = _TRIED.get(kind, "ganlab run --gin {gin}")
    explained = kind in TEMPLATES
    values = {
        "distribution": called.distribution,
        "module": called.module,
        "component": called.component,
        "class_name": called.class_name,
        "selector": selector,
        "command": command,
        "try_it": tried.format(gin=f"{called.component}.gin", component=called.component, command=command),
        "verify": f"\nganlab verify --gin {called.component}.gin" if explained else "",
        "explain": f", and `ganlab config explain {selector}` prints what can be set" if explained else "",
        "kind": kind,
        "kinds": called.kind,
        "contract": str(CONTRACT),
        "ganlab": ".".join(__version__.split(".")[:2]),
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
    experiment = folder / f"{called.component}.gin" if has_file else None
    gin = shlex.quote(str(experiment))
    following = tried.format(gin=gin, component=called.component, command=command)
    return NewPlugin(folder, module, experiment, selector, following)
