"""Skew and orthogonal convolutions by the papers' formulas, with matrices and loops in numpy's float64."""

import math

import numpy as np


def circular(x, kernel, strides=(1, 1)):
    """A convolution of images that continue on their opposite side."""
    before = [(length - s) // 2 for length, s in zip(kernel.shape[:2], strides, strict=True)]
    taps = np.ndindex(*kernel.shape[:2])
    y = sum(np.roll(x, (before[0] - a, before[1] - b), (1, 2)) @ kernel[a, b] for a, b in taps)
    return y[:, :: strides[0], :: strides[1]]


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


def adaptive(layer):
    """The kernel of each group of an adaptive orthogonal convolution: of `k - s + 1` taps, then of s at stride s."""
    size = [k - s + 1 for k, s in zip(layer.kernel_size, layer.strides, strict=True)]
    columns, *sampling = (v.numpy() for v in layer.weights if v.name != "bias")
    inputs = layer.effective_kernel().shape[2]
    outputs = layer.effective_kernel().shape[3] // layer.groups
    kernels = [product_of_projectors(group, size)[:, :, :inputs] for group in columns]
    if not sampling:
        return [kernel[..., :outputs] for kernel in kernels]
    matrices = [orthonormal(group) for group in sampling[0]]
    matrices = [m if m.shape[1] == outputs else m.T for m in matrices]
    return [
        block_convolved(kernel, matrix.reshape(*layer.strides, -1, outputs))
        for kernel, matrix in zip(kernels, matrices, strict=True)
    ]


def reflected(x, kernel, filters, border):
    """Images reflected at each frequency at the span of the kernel's transform there."""
    inputs, (above, left) = x.shape[-1], border
    x = np.pad(x, [(0, 0), (above, above), (left, left), (0, 0)])
    bases, _ = np.linalg.qr(np.fft.fft2(kernel, x.shape[1:3], axes=(0, 1)))
    matrices = (np.eye(kernel.shape[2]) - 2 * bases @ bases.conj().swapaxes(2, 3))[:, :, :filters, :inputs]
    y = np.fft.ifft2(np.einsum("hwoi,nhwi->nhwo", matrices, np.fft.fft2(x, axes=(1, 2))), axes=(1, 2))
    np.testing.assert_allclose(y.imag, 0, atol=1e-12)
    return y.real[:, above : x.shape[1] - above, left : x.shape[2] - left]
