"""Checks of the matrices that users pass."""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from rplvq.arrays._linalg import adjoint, hermitian_part
from rplvq.exceptions import PointError
from rplvq.protocols import Array, ArrayLike

DOUBLE = np.dtype(float)
EPS = float(np.finfo(float).eps)
MIXED = 3
"""Orders of magnitude between the standard deviations of two channels that suggest different units."""
ADVICE_PRECISION = (
    "The matrices have single or half precision (float32, float16), in which small eigenvalues are rounding: compute "
    "and pass them in float64. "
)
ADVICE_MISSING = (
    ". Channels can be missing in predictions of RiemannianLVQ only: their rows and columns are NaN, and it is fitted "
    "to positive definite matrices. For a fit, leave the channels out of all matrices: X[:, kept][:, :, kept]"
)
ADVICE_TRIALS = (
    "Signals (n_trials, n_channels, n_times), such as epochs.get_data(), become matrices by a first step: "
    "make_pipeline(rplvq.TrialCovariances(), RiemannianLVQ())"
)
ADVICE_AXES = {
    2: 'vectors, such as those of a tangent space, are classified by RiemannianLVQ("euclidean_vectors")',
    4: "with one matrix per band and sample, the metric is a Product; an image of matrices is X.reshape(-1, n, n); "
    "and Epochs need a first step, rplvq.TrialCovariances()",
}
ADVICE_RANK = (
    "Restore the rank: rplvq.CommonSubspace() as the step before the classifier drops the directions that an average "
    "reference, an ICA or interpolation has removed; or drop a reference channel, or a linear combination of others. "
    "Add a small relative ridge: rplvq.features.shrink(X, shrinkage=1e-6). Use more samples for each matrix."
)

ValuesT = TypeVar("ValuesT")


def unmasked(values: ValuesT, name: str = "X") -> ValuesT:
    """Return values as they are; raise PointError at the first row of a masked array that hides an entry."""
    if _hides(values):
        rows: Any = values if getattr(values, "ndim", 1) else [values]
        index = next(index for index, row in enumerate(rows) if _hides(row))
        raise PointError(index, "has masked entries, and masks are not read: leave them out, or fill them", name)
    return values


def _hides(values: Any) -> bool:
    """Whether values are a masked array with hidden entries, or lists or arrays of objects that hold one."""
    if isinstance(values, np.ma.MaskedArray):
        return bool(np.ma.is_masked(values))
    nested = isinstance(values, (list, tuple)) or (getattr(values, "dtype", None) == np.dtype(object) and values.ndim)
    return nested and any(map(_hides, values))


def stacked(points: Any) -> Any:
    """Return an array of objects, or a series, that holds one point per entry as one array; anything else as it is."""
    if getattr(points, "dtype", None) != np.dtype(object) or points.ndim != 1:
        return points
    rows = list(unmasked(points))
    return _rectangular(rows) if any(isinstance(row, (np.ndarray, list, tuple)) for row in rows) else points


def _rectangular(rows: Any) -> Array:
    """Return rows of numbers as one array; raise ValueError at the first that has another shape or other entries."""
    for index, row in enumerate(rows):
        try:
            entries = np.array(np.asarray(row).tolist())
        except ValueError as error:
            raise ValueError(f"X must be a rectangular array of numbers: X[{index}]: {error}") from error
        if entries.dtype.kind not in "biufc":
            raise ValueError(f"X must hold numbers, got dtype {entries.dtype} in X[{index}]: {row!r:.200}")
        if entries.shape != np.shape(rows[0]):
            shapes = f"X[{index}] has shape {entries.shape}, X[0] {np.shape(rows[0])}"
            raise ValueError(f"X must be a rectangular array of numbers: {shapes}")
    return np.array(rows)


