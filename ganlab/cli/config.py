"""`ganlab config`: shows a resolved experiment, and explains settings and metrics."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ganlab.bounds import rule
from ganlab.cli.messages import say, say_json
from ganlab.cli.options import BESIDE_GIN, HERE, experiment_options, plugin_options
from ganlab.composition import PARTS
from ganlab.config import flatten, render
from ganlab.config.documentation import documentation, of_parameter
from ganlab.config.metric_help import MetricHelp, ending, explain_metric, metric_names
from ganlab.config.registry import EXPERIMENT, Names
from ganlab.errors import ConfigError
from ganlab.plugins.annotations import UNKNOWN, annotation, describe
from ganlab.plugins.catalog import KINDS
from ganlab.plugins.discovery import plugin_file_in
from ganlab.plugins.manager import Plugins
from ganlab.runs.experiment_source import read_experiment, use_plugins
from ganlab.support.formatting import listed
from ganlab.support.names import meant
from ganlab.support.terminal import line


@click.group("config")
def config() -> None:
    """Shows an experiment, or explains components, settings and metrics."""


@config.command("show")
@experiment_options
@plugin_options(BESIDE_GIN)
@click.option("--json", "as_json", is_flag=True, help="Print the settings as JSON, as in a run's run.json.")
def show(
    gin_files: tuple[str, ...],
    params: tuple[str, ...],
    no_plugin: tuple[str, ...],
    plugin_file: Path | None,
    as_json: bool,
) -> None:
    """Prints the whole resolved experiment as a gin file, including every default."""
    if not gin_files:
        raise click.UsageError("Missing experiment: name a FILE, for example 'ganlab config show quickstart'.")
    use_plugins(no_plugin, plugin_file, gin_files[0])
    recipe = read_experiment(gin_files, params)
    if as_json:
        say_json(flatten(recipe))
    else:
        say(render(recipe, defaults=True), nl=False)


@config.command("explain")
@click.argument("name")
@plugin_options(HERE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def explain(name: str, no_plugin: tuple[str, ...], plugin_file: Path | None, as_json: bool) -> None:
    """Explains NAME: a component with its parameters and documentation, one of its settings, or a metric.

    NAME is `experiment`, a component such as `constraints.gradient_penalty` (or its last part if that is unique), a
    setting such as `experiment.steps`, a kind of component such as `datasets`, or a metric's tag as in TensorBoard and
    metrics.jsonl, for example `critic/loss`.

    \b
    ganlab config explain gradient_penalty
    ganlab config explain gradient_penalty.weight
    ganlab config explain critic/loss
    ganlab config explain constraints/gradient_penalty/slope
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    plugins = use_plugins(no_plugin, plugin_file or plugin_file_in(Path()))
    names = Names(plugins)
    asked = name.removeprefix("@").removesuffix("()")
    owner, _, parameter = asked.rpartition(".")
    settings = meant(asked, {spelling: name for name in _settings(names) for spelling in _spellings(name)})
    if asked == EXPERIMENT or names.known(asked):
        _explain_component(EXPERIMENT if name == EXPERIMENT else names.component(asked), names, as_json=as_json)
    elif asked in KINDS:
        _explain_kind(asked, plugins, as_json=as_json)
    elif len(settings) == 1 and not ending(asked, names) and not plugins.known_as(asked):
        selector, _, parameter = settings[0].rpartition(".")
        _explain_setting(selector, names.parameter(selector, parameter), names, as_json=as_json)
    elif "/" in name or name in metric_names(names):
        _explain_metric(explain_metric(name, names), plugins, as_json=as_json)
    elif owner == EXPERIMENT or names.known(owner):
        names.parameter(EXPERIMENT if owner == EXPERIMENT else names.component(owner), parameter)  # there is none
    else:
        _refuse(asked, settings, names)


def _settings(names: Names) -> list[str]:
    selectors = [selector for selector in (EXPERIMENT, *names.selectors) if not names.clash(selector)]
    return [f"{selector}.{parameter}" for selector in selectors for parameter in names.parameters(selector)]


def _spellings(setting: str) -> list[str]:
    """A setting's name, alone and with each part of an experiment that it may be one of."""
    return [setting, *(f"{part}/{setting}" for part, kind in PARTS.items() if setting.startswith(f"{kind}."))]


