"""Letters and digits drawn in the fonts that come with Matplotlib: labelled images of any side without a download."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints, functional
from ganlab.bounds import Ge, Le, Lt
from ganlab.lazy import require
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import refusal

# Text fonts of three families, of those that Matplotlib has shipped for years.
_FONTS = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSansMono",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-Italic",
    "STIXGeneral",
    "STIXGeneralBol",
    "STIXGeneralItalic",
    "cmr10",
    "cmss10",
    "cmtt10",
)
# Glyphs are drawn this many times as large as the images that are sampled from them.
_DRAWN = 2
_FILLED = 0.72  # of the side, by the larger of a glyph's height and width


class Glyphs(ganlab.Dataset):
    """One character in the middle of a square image, white on black, in one of thirteen fonts.

    An example's number decides its character, its font and a small affine map: a rotation of up to 12 degrees, a shear
    of up to 0.12, scales from 0.85 to 1.1 and a shift of up to 6% of the side. A character's place in `characters` is
    its class.
    """

    def __init__(
        self,
        *,
        side: Annotated[int, Ge(16), Le(512)] = 32,
        characters: str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        size: Annotated[int, Ge(1), Lt(2**31)] = 60_000,
        jitter: Annotated[float, Ge(0), Le(2)] = 1.0,
    ) -> None:
        """Chooses the characters and the images' size.

        Args:
            side: The height and width of the images.
            characters: The characters, each a class: letters and digits of ASCII, each once.
            size: How many examples there are.
            jitter: The factor of the affine map's deviations; 0 for none.

        Raises:
            ConfigError: The characters are not letters and digits of ASCII, each once.
        """
        plain = characters.isascii() and characters.isalnum()
        if not plain or len(set(characters)) != len(characters):
            raise refusal("glyphs", "characters", characters, "must be letters and digits of ASCII, each once.")
        self.sample_shape = (side, side, 1)
        self.size, self.classes = size, len(characters)
        self._side, self._characters, self._jitter = side, characters, jitter

    @functools.cached_property
    def _drawn(self) -> np.ndarray:
        """Every character in every font, float32 in [0, 1], `(classes * fonts, 2 side, 2 side)`."""
        matplotlib = require("matplotlib")
        from PIL import Image, ImageDraw, ImageFont

        folder, side = Path(matplotlib.get_data_path()) / "fonts" / "ttf", _DRAWN * self._side
        images = []
        for character in self._characters:
            for name in _FONTS:
                font = ImageFont.truetype(str(folder / f"{name}.ttf"), side)
                left, top, right, bottom = font.getbbox(character)
                scale = _FILLED * side / max(right - left, bottom - top)
                font = ImageFont.truetype(str(folder / f"{name}.ttf"), max(1, round(side * scale)))
                left, top, right, bottom = font.getbbox(character)
                image = Image.new("L", (side, side))
                place = ((side - left - right) / 2, (side - top - bottom) / 2)
                ImageDraw.Draw(image).text(place, character, fill=255, font=font)
                images.append(np.asarray(image, np.float32) / 255.0)
        return np.stack(images)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The images with these numbers, `(n, side, side, 1)` float32; the seed is not used."""
        uniform = functional.example_uniform(numbers, 7, 0, stream=1)
        font = tf.cast(uniform[:, 0] * len(_FONTS), tf.int64)
        which = self.labels(numbers) * len(_FONTS) + font
        # In float64: a place that moves by rounding alone would change the last digits of a pixel.
        deviation = self._jitter * (2.0 * tf.cast(uniform[:, 1:], tf.float64) - 1.0)
        angle, shear = 0.21 * deviation[:, 0], 0.12 * deviation[:, 1]
        # From places in the image to places on the drawing, both from -1 to 1.
        rows = (1.0 / (0.975 + 0.125 * deviation[:, 2]), 1.0 / (0.975 + 0.125 * deviation[:, 3]))
        cos, sin = tf.cos(angle), tf.sin(angle)
        axis = (2.0 * tf.range(self._side, dtype=tf.float64) + 1.0) / self._side - 1.0
        x, y = (grid[None] for grid in tf.meshgrid(axis, axis))
        x, y = x - _wide(0.12 * deviation[:, 4]), y - _wide(0.12 * deviation[:, 5])
        from_x = _wide(rows[0]) * (_wide(cos) * x + _wide(sin + shear) * y)
        from_y = _wide(rows[1]) * (-_wide(sin) * x + _wide(cos) * y)
        return 2.0 * self._sampled(which, from_x, from_y)[..., None] - 1.0

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The places of the shown characters in `characters`, `(n,)` int64."""
        uniform = functional.example_uniform(numbers, 1, 0, stream=0)[:, 0]
        return tf.cast(uniform * self.classes, tf.int64)

    def fingerprint(self) -> dict[str, Any]:
        """The parameters, and hashes of the drawn characters, which depend on the fonts and on Pillow."""
        drawn = np.round(self._drawn * 15).astype(np.uint8)
        return {"size": self.size, "jitter": self._jitter, "drawn": fingerprints.of_array(drawn)}

    def _sampled(self, which: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """Drawings at places from -1 to 1, by bilinear interpolation, `(n, side, side)`; 0 outside."""
        drawn, side = self._drawn, _DRAWN * self._side
        flat = tf.constant(np.pad(drawn, ((0, 0), (1, 1), (1, 1))).reshape(-1))
        wide = side + 2

        def along(place: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            pixel = tf.clip_by_value((place + 1.0) * (side / 2) + 0.5, 0.0, side + 0.999)
            whole = tf.floor(pixel)
            return tf.cast(whole, tf.int64), tf.cast(pixel - whole, tf.float32)

        (left, right_part), (top, bottom_part) = along(x), along(y)
        first = which[:, None, None] * (wide * wide) + top * wide + left

        def at(down: int, across: int) -> tf.Tensor:
            return tf.gather(flat, first + (down * wide + across))

        upper = at(0, 0) * (1.0 - right_part) + at(0, 1) * right_part
        lower = at(1, 0) * (1.0 - right_part) + at(1, 1) * right_part
        return upper * (1.0 - bottom_part) + lower * bottom_part


def _wide(x: tf.Tensor) -> tf.Tensor:
    return x[:, None, None]
