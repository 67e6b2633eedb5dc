"""A picture of the critic as a function of the plane."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Gt
from ganlab.pictures import heights_over, square_around, surface


class Surface(ganlab.Diagnostic):
    """The critic's scores over the plane, with real and generated points drawn in, for data in two dimensions.

    Gulrajani, Ahmed, Arjovsky, Dumoulin and Courville, "Improved training of Wasserstein GANs" (2017), figure 1a: a
    clipped critic learns one simple shape around all of the data, a penalized one follows their modes. 128 x 128
    points, as there.

    Figures: `nonlinearity`, the fraction of the scores' variance over the data's square that the best plane, by least
    squares, leaves unexplained: 0 for a linear critic. Pictures: `scores`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "nonlinearity": (
            "The fraction of the scores' variance over the data's square that no plane explains: 0 for a linear "
            "critic, which gives little signal."
        ),
    }

    def __init__(
        self, *, every: int = 0, half_width: Annotated[float, Gt(0)] | None = None, points: Annotated[int, Ge(1)] = 1000
    ) -> None:
        """Chooses the square and the points to draw.

        Args:
            every: Generator updates between looks; 0 for each evaluation.
            half_width: The picture shows [-half_width, half_width]^2, the paper's toy figures with 3; None for the
                square around the real points.
            points: The number of real and of generated points to draw.
        """
        self.every, self.half_width, self.points = every, half_width, points

    def look(self, critic: ganlab.CriticView) -> ganlab.Findings:
        """The surface now."""
        shape = tuple(critic.dataset.sample_shape)
        if shape != (2,):
            raise ganlab.IncompatibleError(
                f"diagnostics.surface draws critics of points in the plane, and the dataset's examples have the shape "
                f"{shape}. Drop it from experiment.diagnostics, or use data of shape (2,)."
            )
        real, fake = critic.more(self.points)
        low, high = square_around(real)
        heights = heights_over(critic.scores, low, high)
        figures = {"nonlinearity": _beyond_a_plane(heights)}
        if self.half_width is not None:
            low, high = np.full(2, -self.half_width), np.full(2, self.half_width)
            heights = heights_over(critic.scores, low, high)
        return ganlab.Findings(figures, pictures={"scores": surface(heights, low, high, real, fake)})


def _beyond_a_plane(heights: np.ma.MaskedArray) -> float:
    """The part of the variance of `(rows, columns)` heights that no `a + b * row + c * column` explains."""
    if np.ma.getmaskarray(heights).any():
        return float("nan")
    rows, columns = np.indices(heights.shape).reshape(2, -1)
    values = np.ma.getdata(heights).ravel() - heights.mean()
    plane = np.stack([rows - rows.mean(), columns - columns.mean()], axis=1)
    variance = float(np.sum(values**2))
    if variance == 0.0:
        return 0.0
    fitted = plane @ np.linalg.lstsq(plane, values, rcond=None)[0]
    return float(np.sum((values - fitted) ** 2)) / variance
