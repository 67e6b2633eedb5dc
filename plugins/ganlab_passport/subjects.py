"""What a passport is of: a constraint's penalty or a loss, in small networks that words.json states; and its cases."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
from ganlab_verify import lab

import ganlab
from ganlab.engine import has_own, optional
from ganlab.errors import IncompatibleError

LATENT = 3
# The methods whose values are those of a side's update.
METHODS = {"critic": ("penalty", "weight_penalty"), "generator": ("generator_penalty",)}


@dataclass(frozen=True)
class Case:
    """One batch of a passport.

    Attributes:
        name: Its name, with which the names of its arrays begin.
        side: Whose update it is of, "critic" or "generator".
        batch: Its examples.
        shape: The shape of an example.
        labels: Whether both networks take the examples' labels.
        flat: Whether the last layer's kernel is zero, so that every slope is.
        replicas: Among how many devices a program that trains on several splits the batch.
    """

    name: str
    side: str
    batch: int
    shape: tuple[int, ...]
    labels: bool = False
    flat: bool = False
    replicas: int = 1


_VECTOR, _IMAGE = (5,), (5, 4, 2)
_BATCHES: dict[str, dict[str, Any]] = {
    **{f"vectors-{n}": {"batch": n, "shape": _VECTOR} for n in (1, 3, 7)},
    **{f"images-{n}": {"batch": n, "shape": _IMAGE} for n in (1, 3, 7)},
    "labels-3": {"batch": 3, "shape": _VECTOR, "labels": True},
    "labelled-images-7": {"batch": 7, "shape": _IMAGE, "labels": True},
    "replicas-6": {"batch": 6, "shape": _VECTOR, "replicas": 2},
    "flat-3": {"batch": 3, "shape": _IMAGE, "flat": True},
}


@dataclass(frozen=True)
class Subject:
    """A component whose passport is made.

    Attributes:
        selector: Its name, for example `constraints.gradient_penalty`.
        make: Makes it.
        params: The settings that it is made with, `NAME=VALUE` each, where they are not the defaults.
    """

    selector: str
    make: Callable[[], Any]
    params: Sequence[str]

    @property
    def is_loss(self) -> bool:
        """Whether it is a loss, and not a constraint."""
        return self.selector.startswith("losses.")

    def cases(self) -> list[Case]:
        """Its cases, those with labels alone for a loss that needs them.

        Raises:
            IncompatibleError: It has no value of its own.
        """
        refusal = IncompatibleError(f"{self.selector} must be a loss, or a constraint with a penalty.")
        if not self.selector.startswith(("losses.", "constraints.")):  # others may read or connect when made
            raise refusal
        made = self.make()
        labels = self.is_loss and bool(made.labels or made.outputs)
        if self.is_loss:
            sides = [side for side in METHODS if has_own(made, side)]
        else:
            sides = [side for side, methods in METHODS.items() if any(overrides(made, name) for name in methods)]
        if not sides:
            raise refusal
        return [
            Case(f"{name}-{side}" if self.is_loss or len(sides) > 1 else name, side, **batch)
            for side in sides
            for name, batch in _BATCHES.items()
            if (batch.get("labels") or not labels) and not (batch.get("flat") and (self.is_loss or side != "critic"))
        ]

    def takes_others(self, side: str) -> bool:
        """Whether its value depends on networks of the other side."""
        named = [getattr(self.make(), name, None) for name in ("penalty", "critic")]
        takes = any(optional.takes(m, what) for m in named if m is not None for what in ("networks", "generator"))
        return takes or side == "generator"

    def experiment(self, case: Case) -> tuple[ganlab.Experiment, Any]:
        """The experiment of a case with this component alone, and the component, made anew."""
        made = self.make()
        own: dict[str, Any] = {"loss": made if self.is_loss else Nothing()}
        if not self.is_loss:
            made.every = 1
            if hasattr(made, "power_iterations"):
                made.power_iterations = 200  # to the end, where another program's decomposition is
            own["constraints" if case.side == "critic" else "generator_constraints"] = [made]
        outputs = made.outputs if self.is_loss else ()
        networks = Networks(case.labels, outputs, noisy=self.selector == "constraints.consistency")
        data = (lab.parts.LabelledPoints if case.labels else lab.parts.dataset)(case.shape)
        return lab.experiment(dataset=data, architecture=networks, batch_size=case.batch, **own), made

    def facts(self) -> dict[str, Any]:
        """What the file says of it: name, settings and formula in words."""
        made = self.make()
        settings = {name: getattr(made, name, None) for name in inspect.signature(type(made)).parameters}
        plain = {
            n: x if x is None or (isinstance(x, (int, float, str)) and x != math.inf) else repr(x)
            for n, x in settings.items()
        }
        formula = inspect.getdoc(type(made)) or ""
        return {"component": self.selector, "params": list(self.params), "settings": plain, "formula": formula}


def overrides(made: Any, name: str) -> bool:
    """Whether a constraint overrides a method."""
    return getattr(type(made), name) is not getattr(ganlab.Constraint, name)


class Nothing(ganlab.Loss):
    """A loss of zero: what is left is the constraint's penalty."""

    def critic(self, real_scores: Any, fake_scores: Any) -> Any:
        """Zero."""
        return 0.0 * (real_scores + fake_scores)

    def generator(self, fake_scores: Any) -> Any:
        """Zero."""
        return 0.0 * fake_scores


class Networks(ganlab.Architecture):
    """The networks of passports."""

    latent_dim = LATENT

    def __init__(self, conditional: bool, outputs: Sequence[str], *, noisy: bool) -> None:
        self.conditional, self._noisy = conditional, noisy
        self._outputs = [name for name in outputs if name != "score"]

    def generator(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A dense layer of four, and one of the sample's size."""
        z, y = keras.Input((LATENT,)), keras.Input((classes or 1,))
        x = keras.layers.Concatenate()([z, y]) if self.conditional else z
        x = keras.layers.Dense(4, activation="tanh", name="hidden")(x)
        x = keras.layers.Dense(math.prod(sample_shape), activation="tanh", name="samples")(x)
        return keras.Model([z, y] if self.conditional else z, keras.layers.Reshape(sample_shape)(x))

    def critic(self, sample_shape: tuple[int, ...], classes: int | None = None) -> keras.Model:
        """A convolution for images, a dense layer of four, and the score."""
        x, y = keras.Input(sample_shape), keras.Input((classes or 1,))
        h = x
        if len(sample_shape) > 1:
            h = keras.layers.Flatten()(keras.layers.Conv2D(3, 3, activation="tanh", name="convolution")(h))
        h = keras.layers.Concatenate()([h, y]) if self.conditional else h
        h = keras.layers.Dense(4, activation="tanh", name="hidden")(h)
        h = ganlab.layers.Dropout(0.25)(h) if self._noisy else h
        made: Any = keras.layers.Dense(1, name="score")(h)
        if self._outputs:
            sizes = {name: classes if name == "logits" else 4 for name in self._outputs}
            made = {"score": made} | {name: keras.layers.Dense(size, name=name)(h) for name, size in sizes.items()}
        return keras.Model([x, y] if self.conditional else x, made)
