"""Other conventions that penalties follow by mistake or by habit, as formulas of the passport's own inputs.

A penalty that has the methods `points`, `slope` and `cost`, as the first-party ones do, is computed with one or two of
these in the place of its own. `checking` has those that are only a factor or a missing gradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from ganlab.functional import input_gradient


@dataclass
class Variant:
    """A penalty of the slope with some of its parts replaced.

    Attributes:
        parts: The functions in place of its own, by part.
        words: What they are, for a message.
        given: The passport's inputs, set where they are used.
    """

    parts: Mapping[str, Callable[..., Any]]
    words: str
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_harmless(self) -> bool:
        """Whether training by it is the same in distribution."""
        return self.words == _OTHER_END

    def value(self, made: Any, critic: Any, batch: Any, state: Any, replica: Any) -> tf.Tensor:
        """The penalty of each example, `(n,)`."""
        if "weight of real" in self.parts:
            rows = [batch.real.shape[0]]
            a = replica.uniform(rows) if "other/uniform" in self.given else tf.ones(rows)
            a = self.parts["weight of real"](self.given, a)
            a = tf.reshape(a, [*a.shape, *[1] * (len(batch.real.shape) - len(a.shape))])
            points = a * batch.real + (1.0 - a) * batch.fake
        else:
            points = made.points(batch, state, replica)
        change = self.parts.get("score", tf.identity)
        if "weights" in self.parts:
            slope = _slope_by_weights(critic, points)
        elif "norm" in self.parts:
            slope = self.parts["norm"](input_gradient(lambda x: change(critic(x)), points)[0])
        else:
            slope = made.slope(lambda x: change(critic(x)), points)
        slope = self.parts.get("power", tf.identity)(slope)
        target = getattr(made, "target", 0.0)
        cost = made.cost(self.parts["side"](slope, target) if "side" in self.parts else slope, state, replica)
        return tf.reduce_mean(tf.reshape(cost, [cost.shape[0], -1]), axis=1)


def has_slope(made: Any) -> bool:
    """Whether a constraint is a cost of the slope at some points, in methods of these names."""
    return all(callable(getattr(made, name, None)) for name in ("points", "slope", "cost"))


def _slope_by_weights(critic: Any, points: tf.Tensor) -> tf.Tensor:
    """The norm of the gradient of the summed scores by all weights, the same for every example."""
    weights = dict(critic.weights)
    with tf.GradientTape() as tape:
        tape.watch(weights)
        total = tf.reduce_sum(critic.at(weights)(points))
    gradients = [g for g in tape.gradient(total, weights).values() if g is not None]
    return tf.fill([points.shape[0]], _root(sum(tf.reduce_sum(tf.square(g)) for g in gradients)))


def _root(x: tf.Tensor) -> tf.Tensor:
    return tf.sqrt(x + 1e-12)


def _norm(gradient: tf.Tensor, *axes: int) -> tf.Tensor:
    return _root(tf.reduce_sum(tf.square(gradient), axes))


def _flat(gradient: tf.Tensor) -> tf.Tensor:
    return tf.reshape(gradient, [gradient.shape[0], -1])


def _of_batch(x: tf.Tensor, whole: tf.Tensor) -> tf.Tensor:
    return tf.fill([x.shape[0]], whole)


_OTHER_END = "epsilon weighs the fake example"
# The other choices of each part by what a message calls them. docs/passport.md explains them.
_CHOICES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "norm": {
        "norm over the channels alone": lambda g: _norm(g, -1),
        "norm over the first axis after the batch alone": lambda g: _norm(g, 1),
        "norm over the last two axes alone": lambda g: _norm(g, *range(max(1, len(g.shape) - 2), len(g.shape))),
        "each number's absolute value for the norm": lambda g: _root(tf.square(g)),
        "one norm over the whole batch": lambda g: _of_batch(g, _norm(g, *range(len(g.shape)))),
        "mean of squares for their sum in the norm": lambda g: _root(tf.reduce_mean(tf.square(_flat(g)), 1)),
        "sum of absolute values for the norm": lambda g: tf.reduce_sum(tf.abs(_flat(g)), 1),
        "gradient of the mean score: the slope divided by the batch": lambda g: _norm(_flat(g), 1) / g.shape[0],
    },
    "power": {"squared norm in the norm's place": tf.square, "norm in the squared norm's place": _root},
    "side": {
        "one-sided": tf.maximum,
        "two-sided": lambda s, target: target + tf.abs(s - target),
        "target 0": lambda s, target: s + target,
        "target 1": lambda s, target: s - 1.0,
        "cost of the mean slope": lambda s, target: _of_batch(s, tf.reduce_mean(s)),
    },
    "weight of real": {
        "penalty at real examples": lambda given, a: tf.ones_like(a),
        "penalty at fake examples": lambda given, a: tf.zeros_like(a),
        "penalty in the middle between real and fake": lambda given, a: 0.5 * tf.ones_like(a),
        "epsilon of one number for the whole batch": lambda given, a: _of_batch(a, a[0]),
        "epsilon of one number for each coordinate": lambda given, a: given["other/uniform"],
        "epsilon from a normal distribution": lambda given, a: given["other/normal"],
        _OTHER_END: lambda given, a: 1.0 - a,
    },
    "score": {
        "gradient of a sigmoid's output for that of the logit": tf.sigmoid,
        "gradient of softplus(score) for that of the score": tf.nn.softplus,
        "gradient of softplus(-score) for that of the score": lambda y: tf.nn.softplus(-y),
    },
    "weights": {"gradient by the critic's weights for that by its input": tf.identity},
}


def variants(made: Any, given: Mapping[str, Any], count: int) -> Iterator[Variant]:
    """Every choice of one part of a penalty, or of two that go together; `given` are the inputs of a case."""

    def applies(part: str, words: str) -> bool:
        if part == "weight of real":
            return words.startswith("penalty") or "other/uniform" in given
        if words in ("one-sided", "two-sided", "target 0"):
            return bool(getattr(made, "target", 0.0))
        return words != "target 1" or not hasattr(made, "target")

    every = [(part, words) for part, table in _CHOICES.items() for words in table if applies(part, words)]
    for chosen in itertools.combinations(every, count):
        parts = {part: _CHOICES[part][words] for part, words in chosen}
        if len(parts) == count and not ("weights" in parts and {"norm", "score"} & set(parts)):
            yield Variant(parts, "; ".join(words for _, words in chosen))
