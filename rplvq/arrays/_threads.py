"""One thread for the linear algebra of small matrices.

NumPy and SciPy call libraries of linear algebra (BLAS), which by default divide even small matrices among all cores.
The threads then wait for each other longer than they work, above all if other processes use the cores, too. Public
calls that loop over matrices therefore run under :func:`single_blas_thread`.
"""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController

LARGEST = 500
"""Size n from which on two threads decompose a matrix (n, n) faster than one, on an idle machine of two cores."""


class _Calls:
    """The calls of this process that hold BLAS on one thread, and the numbers of threads to return to.

    The lock is reentrant, because the end of an interrupted call may run, by garbage collection, inside of another one.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.inside: dict[object, int] = {}  # calls, with their threads
        self.before: dict[str, tuple[Any, int]] = {}  # by file of the library
        self._libraries: list[Any] = []
        self._n_modules = 0

    def libraries(self) -> list[Any]:
        """Return the loaded libraries; they are only searched for, which takes milliseconds, after a new import."""
        if (n_modules := len(sys.modules)) != self._n_modules:
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._n_modules = n_modules
        return self._libraries

    def limit(self) -> list[tuple[Any, int]]:
        """Set all libraries to one thread; return those that only changed for this thread, with their numbers."""
        own = []
        for library in self.libraries():
            if (count := library.get_num_threads() or 1) == 1 or library.filepath in self.before:
                continue
            if is_per_thread(library):
                own.append((library, count))
            else:
                self.before[library.filepath] = library, count
            set_threads(library, 1)
        return own

    def restore(self) -> None:
        """Return the libraries that are limited for the whole process to their numbers, if no call needs the limit."""
        while self.before and not self.inside:
            path, (library, count) = next(iter(self.before.items()))
            set_threads(library, count)
            del self.before[path]

    def after_fork(self) -> None:
        """Forget the calls of threads that do not exist in a forked process, and their lock."""
        self.lock, here = RLock(), get_ident()
        self.inside = {call: thread for call, thread in self.inside.items() if thread == here}


_calls = _Calls()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_calls.after_fork)


@contextmanager
def single_blas_thread(n: int = 0) -> Iterator[None]:
    """Run a block of code, or a decorated function, with one BLAS thread if its matrices have at most 500 rows.

    The setting is that of the process. The first of several blocks that overlap, nested or in threads, changes it, and
    the last one returns to what the user had set. Larger matrices keep their threads. To enter and to leave take about
    ten microseconds together.

    Parameters
    ----------
    n : int, default=0
        Size of the matrices, see :func:`matrix_size`.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with single_blas_thread(10):
    ...     {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    {1}
    """
    if n > LARGEST:
        yield
        return
    call, own = object(), list[tuple[Any, int]]()
    try:
        with _calls.lock:
            _calls.inside[call] = get_ident()
            own = _calls.limit()
        yield
    finally:
        with _calls.lock:
            _calls.inside.pop(call, None)
            for library, count in own:
                set_threads(library, count)
            _calls.restore()


def is_per_thread(library: Any) -> bool:
    """Whether a library has one number of threads per calling thread: OpenBLAS on OpenMP, and MKL, in new versions."""
    on_openmp = getattr(library, "threading_layer", "") == "openmp" and hasattr(library, "clear_controlling_thread")
    return on_openmp or "MKL_Set_Num_Threads_Local" in library.check_symbols


def set_threads(library: Any, count: int) -> None:
    """Set the number of threads, and let other threads set it afterwards, which threadpoolctl 3.8 would ignore."""
    library.set_num_threads(count)
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread()


def matrix_size(points: Any) -> int:
    """Return the size n of matrices (..., n, n), or of symmetric matrices with d free entries for an array (N, d).

    It is 0, which counts as small, for anything that is no array.

    >>> import numpy as np
    >>> matrix_size(np.zeros((5, 40, 40))), matrix_size(np.zeros((5, 820))), matrix_size([[1.0]])
    (40, 40, 0)
    """
    shape: tuple[int, ...] = getattr(points, "shape", ())
    if len(shape) > 2:
        return int(max(shape[-2:]))
    return math.isqrt(2 * int(shape[-1])) if len(shape) == 2 else 0
