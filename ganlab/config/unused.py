"""Finds settings without effect: such a binding is a mistake, which gin ignores silently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ganlab import composition
from ganlab.config.parser import Binding
from ganlab.config.registry import EXPERIMENT
from ganlab.config.resolver import Resolver
from ganlab.errors import ConfigError


def check(files: Sequence[Path | None], bindings: Sequence[Binding], final: Resolver) -> None:
    """Refuses bindings that have no effect, with the reason; the arguments are those of `without_effect`."""
    for binding, reason in without_effect(files, bindings, final):
        raise ConfigError(f"{binding.where}: {reason}")


def without_effect(
    files: Sequence[Path | None], bindings: Sequence[Binding], final: Resolver
) -> Iterator[tuple[Binding, str]]:
    """The bindings without effect, each with the reason.

    A binding of an included file is a default and may have no effect. One of a named file must reach the experiment as
    it is after that file, or the final one: so an override may make settings for the file's own choice obsolete. A
    `--param` must reach the final experiment.

    Args:
        files: The path of each source by its number; None for a `--param`.
        bindings: The bindings of all sources, in order.
        final: The resolver of all bindings.
    """
    for source, path in enumerate(files):
        candidates = [b for b in bindings if b.source == source and not b.included and b not in final.used]
        if not candidates:
            continue
        judge = final
        if path is not None:
            judge = Resolver(final.names, [b for b in bindings if b.source <= source], strict=False)
            judge.experiment()
        for binding in candidates:
            if binding not in judge.used:
                yield binding, _reason(binding, judge)


def _reason(binding: Binding, judge: Resolver) -> str:
    standing = judge.bindings[binding.key]
    if standing is not binding:
        return f"{binding.name} = {binding.value!r} has no effect: {standing.where} sets it again. Remove one of them."
    if not binding.selector:
        hint = (
            f" Did you mean {EXPERIMENT}.{binding.parameter}?" if binding.parameter in composition.parameters() else ""
        )
        return (
            f"the macro {binding.parameter} = {binding.value!r} is never used.{hint} Write %{binding.parameter} "
            "where it is wanted, or remove it."
        )
    start = f"{binding.name} = {binding.value!r} has no effect:"
    scopes = judge.reached.get(binding.selector)
    if not scopes:
        return (
            f"{start} nothing in the experiment uses {binding.selector}. Use @{binding.selector}() or remove the line."
        )
    if not any(scope[: len(binding.scope)] == binding.scope for scope in scopes):
        named = sorted(f"in {'/'.join(scope)!r}" if scope else "without a scope" for scope in scopes)
        return (
            f"{start} {binding.selector} is not used in the scope {'/'.join(binding.scope)!r}. "
            f"It is used {', '.join(named)}."
        )
    inner = [
        other.where
        for other in judge.used
        if (other.selector, other.parameter) == (binding.selector, binding.parameter)
    ]
    return f"{start} every use of {binding.selector} sets it in a scope, at {', '.join(sorted(inner))}."
