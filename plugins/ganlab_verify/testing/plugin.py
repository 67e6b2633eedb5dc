"""The pytest plugin, found by its entry point in every run of pytest: light until a test needs it."""

from __future__ import annotations

from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts first the tests of a conformance class that the others depend on."""
    first: dict[Any, int] = {}
    keys = {}
    for place, item in enumerate(items):
        kind, later = _class(item), not getattr(getattr(item, "function", None), "comes_first", False)
        conforms = hasattr(kind, "let_go")
        keys[item] = (first.setdefault(kind, place), later, place) if conforms else (place, later, place)
    items.sort(key=keys.__getitem__)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Splits the CPU if a selected test needs replicas: now, because any test may be the first to use TensorFlow."""
    if session.config.option.collectonly:
        return
    if any("ganlab_cpus" in getattr(item, "fixturenames", ()) for item in session.items):
        from ganlab_verify.testing.devices import split_cpu

        split_cpu()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Releases a conformance class after its last test: its graphs are large, and there may be many classes."""
    here, after = _class(item), _class(nextitem)
    if here is not after and "ganlab_cpus" in getattr(item, "fixturenames", ()) and hasattr(here, "let_go"):
        here.let_go()


def _class(item: pytest.Item | None) -> Any:
    return getattr(item, "cls", None)


@pytest.fixture(scope="session")
def ganlab_cpus() -> list[str]:
    """The names of four logical CPUs, for tests that train on replicas: `mirrored(devices=ganlab_cpus[:2])`."""
    from ganlab.errors import IncompatibleError
    from ganlab_verify.testing.devices import cpus

    try:
        return cpus()
    except IncompatibleError as error:
        pytest.fail(str(error), pytrace=False)
