"""Functions of real symmetric and complex Hermitian matrices, and the number of threads on which they run.

The functions broadcast over leading axes. Libraries of linear algebra (BLAS) divide even small matrices among all
cores. Their threads can then wait for each other longer than they work. Public calls that loop over matrices therefore
run under :func:`single_blas_thread`.
"""

import math
import os
import sys
from collections.abc import Callable
from functools import wraps
from threading import RLock, get_ident
from typing import TypeVar, cast

import numpy as np
from threadpoolctl import LibController, ThreadpoolController

from rplvq.protocols import Array, ArrayLike

LARGEST_ON_ONE_THREAD = 500
"""Largest size n for which one thread decomposes a matrix (n, n) as fast as two, on an idle machine of two cores."""


def adjoint(matrices: Array) -> Array:
    """Return the conjugate transposes (..., m, n) of matrices (..., n, m)."""
    swapped = matrices.swapaxes(-1, -2)
    return swapped.conj() if matrices.dtype.kind == "c" else swapped


def hermitian_part(matrices: Array) -> Array:
    """Return ``(A + A^H) / 2`` for matrices (..., n, n), which restores the symmetry that rounding has broken."""
    return np.asarray(0.5 * (matrices + adjoint(matrices)))


def congruence(matrices: Array, basis: Array) -> Array:
    """Return ``V^H X V`` for matrices (N, n, n) and V (n, p), shape (N, p, p), exactly Hermitian."""
    return hermitian_part(adjoint(basis) @ matrices @ basis)


def principal_basis(filters: Array, center: Array) -> Array:
    """Return an orthonormal basis (n, p) of the span of filters (n, p), in which the matrix ``center`` is diagonal.

    Its entries there descend, and the largest entry of each column of the basis is positive.
    """
    basis = np.linalg.qr(filters)[0]
    basis = basis @ np.linalg.eigh(congruence(center[None], basis)[0])[1][:, ::-1]
    largest = basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])]
    return np.asarray(basis * (np.abs(largest) / largest))  # eigenvectors have any sign or phase


def squared_roots(roots: Array) -> Array:
    """Return ``R R^H`` for roots (..., n, n), exactly Hermitian."""
    return hermitian_part(roots @ adjoint(roots))


def from_spectrum(eigenvalues: Array, eigenvectors: Array) -> Array:
    """Return ``U diag(lam) U^H`` for eigenvalues (..., n) and eigenvectors (..., n, n), exactly Hermitian."""
    return hermitian_part((eigenvectors * eigenvalues[..., None, :]) @ adjoint(eigenvectors))


def spectral_map(function: Callable[[Array], Array], matrices: Array) -> Array:
    """Return ``U f(lam) U^H`` for Hermitian matrices ``U diag(lam) U^H`` (..., n, n); only lower triangles are read."""
    eigenvalues, eigenvectors = np.linalg.eigh(matrices)
    return from_spectrum(function(eigenvalues), eigenvectors)


def sqrtm(matrices: Array) -> Array:
    """Return the principal square roots of positive definite matrices (..., n, n)."""
    return spectral_map(np.sqrt, matrices)


def invsqrtm(matrices: Array) -> Array:
    """Return the inverse principal square roots of positive definite matrices (..., n, n)."""
    return spectral_map(lambda lam: 1.0 / np.sqrt(lam), matrices)


def logm(matrices: Array) -> Array:
    """Return the principal logarithms of positive definite matrices (..., n, n)."""
    return spectral_map(np.log, matrices)


def expm(matrices: Array) -> Array:
    """Return the exponentials of Hermitian matrices (..., n, n)."""
    return spectral_map(np.exp, matrices)


def lower_inverse(lower: Array) -> Array:
    """Invert lower triangular matrices (..., n, n) by forward substitution."""
    # Without pivoting, because a general inverse loses the small entries of factors whose rows differ by many orders of
    # magnitude, as those of a covariance in mixed units do.
    n = lower.shape[-1]
    inverse = np.zeros_like(lower)
    for i in range(n):
        pivot = lower[..., i, i, None]
        row = lower[..., i, None, :i] @ inverse[..., :i, :i]
        inverse[..., i, :i] = -row[..., 0, :] / pivot
        inverse[..., i, i] = 1.0 / pivot[..., 0]
    return inverse


def positive_inverse(matrices: Array) -> Array:
    """Invert positive definite matrices (..., n, n), faster than a general inverse; LinAlgError if one is not."""
    inverse = lower_inverse(np.linalg.cholesky(matrices))
    return np.asarray(adjoint(inverse) @ inverse)


FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


class _Calls:
    """The running calls of this process that keep BLAS on one thread, and the numbers of threads to restore."""

    def __init__(self) -> None:
        # Reentrant, because garbage collection may end an interrupted call while another call holds the lock.
        self.lock = RLock()
        self.inside: dict[object, int] = {}  # running calls, with their threads
        self.before: dict[str, tuple[LibController, int]] = {}  # what to restore, by file of the library
        self._libraries: list[LibController] = []
        self._n_modules = 0

    def libraries(self) -> list[LibController]:
        """Return the loaded BLAS libraries. A search takes milliseconds, so it is repeated only after an import."""
        if (n_modules := len(sys.modules)) != self._n_modules:
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._n_modules = n_modules
        return self._libraries

    def limit(self) -> list[tuple[LibController, int]]:
        """Set all libraries to one thread; return those that changed for the calling thread only."""
        own = []
        for library in self.libraries():
            count = library.get_num_threads() or 1  # None if the library does not tell
            if count == 1 or library.filepath in self.before:
                continue
            if is_per_thread(library):
                own.append((library, count))
            else:
                self.before[library.filepath] = library, count
            set_threads(library, 1)
        return own

    def restore(self) -> None:
        """Restore the libraries that are limited for the whole process, if no running call needs the limit."""
        while self.before and not self.inside:
            path, (library, count) = next(iter(self.before.items()))
            set_threads(library, count)
            del self.before[path]

    def after_fork(self) -> None:
        """In a forked process, forget the calls of threads that do not exist there, and replace the lock."""
        self.lock = RLock()
        here = get_ident()
        self.inside = {call: thread for call, thread in self.inside.items() if thread == here}  # only this one runs on


_calls = _Calls()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_calls.after_fork)


class single_blas_thread:  # noqa: N801 - called like a function
    """Run a block of code, or a decorated function, with one BLAS thread if its matrices have at most 500 rows.

    The limit holds for the whole process, except in libraries with one setting per thread. If several blocks overlap,
    nested or in threads, the first one sets the limit, and the last one restores what the user had set. Larger matrices
    keep their threads; ``n`` is their size, see :func:`matrix_size`. NumPy's underflows are ignored inside, also after
    ``np.seterr(all="raise")``: they only say that a small probability is 0.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with single_blas_thread(10):
    ...     {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    {1}
    """

    __slots__ = ("n", "own", "quiet")

    def __init__(self, n: int = 0) -> None:
        self.n = n
        self.own: list[tuple[LibController, int]] = []

    def __enter__(self) -> None:
        self.quiet = np.errstate(under="ignore")
        self.quiet.__enter__()
        if self.n > LARGEST_ON_ONE_THREAD:
            return
        try:
            with _calls.lock:
                _calls.inside[self] = get_ident()
                self.own = _calls.limit()
        except BaseException:  # Ctrl-C
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        with _calls.lock:
            _calls.inside.pop(self, None)
            for library, count in self.own:
                set_threads(library, count)
            _calls.restore()
        self.quiet.__exit__(None, None, None)

    def __call__(self, function: FunctionT) -> FunctionT:
        """Return a function that runs in a block of its own at each call."""

        @wraps(function)
        def limited(*args: object, **kwargs: object) -> object:
            with single_blas_thread(self.n):
                return function(*args, **kwargs)

        return cast(FunctionT, limited)


def is_per_thread(library: LibController) -> bool:
    """Whether a library sets its threads per calling thread, as new versions of MKL and of OpenBLAS on OpenMP do."""
    on_openmp = getattr(library, "threading_layer", "") == "openmp" and hasattr(library, "clear_controlling_thread")
    return on_openmp or "MKL_Set_Num_Threads_Local" in library.check_symbols


def set_threads(library: LibController, count: int) -> None:
    """Set the number of threads so that other threads can set it afterwards; threadpoolctl 3.8 would ignore them."""
    library.set_num_threads(count)
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread()


def matrix_size(points: ArrayLike) -> int:
    """Return n of matrices (..., n, n), or of symmetric ones with d free entries for an array (N, d), and else 0.

    Examples
    --------
    >>> import numpy as np
    >>> matrix_size(np.zeros((5, 40, 40))), matrix_size(np.zeros((5, 820))), matrix_size([[1.0]])
    (40, 40, 0)
    """
    shape: tuple[int, ...] = getattr(points, "shape", ())
    if len(shape) > 2:
        return int(max(shape[-2:]))
    return math.isqrt(2 * int(shape[-1])) if len(shape) == 2 else 0
