"""The augmentations of a run as one: applies them in order, checks their contract, names the one that breaks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.interfaces import Augmentation
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.training.graph import noise
from ganlab.training.graph.networks import static_shape
from ganlab.training.graph.plugin_state import next_state, tensors
from ganlab.training.graph.replica import Draws, Log, ReplicaView
from ganlab.training.graph.stack import check_count
from ganlab.training.graph.values import SIDE, Tensors

KIND = "augmentations"
# Each has a stream of random numbers for real examples and one for samples, in a critic's update and in a generator's.
_STREAMS = {"real": 0, "fake": 1, "generator": 2, "paired": 3}


class _Repeating(ReplicaView):
    """A replica's view that can give the numbers that it has drawn again, in turn."""

    def __init__(self, *of: Any, **kind: Any) -> None:
        super().__init__(*of, **kind)
        self._drawn: list[tf.Tensor] = []
        self._next = 0

    def again(self) -> _Repeating:
        """Begins anew with the first number."""
        self._next = 0
        return self

    def _take(self, kind: noise.Kind, shape: Sequence[int]) -> tf.Tensor:
        if self._next == len(self._drawn):
            self._drawn.append(super()._take(kind, shape))
        self._next += 1
        return self._drawn[self._next - 1]


class Augmentations:
    """Augmentations in order, each with the name that its metrics and errors carry."""

    def __init__(self, augmentations: Sequence[Augmentation], names: Sequence[str]) -> None:
        self.augmentations, self.names = tuple(augmentations), tuple(names)
        check_count(KIND, len(self.augmentations))

    def initialize(self) -> list[Tensors]:
        """Their first states."""
        states = []
        for name, each in self._named():
            with plugin_code(f"{KIND}.{name}", "initial_state"):
                states.append(tensors(f"Augmentation {name}", "initial_state", each.initial_state()))
        return states

    def apply(
        self, examples: Mapping[str, tf.Tensor], states: Sequence[Tensors], draws: Draws
    ) -> tuple[dict[str, tf.Tensor], Tensors]:
        """Examples by use, `(local_batch, *sample_shape)` each, as the critic sees them, and the side outputs.

        An augmentation with side outputs has the same numbers for each use, so that row i has one side output whatever
        the use: a function of the critic, as penalties take it, holds it fixed.
        """
        changed: dict[str, tf.Tensor] = {}
        side: Tensors = {}
        repeated: dict[int, _Repeating] = {}
        for use, x in examples.items():
            for i, (name, each) in enumerate(self._named()):
                stream = noise.AUGMENTATIONS + 4 * i + _STREAMS[use]
                view = repeated[i].again() if i in repeated else _Repeating(name, stream, draws, None, kind=KIND)
                with plugin_code(f"{KIND}.{name}", "apply"):
                    given = each.apply(x, dict(states[i]), view)
                    given, own = given if isinstance(given, tuple) else (given, {})
                    given, own = tf.convert_to_tensor(given), {k: tf.convert_to_tensor(v) for k, v in own.items()}
                if static_shape(given) != static_shape(x) or given.dtype != x.dtype:
                    raise ContractError(
                        f"Augmentation {name} returned {static_shape(given)}, {given.dtype.name}; it must return the "
                        f"shape and dtype that it was given, {static_shape(x)}, {x.dtype.name}."
                    )
                self._check_side(name, own, side if i not in repeated else {}, draws.local_batch)
                if own:
                    repeated[i] = view
                side |= {SIDE + key: value for key, value in own.items()}
                x = given
            changed[use] = x
        return changed, side

    @staticmethod
    def _check_side(name: str, own: Tensors, others: Tensors, rows: int) -> None:
        for key, value in own.items():
            if value.shape[:1] != (rows,) or SIDE + key in others:
                raise ContractError(
                    f"Augmentation {name} returned the side output {key!r} of shape {static_shape(value)}; its first "
                    f"axis must be the local batch, {rows}, and no other augmentation may return one of that name."
                )

    def advance(self, states: Sequence[Tensors], scores: tf.Tensor, draws: Draws, log: Log) -> list[Tensors]:
        """The states after a critic update with these scores of real examples."""
        advanced = []
        for i, (name, each) in enumerate(self._named()):
            view = ReplicaView(name, noise.AUGMENTATIONS + 4 * i, draws, log, kind=KIND)
            with plugin_code(f"{KIND}.{name}", "advance"):
                given = each.advance(dict(states[i]), scores, view)
                advanced.append(next_state(f"Augmentation {name}", given, states[i]))
        return advanced

    def _named(self) -> Iterator[tuple[str, Augmentation]]:
        return zip(self.names, self.augmentations, strict=True)
