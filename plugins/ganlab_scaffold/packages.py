"""Creates a plugin package from its template, completely or not at all."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from string import Template

from ganlab import CONTRACT, PluginError, __version__
from ganlab.commands import plugins
from ganlab.files import scratch_folder
from ganlab_scaffold.names import check_free, names

# The templates of components, with their kinds' names in experiment files.
TEMPLATES = {
    "constraint": "constraints",
    "architecture": "architectures",
    "dataset": "datasets",
    "loss": "losses",
    "augmentation": "augmentations",
    "schedule": "schedules",
    "evaluator": "evaluators",
    "strategy": "strategies",
    "optimizer": "optimizers",
    "diagnostic": "diagnostics",
    "features": "features",
}
# The templates of parts that no experiment file names: options of `ganlab sweep` select them, or they need no option.
OTHERS = {"launcher": "launchers", "search": "searches", "tracker": "trackers", "command": "commands"}
# The commands that try these parts.
_TRIED = {
    "launcher": "ganlab sweep --gin {gin} --seeds 0..1 --launcher {component}",
    "search": "ganlab sweep --gin {gin} --search {component} --grid 'experiment.critic_steps=[1, 5]'",
    "command": "ganlab {command} --help",
}
_FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class NewPlugin:
    """A new package.

    Attributes:
        folder: Its folder.
        module: The file with the component.
        experiment: The experiment file that uses the component.
        selector: The component's name in experiment files, or the bare name of a tracker or a command.
        next: The command that tries the component.
    """

    folder: Path
    module: Path
    experiment: Path | None
    selector: str
    next: str


def new_plugin(name: str, kind: str, directory: Path) -> NewPlugin:
    """Writes an installable package: a working component, its tests and their workflow, an experiment and a README.

    Args:
        name: The name of the distribution and of the folder.
        kind: One of `TEMPLATES` or `OTHERS`.
        directory: The directory in which to create the folder.

    Returns:
        The new package.

    Raises:
        PluginError: The name is invalid or taken, or the folder cannot be written. Then no file is left behind.
    """
    called = names(name, {**TEMPLATES, **OTHERS}[kind])
    folder = directory / name
    check_free(called, folder, plugins.discover())
    files = {
        "pyproject.toml": _FOLDER / "pyproject.toml.in",
        "README.md": _FOLDER / "README.md.in",
        ".gitignore": _FOLDER / "gitignore.in",
        ".github/workflows/test.yml": _FOLDER / "workflow.yml.in",
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
        "explain": f", and `ganlab config explain {selector}` lists its settings" if explained else "",
        "kind": kind,
        "kinds": called.kind,
        "contract": str(CONTRACT),
        "ganlab": ".".join(__version__.split(".")[:2]),
    }
    try:
        # In the same directory, so that a rename puts the folder in place in one step.
        with scratch_folder(".ganlab-new-", directory) as work:
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
