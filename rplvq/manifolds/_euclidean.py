"""Plain vectors under the Euclidean distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from sklearn.utils import check_array

from rplvq.arrays import parts_of, reads_parts, require_finite
from rplvq.manifolds._flat import FlatGeodesics, flat_connect, flat_exp, flat_move, flat_nearest, flat_pull, flat_sqdist
from rplvq.parts import library_part
from rplvq.protocols import Array

__all__ = ["EuclideanVectors"]


@library_part
@attrs.frozen
class EuclideanVectors:
    """Vectors of R^d with the Euclidean metric: robust soft LVQ as Seo and Obermayer (2003) wrote it.

    ``d^2(x, w) = |x - w|^2`` and ``Exp_w(v) = w + v``.

    Examples
    --------
    >>> from rplvq import EuclideanVectors
    >>> manifold = EuclideanVectors()
    >>> manifold.sqdist(np.zeros((1, 2)), manifold.encode([[3.0, 4.0]]))
    array([[25.]])
    """

    def encode(self, points: Any) -> Array:
        """Check vectors (N, d); raise ValueError at anything that is not finite and real."""
        if isinstance(points, (list, tuple)):
            points = np.asarray(points)
        vectors = check_array(points, dtype=np.float64, ensure_all_finite=False, input_name="X")
        require_finite(vectors)
        return np.asarray(vectors)

    def decode(self, codes: Array) -> Array:
        """Vectors are their own coordinates, shape (K, d)."""
        return np.array(codes)

    def sqdist(self, prototypes: Array, samples: Array) -> Array:
        """Squared distances, shape (B, K)."""
        return flat_sqdist(prototypes, samples)

    def nearest(self, prototypes: Array, samples: Array, groups: Array | None = None) -> Array:
        """Index of the nearest prototype, shape (B,), by one matrix product."""
        return flat_nearest(prototypes, samples)

    def connect(self, prototypes: Array, samples: Array) -> FlatGeodesics:
        """Connect samples (B, d) to prototypes (K, d)."""
        return flat_connect(prototypes, samples)

    def move(self, geodesics: FlatGeodesics, weights: Array) -> Array:
        """Move prototypes by the weighted differences, shape (K, d)."""
        return flat_move(geodesics, weights)

    def pull(self, geodesics: FlatGeodesics, weights: Array) -> Array:
        """Weighted differences of codes, shape (K, d); they add over batches."""
        return flat_pull(geodesics, weights)

    def exp(self, prototypes: Array, tangents: Array) -> Array:
        """Move prototypes by tangents from :meth:`pull`, shape (K, d)."""
        return flat_exp(prototypes, tangents)

    @reads_parts
    def unit(self, codes: Array, weights: Array | None = None) -> float:
        """Mean variance of a coordinate: the squared length in which step sizes are measured."""
        center = _average(lambda part: part, codes, weights)
        return float(_average(lambda part: (part - center) ** 2, codes, weights).mean())


def _average(function: Callable[[Array], Array], codes: Array, weights: Array | None) -> Array:
    """Weighted average (d,) of ``function(codes)`` over vectors (N, d), part by part."""
    parts = parts_of(codes)
    if len(parts) == 1:
        return np.asarray(np.average(function(codes[:]), axis=0, weights=weights))
    shares = np.ones(len(codes)) if weights is None else weights
    total = sum(shares[rows] @ function(codes[rows]) for rows in parts)
    return np.asarray(total / shares.sum())
