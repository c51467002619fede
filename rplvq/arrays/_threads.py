"""Runs the linear algebra of small matrices on one thread.

Libraries of linear algebra (BLAS) divide even small matrices among all cores. Their threads can then wait for each
other longer than they work. Public calls that loop over matrices therefore run under :func:`single_blas_thread`.
"""

import math
import os
import sys
from collections.abc import Callable
from functools import wraps
from threading import RLock, get_ident
from typing import Any, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
LARGEST_ON_ONE_THREAD = 500
"""Largest size n for which one thread decomposes a matrix (n, n) as fast as two, on an idle machine of two cores."""


class _Calls:
    """The running calls of this process that keep BLAS on one thread, and the numbers of threads to restore.

    The lock is reentrant, because garbage collection may end an interrupted call while another call holds the lock.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.inside: dict[object, int] = {}  # running calls, with their threads
        self.before: dict[str, tuple[Any, int]] = {}  # what to restore, by file of the library
        self._libraries: list[Any] = []
        self._n_modules = 0

    def libraries(self) -> list[Any]:
        """Return the loaded BLAS libraries. A search takes milliseconds, so it is repeated only after an import."""
        if (n_modules := len(sys.modules)) != self._n_modules:
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._n_modules = n_modules
        return self._libraries

    def limit(self) -> list[tuple[Any, int]]:
        """Set all libraries to one thread; return those that changed for the calling thread only."""
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
        """Restore the libraries that are limited for the whole process, if no running call needs the limit."""
        while self.before and not self.inside:
            path, (library, count) = next(iter(self.before.items()))
            set_threads(library, count)
            del self.before[path]

    def after_fork(self) -> None:
        """In a forked process, forget the calls of threads that do not exist there, and replace the lock."""
        self.lock, here = RLock(), get_ident()
        self.inside = {call: thread for call, thread in self.inside.items() if thread == here}


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
        self.own: list[tuple[Any, int]] = []

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
        def limited(*args: Any, **kwargs: Any) -> Any:
            with single_blas_thread(self.n):
                return function(*args, **kwargs)

        return cast(FunctionT, limited)


def is_per_thread(library: Any) -> bool:
    """Whether a library sets its threads per calling thread, as new versions of MKL and of OpenBLAS on OpenMP do."""
    on_openmp = getattr(library, "threading_layer", "") == "openmp" and hasattr(library, "clear_controlling_thread")
    return on_openmp or "MKL_Set_Num_Threads_Local" in library.check_symbols


def set_threads(library: Any, count: int) -> None:
    """Set the number of threads so that other threads can set it afterwards; threadpoolctl 3.8 would ignore them."""
    library.set_num_threads(count)
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread()


def matrix_size(points: Any) -> int:
    """Return n of matrices (..., n, n), or of symmetric ones with d free entries for an array (N, d), and else 0.

    >>> import numpy as np
    >>> matrix_size(np.zeros((5, 40, 40))), matrix_size(np.zeros((5, 820))), matrix_size([[1.0]])
    (40, 40, 0)
    """
    shape: tuple[int, ...] = getattr(points, "shape", ())
    if len(shape) > 2:
        return int(max(shape[-2:]))
    return math.isqrt(2 * int(shape[-1])) if len(shape) == 2 else 0
