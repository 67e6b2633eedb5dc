"""The common base of the conformance classes: the component under test, checks with messages, shared objects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ganlab.errors import GanlabError, MissingDependencyError, TrainingFailedError

try:
    import pytest
except ImportError:
    raise MissingDependencyError(
        "ganlab.testing is a kit for pytest, which is not installed. Install it: pip install pytest"
    ) from None

Check = TypeVar("Check", bound=Callable[..., Any])
Made = TypeVar("Made")

_BROKEN = "broken"


def check(*, first: bool = False) -> Callable[[Check], Check]:
    """Marks a test of the kit: ganlab's own errors fail it with their message alone, without a traceback.

    Args:
        first: Whether the others make sense only if it passes: it runs before them, and if it fails they are skipped.
    """

    def mark(test: Check) -> Check:
        @functools.wraps(test)
        def checked(self: Conformance) -> None:
            made = type(self)._made
            if made.get(_BROKEN, checked.__name__) != checked.__name__:
                pytest.skip(f"Not checked before {made[_BROKEN]} passes.")
            import tensorflow as tf

            try:
                # All training is on CPUs: values computed eagerly must round as it does.
                with tf.device("CPU:0"):
                    test(self)
            except (GanlabError, TrainingFailedError) as error:
                made.update({_BROKEN: checked.__name__} if first else {})
                pytest.fail(str(error), pytrace=False)
            except pytest.skip.Exception:
                raise
            except BaseException:
                made.update({_BROKEN: checked.__name__} if first else {})
                raise

        checked.comes_first = first  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return mark


def fail(problem: str) -> None:
    """Fails a test with a message and no traceback: the mistake is in the author's code, not in the kit's."""
    pytest.fail(problem, pytrace=False)


class Conformance:
    """The base of the conformance classes.

    Attributes:
        kind: The kind of component, for example `constraints`.
        role: The class that its components belong to.
    """

    kind: ClassVar[str]
    role: ClassVar[type]
    _made: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._made = {}

    def make(self) -> Any:
        """Makes the component under test, a new one at every call. Authors write this method."""
        new = f"{'' if self.kind == 'features' else 'a '}new {self.role.__name__.lower()}"
        raise NotImplementedError(f"{type(self).__name__} needs a method make(self) that returns {new}.")

    def once(self, key: str, make: Callable[[], Made]) -> Made:
        """Returns the result of `make`, computed once for all tests of the class; an error fails each of them."""
        made = type(self)._made
        if key not in made:
            try:
                made[key] = (make(), None)
            except (GanlabError, TrainingFailedError) as error:
                made[key] = (None, error)
        value, refusal = made[key]
        if refusal is not None:
            raise refusal
        return value

    @classmethod
    def let_go(cls) -> None:
        """Drops the objects shared by the tests of this class; the pytest plugin calls it after the last of them."""
        cls._made.clear()

    @pytest.fixture(autouse=True)
    def _on_replicas(self, ganlab_cpus: list[str]) -> None:
        """Requests the CPUs of the replicas."""

    @check(first=True)
    def test_make_gives_a_new_one_each_time(self) -> None:
        """`make` returns a component of the right role, a new object at every call."""
        one, other = self.make(), self.make()
        for made in (one, other):
            if not isinstance(made, self.role):
                fail(f"make returned {made!r}, of type {type(made).__name__}; it must return a {_called(self.role)}.")
        if one is other:
            fail("make returned one object twice. Make a new one at every call: each training needs its own.")

    @check()
    def test_gin_round_trip(self) -> None:
        """An experiment file can name it with its parameters, and is read back with the same ones."""
        from ganlab.engine import PARTS
        from ganlab_verify.testing.configuring import round_trip

        if self.kind not in PARTS.values():
            pytest.skip(f"No part of an experiment is one of the {self.kind}.")
        for problem in round_trip(self.kind, self.make):
            fail(problem)

    @check()
    def test_parameters_can_be_pickled(self) -> None:
        """Its parameters survive pickling, so that sweeps can send them to other processes."""
        from ganlab_verify.testing.configuring import pickling

        for problem in pickling(self.kind, self.make):
            fail(problem)


def _called(role: type) -> str:
    """A role's name as its users import it."""
    places = {"Strategy": "tf.distribute", "Optimizer": "keras.optimizers"}
    return f"{places.get(role.__name__, 'ganlab')}.{role.__name__}"
