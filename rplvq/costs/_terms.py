"""What compiled steps know of a cost: numbers, from which one compiled function evaluates every cost of the library."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rplvq.protocols import Array

MIXTURE = 0.0
MARGIN = 1.0
"""The kinds of terms."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class Terms(NamedTuple):
    """A cost as a sum of T terms at K prototypes, for given labels and a given sigma2.

    A term of the kind ``MIXTURE`` has the logits ``offset_k - scale_k d_k``. With ``s_c`` the logarithm of their summed
    exponentials within class c, and ``s`` over all classes, its loss is ``sum_c t_c (parameter s - s_c)`` for class
    probabilities t. A term of the kind ``MARGIN`` is that of :class:`rplvq.costs.GLVQ`, and ``parameter`` its
    steepness. Losses and slopes are multiplied by the factor of their term.
    """

    numbers: Array  # (T, 3), the kind, factor and parameter of each term
    scales: Array  # (T, K), of the logits; those of a margin are not used
    offsets: Array  # (T, K), likewise

    def times(self, factor: float) -> "Terms":
        """Return the terms with their factors multiplied."""
        return self._replace(numbers=self.numbers * [1.0, factor, 1.0])


def term(kind: float, parameter: float, scale: Array | float, offset: Array | float, count: int) -> Terms:
    """Return one term with the factor 1 at ``count`` prototypes, given scales and offsets (K,) or numbers."""
    scales = np.empty((1, count))
    offsets = np.empty((1, count))
    scales[:] = scale
    offsets[:] = offset
    return Terms(np.array([[kind, 1.0, parameter]]), scales, offsets)


def described_by(describe: Callable[..., Terms | None]) -> Callable[[FunctionT], FunctionT]:
    """Mark the ``__call__`` of a cost with ``describe(cost, labels, sigma2, soft)``, which returns its terms.

    ``soft`` is whether targets are class probabilities. The result is None where the cost has no terms, or raises an
    error. A subclass that overrides ``__call__``, and a wrapper that calls it, are not marked.
    """

    def mark(function: FunctionT) -> FunctionT:
        function.terms = describe  # type: ignore[attr-defined]
        return function

    return mark


def terms_of(cost: Any, labels: Array, sigma2: float, soft: bool) -> Terms | None:
    """Return the terms of a cost at prototypes with these labels (K,), or None if it does not describe itself.

    Examples
    --------
    >>> from rplvq import GLVQ, RSLVQ
    >>> terms_of(RSLVQ() + 0.1 * GLVQ(steepness=3.0), np.array([0, 1]), 2.0, soft=False).numbers
    array([[0. , 1. , 1. ],
           [1. , 0.1, 3. ]])
    >>> terms_of(lambda *arguments: RSLVQ()(*arguments), np.array([0, 1]), 2.0, soft=False)
    """
    describe = getattr(type(cost).__call__, "terms", None)
    found: Terms | None = None if describe is None else describe(cost, labels, sigma2, soft)
    return found
