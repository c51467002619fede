"""Sums and multiples of costs: ``RSLVQ() + 0.1 * Representability()``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np

from rplvq.capabilities import Probabilistic, provides
from rplvq.costs._mixture import (
    Terms,
    described_by,
    evaluate,
    largest_slope,
    log_proba_of,
    priors_of,
    restrict_to_classes,
    terms_of,
)
from rplvq.parts import library_part, number_in
from rplvq.protocols import Array, Cost, Evaluation


class Combinable:
    """Base class that gives a cost the operators ``+`` and ``*``: sums with any cost, multiples by positive numbers.

    A cost of your own may inherit it, but need not: a sum takes any cost if one of the two sides has the operators.

    Examples
    --------
    >>> from rplvq import RSLVQ, Representability
    >>> RSLVQ() + 0.1 * Representability()
    RSLVQ(priors=None) + 0.1 * Representability()
    """

    __slots__ = ()

    def __add__(self: Cost, other: Cost) -> SummedCost:
        return SummedCost((self, other)) if callable(other) else NotImplemented

    def __radd__(self: Cost, other: Cost | float) -> Cost:
        if isinstance(other, (int, float)) and other == 0:
            return self  # so that sum() works
        return SummedCost((other, self)) if callable(other) else NotImplemented

    def __mul__(self: Cost, factor: float) -> ScaledCost:
        is_number = isinstance(factor, (int, float, np.number))
        return ScaledCost(factor, self) if is_number else NotImplemented

    __rmul__ = __mul__  # so that 0.1 * cost works


def _cost(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    is_sum = isinstance(value, tuple)
    terms: Any = value if is_sum else (value,)
    for index, term in enumerate(terms):
        if isinstance(term, type) or not callable(term):
            where = f"{attribute.name}[{index}]" if is_sum else attribute.name
            raise ValueError(f"{where} must be a cost, got {term!r}")


@library_part
@attrs.frozen(repr=False)
class ScaledCost(Combinable):
    """A cost times a positive number, written ``0.1 * cost``: its loss and its slope are multiplied by this number.

    Parameters
    ----------
    factor : float
        Positive and finite.
    cost : Cost
        The cost that is multiplied.

    Examples
    --------
    >>> from rplvq import RSLVQ
    >>> half = 0.5 * RSLVQ()
    >>> half(np.array([[0.0, 2.0]]), np.array([0]), np.array([0, 1]), sigma2=1.0).loss.round(4)
    array([0.1566])
    """

    factor: float = attrs.field(validator=number_in(finite=True))
    cost: Cost = attrs.field(validator=_cost)

    def _terms(self, labels: Array, sigma2: float, soft: bool) -> Terms | None:
        """Return the terms of the cost with their factors multiplied, if it has terms."""
        terms = terms_of(self.cost, labels, sigma2, soft)
        return None if terms is None else terms.times(self.factor)

    @described_by(_terms)
    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at targets that the scaled cost accepts."""
        loss, slope = evaluate(self.cost, sqdist, targets, labels, sigma2)
        return Evaluation(self.factor * loss, self.factor * slope)

    @property
    def priors(self) -> tuple[float, ...] | None:
        """Class priors of the scaled cost, None for equal priors."""
        return priors_of(self.cost)

    def restrict_to_classes(self, classes: Array) -> ScaledCost:
        """Return the same cost for the classes with these indices (M,) only."""
        return ScaledCost(self.factor, restrict_to_classes(self.cost, classes))

    def largest_slope(self, sigma2: float) -> float | None:
        """Return the largest absolute slope of any sample, None if the scaled cost does not state it."""
        largest = largest_slope(self.cost, sigma2)
        return None if largest is None else self.factor * largest

    def log_proba(self, sqdist: Array, labels: Array, sigma2: float) -> Array:
        """Return the class log-posterior (B, C) of the scaled cost."""
        return log_proba_of(self.cost, sqdist, labels, sigma2)

    def __repr__(self) -> str:
        inner = f"({self.cost!r})" if isinstance(self.cost, SummedCost) else repr(self.cost)
        return f"{self.factor!r} * {inner}"


def _flat(terms: Iterable[Cost]) -> tuple[Cost, ...]:
    """Attrs converter: replace each sum among the terms by its own terms."""
    flat: list[Cost] = []
    for term in terms:
        flat += term.terms if isinstance(term, SummedCost) else [term]
    return tuple(flat)


@library_part
@attrs.frozen(repr=False)
class SummedCost(Combinable):
    """A sum of costs, written ``a + b``: the losses and the slopes of its terms add up.

    Class probabilities are those of the first term that has a ``log_proba``; without one, they are those of the mixture
    with equal weights.

    Parameters
    ----------
    terms : sequence of Cost
        The costs that are added.

    Examples
    --------
    >>> from rplvq import GLVQ, RSLVQ
    >>> both = RSLVQ() + GLVQ()
    >>> both(np.array([[0.0, 2.0]]), np.array([0]), np.array([0, 1]), sigma2=1.0).loss.round(4)
    array([0.5822])
    """

    terms: tuple[Cost, ...] = attrs.field(converter=_flat, validator=[attrs.validators.min_len(1), _cost])

    def _terms(self, labels: Array, sigma2: float, soft: bool) -> Terms | None:
        """Return the terms of all costs, if each has terms."""
        each = [terms_of(cost, labels, sigma2, soft) for cost in self.terms]
        known = [terms for terms in each if terms is not None]
        return Terms(*map(np.vstack, zip(*known, strict=True))) if len(known) == len(each) else None

    @described_by(_terms)
    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at targets that every term accepts."""
        evaluations = [evaluate(term, sqdist, targets, labels, sigma2) for term in self.terms]
        losses, slopes = zip(*evaluations, strict=True)
        return Evaluation(np.sum(losses, axis=0), np.sum(slopes, axis=0))

    def restrict_to_classes(self, classes: Array) -> SummedCost:
        """Return the same cost for the classes with these indices (M,) only."""
        return SummedCost(tuple(restrict_to_classes(term, classes) for term in self.terms))

    def largest_slope(self, sigma2: float) -> float | None:
        """Return a bound on the absolute slope of any sample, None if a term does not state its own."""
        each = [largest_slope(term, sigma2) for term in self.terms]
        known = [slope for slope in each if slope is not None]
        return sum(known) if len(known) == len(each) else None

    def log_proba(self, sqdist: Array, labels: Array, sigma2: float) -> Array:
        """Return the class log-posterior (B, C) of the first term that has one."""
        return log_proba_of(self._probabilistic, sqdist, labels, sigma2)

    @property
    def priors(self) -> tuple[float, ...] | None:
        """Class priors of the first term that has a ``log_proba``, None for equal priors."""
        return priors_of(self._probabilistic)

    @property
    def _probabilistic(self) -> Cost | None:
        """The first term that has a ``log_proba``, or None."""
        return next((term for term in self.terms if provides(term, Probabilistic)), None)

    def __repr__(self) -> str:
        return " + ".join(repr(term) for term in self.terms)
