"""Explanations of metrics: the core's own are here, all others in the `metric_help` of the class that logs them."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ganlab.composition import LISTS, MAPPINGS, PARTS
from ganlab.config.documentation import of_parameter
from ganlab.config.registry import Names
from ganlab.errors import ConfigError

# What the core logs for every run.
_CORE = {
    "critic/loss": (
        "What the critic minimizes, as a mean over examples: the loss of experiment.loss plus the constraints' "
        "penalties. It shows the state of the game, not the quality of samples: it falls when the critic improves, and "
        "rises when the generator does."
    ),
    "critic/penalty": "The constraints' penalties alone, as a mean over examples; part of critic/loss.",
    "critic/wasserstein": (
        "Mean critic(real) - mean critic(fake), without any penalty. For a critic whose slope is at most 1 it is an "
        "estimate of the Wasserstein-1 distance from below, and falls as samples improve; for other critics it is an "
        "unknown multiple of such an estimate. So it is not comparable between constraints. If it is near 0 from the "
        "start, the critic has vanished; if it is below 0, the critic takes fake examples for real ones."
    ),
    "generator/loss": "What the generator minimizes, as a mean over the samples: its part of experiment.loss.",
    "generator/ready": (
        "The fraction of steps in which the generator moved, where the loss decides it (`ready`). Its other metrics "
        "are of these steps alone."
    ),
    "health": "Problems that constraints, losses, diagnostics and evaluators report now: a text, also in run.json.",
    "warnings": "Warnings of the run during training, each once: texts, also in run.json.",
    "samples": "Pictures of samples at each evaluation, always from the same latent vectors.",
    "experiment": "The experiment with every parameter in use: a text, as in operative.gin.",
}

# Those that are numbers; the others are texts and pictures.
NUMBERS_OF_CORE = tuple(tag for tag in _CORE if "/" in tag)

# Metrics that the core logs in addition to a constraint's own.
_OF_CONSTRAINTS = {
    "lipschitz_bound": (
        "A certified upper bound of the network's Lipschitz constant, at each evaluation: its outputs for two points, "
        "a critic's scores, are never further apart than this times the distance of the points. It may be far above "
        "the measured slopes."
    )
}

# The parts of an experiment whose components explain what they log, by the prefixes of the tags.
EXPLAINING_PARTS = {
    "constraints": "constraints",
    "generator_constraints": "generator_constraints",
    "augmentations": "augmentations",
    "losses": "loss",
    "evaluation": "evaluators",
    "diagnostics": "diagnostics",
}
_KINDS = {prefix: PARTS[part] for prefix, part in EXPLAINING_PARTS.items()}

_SCHEDULE = "The value of {}, which follows a schedule."

_REPLICA = re.compile(r"replica/(\d+|<i>|\*)/(?=.)")
_OF_NETWORK = re.compile(r"network_constraints/\w+/")
_SECOND = re.compile(r"_\d+$")


@dataclass(frozen=True)
class MetricHelp:
    """The explanation of a metric.

    Attributes:
        name: Its tag in full.
        selector: The component that logs it, for example `constraints.gradient_penalty`; empty for the core's metrics.
        texts: The paragraphs of the explanation.
    """

    name: str
    selector: str
    texts: tuple[str, ...]


def explain_metric(name: str, names: Names) -> MetricHelp:
    """Explains a metric by its tag, as metrics.jsonl, run.json and TensorBoard have it.

    `replica/<i>/` may stand before it, and the prefix of its kind may be left out.
    """
    replica = _REPLICA.match(name)
    tag = name[replica.end() :] if replica else name
    # Of a further network: the constraint explains it wherever it stands.
    of_network = _OF_NETWORK.match(tag)
    known = f"constraints/{tag[of_network.end() :]}" if of_network else tag
    explained = (
        _of_core(tag, names)
        or _of_schedule(tag, names)
        or next((one for full in _in_full(known) for one in _of_component(full, names)), None)
    )
    if explained is None:
        raise ConfigError(_unknown(name, tag, names))
    if of_network:
        explained = replace(explained, name=tag)
    if replica:
        whose = f"The value of replica {replica[1]} alone, before replicas are reduced to {explained.name}:"
        return MetricHelp(f"{replica[0]}{explained.name}", explained.selector, (whose, *explained.texts))
    return explained


def metric_names(names: Names) -> Iterator[str]:
    """The tags of all explained metrics; placeholders such as `<layer>` stand for any text."""
    yield from _CORE
    for begin, kind in _KINDS.items():
        if begin == "generator_constraints":  # the same as those of the critic's constraints
            continue
        for selector in names.selectors:
            if selector.startswith(f"{kind}."):
                last = selector.partition(".")[2]
                own = (*_own_help(selector, names), *(_OF_CONSTRAINTS if kind == "constraints" else ()))
                yield from (f"{begin}/{last}/{key}" for key in own)


def ending(name: str, names: Names) -> list[str]:
    """The tags of metrics that end with a name, for example `slope`."""
    return sorted(tag for tag in metric_names(names) if tag.endswith(f"/{name}"))


def figures_of(selector: str, names: Names) -> list[str]:
    """The names of the metrics that a component explains or judges; `<layer>` and the like stand for any text."""
    own = _OF_CONSTRAINTS if selector.startswith("constraints.") else {}
    judged = getattr(names.make(selector), "better", None)
    return [*dict.fromkeys((*_own_help(selector, names), *own, *(judged if isinstance(judged, dict) else ())))]


def nearest_metric(tag: str, known: Iterable[str]) -> str:
    """A sentence that suggests known metrics of the same ending, or a similar one; '' if there are none."""
    known = sorted(known)
    if same := [full for full in known if full.endswith(f"/{tag}")]:
        return f" Metrics that end in this name: {', '.join(same)}."
    # Users leave out the prefix, or know only the last part.
    ends = {end: full for full in known for end in (full.rpartition("/")[2], full.partition("/")[2], full)}
    similar = difflib.get_close_matches(tag, known, n=1) or difflib.get_close_matches(tag, ends, n=1)
    return f" Did you mean {ends[similar[0]]!r}?" if similar else ""


def _of_core(tag: str, names: Names) -> MetricHelp | None:
    if tag not in _CORE:
        return None
    losses = [selector for selector in names.selectors if selector.startswith("losses.")]
    of_losses = {selector: _help_of(selector, names).get(tag) for selector in losses}
    return MetricHelp(tag, "", (_CORE[tag], *(f"With {name}: {text}" for name, text in of_losses.items() if text)))


def _of_schedule(tag: str, names: Names) -> MetricHelp | None:
    """The value of a parameter that follows a schedule: `schedules/<component or part>/<parameter>`, or deeper."""
    begin, _, rest = tag.partition("/")
    name, _, path = rest.partition("/")
    if begin != "schedules":
        return None
    if name in LISTS:  # a prefix, because another list has this name
        name, _, path = path.partition("/")
    parameter = path.partition("/")[0]
    if name in PARTS and name not in LISTS:
        *network, parameter = path.split("/")[:2] if name in MAPPINGS else [parameter]
        if parameter:
            of = f"{name} of the {network[0]}" if network else name
            return MetricHelp(tag, "", (_SCHEDULE.format(f"{parameter} of the experiment's {of}"),))
        return None
    kinds = dict.fromkeys(PARTS[part] for part in LISTS)
    for selector in (f"{kind}.{last}" for last in _bases(name) for kind in kinds):
        if selector in names.selectors and parameter in names.parameters(selector):
            about = of_parameter(names.make(selector), parameter)
            texts = (_SCHEDULE.format(f"{selector}.{parameter}"), *([about] if about else []))
            return MetricHelp(tag, selector, texts)
    return None


def _bases(name: str) -> Iterable[str]:
    """The possible names of a component: the second of a name in an experiment is called `<name>_2`."""
    return dict.fromkeys((name, _SECOND.sub("", name)))


def _in_full(tag: str) -> Iterator[str]:
    """The possible full tags: run.json has those of evaluators and diagnostics without their prefix."""
    yield tag
    yield from (f"{begin}/{tag}" for begin in _KINDS)


def _of_component(tag: str, names: Names) -> Iterator[MetricHelp]:
    begin, _, rest = tag.partition("/")
    name, _, key = rest.partition("/")
    if begin not in _KINDS or not key:
        return
    for last in _bases(name):
        selector = f"{_KINDS[begin]}.{last}"
        if selector not in names.selectors:
            continue
        known = {**_own_help(selector, names), **(_OF_CONSTRAINTS if _KINDS[begin] == "constraints" else {})}
        texts = [text for pattern, text in known.items() if means(pattern, key)]
        if texts:
            yield MetricHelp(tag, selector, tuple(texts))
        elif not _help_of(selector, names):  # its author has explained no metric: show its documentation
            about = f"Logged by {selector}, which does not explain it. The component's documentation:"
            yield MetricHelp(tag, selector, (about, inspect.getdoc(names.make(selector)) or "No documentation."))


def means(pattern: str, key: str) -> bool:
    """Whether a name matches a pattern, or is the pattern itself."""
    parts = (".+" if part.startswith("<") else re.escape(part) for part in re.split(r"(<\w+>)", pattern))
    return pattern == key or re.fullmatch("".join(parts), key) is not None


def _help_of(selector: str, names: Names) -> Mapping[str, str]:
    """The explanations in a component's `metric_help`; empty if that is not a mapping."""
    explanations = getattr(names.make(selector), "metric_help", None)
    return {str(key): str(text) for key, text in explanations.items()} if isinstance(explanations, Mapping) else {}


def _own_help(selector: str, names: Names) -> dict[str, str]:
    """The explanations of what the component itself logs: those of losses explain metrics of the core, too."""
    return {key: text for key, text in _help_of(selector, names).items() if key not in _CORE}


def _unknown(name: str, tag: str, names: Names) -> str:
    near = nearest_metric(tag, metric_names(names))
    return (
        f"Nothing logs a metric {name!r}.{near or ' Metrics are named as in metrics.jsonl, critic/loss for example.'}"
    )
