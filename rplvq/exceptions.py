"""Exceptions and warnings of the library, so that programs can catch or filter them by class."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class TrainingInterruptedWarning(UserWarning):
    """Training was interrupted (Ctrl-C); the model is that of the last complete epoch.

    The model is complete before the warning is given, so it is also complete if warnings are turned into errors.
    """


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Raise KeyboardInterrupt where an inner fit gives a TrainingInterruptedWarning, before its result is used."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", TrainingInterruptedWarning)
        show = warnings.showwarning

        def check(message: Warning | str, category: type[Warning], *others: Any) -> None:
            if issubclass(category, TrainingInterruptedWarning):
                raise KeyboardInterrupt(str(message))
            show(message, category, *others)

        warnings.showwarning = check  # type: ignore[assignment]
        yield


@contextmanager
def interrupts_deferred(*, raised: bool = True) -> Iterator[None]:
    """Let Ctrl-C wait for the end of a block that must not stay half done, such as an import.

    At the end it does what it would have done before, or nothing if not ``raised``, because the work is complete.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield  # Ctrl-C reaches the main thread only, and a handler that is not of Python cannot be restored
        return
    came: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *given: came.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and raised:
            signal.raise_signal(signal.SIGINT)


class DivergenceWarning(UserWarning):
    """Training ended with prototypes that are finite but unreliable; the warning says why and what helps.

    Training made clearly more errors on its own samples than the initial prototypes, a prototype is at the edge of the
    manifold, where its matrix is singular to rounding, or more than a tenth of the weights of an epoch were cut to
    their caps. The model is complete before the warning is given. A cost that is not finite is no warning: it raises
    FloatingPointError and leaves the model as it was.

    Examples
    --------
    >>> import warnings
    >>> from rplvq import RiemannianLVQ
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = RiemannianLVQ("euclidean_vectors", step_size=50.0, sigma2=0.01, max_epochs=3, random_state=0)
    ...     model = model.fit([[0.0], [1.1], [0.9], [2.0]], [0, 0, 1, 1])
    >>> caught[0].category is DivergenceWarning
    True
    """


class PointError(ValueError):
    """A point that is not on the manifold.

    Parameters
    ----------
    index : int or tuple of int
        Index of the first such point along the batch axis; in an image of points, its row and column.
    reason : str
        What is wrong and what can be done; it begins with a verb.
    name : str, default="X"
        The argument that holds the point.

    Examples
    --------
    >>> str(PointError((3, 5), "is not square"))
    'X[3, 5] is not square'
    """

    def __init__(self, index: int | tuple[int, ...], reason: str, name: str = "X") -> None:
        super().__init__(index, reason, name)
        self.index: Any = index
        self.reason = reason
        self.name = name

    def __str__(self) -> str:
        position = self.index if isinstance(self.index, tuple) else (self.index,)
        return f"{self.name}[{', '.join(map(str, position))}] {self.reason}"

    def renamed(self, name: str) -> PointError:
        """Return this error for an argument with another name."""
        return PointError(self.index, self.reason, name)

    def at(self, index: Iterable[int]) -> PointError:
        """Return this error for an image, in which the point of this error has the row and column ``index``."""
        return PointError(tuple(int(i) for i in index), self.reason, self.name)

    def shifted(self, start: int) -> PointError:
        """Return this error for a larger array, in which the array of this error begins at index ``start``."""
        return PointError(self.index + start, self.reason, self.name)


class ModelFileError(ValueError):
    """A file is not a complete model or checkpoint in a known format: it is damaged, newer, or something else."""
