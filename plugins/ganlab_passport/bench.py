"""Computes a case's answers with the engine's own update: in float32, in float64, and by another convention."""

from __future__ import annotations

import functools
import zlib
from typing import Any

import numpy as np
import tensorflow as tf
from ganlab_verify import Double

from ganlab.engine import Draws, Log, TrainingState, TrainingStep
from ganlab_passport.conventions import Variant, has_slope
from ganlab_passport.subjects import LATENT, METHODS, Case, Subject, overrides
from ganlab_passport.tensors import Arrays

# Sizes of random weights, so that slopes lie on both sides of 1: kernels by their inputs' root, and biases.
_KERNEL, _BIAS = 1.4, 0.2


class Bench:
    """One case of a subject.

    Attributes:
        made: The component.
    """

    def __init__(self, subject: Subject, case: Case) -> None:
        self._case, self._is_loss = case, subject.is_loss
        self._experiment, self.made = subject.experiment(case)
        self._state = TrainingState(self._experiment)
        step = TrainingStep(self._experiment, self._state, compiled=False)
        self._update = step.critic if case.side == "critic" else step.generator
        self._shown = list(self._state.players) if subject.takes_others(case.side) else [case.side]
        # Constants: what a passport does not hold has no part in its answers.
        self._initial = tf.nest.map_structure(tf.convert_to_tensor, self._state.values())
        self._value: tf.Tensor | None = None
        self._variant: Variant | None = None
        method = case.side if subject.is_loss else METHODS[case.side][0]
        if subject.is_loss or overrides(self.made, method):
            own = getattr(self.made, method)

            @functools.wraps(own)
            def recorded(*given: Any, **others: Any) -> Any:
                __tracebackhide__ = True  # an error is that of the component's line
                self._value = self._variant.value(self.made, *given) if self._variant else own(*given, **others)
                return self._value

            setattr(self.made, method, recorded)

    def inputs(self) -> Arrays:
        """The inputs by name, made from the case's name: float32, and labels int64."""
        case, random = self._case, np.random.default_rng(zlib.crc32(self._case.name.encode()))

        def normal(shape: Any, size: float) -> np.ndarray:
            return (size * random.standard_normal(tuple(shape))).astype(np.float32)

        shape = (case.batch, *case.shape)
        given = {"latent": normal((case.batch, LATENT), 1.0), "labels": random.integers(0, 4, case.batch)}
        given |= {"real": np.tanh(normal(shape, 1.0)), "fake": np.tanh(normal(shape, 1.0) - 0.5)}
        for role, player in self._state.players.items():
            for name, x in player.weights.items():
                size = _KERNEL / np.prod(x.shape[:-1]) ** 0.5 if len(x.shape) > 1 else _BIAS
                given[f"{role}/{name}"] = normal(x.shape, size)
                if len(x.shape) > 1 and not self._is_loss and overrides(self.made, "weight_penalty"):
                    # Else two singular values may be nearly equal, and iterations for the largest end far from it.
                    u, s, v = np.linalg.svd(given[f"{role}/{name}"].reshape(-1, x.shape[-1]), full_matrices=False)
                    given[f"{role}/{name}"] += (s[0] / 2 * np.outer(u[:, 0], v[0])).reshape(x.shape)
        if case.flat:
            given["critic/score/kernel"] *= 0.0
        with self._state.timed():
            values = self._update.advanced(self._draws(), self._values(given), self._data(given), Log())
        for role, own in values.players.items():
            for what in ("parameters", "states"):
                groups = getattr(own, what)
                given |= {f"{role}/{what}/{n}": x.numpy() for group in groups for n, x in group.items()}
        given |= {f"loss/states/{name}": x.numpy() for name, x in values.loss.items()}
        draws = self._draws()
        with self._state.timed():
            self._update.part(draws, Log(), self._values(given), self._data(given))
        given |= {f"random/{i}": x.numpy() for i, x in enumerate(draws.taken)}
        if has_slope(self.made) and [x.shape.rank for x in draws.taken] == [1]:
            given |= {"other/uniform": random.random(shape, np.float32), "other/normal": normal(shape[:1], 1.0)}
        # What has no part in it is left out.
        hidden = {role for role in self._state.players if role not in self._shown}
        hidden |= set() if case.labels else {"labels"}
        if case.side == "generator":
            pairs = self._experiment.loss.pairs or not self._experiment.has_critic
            hidden |= {"fake"} if pairs else {"fake", "real"}
        elif "generator" in hidden:
            hidden.add("latent")
        return {name: x for name, x in given.items() if name.partition("/")[0] not in hidden}

    def answers(self, given: Arrays) -> dict[str, Arrays]:
        """The answers by dtype and name, of the update traced once."""
        traced = Double(self._run, given)
        single = traced.single(tf.nest.map_structure(tf.convert_to_tensor, given))
        precise = {name: np.asarray(x, np.float64) for name, x in traced(given).items()}
        return {"float64": precise, "float32": {name: np.asarray(x, np.float32) for name, x in single.items()}}

    def by(self, variant: Variant | None, given: Arrays) -> Arrays:
        """The answers in float32 by another convention; None for the component's own."""
        self._variant = variant
        try:
            return {name: x.numpy() for name, x in self._run({n: tf.constant(x) for n, x in given.items()}).items()}
        finally:
            self._variant = None

    def _run(self, given: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        if self._variant is not None:
            self._variant.given = given
        self._value, log, side = None, Log(), self._case.side
        draws = self._draws([given[f"random/{i}"] for i in range(sum(name.startswith("random/") for name in given))])
        values = self._values(given)
        with self._state.timed():
            gradients, _, scores = self._update.part(draws, log, values, self._data(given))
        logged = {metric.tag: value for metric, value in zip(log.metrics, log.values, strict=True)}
        found = {"reduced": logged[f"{side}/{'loss' if self._is_loss else 'penalty'}"]}
        found |= {} if self._value is None else {"value": self._value}
        found |= {"scores": scores[0]} if scores else {}
        left = iter(gradients)
        for role in (player.role.name for player in self._update.players):
            own = values.players[role]
            names = [*own.weights, *(f"parameters/{name}" for group in own.parameters for name in group)]
            found |= {f"gradient/{role}/{name}": next(left) for name in names}
        return found

    def _draws(self, given: Any = None) -> Draws:
        return Draws(0, self._case.batch, tf.constant(0, tf.int64), tf.constant(0), given=given)

    def _data(self, given: Any) -> dict[str, tf.Tensor]:
        data = {
            name: tf.convert_to_tensor(given[name]) for name in ("real", "fake", "latent", "labels") if name in given
        }
        data.setdefault("latent", tf.zeros([self._case.batch, LATENT]))
        return data

    def _values(self, given: Any) -> Any:
        """The engine's values, with the given ones in their places."""
        values = self._initial

        def placed(prefix: str, group: Any) -> dict[str, tf.Tensor]:
            return {name: tf.convert_to_tensor(given.get(f"{prefix}/{name}", x)) for name, x in group.items()}

        for role, own in values.players.items():
            fields: dict[str, Any] = {"weights": placed(role, own.weights)}
            for what in ("parameters", "states"):
                fields[what] = [placed(f"{role}/{what}", group) for group in getattr(own, what)]
            values = values.replaced(role, **fields)
        return values._replace(loss=placed("loss/states", values.loss))
