"""What products are made of: stacked or packed arrays, prototypes, and relevances in logarithmic coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import attrs
import numpy as np
from numpy.typing import DTypeLike

from rplvq.manifolds._means import is_stateful
from rplvq.parts import library_part
from rplvq.protocols import Array, Prototypes

LEARNED = ("learned", "local")
"""The rules by which relevances are learned: one set for all prototypes, or one for each prototype."""
LONGEST_LOG_STEP = 0.1
"""Largest change of the logarithm of a relevance in one step."""
LARGEST_LOG = 50.0
"""Largest absolute value of these logarithms, so that relevances stay positive without a penalty, too."""
Shapes = tuple[tuple[int, ...], ...] | None


def split(codes: Array, n_factors: int, shapes: Shapes) -> list[Array]:
    """Return the codes (N, ...) of each factor, from stacked ones (N, F, ...) or from packed ones (N, d)."""
    if shapes is None:
        return [codes[:, i] for i in range(n_factors)]
    ends = [0, *accumulate(map(prod, shapes))]
    parts = [codes[:, start:end] for start, end in pairwise(ends)]
    if np.iscomplexobj(codes):  # a packed array is complex as soon as one factor is
        parts = [part if part.imag.any() else part.real for part in parts]
    return [part.reshape(len(codes), *shape) for part, shape in zip(parts, shapes, strict=True)]


def join(parts: Sequence[Array], shapes: Shapes) -> Array:
    """Stack parts (N, ...) of equal shape as (N, F, ...), or pack parts of any shape as (N, d)."""
    if shapes is None:
        return np.stack(parts, axis=1)
    return np.hstack([np.asarray(part).reshape(len(part), -1) for part in parts])


@library_part
@attrs.define(eq=False, repr=False)
class ProductPrototypes:
    """Prototypes of a product: the prototypes of each factor, in its own representation."""

    parts: tuple[Prototypes, ...]
    shapes: Shapes

    def __len__(self) -> int:
        return len(self.parts[0])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return the codes, shape (K, F, ...) or (K, d)."""
        return np.asarray(join([np.asarray(part) for part in self.parts], self.shapes), dtype=dtype)


@library_part
@attrs.define(eq=False, repr=False)
class RelevancePrototypes(ProductPrototypes):
    """Prototypes of a product with learned state, which includes the relevances, (F,) or (K, F), times the scale."""

    weighted: Array

    def with_codes(self, codes: Array) -> RelevancePrototypes:
        """Return new prototypes, of codes (M, F, ...) or (M, d), with the same learned state.

        Codes that are those of a prototype have its local relevances, and others have the geometric mean of all.
        """
        parts = zip(self.parts, split(codes, len(self.parts), self.shapes), strict=True)
        carried = tuple(old.with_codes(new) if is_stateful(old) else new for old, new in parts)
        return RelevancePrototypes(carried, self.shapes, self._weighted_of(codes))

    def _weighted_of(self, codes: Array) -> Array:
        """Return the scaled relevances of codes (M, F, ...) or (M, d), of which some are those of prototypes."""
        if self.weighted.ndim == 1:
            return self.weighted
        same = np.all(np.asarray(codes)[:, None] == np.asarray(self), axis=tuple(range(2, codes.ndim + 1)))  # (M, K)
        mean = np.exp(np.log(self.weighted).mean(axis=0))
        return np.asarray(np.where(same.any(axis=1)[:, None], self.weighted[same.argmax(axis=1)], mean))


def as_relevances(value: str | Iterable[float] | None) -> Any:
    """Return a sequence of numbers as a tuple of floats, and anything else as it is."""
    if value is None or isinstance(value, str):
        return value
    return tuple(float(number) for number in value)


def require_relevances(value: str | Sequence[float] | None, n_factors: int) -> None:
    """Raise ValueError unless ``value`` is None, a rule or numbers for F factors, not negative and not all 0."""
    if value is None or value in LEARNED:
        return
    if isinstance(value, str):
        raise ValueError(f"relevances must be 'learned', 'local', a sequence of numbers or None, got {value!r}")
    if len(value) != n_factors:
        raise ValueError(f"relevances has {len(value)} entries for {n_factors} factors")
    for index, number in enumerate(value):
        if not 0 <= number < np.inf:
            raise ValueError(f"relevances[{index}] must be a finite number of at least 0, got {number}")
    if not any(value):
        raise ValueError("relevances are all 0: at least one must be positive")


def log_step(weighted: Array, pulls: Array, sqdist: Array, strength: Array, rate: float, penalty: float) -> Array:
    """Return the scaled relevances after one step, as :class:`rplvq.manifolds.Product` defines it.

    ``weighted`` are the relevances times the scale, and ``pulls`` the sums ``S_i = sum_bk w_bk d_i^2(x_b, w_k)``, both
    (F,), or (K, F) with sums over b alone. ``sqdist`` (B, K) are the squared distances of the product, and ``strength``
    is their sum weighted by the absolute weights, a number or (K, 1).
    """
    unit = float(sqdist.mean())
    if not unit > 0:  # all samples are at prototypes
        return weighted
    logs = np.log(weighted)
    change = -0.5 * rate / unit * (weighted * pulls + penalty * strength * logs)
    change *= LONGEST_LOG_STEP / np.maximum(np.abs(change).max(axis=-1, keepdims=True), LONGEST_LOG_STEP)
    result = np.exp(np.clip(logs + change, -LARGEST_LOG, LARGEST_LOG))
    if result.ndim == 2:
        means = result.mean(axis=1, keepdims=True)
        result *= np.exp(np.log(means).mean()) / means  # local sets share one scale
    return np.asarray(result)


def weighted_sum(weighted: Array, sqdist: Sequence[Array]) -> Array:
    """Return the sum of the squared distances (B, K) of the factors, times their weights (F,) or (K, F)."""
    total = weighted[..., 0] * sqdist[0]
    for i, part in enumerate(sqdist[1:], start=1):
        total += weighted[..., i] * part
    return np.asarray(total)


def shortened(weights: Array, sqdist: Array, longest: float) -> Array:
    """Return weights (B, K) with which no step exceeds a length, given squared distances (B, K)."""
    if longest == np.inf:
        return weights
    reach = np.sum(np.abs(weights) * np.sqrt(sqdist), axis=0)
    return weights * (longest / np.maximum(reach, longest)) if (reach > longest).any() else weights
