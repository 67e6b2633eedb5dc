"""The augmentations of a run as one: applies them in order, checks their contract, names the one that breaks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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

        An augmentation with side outputs has the same random numbers for each use, so that they belong to the row.
        """
        side: Tensors = {}
        numbers: dict[int, list[tf.Tensor]] = {}
        changed = dict(examples)
        for use in examples:
            for i, (name, each) in enumerate(self._named()):
                again: Any = {"recorded": [], "taken": [], "given": numbers.get(i)}
                x, source = changed[use], replace(draws, **again) if i in numbers else draws
                view = ReplicaView(name, noise.AUGMENTATIONS + 4 * i + _STREAMS[use], source, None, kind=KIND)
                before = len(draws.taken)
                with plugin_code(f"{KIND}.{name}", "apply"):
                    given = each.apply(x, dict(states[i]), view)
                    given, own = given if isinstance(given, tuple) else (given, {})
                    given = tf.convert_to_tensor(given)
                    own = {SIDE + key: tf.convert_to_tensor(value) for key, value in own.items()}
                if static_shape(given) != static_shape(x) or given.dtype != x.dtype:
                    raise ContractError(
                        f"Augmentation {name} returned {static_shape(given)}, {given.dtype.name}; it must return the "
                        f"shape and dtype that it was given, {static_shape(x)}, {x.dtype.name}."
                    )
                if i not in numbers and own:
                    shapes = {tuple(value.shape[:1]) for value in own.values()}
                    if own.keys() & side.keys() or shapes != {(draws.local_batch,)}:
                        raise ContractError(
                            f"Augmentation {name} returned side outputs, {', '.join(own)}, without a row for each of "
                            f"{draws.local_batch} examples, or under the name of another augmentation's."
                        )
                    numbers[i], side = draws.taken[before:], {**side, **own}
                changed[use] = given
        return changed, side

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
