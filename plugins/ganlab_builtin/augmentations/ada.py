"""Adaptive discriminator augmentation: as much as keeps the critic from being too sure of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.augmentations.changes import CHANGES, alone, chosen

_INNER = "augmentation/"
PAPER = "flip,rotate,translate,scale,turn,stretch,turn,shift,brightness,contrast,invert,hue,saturation"


class ADA(ganlab.Augmentation):
    """Changes each image with a probability p that follows the signs of the critic's scores of real examples.

    Karras, Aittala, Hellsten, Laine, Lehtinen and Aila, "Training generative adversarial networks with limited data"
    (2020), sections 2 and 3 and appendix B: the critic is too sure where `r_t = E[sign(D(x))]` of augmented real
    examples exceeds a target, 0.6. After each critic update p grows or shrinks by `batch / images`, from 0 to 1 in
    500,000 images; the paper does so once in four updates. Signs mean something where a loss gives scores a zero:
    losses.non_saturating, hinge, least_squares.

    The default is the paper's set "bgc", in its order. Each change is made with probability p, independently: "flip"
    from left to right, in half of these cases; "rotate" by a multiple of 90 degrees (180, where images are not square);
    "translate" by whole pixels, up to an eighth of the side; "scale" by `2^(0.2 n)`; "turn" by any angle; "stretch" by
    `2^(0.2 n)` across and its inverse down; "shift" by an eighth of the side times n; "brightness" by `0.2 n`;
    "contrast" by `2^(0.5 n)`; "invert" the mean of the channels, in half of these cases; "hue" by any angle and
    "saturation" by `2^n`, of three channels; n is standard normal. What is named k times is made each time with
    probability `1 - (1 - p)^(1/k)`, so that p is that of at least once. There is "cutout" too, zeros in a rectangle of
    half of each side. The outside is mirrored. The paper composes all
    that move pixels and interpolates once, with a wavelet; here each interpolates linearly, which blurs more.

    Logs p as `probability`, and r_t as `sign`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "probability": "The probability of each change. Above 0.8 the generator may learn to draw changed images.",
        "sign": "The mean sign of the critic's scores of real examples, 1 where it is sure of them all.",
    }

    def __init__(
        self,
        *,
        target: Annotated[float, Ge(-1), Le(1)] | None = 0.6,
        images: Annotated[float, Gt(0)] = 500_000.0,
        start: Annotated[float, Ge(0), Le(1)] = 0.0,
        changes: str = PAPER,
        augmentation: ganlab.Augmentation | None = None,
    ) -> None:
        """Chooses the pace and the changes.

        Args:
            target: The mean sign of real scores above which p grows; None for a p that is `start`, which may then be a
                schedule.
            images: How many real images the critic sees while p moves from 0 to 1.
            start: The first p, or with no target each.
            changes: Which of those above, in order, separated by commas. Without "flip", "rotate" and "turn" what has
                an upright, as digits have, keeps it.
            augmentation: Another augmentation in the place of these, made to each example with probability p.
        """
        self.target, self.images, self.start, self.augmentation = target, images, start, augmentation
        self.changes = chosen("augmentations.ada.changes", changes, CHANGES)

    def initial_state(self) -> Mapping[str, tf.Tensor]:
        """p, and the state of the augmentation inside."""
        inner = self.augmentation.initial_state() if self.augmentation else {}
        first = 0.0 if self.target is None else self.start  # a schedule has a value only in a step
        return {"probability": tf.constant(first, tf.float32), **{_INNER + k: v for k, v in inner.items()}}

    def apply(self, x: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The changed examples, of the same shape."""
        probability = state["probability"] if self.target is not None else tf.cast(self.start, tf.float32)
        if self.augmentation:
            on = replica.uniform([x.shape[0]]) < probability
            changed = self.augmentation.apply(x, self._inner(state), replica)
            changed = alone(changed, "augmentations.ada.augmentation")
            return tf.where(tf.reshape(on, [-1, *[1] * (len(x.shape) - 1)]), changed, x)
        if len(x.shape) != 4:
            raise ganlab.IncompatibleError(
                f"augmentations.ada changes images, and the examples have the shape {tuple(x.shape[1:])}. Leave it "
                "out, or set augmentations.ada.augmentation."
            )
        for name in self.changes:
            each = 1.0 - tf.pow(1.0 - probability, 1.0 / self.changes.count(name))
            x = CHANGES[name](x, replica.uniform([x.shape[0]]) < each, replica)
        return x

    def advance(
        self, state: Mapping[str, tf.Tensor], scores: tf.Tensor, replica: ganlab.Replica
    ) -> Mapping[str, tf.Tensor]:
        """The state after an update with these scores of real examples."""
        sign = replica.mean(tf.reduce_mean(tf.sign(scores)))
        if self.target is None:
            probability = tf.cast(self.start, tf.float32)
        else:
            step = float(scores.shape[0] * replica.count) / self.images
            probability = tf.clip_by_value(state["probability"] + step * tf.sign(sign - self.target), 0.0, 1.0)
        replica.log("probability", probability)
        replica.log("sign", sign)
        inner = self.augmentation.advance(self._inner(state), scores, replica) if self.augmentation else {}
        return {"probability": probability, **{_INNER + k: v for k, v in inner.items()}}

    def _inner(self, state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {name.removeprefix(_INNER): value for name, value in state.items() if name.startswith(_INNER)}
