"""Runs a conformance class without pytest's reports; returns the outcome of each test."""

import pytest

from ganlab.testing import ConstraintConformance


def tests_of(kind):
    """The names of a class's tests, in the order in which pytest runs them."""
    names = [name for base in reversed(kind.__mro__) for name in vars(base) if name.startswith("test_")]
    return sorted(names, key=lambda name: not getattr(kind, name).comes_first)


def conformance(make, base=ConstraintConformance, **overrides):
    """A conformance class as an author writes it."""
    return type(f"Test{make.__name__}", (base,), {"make": lambda self: make(), **overrides})


def outcomes(kind, only=()):
    """By test, "passed", "skipped: ..." or the message that it failed with."""
    found = {}
    for name in tests_of(kind):
        if only and name not in only:
            continue
        try:
            getattr(kind(), name)()
        except pytest.skip.Exception as skipped:
            found[name] = f"skipped: {skipped}"
        except pytest.fail.Exception as failed:
            found[name] = str(failed)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
        else:
            found[name] = "passed"
    kind.let_go()
    return found
