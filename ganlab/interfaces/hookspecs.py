"""The plugin contract: the hooks that a plugin may implement, one for each kind of contribution.

A plugin is a module (or object) named by an entry point of the group `ganlab`, or a `ganlab_plugins.py` beside the
experiment file. It implements any of these with `@ganlab.hookimpl`. The component hooks return `{name: factory}`;
a factory is a class or function with typed, documented keyword parameters and no `**kwargs`: `@kind.name()` in gin.

A plugin may declare the contract that it was written for, at the top of its module: `GANLAB_CONTRACT = 3`. If that is
not one of `CONTRACTS`, the plugin is listed as incompatible and not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import click

    from ganlab.interfaces.dataset import Dataset
    from ganlab.interfaces.record import Record
    from ganlab.interfaces.run import Run

# Bump it on any change that can break existing plugins. New hooks, methods with a default and fields do not count: a
# plugin that needs them requires the version of ganlab that has them, as any package does.
CONTRACT = 3
# Those whose plugins work here. What each added to methods are optional parameters, which earlier plugins do not name.
CONTRACTS = (1, 2, 3)

hookspec = pluggy.HookspecMarker("ganlab")
hookimpl = pluggy.HookimplMarker("ganlab")

Factories = dict[str, Callable[..., Any]]


@hookspec
def ganlab_constraints() -> Factories:  # type: ignore[empty-body]
    """Ways to keep a critic Lipschitz, each a factory of a `ganlab.Constraint`: `{"r1": R1}`."""


@hookspec
def ganlab_architectures() -> Factories:  # type: ignore[empty-body]
    """Pairs of generator and critic, each a factory of a `ganlab.Architecture`: `{"dcgan": DCGAN}`."""


@hookspec
def ganlab_strategies() -> Factories:  # type: ignore[empty-body]
    """Ways to distribute, each a factory of a `tf.distribute.Strategy`: `{"mirrored": mirrored}`."""


@hookspec
def ganlab_datasets() -> Factories:  # type: ignore[empty-body]
    """Data, each a factory of a `ganlab.Dataset`: `{"digits": Digits}`."""


@hookspec
def ganlab_losses() -> Factories:  # type: ignore[empty-body]
    """Losses of critic and generator, each a factory of a `ganlab.Loss`: `{"hinge": Hinge}`."""


@hookspec
def ganlab_augmentations() -> Factories:  # type: ignore[empty-body]
    """Changes of the examples that the critic sees, each a factory of a `ganlab.Augmentation`: `{"ada": ADA}`."""


@hookspec
def ganlab_schedules() -> Factories:  # type: ignore[empty-body]
    """Values by the step, for float parameters, each a factory of a `ganlab.Schedule`: `{"linear": Linear}`."""


@hookspec
def ganlab_evaluators() -> Factories:  # type: ignore[empty-body]
    """Measures of a trained generator, each a factory of a `ganlab.Evaluator`: `{"mode_coverage": ModeCoverage}`."""


@hookspec
def ganlab_diagnostics() -> Factories:  # type: ignore[empty-body]
    """Ways to look at a critic, each a factory of a `ganlab.Diagnostic`: `{"slopes": Slopes}`."""


@hookspec
def ganlab_features() -> Factories:  # type: ignore[empty-body]
    """Features that evaluators compare, each a factory of a `ganlab.Features`: `{"classifier": Classifier}`."""


@hookspec
def ganlab_optimizers() -> Factories:  # type: ignore[empty-body]
    """Optimizers, each a factory of a `keras.optimizers.Optimizer`: `{"adam": adam}`."""


@hookspec
def ganlab_launchers() -> Factories:  # type: ignore[empty-body]
    """Launchers of a sweep's trials, each a factory of a `ganlab.Launcher`: `{"local": Local}`."""


@hookspec
def ganlab_searches() -> Factories:  # type: ignore[empty-body]
    """Searches for the settings of a sweep's trials, each a factory of a `ganlab.Search`: `{"grid": Grid}`."""


@hookspec
def ganlab_defaults() -> dict[str, str]:  # type: ignore[empty-body]
    """The components of parts that an experiment leaves out, by part: `{"loss": "hinge"}`. The last plugin decides."""


@hookspec
def ganlab_data(data: Any) -> Dataset | None:
    """The dataset of an object that Python gives in place of one, such as an array; None if it is not the plugin's."""


@hookspec
def ganlab_run_start(run: Run) -> None:
    """Called once when a run's directory exists and training is about to start: for example, open a tracker."""


@hookspec
def ganlab_metrics(run: Run, records: Sequence[Record]) -> None:
    """Called with the metrics of each logged step: `for r in records: send(r.step, r.tag, r.reduced, r.replicas)`."""


@hookspec
def ganlab_run_end(run: Run, status: str) -> None:
    """Called once at the end with `completed`, `interrupted`, `failed` or `diverged`: for example, close a tracker."""


@hookspec
def ganlab_open_runs(address: str, use: str) -> Any:
    """Opens an address such as `s3://bucket/runs` while a command runs; None if it is not the plugin's.

    `use` is "list" (checkpoints are not needed), "read", "resume" or "create". The context manager gives the local
    folder to use in its place, and a function `(path, again)`. It is called before the run is trained, with its path
    below that folder; with `again`, a run that is at the address already is continued, and otherwise refused.
    """


@hookspec
def ganlab_register_commands(cli: click.Group) -> None:
    """Adds commands to `ganlab`: `cli.add_command(my_command)`."""
