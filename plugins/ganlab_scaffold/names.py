"""The names of a plugin package and its parts, derived from the one name that its author chose."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from ganlab import PluginError
from ganlab.commands import Plugins

# Without the dot that distributions may have: in a module's name it would mean a package.
_DISTRIBUTION = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")
_PREFIX = "ganlab_"
_EXAMPLE = "soft-slope"
# Names that the templates themselves use.
_TAKEN = {"tf", "np", "ganlab_plugins"}


@dataclass(frozen=True)
class Names:
    """The names of one plugin package.

    Attributes:
        distribution: The name for pip and of the folder: `ganlab-soft-slope`.
        module: The name of the Python module and of the entry point: `ganlab_soft_slope`.
        component: The component's name in experiment files, after its kind: `soft_slope`.
        class_name: The name of the class: `SoftSlope`.
        kind: The component's kind, as in experiment files: `constraints`.
    """

    distribution: str
    module: str
    component: str
    class_name: str
    kind: str

    @property
    def selector(self) -> str:
        """The component's name in experiment files: `constraints.soft_slope`."""
        return f"{self.kind}.{self.component}"


def names(name: str, kind: str) -> Names:
    """Derives all names from the package's; the component's name lacks the prefix `ganlab-` that packages have.

    Raises:
        PluginError: The name cannot be that of a distribution, a module and a component at once.
    """
    found = _derived(name, kind)
    if found is None:
        cleaned = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")
        example = cleaned if _derived(cleaned, kind) else _EXAMPLE
        raise PluginError(
            f"{name!r} cannot name a plugin: the package, its module and its component get this name. Begin with a "
            "letter, use ASCII letters, digits and single '-' or '_' between them, and do not use a Python keyword. "
            f"For example: ganlab plugins new {example}"
        )
    return found


def check_free(names: Names, folder: Path, plugins: Plugins) -> None:
    """Refuses names that are already in use.

    Args:
        names: The names of a new package.
        folder: The folder to be written.
        plugins: The plugins of this environment.

    Raises:
        PluginError: The folder, the distribution, the module, the plugin or the component exists.
    """
    other = "Choose another name"
    if folder.exists() or folder.is_symlink():
        raise PluginError(f"{folder} already exists. {other}, or another --directory.")
    component = plugins.components.get((names.kind, names.component))
    if component is not None:
        owner = f"{component.plugin.distribution} {component.plugin.version}".strip()
        raise PluginError(f"{names.selector} already exists: {component.plugin.name!r} of {owner} offers it. {other}.")
    if any(row.name == names.module for row in plugins.rows):
        raise PluginError(f"There is already a plugin {names.module!r}; 'ganlab plugins' lists them. {other}.")
    try:
        version = importlib.metadata.version(names.distribution)
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        raise PluginError(
            f"The distribution {names.distribution} {version} is installed, and installing the plugin would replace "
            f"it. {other}."
        )
    if _is_module(names.module):
        raise PluginError(f"There is a Python module {names.module!r}, which the plugin's module would hide. {other}.")


def _derived(name: str, kind: str) -> Names | None:
    module = name.lower().replace("-", "_")
    component = module.removeprefix(_PREFIX)
    class_name = "".join(word[:1].upper() + word[1:] for word in component.split("_"))
    words = (module, component, class_name)
    if not _DISTRIBUTION.fullmatch(name) or any(keyword.iskeyword(word) or word in _TAKEN for word in words):
        return None
    return Names(name, module, component, class_name, kind) if component.isidentifier() else None


def _is_module(name: str) -> bool:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    # A folder without __init__.py on the path, for example in the working directory, is not somebody's module.
    return spec is not None and spec.origin is not None
