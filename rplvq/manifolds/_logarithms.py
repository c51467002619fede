"""Logarithms and spectra of many small positive definite matrices, without LAPACK where this is faster.

LAPACK decomposes one matrix at a time, and spends most of its time on calls and tests if matrices are small. The
logarithm of a 2 x 2 matrix has a closed form. If numba is installed, larger matrices are decomposed in the lanes of
vector registers.
"""

import numpy as np

from rplvq.arrays import check_positive, from_spectrum, rank_tolerance
from rplvq.lanes import LaneKernels, Parts, aligned, from_lanes, into_lanes, lane_kernels, pays
from rplvq.protocols import Array

MANY = 500
"""Smallest number of matrices for which compiled code is used. Loading it takes longer than LAPACK takes for fewer."""
LARGEST_ROTATED = {1: 32, 2: 24}
"""Largest size n of real and of complex matrices for which rotations are faster than LAPACK."""
UNROTATED = {"batch_eigenvalues": 96, "batch_inverses": 96}
"""The same limit for kernels without rotations; they were not measured beyond it."""
LARGE = 200_000
"""Numbers in all matrices together from which on fewer large matrices count as many for these kernels."""
WIDTH = 8
"""Number of matrices in a block, one per lane of a vector."""
SAVED = 6e-8
"""Seconds that rotations save per matrix, divided by n^2, from measurements at n = 3 to 22."""
FLOOR = float(np.finfo(float).eps)
"""An eigenvalue of a whitened matrix below this share of the largest one is a rounding error."""
TINY = 1e-300
"""The least squared difference of two eigenvalues, whose logarithms are then divided by a number that is not 0."""
CACHE_BYTES = 1 << 18
"""Size in bytes of the matrices that are laid out at once, so that they fit into the processor's cache."""


def logarithms(matrices: Array, precision: float) -> Array:
    """Return the logarithms of Hermitian matrices (N, n, n), rounded to ``precision``; PointError if one has none."""
    n = matrices.shape[-1]
    logs = None
    # Twice the tolerance of check_positive: if a matrix is close to being refused, LAPACK decomposes all of them.
    smallest = 2 * rank_tolerance(n, precision)
    if n == 2:
        logs = of_two_by_two(matrices, smallest)
    elif (kernels := kernels_for_many("batch_logs", matrices)) is not None:
        logs = in_lanes(kernels, matrices, smallest)
    if logs is not None:
        return logs
    eigenvalues, eigenvectors = np.linalg.eigh(matrices)
    check_positive(matrices, eigenvalues, precision)
    return from_spectrum(np.log(eigenvalues), eigenvectors)


def kernels_for_many(name: str, matrices: Array) -> LaneKernels | None:
    """Return what :func:`kernels_for` does if there are many matrices (N, n, n), else None."""
    many = len(matrices) >= MANY or (name in UNROTATED and matrices.size >= LARGE)
    return kernels_for(name, matrices, len(matrices)) if many else None


def kernels_for(name: str, matrices: Array, count: int, *, at_once: bool = False) -> LaneKernels | None:
    """Return compiled kernels if the kernel ``name`` decomposes ``count`` matrices (..., n, n) faster than LAPACK.

    Otherwise return None. If the kernel would have to be compiled first, :func:`rplvq.lanes.pays` decides, unless
    ``at_once`` is True.
    """
    n = matrices.shape[-1]
    n_parts = 2 if np.iscomplexobj(matrices) else 1
    kernels = lane_kernels() if 1 < n <= UNROTATED.get(name, LARGEST_ROTATED[n_parts]) else None
    if kernels is None or at_once or pays((name, n_parts, WIDTH), SAVED * count * n * n * n_parts):
        return kernels
    return None


def of_two_by_two(matrices: Array, smallest: float) -> Array | None:
    """Return the logarithms of matrices (N, 2, 2); None if an eigenvalue is not above ``smallest`` times the other."""
    # With the mean m of the eigenvalues m (1 + x) and m (1 - x), log A = a I + b (A / m - I), where a is the mean of
    # their logarithms and b = atanh(x) / x. The product of the eigenvalues of A / m is its determinant 1 - x^2, which
    # has the digits that 1 - x would lose: atanh(x) = log1p(2 x (1 + x) / (1 - x^2)) / 2.
    upper = matrices[:, 0, 0].real
    lower = matrices[:, 1, 1].real
    side = matrices[:, 1, 0]
    mean = 0.5 * (upper + lower)
    if not mean.min() > 0:
        return None
    upper = upper / mean
    lower = lower / mean
    side = side / mean
    square = (side * side.conj()).real
    product = upper * lower - square
    if not product.min() > 4 * smallest:  # the ratio of the eigenvalues is 1 - x^2 over (1 + x)^2
        return None
    gap = 0.5 * (upper - lower)
    x = np.sqrt(gap * gap + (square + TINY))
    double = x + x
    slope = np.log1p(double * (1 + x) / product) / double
    level = np.log(mean * np.sqrt(product))
    gap *= slope
    result = np.empty_like(matrices)
    np.add(level, gap, out=result[:, 0, 0])
    np.subtract(level, gap, out=result[:, 1, 1])
    np.multiply(slope, side, out=result[:, 1, 0])
    result[:, 0, 1] = result[:, 1, 0].conj()
    return result