def as_number_array(points: ArrayLike, ndim: int, what: str, advice: Mapping[int, str] | None = None) -> Array:
    """Return points as an array of numbers with ``ndim`` axes, or raise ValueError; ``what`` names the axes.

    ``advice`` says by another number of axes what can be done. A complex array without imaginary part becomes real.
    The input is never written to, and is copied only where its type demands it.
    """
    if sparse.issparse(points):
        raise TypeError("Sparse data was passed, but dense data is required: use X.toarray()")
    unmasked(points)
    try:
        array = np.asarray(points)
    except ValueError:
        array = _rectangular(points)
    if array.dtype == object and array.ndim:
        array = _rectangular(array.tolist())
    if array.dtype.kind not in "biufc":
        raise ValueError(f"X must hold numbers, got dtype {array.dtype}")
    if array.ndim != ndim:
        single = "Reshape your data; a single sample is passed as X[None]" if array.ndim == ndim - 1 else ""
        steps = "; ".join(filter(None, [single, (advice or {}).get(array.ndim)]))
        raise ValueError(f"X must have {ndim} axes, {what}, got shape {array.shape}{': ' if steps else ''}{steps}")
    if array.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required")
    if np.iscomplexobj(array) and not array.imag.any():
        array = array.real
    return array


def precision_of(points: ArrayLike) -> float:
    """Return the machine epsilon of the type in which points were passed, but at least that of float64."""
    dtype = getattr(points, "dtype", None)
    if dtype is None or dtype == DOUBLE or np.dtype(dtype).kind not in "fc":  # integers are exact
        return EPS
    return max(float(np.finfo(dtype).eps), EPS)


def check_hermitian(points: ArrayLike) -> Array:
    """Return Hermitian matrices (N, n, n) that a user passes as float64 or complex128, exactly Hermitian.

    ValueError is raised if the shape is wrong, an entry is NaN or infinite, or a matrix differs from its conjugate
    transpose by more than 1e-10 times its largest entry (32 eps times it for float32 and float16).
    """
    array = as_number_array(points, 3, "(n_matrices, n, n)", ADVICE_AXES)
    n_rows, n_columns = array.shape[1:]
    if n_rows != n_columns:
        raise ValueError(f"X must hold square matrices, got shape {array.shape}: X[0] is not square. {ADVICE_TRIALS}")
    if n_rows == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required")
    require_finite(array)
    tolerance = max(1e-10, 32 * precision_of(points))
    array = array.astype(complex if np.iscomplexobj(array) else float, copy=False)
    if _is_hermitian(array):  # nothing is copied
        return array
    gap = np.abs(array - adjoint(array)).max(axis=(1, 2))
    size = np.abs(array).max(axis=(1, 2))
    if (index := first_bad(gap > tolerance * size)) is not None:
        kind = "Hermitian" if np.iscomplexobj(array) else "symmetric"
        raise PointError(
            index,
            f"is not {kind}: it differs from its conjugate transpose by {gap[index]:.3g} "
            f"({gap[index] / size[index]:.3g} of its largest entry, allowed {tolerance:.3g}). "
            "To symmetrise the data, pass 0.5 * (X + X.conj().swapaxes(1, 2))",
        )
    return hermitian_part(array)


def _is_hermitian(matrices: Array) -> bool:
    """Tell whether matrices (N, n, n) equal their conjugate transposes."""
    if matrices.shape[-1] == 2 and not np.iscomplexobj(matrices):  # numpy compares such small matrices slowly
        return bool((matrices[:, 0, 1] == matrices[:, 1, 0]).all())
    return bool((matrices == adjoint(matrices)).all())


def check_positive_definite(points: ArrayLike) -> Array:
    """Return matrices (N, n, n) that pass :func:`check_hermitian` and :func:`check_definite`, as the former does."""
    matrices = check_hermitian(points)
    check_definite(matrices, precision_of(points))
    return matrices


