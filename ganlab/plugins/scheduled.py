"""Float parameters that follow a schedule: the component is made with a number, and then reads tensors."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn

from ganlab.errors import ConfigError, ContractError
from ganlab.interfaces.schedule import Schedule

# The kinds of components whose code runs inside the step.
KINDS = ("constraints", "losses", "augmentations")

Follow = Callable[[Any, int], Any]  # (step, steps) -> value

_OPERATORS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "pow": operator.pow,
}


class _Clock(threading.local):
    """The step that this thread computes, and the steps of the run; None outside."""

    now: tuple[Any, int] | None = None


_clock = _Clock()


@contextlib.contextmanager
def at(step: Any, steps: int) -> Iterator[None]:
    """Context manager: scheduled parameters have their values of this step, a number or an integer tensor."""
    before = _clock.now
    _clock.now = (step, steps)
    try:
        yield
    finally:
        _clock.now = before


def now() -> Any:
    """The step that this thread computes, as `at` was given it; None outside."""
    return None if _clock.now is None else _clock.now[0]


class _Start(float):
    """A schedule's first value, for a constructor, which remembers what it was computed from."""

    follow: Follow
    origins: frozenset[str]

    @classmethod
    def of(cls, value: float, follow: Follow, origins: frozenset[str]) -> _Start:
        """A number with its origin."""
        start = cls(value)
        start.follow, start.origins = follow, origins
        return start


class Scheduled:
    """A number that follows a schedule, in the place of a component's attribute.

    TensorFlow takes it wherever it takes a tensor. Inside a step, which is traced once, it has no value in Python, for
    `if` or `float`; where the step is a number, as in `diagnose`, it has.
    """

    def __init__(self, follow: Follow, origins: frozenset[str], named: str) -> None:
        self._follow, self._origins, self._named = follow, origins, named

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        """The value in the present step, a scalar tensor."""
        from ganlab.lazy import tensorflow as tf

        if _clock.now is None:
            raise ContractError(f"{self._named} follows a schedule, and is read outside of a step of training.")
        step, steps = _clock.now
        return tf.cast(self._follow(tf.cast(step, tf.float32), steps), dtype or tf.float32)

    def __float__(self) -> float:
        """The value where the step is a number."""
        if _clock.now is None or not isinstance(_clock.now[0], int):
            raise TypeError(
                f"{self._named} follows a schedule: it is a tensor inside the step, and has no value in Python. Use it "
                "in TensorFlow's operations, and tf.where in place of if"
            )
        from ganlab.lazy import tensorflow as tf

        with tf.init_scope():
            return float(self.__tf_tensor__())

    def __bool__(self) -> bool:
        """Whether the value is not 0, where the step is a number."""
        return bool(float(self))

    def __format__(self, spec: str) -> str:
        """The value as a number is written, where the step is a number."""
        return format(float(self), spec)

    def _no_number(self, *_: Any) -> NoReturn:
        raise TypeError(f"{self._named} follows a schedule, and is no number: use float(...) outside of the step")

    __int__ = __index__ = __array__ = _no_number

    def __repr__(self) -> str:
        return f"<{self._named}, by its schedule>"


def _numbers(name: str) -> None:
    """Adds an operator and its reflection to both classes: numbers give another of the class, tensors a tensor."""
    function = _OPERATORS[name]

    def start(one: Any, other: Any, *, reflected: bool) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        a, b = (other, one) if reflected else (one, other)
        origins = one.origins | (other.origins if isinstance(other, _Start) else frozenset())
        return _Start.of(function(float(a), float(b)), lambda *now: function(_at(a, now), _at(b, now)), origins)

    def scheduled(one: Any, other: Any, *, reflected: bool) -> Any:
        a, b = (other, one) if reflected else (one, other)
        if isinstance(other, (int, float, Scheduled)):
            origins = one._origins | (other._origins if isinstance(other, Scheduled) else frozenset())
            return Scheduled(lambda *now: function(_at(a, now), _at(b, now)), origins, one._named)
        return function(*(x.__tf_tensor__() if isinstance(x, Scheduled) else x for x in (a, b)))

    for kind, method in ((_Start, start), (Scheduled, scheduled)):
        setattr(kind, f"__{name}__", lambda one, other, method=method: method(one, other, reflected=False))
        setattr(kind, f"__r{name}__", lambda one, other, method=method: method(one, other, reflected=True))


for _name in _OPERATORS:
    _numbers(_name)


def _compares(name: str) -> None:
    """Adds a comparison, where the step is a number."""
    compare = getattr(operator, name)
    setattr(Scheduled, f"__{name}__", lambda one, other: compare(float(one), float(other)))


for _name in ("lt", "le", "gt", "ge"):
    _compares(_name)


def _negative(one: Any) -> Any:
    return one * -1.0


for _kind in (_Start, Scheduled):
    setattr(_kind, "__neg__", _negative)  # noqa: B010 (of classes whose operators are made in a loop)


def _at(x: Any, now: tuple[Any, int]) -> Any:
    if isinstance(x, _Start):
        return x.follow(*now)
    return x._follow(*now) if isinstance(x, Scheduled) else x


def starts(selector: str, kind: str, schedules: Mapping[str, Schedule], inputs: Collection[str]) -> dict[str, float]:
    """The numbers that a component is made with in the place of schedules; refuses parameters that cannot follow any.

    `inputs` are those that models take.
    """
    for name in schedules:
        if kind == "optimizers" and name == "learning_rate":
            continue
        if kind not in KINDS and name not in inputs:
            only = (
                "An optimizer's learning_rate can" if kind == "optimizers" else f"Parameters of {', '.join(KINDS)} can"
            )
            raise ConfigError(f"{selector}.{name} cannot follow a schedule. {only}; give this one a number.")
    return {
        name: float(schedule.start)
        if kind == "optimizers"
        else _Start.of(schedule.start, schedule.value, frozenset([name]))
        for name, schedule in schedules.items()
    }


def follow(component: Any, selector: str, names: Mapping[str, Any]) -> None:
    """Lets a new component's attributes follow the schedules of the parameters that they were computed from."""
    followed: set[str] = set()
    for attribute, value in list(vars(component).items()):
        if isinstance(value, _Start):
            named = ", ".join(f"{selector}.{name}" for name in sorted(value.origins))
            setattr(component, attribute, Scheduled(value.follow, value.origins, named))
            followed |= value.origins
    missing = sorted(set(names) - followed)
    if missing:
        raise ConfigError(
            f"{selector}.{missing[0]} cannot follow a schedule: the component keeps it in no attribute of its own. "
            "Give it a number."
        )
