"""Skew and orthogonal convolutions by the papers' formulas, with matrices and loops in numpy's float64."""

import math

import numpy as np


def circular(x, kernel):
    """A convolution of images that continue on their opposite side."""
    before = [(length - 1) // 2 for length in kernel.shape[:2]]
    taps = np.ndindex(*kernel.shape[:2])
    return sum(np.roll(x, (before[0] - a, before[1] - b), (1, 2)) @ kernel[a, b] for a, b in taps)


def skew_matrix(kernel, shape):
    """L, half of the difference of the zero-padded convolution's matrix and its transpose, rescaled, and nu."""
    height, width, channels = kernel.shape[:3]
    # Borders as wide as the kernel turn a circular convolution into one with zeros.
    images = np.eye(math.prod(shape) * channels).reshape(-1, *shape, channels)
    images = np.pad(images, [(0, 0), (0, height), (0, width), (0, 0)])
    matrix = circular(images, kernel)[:, : shape[0], : shape[1]].reshape(len(images), -1).T
    skew = (kernel - np.flip(kernel, (0, 1)).swapaxes(2, 3)) / 2
    columns = skew.reshape(-1, channels)
    power = np.linalg.matrix_power(columns.T @ columns, 64)
    bound = math.sqrt(height * width * np.linalg.norm(power) ** (1 / 64))
    return (matrix - matrix.T) / 2 / max(1.0, bound), min(1.0, bound)


def skew_series(x, kernel, terms):
    """The series of L on images, `sum_j L^j x / j!`, divided by `1 + nu^terms / terms!`."""
    matrix, nu = skew_matrix(kernel, x.shape[1:3])
    x = np.pad(x, [(0, 0), (0, 0), (0, 0), (0, kernel.shape[2] - x.shape[3])])
    powers = sum(np.linalg.matrix_power(matrix, j) / math.factorial(j) for j in range(terms))
    y = x.reshape(len(x), -1) @ powers.T
    return y.reshape(x.shape) / (1 + nu**terms / math.factorial(terms))


def orthonormal(block):
    """Cayley's transform: of the m x n matrix (U; V) the first n columns of that of a skew m x m one."""
    rows, columns = block.shape
    square, rest = block[:columns], block[columns:]
    skew = np.zeros((rows, rows))
    skew[:columns, :columns], skew[columns:, :columns], skew[:columns, columns:] = square - square.T, rest, -rest.T
    return np.linalg.solve(np.eye(rows) + skew, np.eye(rows) - skew)[:, :columns]


def block_convolved(first, second):
    """The kernel of one convolution after another."""
    taps = [m + n - 1 for m, n in zip(first.shape[:2], second.shape[:2], strict=True)]
    product = np.zeros((*taps, first.shape[2], second.shape[3]))
    for a, b in np.ndindex(*first.shape[:2]):
        for c, d in np.ndindex(*second.shape[:2]):
            product[a + c, b + d] += first[a, b] @ second[c, d]
    return product


def product_of_projectors(columns, size):
    """The kernel of n to n channels from the blocks of columns of the weight."""
    channels, half = len(columns), len(columns) // 2
    kernel = orthonormal(columns[:, :channels])[None, None]
    start = channels
    for step in range(max(size) - 1):
        for axis in (0, 1):
            if step < size[axis] - 1:
                basis, start = orthonormal(columns[:, start : start + half]), start + half
                taps = np.stack([basis @ basis.T, np.eye(channels) - basis @ basis.T])
                kernel = block_convolved(kernel, np.expand_dims(taps, 1 - axis))
    return kernel