def in_lanes(kernels: LaneKernels, matrices: Array, smallest: float) -> Array | None:
    """Return the logarithms of matrices (N, n, n), each computed by compiled rotations as if it were alone.

    Return None if an eigenvalue is not clearly larger than ``smallest`` times the largest one of its matrix.
    """
    n = matrices.shape[-1]
    result = np.empty_like(matrices)
    # The kernel wants contiguous columns; real matrices are symmetric, so that their rows will do.
    by_columns = matrices.swapaxes(1, 2)
    by_rows = result.swapaxes(1, 2)
    if not np.iscomplexobj(matrices):
        by_columns = matrices
        by_rows = result
    for rows in cached_parts(matrices):
        lanes = into_lanes(by_columns[rows], WIDTH)
        squares = aligned(len(lanes[0]) // n)
        spare = tuple(aligned(n * n * WIDTH) for _ in lanes)
        blocks = len(squares) // (n * WIDTH)
        kernels.batch_logs(lanes, squares, 0, blocks, n, aligned(6 * n * WIDTH), spare, (0.0,) * WIDTH)
        spectra = squares.reshape(-1, n, WIDTH)
        if not (spectra.min(axis=1) > smallest * spectra.max(axis=1)).all():
            return None
        by_rows[rows] = from_lanes(lanes, len(matrices[rows]), n, WIDTH)
    return result


def summed_inverses(kernels: LaneKernels, matrices: Array, shifts: Array, factors: Array) -> Array | None:
    """Return ``sum_t factors[t] (A + shifts[t] I)^-1`` for matrices A (N, n, n); None if one is not definite."""
    n = matrices.shape[-1]
    lanes = into_lanes(matrices.swapaxes(1, 2), WIDTH)
    spare = tuple(aligned(2 * n * n * WIDTH) for _ in lanes)
    kernels.batch_inverses(lanes, 0, len(lanes[0]) // (n * n * WIDTH), n, shifts, factors, spare, (0.0,) * WIDTH)
    sums = from_lanes(lanes, len(matrices), n, WIDTH).swapaxes(1, 2)
    return sums if np.isfinite(sums).all() else None


def ascending_eigenvalues(matrices: Array, kernels: LaneKernels | None = None) -> Array:
    """Return the ascending eigenvalues (N, n) of Hermitian matrices (N, n, n), computed in lanes with ``kernels``.

    They are exact up to the rounding of the largest one. LAPACK computes them if there are no kernels, and if there is
    a matrix that the kernels do not take, such as one whose trace is not positive.
    """
    if kernels is None:
        return np.linalg.eigvalsh(matrices)
    count, n = matrices.shape[:2]
    result = np.empty((count, n))
    for rows in cached_parts(matrices):
        lanes = into_lanes(matrices[rows].swapaxes(1, 2), WIDTH)
        values = aligned(len(lanes[0]) // n)
        work = tuple(aligned(2 * n * WIDTH) for _ in lanes)
        kernels.batch_eigenvalues(lanes, values, 0, len(values) // (n * WIDTH), n, work, (0.0,) * WIDTH)
        result[rows] = by_matrix(values, n, count - rows.start)
    if not np.isfinite(result).all():
        return np.linalg.eigvalsh(matrices)
    result.sort(axis=1)  # the kernel does not sort
    return result


def whitened_spectra(kernels: LaneKernels, factors: Array, samples: Array) -> tuple[Array, Array] | None:
    """Return the logarithms (B, K, n) of the eigenvalues of ``G X G^H``, unsorted, and eigenvectors (B, K, n, n).

    All pairs of K factors G and B samples X, both (..., n, n), are decomposed. Each sample may have factors of its own,
    shape (B, K, n, n). Return None if a sample has no Cholesky factor.
    """
    count, n = factors.shape[-3:-1]
    try:
        roots = np.linalg.cholesky(samples)
    except np.linalg.LinAlgError:
        return None
    has_own = factors.ndim == 4
    pairs = factors @ roots[:, None] if has_own else factors.reshape(count * n, n) @ roots
    pairs = pairs.reshape(-1, n, n)
    squares, lanes = rotated(kernels, pairs)
    columns = from_lanes(lanes, len(pairs), n, WIDTH)
    columns /= np.sqrt(squares)[..., None]
    # Singular values are known up to eps times the largest one, and the eigenvalues are their squares.
    logs = np.log(np.maximum(squares, squares.max(axis=-1, keepdims=True) * FLOOR**2))
    return logs.reshape(-1, count, n), columns.reshape(-1, count, n, n).swapaxes(2, 3)


def rotated(kernels: LaneKernels, matrices: Array) -> tuple[Array, Parts]:
    """Make the columns of matrices (P, n, n) orthogonal; return squared norms (P, n), and the columns in lanes."""
    n = matrices.shape[-1]
    lanes = into_lanes(matrices.swapaxes(1, 2), WIDTH)
    squares = aligned(len(lanes[0]) // n)
    kernels.batch_spectra(lanes, squares, 0, len(squares) // (n * WIDTH), n, aligned(5 * n * WIDTH), (0.0,) * WIDTH)
    return by_matrix(squares, n, len(matrices)), lanes


def cached_parts(matrices: Array) -> list[slice]:
    """Return slices of N matrices: as many blocks of W as fit into the processor's cache, but at least one."""
    part = max(1, CACHE_BYTES // (matrices[0].nbytes * WIDTH)) * WIDTH
    return [slice(start, start + part) for start in range(0, len(matrices), part)]


def by_matrix(values: Array, n: int, count: int) -> Array:
    """Return values of lanes (blocks n W,), n for each matrix, as rows of the first ``count`` matrices, at most."""
    return np.asarray(values.reshape(-1, n, WIDTH).swapaxes(1, 2).reshape(-1, n)[:count])
