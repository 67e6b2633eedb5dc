"""The data, code and environment of this process, compared with those that a resumed run has recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ganlab.errors import RunError
from ganlab.interfaces import Dataset
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe
from ganlab.runs.environment import environment
from ganlab.runs.origins import CODE, DATA, ENVIRONMENT, data_of, environment_changes, essence, recorded
from ganlab.runs.sources import of_parts
from ganlab.training.graph.trainer import Trainer


class Origins:
    """Data, code and environment of one `train` call: `fields` has each under its name in run.json."""

    def __init__(self, dataset: Dataset, recipe: Recipe, source: Dataset | None = None) -> None:
        """Looks at the data and the code."""
        self.fields: dict[str, Any] = {DATA: data_of(dataset, source), CODE: of_parts(recipe)}

    def of_trainer(self, trainer: Trainer) -> None:
        """Looks at the environment, and makes sure that all workers have the same data and code."""
        self.fields[ENVIRONMENT] = environment(plugins.current().rows, trainer.compiled)
        if not trainer.alike(essence(self.fields[DATA], self.fields[CODE])):
            raise RunError(
                f"The workers do not all have the same data and code: the dataset {self.fields[DATA]['of']}, or a "
                "module of a plugin, differs between them. Give all of them the same files and start them all again."
            )

    def news(self, info: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
        """The fields that run.json needs because data, code or environment are unrecorded or differ; `say` names each.

        Returns:
            Data, code and environment, each if it differs from the last record, and `environment_changes`.
        """
        if missing := " and ".join(name for name in (DATA, CODE) if recorded(info, name) is None):
            say(f"The run does not record its {missing}: whether they have changed is unknown. From now on, it does.")
        changes = environment_changes(recorded(info, ENVIRONMENT), self.fields[ENVIRONMENT])
        if changes:
            say(
                f"The run is resumed in a different environment ({'; '.join(changes)}). It may differ from a run that "
                "was never stopped, by rounding at least."
            )
        news = {name: value for name, value in self.fields.items() if recorded(info, name) != value}
        return {**news, **({"environment_changes": changes} if changes else {})}