def _refuse(name: str, settings: Sequence[str], names: Names) -> None:
    metrics = ending(name, names)
    if settings and not metrics:
        raise ConfigError(f"{name!r} may be one of these settings: {listed(settings, 12)}. Give one in full.")
    try:
        names.component(name)
    except ConfigError as error:
        if metrics:
            raise ConfigError(f"{error} Metrics that end in this name: {', '.join(metrics)}.") from None
        raise


def component_data(selector: str, names: Names) -> dict[str, Any]:
    """A component, or the experiment, with its parameters: what `--json` prints and the reference's pages show."""
    make, origin = names.make(selector), _origin(names.plugins, selector).strip(" ()")
    settings = [_as_data(make, parameter) for parameter in names.parameters(selector).values()]
    return {"name": selector, "origin": origin, "parameters": settings, "documentation": documentation(make)}


def _explain_component(selector: str, names: Names, *, as_json: bool) -> None:
    data = component_data(selector, names)
    if as_json:
        say_json(data)
        return
    lines = [f"  {_setting(selector, setting)}" for setting in data["parameters"]]
    head = f"{selector}{_origin(names.plugins, selector)}"
    say("\n".join([head, "", *lines, "", data["documentation"]]).rstrip())


def _explain_setting(selector: str, parameter: inspect.Parameter, names: Names, *, as_json: bool) -> None:
    data = _as_data(names.make(selector), parameter)
    if as_json:
        say_json({**data, "name": f"{selector}.{parameter.name}"})
        return
    text = data["documentation"]
    about = textwrap.fill(text, 100, break_long_words=False) if text else documentation(names.make(selector))
    say(f"{_setting(selector, data)}\n\n{about}")


def _explain_kind(kind: str, plugins: Plugins, *, as_json: bool) -> None:
    offered = sorted((one.name, one.summary) for one in plugins.components.values() if one.kind == kind)
    if as_json:
        components = [{"name": f"{kind}.{name}", "summary": summary} for name, summary in offered]
        say_json({"name": kind, "components": components})
        return
    say(f"{kind}, a kind of component\n")
    for name, summary in offered:
        say(line(f"  {kind}.{name}: {summary}"))


def _explain_metric(metric: MetricHelp, plugins: Plugins, *, as_json: bool) -> None:
    origin = _origin(plugins, metric.selector) if metric.selector else ""
    if as_json:
        data = {"name": metric.name, "origin": origin.strip(" ()"), "logged_by": metric.selector}
        say_json({**data, "documentation": "\n\n".join(metric.texts)})
        return
    logged = f"logged by {metric.selector}{origin}" if metric.selector else "logged by ganlab"
    say(f"{metric.name}, {logged}")
    for text in metric.texts:
        lines = text if "\n" in text else textwrap.fill(text, 100, break_long_words=False)
        say(f"\n{lines}")


def _origin(plugins: Plugins, selector: str) -> str:
    kind, dot, last = selector.partition(".")
    if not dot:  # the experiment, which no plugin offers
        return ""
    plugin = plugins.component(kind, last).plugin
    return f" ({plugin.distribution} {plugin.version}".rstrip() + ")"


def _setting(selector: str, data: Mapping[str, Any]) -> str:
    kind = f": {data['type']}" if data["type"] else ""
    default = "(required)" if data["required"] else f"= {data['default']!r}"
    return f"{selector}.{data['name']}{kind} {default}" + (f"  ({data['bound']})" if "bound" in data else "")


def _as_data(make: Callable[..., Any], parameter: inspect.Parameter) -> dict[str, Any]:
    hint, bound = _hint(make, parameter)
    required = parameter.default is inspect.Parameter.empty
    optional = {} if required else {"default": parameter.default}
    optional |= {"bound": bound} if bound else {}
    about = of_parameter(make, parameter.name)
    return {"name": parameter.name, "type": hint, "required": required, **optional, "documentation": about}


def _hint(make: Callable[..., Any], parameter: inspect.Parameter) -> tuple[str, str]:
    """A parameter's type and its bounds, each empty if it has none."""
    if parameter.annotation is inspect.Parameter.empty:
        return "", ""
    hint = annotation(make, parameter.name)
    if hint is not UNKNOWN and (bound := rule(hint)):
        return describe(hint), bound
    hint = parameter.annotation
    return (hint if isinstance(hint, str) else inspect.formatannotation(hint)), ""
