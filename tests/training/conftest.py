import pytest

import ganlab
from ganlab.plugins import manager as plugins


@pytest.fixture
def plugged():
    """Loads further plugins beside the installed ones: `plugged(spy=Spy())`."""

    def add(**modules):
        found = plugins.discover()
        for name, module in modules.items():
            found.add(plugins.Plugin(name, "tests", ""), lambda module=module: module)
        return plugins.use(found)

    with plugins.using(plugins.current()):
        yield add


@pytest.fixture
def offered(plugged):
    """Loads a plugin that has components of a kind: `offered("constraints", mine=Mine)`."""

    def offer(kind, **components):
        hook = staticmethod(ganlab.hookimpl(lambda: components))
        plugged(own=type("Plugin", (), {f"ganlab_{kind}": hook})())

    return offer


@pytest.fixture(scope="session")
def completed(cpus, tmp_path_factory):
    """A run of `everything` from its first step to its last; not to be changed."""
    from whole_runs import everything

    from ganlab.run import train

    return train(everything(), tmp_path_factory.mktemp("runs") / "group" / "completed")


@pytest.fixture(scope="session")
def whole(cpus):
    """The graph of `everything`. What does not use it builds its own, as a new process does."""
    from whole_runs import Graph, everything

    return Graph(everything())


@pytest.fixture(scope="session")
def brief(cpus):
    """The graph of a small experiment of 4 steps."""
    from small import small
    from whole_runs import Graph

    return Graph(small(0, steps=4))
