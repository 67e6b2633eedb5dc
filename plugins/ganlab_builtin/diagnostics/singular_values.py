"""How far the critic's kernels stretch their inputs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

import ganlab


class SingularValues(ganlab.Diagnostic):
    """The singular values of each kernel that the critic computes with.

    A convolution's kernel is taken as the matrix (everything else, outputs), as in Miyato, Kataoka, Koyama and Yoshida,
    "Spectral normalization for generative adversarial networks" (2018): its largest singular value is not the
    convolution's norm, which depends on stride and padding too.

    Figures: `largest/<weight>`; `stable_rank/<weight>`, the sum of the squares over the square of the largest (Rudelson
    and Vershynin, "Sampling from large matrices", 2007), between 1, where one direction takes all, and the rank.
    Histograms: all singular values of each kernel.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "largest/<weight>": "The largest singular value of this kernel as a matrix: how much it can stretch.",
        "stable_rank/<weight>": (
            "The sum of the squared singular values over the largest squared: near 1 one direction takes all."
        ),
    }

    def __init__(self, *, every: int = 0) -> None:
        """Chooses how often to look.

        Args:
            every: Generator updates between looks; 0 for each evaluation.
        """
        self.every = every

    def look(self, critic: ganlab.CriticView) -> ganlab.Findings:
        """The singular values of the weights as the constraints make them."""
        values = {name: _singular_values(w) for name, w in critic.effective.items() if w.ndim > 1}
        if not values:
            raise ganlab.IncompatibleError(
                "diagnostics.singular_values finds no kernel in this critic: all trainable weights are scalars or "
                "vectors. Drop it from experiment.diagnostics."
            )
        largest = {name: float(sigma.max()) for name, sigma in values.items()}
        figures = {f"largest/{name}": value for name, value in largest.items()}
        for name, sigma in values.items():
            figures[f"stable_rank/{name}"] = float(np.sum(sigma**2)) / max(largest[name] ** 2, np.finfo(float).tiny)
        return ganlab.Findings(figures, histograms=values)


def _singular_values(kernel: np.ndarray) -> np.ndarray:
    matrix = kernel.reshape(-1, kernel.shape[-1]).astype(np.float64)
    if matrix.shape[0] < matrix.shape[1]:
        matrix = matrix.T
    if not np.isfinite(matrix).all():
        return np.full(matrix.shape[1], np.nan)
    # From the smaller Gram matrix: many times faster than for a tall matrix, and as exact for the large values.
    return np.sqrt(np.maximum(np.linalg.eigvalsh(matrix.T @ matrix), 0.0))
