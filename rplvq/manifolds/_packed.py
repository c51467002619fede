"""The form of points with several parts: stacked or packed arrays, and the prototypes of a product."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np

from rplvq.manifolds._means import is_stateful
from rplvq.parts import library_part
from rplvq.protocols import Array, Prototypes

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
class ProductPrototypes:
    """Prototypes of a product: the prototypes of each factor, in its own representation."""

    __slots__ = ("parts", "shapes")

    def __init__(self, parts: tuple[Prototypes, ...], shapes: Shapes) -> None:
        self.parts = parts
        self.shapes = shapes

    def __len__(self) -> int:
        return len(self.parts[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the codes, shape (K, F, ...) or (K, d)."""
        return np.asarray(join([np.asarray(part) for part in self.parts], self.shapes), dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parts, self.shapes)  # pickle could do without it, skops could not


@library_part
class RelevancePrototypes(ProductPrototypes):
    """Prototypes of a product with learned state, which includes the relevances, (F,) or (K, F), times the scale."""

    __slots__ = ("weighted",)

    def __init__(self, parts: tuple[Prototypes, ...], shapes: Shapes, weighted: Array) -> None:
        super().__init__(parts, shapes)
        self.weighted = weighted

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parts, self.shapes, self.weighted)

    def with_codes(self, codes: Array) -> RelevancePrototypes:
        """Return new prototypes, of codes (M, F, ...) or (M, d), with the same learned state.

        Codes that are those of a prototype have its local relevances, and others have the geometric mean of all.
        """
        parts = zip(self.parts, split(codes, len(self.parts), self.shapes), strict=True)
        found = tuple(old.with_codes(new) if is_stateful(old) else new for old, new in parts)
        return RelevancePrototypes(found, self.shapes, self._weighted_of(codes))

    def _weighted_of(self, codes: Array) -> Array:
        """Return the scaled relevances of codes (M, F, ...) or (M, d), of which some are those of prototypes."""
        if self.weighted.ndim == 1:
            return self.weighted
        same = np.all(np.asarray(codes)[:, None] == np.asarray(self), axis=tuple(range(2, codes.ndim + 1)))  # (M, K)
        mean = np.exp(np.log(self.weighted).mean(axis=0))
        return np.asarray(np.where(same.any(axis=1)[:, None], self.weighted[same.argmax(axis=1)], mean))