def check_definite(matrices: Array, precision: float) -> None:
    """Raise PointError at the first of the matrices (N, n, n) that is not positive definite beyond their rounding."""
    # Fast test: subtract twice the tolerance times the trace from the diagonal. If all matrices still have a Cholesky
    # factor, all are well above the tolerance. If one fails, eigenvalues of the whole stack decide.
    n = matrices.shape[-1]
    shifted = matrices.copy()
    diagonal = np.einsum("...ii->...i", shifted)
    diagonal -= 2 * rank_tolerance(n, precision) * diagonal.real.sum(axis=-1, keepdims=True)
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        check_positive(matrices, np.linalg.eigvalsh(matrices), precision)


def rank_tolerance(n: int, precision: float = EPS) -> float:
    """Return the share of the largest eigenvalue of an n x n matrix below which another eigenvalue is rounding."""
    return min(10 * n * precision, 1e-6)


def check_positive(matrices: Array, eigenvalues: Array, precision: float) -> None:
    """Raise PointError at the first of matrices (N, n, n) that is not positive definite; eigenvalues (N, n) ascend.

    The smallest eigenvalue must exceed ``min(10 n precision, 1e-6)`` times the largest; below that it is rounding.
    """
    tolerance = rank_tolerance(eigenvalues.shape[-1], precision)
    smallest = eigenvalues[:, 0]
    largest = eigenvalues[:, -1]
    bad = ~(smallest > tolerance * largest)  # and not <=, which is False for NaN
    if (index := first_bad(bad)) is None:
        return
    low = smallest[index]
    high = largest[index]
    kind = "is not positive definite" if low <= -tolerance * abs(high) or high <= 0 else "is singular to rounding"
    share = f", {low / high:.3g} of its largest {high:.3g}" if high > 0 else ""
    is_coarse = precision > EPS
    if high < 0:
        values = f"its smallest eigenvalue is {low:.3g} and its largest {high:.3g}"
        raise PointError(index, f"{kind}: {values}, so the sign of X may be wrong: pass -X")
    raise PointError(
        index,
        f"{kind}: its smallest eigenvalue is {low:.3g}{share} "
        f"(needed: more than {tolerance:.3g} of the largest). {np.count_nonzero(bad)} of the {len(bad)} matrices that "
        f"were read together are refused. Try in this order: {ADVICE_PRECISION if is_coarse else ''}"
        f"{mixed_units(np.diagonal(matrices[index]).real)}{ADVICE_RANK} To leave such matrices (empty pixels, tensors) "
        f"out: v = np.linalg.eigvalsh({'np.float64(1) * X' if is_coarse else 'X'}); "
        f"keep = v[:, 0] > {tolerance:.3g} * v[:, -1]",
    )


def mixed_units(variances: Array, ridge: float = np.inf) -> str:
    """Return advice if variances (n,) of channels, one of them below the ridge, differ as in different units, or ""."""
    known = np.flatnonzero(variances > 0)
    if not len(known):
        return ""
    low = known[variances[known].argmin()]
    high = known[variances[known].argmax()]
    orders = 0.5 * float(np.log10(variances[high]) - np.log10(variances[low]))  # of standard deviations
    if orders < MIXED or variances[low] >= ridge:
        return ""
    return (
        f"Channels {min(low, high)} and {max(low, high)} differ by {orders:.0f} orders of magnitude, as those in "
        "different units do: scale all channels, with f = 1 / np.sqrt(np.diagonal(X.mean(axis=0)).real) of the "
        "training data and FunctionTransformer(lambda X: X * np.outer(f, f)). "
    )


def require_finite(points: Array) -> None:
    """Raise PointError at the first point (N, ...) that holds NaN or infinity."""
    finite = np.isfinite(points)
    if finite.all():
        return
    position = tuple(int(i) for i in np.argwhere(~finite)[0])
    value = points[position]
    raise PointError(
        position[0],
        f"contains NaN or infinity: its entry {list(position[1:])} is {value}. Remove or impute the sample"
        f"{ADVICE_MISSING if points.ndim == 3 and points.shape[1] == points.shape[2] and np.isnan(value) else ''}",
    )


def first_bad(bad: Array) -> int | None:
    """Return the index of the first True in a boolean array (N,), or None."""
    return int(np.argmax(bad)) if bad.any() else None
