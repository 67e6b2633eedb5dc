"""Pairs of distributions whose Wasserstein-1 distance, transport map and optimal critic are known, in any dimension."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints, functional
from ganlab.bounds import Ge, Gt, Local, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import arrays_of_file, refusal
from ganlab_builtin.datasets.funnels import Funnels

# Points whose rays are measured for the distance, and how many at once.
_MEASURED, _PIECE = 2**16, 2**11
_BIAS_DEVIATION = 0.1  # the paper's, of the funnels' heights


class MinFunnels(ganlab.Dataset):
    """Points of a cube moved towards the centres of funnels; the counterpart is the uniform distribution on the cube.

    Korotin, Kolesov and Burnaev, "Kantorovich strikes back! Wasserstein GANs are not optimal transport?" (2022),
    section 4. `u(x) = min_n (|x - a_n| + b_n)` is 1-Lipschitz with slope one along every ray from a funnel's centre. A
    point x of the cube lies on the ray from the centre of its funnel, at the fraction t of the way to where the ray
    leaves the funnel or the cube; it moves to the fraction `t^degree`. As all mass moves along rays of u, `-u` is an
    optimal critic of the moved points against the points of the cube, and the distance is the mean length of the moves.
    The source of a point, for a generator that takes one, is the point that is paired with it on the other side.

    Centres are uniform in the cube and heights b normal with deviation 0.1, as in the paper, whose own centres `path`
    can read. Funnels hidden below others, whose centre lies in another's funnel, have no points.
    """

    def __init__(
        self,
        *,
        dims: Annotated[int, Ge(1), Lt(2**16)] = 2,
        funnels: Annotated[int, Ge(1), Lt(2**16)] = 4,
        degree: Annotated[float, Ge(1)] = 8.0,
        half_side: Annotated[float, Gt(0)] = 2.5,
        moved: bool = True,
        funnels_seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        path: Annotated[str, Local()] | None = None,
    ) -> None:
        """Places the funnels.

        Args:
            dims: The dimension of the space.
            funnels: How many funnels.
            degree: How far points move; 1 moves none. The paper's 8.
            half_side: Half the side of the cube around zero.
            moved: False for the counterpart as a dataset of its own, for the other side of the pair.
            funnels_seed: Decides the funnels where no file does; the experiment's seed decides the points.
            path: A `.npz` file with arrays `centers_<dims>_<funnels>`, `(funnels, dims)`, and `bias_<dims>_<funnels>`,
                `(funnels,)`; a relative path is from the working directory.

        Raises:
            ConfigError: A value is out of its range; or the file cannot be read, lacks the arrays, or has centres
                outside the cube or numbers that are not finite.
        """
        random = np.random.default_rng(funnels_seed)
        centers = random.uniform(-half_side, half_side, size=(funnels, dims))
        heights = _BIAS_DEVIATION * random.standard_normal(funnels)
        if path is not None:
            shapes = {f"centers_{dims}_{funnels}": (funnels, dims), f"bias_{dims}_{funnels}": (funnels,)}
            centers, heights = arrays_of_file("min_funnels", path, shapes, "dims and funnels")
            if np.abs(centers).max() > half_side:
                raise refusal("min_funnels", "path", path, f"has centres outside the cube of half side {half_side!r}.")
        self._funnels = Funnels(centers, heights)
        self.centers, self.heights = self._funnels.centers, self._funnels.heights
        self.degree, self.half_side, self.moved = degree, half_side, moved
        self.sample_shape = self.source_shape = (dims,)

    @functools.cached_property
    def wasserstein(self) -> float:
        """The distance between the moved points and the cube's: the integral over each ray is exact.

        Points of a ray are at fractions t with density `dims t^(dims - 1)`, so the mean move is
        `dims / (dims + 1) - dims / (dims + degree)` of the ray's length. The mean length is that of 65,536 points.
        """
        if not self.moved:
            return 0.0
        dims = self.sample_shape[0]
        lengths = [
            np.asarray(self._rays(self.counterpart(tf.range(start, start + _PIECE, dtype=tf.int64), 0))[2])
            for start in range(0, _MEASURED, _PIECE)
        ]
        share = dims / (dims + 1) - dims / (dims + self.degree)
        return share * float(np.mean(lengths, dtype=np.float64))

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The samples with these numbers, `(n, dims)` float32: those of the counterpart, moved."""
        points = self.counterpart(numbers, seed)
        return self._along_rays(points) if self.moved else points

    def sources(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The points of the other side, `(n, dims)` float32."""
        points = self.counterpart(numbers, seed)
        return points if self.moved else self._along_rays(points)

    def _along_rays(self, points: tf.Tensor) -> tf.Tensor:
        centers, directions, lengths, distances = self._rays(points)
        fractions = tf.pow(tf.minimum(tf.math.divide_no_nan(distances, lengths), 1.0), self.degree)
        return centers + (fractions * lengths)[:, None] * directions

    def counterpart(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The uniform points with these numbers, `(n, dims)` float32, from which those of `examples` are moved."""
        uniform = functional.example_uniform(numbers, self.sample_shape[0], seed)
        return self.half_side * (2.0 * uniform - 1.0)

    def potential(self, x: tf.Tensor) -> tf.Tensor:
        """The optimal critic `-u` at `(n, dims)`: `(n,)`."""
        return self._funnels.potential(x)

    def potential_gradient(self, x: tf.Tensor) -> tf.Tensor:
        """The optimal critic's gradient at `(n, dims)`: towards the centre of the point's funnel, of length one."""
        return self._funnels.gradient(x)

    def fingerprint(self) -> dict[str, Any]:
        """A hash of the funnels, and how points move."""
        return {
            "centers": fingerprints.of_array(self.centers),
            "heights": fingerprints.of_array(self.heights),
            "degree": self.degree,
            "half_side": self.half_side,
            "moved": self.moved,
        }

    def _rays(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Of each point's ray: the centre, the direction, the length, and how far from the centre the point is."""
        chosen = self._funnels.chosen(x)
        centers = tf.gather(self.centers, chosen)
        distances = tf.norm(x - centers, axis=1)
        directions = tf.math.divide_no_nan(x - centers, distances[:, None])
        # The cube: the first side that is met.
        walls = tf.where(directions < 0, -self.half_side, self.half_side) - centers
        cube = tf.reduce_min(tf.where(directions == 0, np.inf, tf.math.divide_no_nan(walls, directions)), axis=1)
        # Funnel m: |a + l v - a_m| + b_m = l + b, squared and solved for l.
        rise = tf.gather(self.heights, chosen)[:, None] - self.heights
        distances_between = tf.norm(self.centers[:, None] - self.centers[None], axis=2)
        between = tf.gather(tf.square(distances_between), chosen)
        along = tf.reduce_sum(centers * directions, axis=1, keepdims=True) - tf.matmul(
            directions, self.centers, transpose_b=True
        )
        speed = rise - along
        meets = (speed > 0) & (tf.range(len(self.centers), dtype=tf.int64) != chosen[:, None])
        crossing = tf.math.divide_no_nan(between - tf.square(rise), 2.0 * speed)
        funnel = tf.reduce_min(tf.where(meets, crossing, np.inf), axis=1)
        # A point of the ray is on it, whatever rounding says.
        return centers, directions, tf.maximum(tf.minimum(cube, funnel), distances), distances
