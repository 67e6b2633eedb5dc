"""First-party searches over a sweep's settings, registered through this package's entry point like any plugin's."""

from __future__ import annotations

from collections.abc import Callable

import ganlab
from ganlab_builtin.searches.grid import Grid
from ganlab_builtin.searches.random_search import Random
from ganlab_builtin.searches.tpe import Optuna

GANLAB_KNOWN_AS = {
    "searches.optuna": ["tpe", "bayes", "bayesian"],
    "searches.random": ["random_search"],
}


@ganlab.hookimpl
def ganlab_searches() -> dict[str, Callable[..., ganlab.Search]]:
    """The searches of this package."""
    return {"grid": Grid, "optuna": Optuna, "random": Random}
