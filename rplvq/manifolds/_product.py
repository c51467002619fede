"""Products of manifolds: points with several parts, each under a metric of its own, weighted by relevances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any, Literal, NamedTuple

import attrs
import numpy as np
from sklearn.utils.metaestimators import available_if

from rplvq.arrays import LazyRows, reads_parts, unmasked
from rplvq.capabilities import Bounded, Components, Referenced, Scaled, Supervised, provides
from rplvq.exceptions import PointError
from rplvq.manifolds._means import is_additive, is_stateful
from rplvq.manifolds._packed import (
    LEARNED,
    ProductPrototypes,
    RelevancePrototypes,
    Shapes,
    as_relevances,
    join,
    log_step,
    require_relevances,
    shortened,
    split,
    weighted_sum,
)
from rplvq.parts import MANIFOLD_METHODS, library_part, number_in, require_methods
from rplvq.protocols import AnyManifold, Array, ArrayLike, Geodesics, Prototypes


class ProductGeodesics(NamedTuple):
    """The geodesics in each factor, and the weights by which their squared lengths are added up."""

    sqdist: Array  # (B, K)
    parts: tuple[Geodesics, ...]
    weighted: Array  # (F,) or (K, F)


def _as_shapes(value: Iterable[ArrayLike] | None) -> Shapes:
    return None if value is None else tuple(tuple(int(n) for n in np.atleast_1d(shape)) for shape in value)


def _all_additive(product: Product) -> bool:
    """Whether tangents of batches add up: all factors offer ``pull`` and ``exp``, and no relevance is learned."""
    return all(map(is_additive, product.factors)) and product.relevances not in LEARNED


def _any_provides(capability: type) -> Callable[[Product], bool]:
    return lambda product: any(provides(factor, capability) for factor in product.factors)


def _longest(factor: AnyManifold) -> float:
    return float(factor.max_step_length) if provides(factor, Bounded) else np.inf


@library_part
@attrs.frozen
class Product:
    """A product of manifolds, for samples with several parts: bands of a filter bank, an image and its mask, and so on.

    ``d^2(x, w) = sum_i r_i d_i^2(x_i, w_i)`` over F factors, with relevances ``r_i >= 0`` of mean 1, which are equal,
    given or learned. A sample x has one point x_i on each factor. Factors of equal shape are stacked, X has the shape
    (N, F, ...), such as (N, F, n, n). Factors of other shapes are packed into the rows of one array (N, d), whose
    layout ``shapes`` states. :meth:`pack` makes both.

    Parameters
    ----------
    factors : sequence of F Manifold
        The metric of each part, of any kind.
    shapes : sequence of F tuple of int, optional
        Shape of a point of each factor, such as ``[(5, 5), (3,)]``, if X is packed. By default X is stacked.
    relevances : sequence of F float, "learned", "local" or None, default=None
        Relevances, which are scaled to the mean 1; None stands for equal ones. "learned" starts with equal ones, and
        learns them together with the prototypes. "local" learns one set for each prototype, for classes that different
        factors tell apart.
    rate : float, default=3
        Step size of the logarithms of learned relevances, in units of the steps of prototypes. With 0 they stay equal.
    penalty : float, default=1e-3
        Strength by which learned relevances are pulled to equality.

    Notes
    -----
    **Steps.** The metric of the product is ``sum_i r_i g_i``. The gradient of ``r_i d_i^2`` in the metric ``r_i g_i``
    is the gradient of ``d_i^2`` in ``g_i``, because the factor r_i cancels: ``grad d^2 = (-2 Log_i(x_i))_i``.
    Therefore each factor moves by the weights of the whole, whatever its relevance, and a step of weight 1 ends at the
    sample. A step is shortened if it exceeds the ``max_step_length`` of a factor in the distance of this factor.

    **Learned relevances.** The scale of all distances, which acts as another sigma2, is learned, too, or a useless
    factor would serve to change it: ``d^2 = sum_i exp(t_i) d_i^2``, where ``exp(t)`` are the relevances times the
    scale. The weights ``w_bk = 2 step slope_bk / B`` of a step give the gradient:

    ``2 step d loss / d t_i = exp(t_i) sum_bk w_bk d_i^2(x_b, w_k)``

    The gradient of a penalty, ``penalty t_i sum_bk |w_bk| d^2(x_b, w_k)``, is added to it. t moves by ``-rate / 2``
    times the sum, divided by the mean squared distance of the batch, so that the unit of distances does not matter. No
    logarithm moves by more than 0.1 in a step. Relevances are one set for all prototypes (generalised relevance LVQ,
    Hammer and Villmann 2002, doi:10.1016/S0893-6080(02)00079-5, has one per feature of a vector). Local relevances are
    one set per prototype, with sums over b alone, and all sets share one scale (local relevance determination, Hammer,
    Schleif and Villmann 2005). Prototypes that :class:`rplvq.Grow` adds start with the mean of all sets.

    With learned relevances, `move` also changes the metric, and training is not distributed. Codes of each factor must
    have the shape of its points.

    Examples
    --------
    Two matrices per sample; the classes differ in the first one, and the second one is noise.

    >>> from rplvq import AffineInvariant, Product, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> noise = X[np.random.default_rng(0).permutation(len(X))]
    >>> product = Product([AffineInvariant(), AffineInvariant()], relevances="learned")
    >>> both = product.pack([X, noise])
    >>> both.shape
    (80, 2, 10, 10)
    >>> model = RiemannianLVQ(product, sigma2=1.0, max_epochs=20, random_state=0).fit(both, y)
    >>> product.relevances_of(model.state_.prototypes).round(1)
    array([1.2, 0.8])

    A covariance matrix and a mean, packed:

    >>> from rplvq import EuclideanVectors
    >>> gaussians = Product([AffineInvariant(), EuclideanVectors()], shapes=[(2, 2), (2,)], relevances=[1, 3])
    >>> codes = gaussians.encode(gaussians.pack([[np.eye(2), np.eye(2)], [[0.0, 0.0], [3.0, 4.0]]]))
    >>> gaussians.sqdist(codes[:1], codes)  # relevances of mean 1 are 0.5 and 1.5
    array([[ 0. ],
           [37.5]])
    """

    factors: tuple[AnyManifold, ...] = attrs.field(converter=tuple)
    shapes: Shapes = attrs.field(default=None, converter=_as_shapes)
    relevances: tuple[float, ...] | Literal["learned", "local"] | None = attrs.field(
        default=None, converter=as_relevances
    )
    rate: float = attrs.field(default=3.0, validator=number_in(closed=True, finite=True))
    penalty: float = attrs.field(default=1e-3, validator=number_in(closed=True, finite=True))

    @factors.validator
    def _are_manifolds(self, attribute: attrs.Attribute[object], value: tuple[object, ...]) -> None:
        if not value:
            raise ValueError("factors must hold at least one manifold, got none")
        for index, factor in enumerate(value):
            if isinstance(factor, str):
                raise ValueError(f"factors[{index}] is the name {factor!r}: pass an object, such as AffineInvariant()")
            require_methods(f"factors[{index}]", factor, MANIFOLD_METHODS, "a Manifold")

    @shapes.validator
    def _fit_factors(self, attribute: attrs.Attribute[object], value: Shapes) -> None:
        if value is None:
            return
        if len(value) != len(self.factors):
            raise ValueError(f"shapes has {len(value)} entries for {len(self.factors)} factors")
        for index, shape in enumerate(value):
            if min(shape) < 1:
                raise ValueError(f"shapes[{index}] must be positive integers, got {shape}")

    @relevances.validator
    def _are_relevances(self, attribute: attrs.Attribute[object], value: str | tuple[float, ...] | None) -> None:
        require_relevances(value, len(self.factors))

    def pack(self, parts: Sequence[ArrayLike]) -> Array:
        """Return X, of shape (N, F, ...) or (N, d), from the points (N, ...) of each factor.

        As a step of a pipeline it is ``FunctionTransformer(product.pack)``, which takes the parts as a list. ValueError
        is raised if the number of parts, their lengths or their shapes do not fit.
        """
        arrays = [np.asarray(unmasked(part, f"parts[{index}]")) for index, part in enumerate(parts)]
        if len(arrays) != len(self.factors):
            raise ValueError(f"parts has {len(arrays)} arrays for {len(self.factors)} factors")
        for index, array in enumerate(arrays):
            wanted = arrays[0].shape[1:] if self.shapes is None else self.shapes[index]
            if array.ndim < 2 or array.shape != (len(arrays[0]), *wanted):
                remedy = ". If factors have different shapes, state them: Product(..., shapes=...)"
                advice = "" if self.shapes else remedy
                n_points = len(arrays[0]) if arrays[0].ndim else "N"
                expected = ", ".join(map(str, (n_points, *wanted)))
                raise ValueError(f"parts[{index}] has shape {array.shape}, expected ({expected}){advice}")
        return join(arrays, self.shapes)

    def relevances_of(self, prototypes: Prototypes = None) -> Array:
        """Return the relevances, of mean 1: those that trained prototypes store, else those given or equal ones.

        They have the shape (F,), or (K, F) if they are local. Those of a fitted model are
        ``product.relevances_of(model.state_.prototypes)``.
        """
        weighted = self._weights_of(prototypes)
        return np.asarray(weighted / weighted.mean(axis=-1, keepdims=True))

    @property
    def max_step_length(self) -> float:
        """The longest step: the shortest of those of the factors, infinite if none has any."""
        return min(map(_longest, self.factors))

    def encode(self, points: ArrayLike) -> Array:
        """Return the codes of points (N, F, ...) or (N, d), in the same form; errors name the factor.

        ValueError is raised at the first point that is not on its factor, and if X has another form than the product.
        """
        return self._by_factor("encode", self._points(points))

    def decode(self, codes: Prototypes) -> Array:
        """Return the points, shape (K, F, ...) or (K, d)."""
        return self._by_factor("decode", self._split(codes))

    def sqdist(self, prototypes: Prototypes, samples: Array) -> Array:
        """Return the squared distances (B, K), the sums over the factors weighted by the relevances."""
        ends = self._ends(prototypes, samples)
        return weighted_sum(self._weights_of(prototypes), [factor.sqdist(*pair) for factor, *pair in ends])

    def connect(self, prototypes: Prototypes, samples: Array) -> ProductGeodesics:
        """Connect samples (B, F, ...) or (B, d) with K prototypes in each factor."""
        weighted = self._weights_of(prototypes)
        parts = tuple(factor.connect(*pair) for factor, *pair in self._ends(prototypes, samples))
        return ProductGeodesics(weighted_sum(weighted, [part.sqdist for part in parts]), parts, weighted)

    def move(self, geodesics: ProductGeodesics, weights: Array) -> Prototypes:
        """Move the prototypes in each factor by the same weights (B, K), and learned relevances by their gradient."""
        weighted = geodesics.weighted
        moved = tuple(
            factor.move(part, shortened(weights, part.sqdist, _longest(factor)))  # no longer than the factor allows
            for factor, part in zip(self.factors, geodesics.parts, strict=True)
        )
        if self.relevances in LEARNED and self.rate > 0 and len(moved) > 1:  # that of a single factor is 1
            pulls = np.stack([np.sum(weights * part.sqdist, axis=0) for part in geodesics.parts], axis=1)  # (K, F)
            strength = np.sum(np.abs(weights) * geodesics.sqdist, axis=0)[:, None]
            if self.relevances == "learned":
                pulls = pulls.sum(axis=0)
                strength = strength.sum()
            weighted = log_step(weighted, pulls, geodesics.sqdist, strength, self.rate, self.penalty)
        return self._carried(moved, weighted)

    @available_if(_all_additive)  # type: ignore[untyped-decorator]
    def pull(self, geodesics: ProductGeodesics, weights: Array) -> Array:
        """Return the tangents of the factors, shape (K, F, ...) or (K, d); those of several batches add up."""
        pairs: Iterable[tuple[Any, Geodesics]] = zip(self.factors, geodesics.parts, strict=True)
        return join([factor.pull(part, weights) for factor, part in pairs], self.shapes)

    @available_if(_all_additive)  # type: ignore[untyped-decorator]
    def exp(self, prototypes: Prototypes, tangents: Array) -> Prototypes:
        """Follow tangents (K, F, ...) or (K, d) of :meth:`pull` in each factor."""
        ends = self._ends(prototypes, tangents)
        moved = tuple(factor.exp(part, tangent) for factor, part, tangent in ends)
        return self._carried(moved, self._weights_of(prototypes))

    @property
    def ambient(self) -> Product:
        """The product of the manifolds that check points before factors such as TangentSpace have their reference."""
        # Other factors check points themselves.
        factors: list[Any] = [f.ambient if provides(f, Referenced) else f for f in self.factors]
        return attrs.evolve(self, factors=factors)

    @available_if(_any_provides(Referenced))  # type: ignore[untyped-decorator]
    def referenced(
        self, points: ArrayLike, groups: Array | None = None, weights: Array | None = None
    ) -> tuple[Product, Array]:
        """Return the product with the references of its factors, and the codes of points in it.

        Points (N, F, ...) or (N, d) are codes of :attr:`ambient`; groups and weights have the shape (N,).
        """
        if isinstance(points, LazyRows):
            # Rows on disk stay there.
            parts: list[Prototypes] = [LazyRows(part, points.rows) for part in self._split(points.source)]
        else:
            parts = list(self._split(points))
        pairs = list(zip(self.factors, parts, strict=True))
        learned = [f.referenced(x, groups, weights) if provides(f, Referenced) else (f, x[:]) for f, x in pairs]
        factors, codes = zip(*learned, strict=True)
        return attrs.evolve(self, factors=factors), join(codes, self.shapes)

    @available_if(_any_provides(Supervised))  # type: ignore[untyped-decorator]
    def relearned(
        self, kept: Array, held: Array, groups: Array, weights: Array | None = None
    ) -> tuple[Product, Array, Array]:
        """Return the product with what its factors learn from codes ``kept`` (N, ...) alone, and all codes in it."""
        pairs = list(zip(self.factors, self._split(kept), self._split(held), strict=True))
        learned = [f.relearned(x, y, groups, weights) if provides(f, Supervised) else (f, x, y) for f, x, y in pairs]
        factors, inner, outer = zip(*learned, strict=True)
        return attrs.evolve(self, factors=factors), join(inner, self.shapes), join(outer, self.shapes)

    def components(self, prototypes: Prototypes, samples: Array) -> Components:
        """Split the squared distances (B, K) into those of the factors, times their relevances, shape (B, K, F)."""
        parts = [factor.sqdist(*pair) for factor, *pair in self._ends(prototypes, samples)]
        return Components(np.stack(parts, axis=-1) * self._weights_of(prototypes))

    @available_if(_any_provides(Scaled))  # type: ignore[untyped-decorator]
    @reads_parts
    def unit(self, codes: Array, weights: Array | None = None) -> float:
        """Return the mean of the units of the factors, weighted by the relevances; a factor without a unit counts 1."""
        pairs = zip(self.factors, self._split(codes[:]), strict=True)
        units = [factor.unit(part, weights) if provides(factor, Scaled) else 1.0 for factor, part in pairs]
        return float(np.mean(self.relevances_of() * units))

    def _weights_of(self, prototypes: Prototypes) -> Array:
        """Return the weights, (F,) or local ones (K, F): the relevances, times the scale if they are learned."""
        if isinstance(prototypes, RelevancePrototypes):
            return prototypes.weighted
        if self.relevances is None or isinstance(self.relevances, str):
            return np.ones(len(self.factors))  # learned ones start equal, too
        given = np.array(self.relevances)
        return np.asarray(given * (len(given) / given.sum()))

    def _carried(self, parts: tuple[Prototypes, ...], weighted: Array) -> Prototypes:
        """Return prototypes, which store relevances only if these or the state of a factor are learned."""
        if self.relevances in LEARNED or any(map(is_stateful, parts)):
            return RelevancePrototypes(parts, self.shapes, weighted)
        return ProductPrototypes(parts, self.shapes)

    def _split(self, prototypes: Prototypes) -> Sequence[Prototypes]:
        """Return the prototypes of each factor."""
        if isinstance(prototypes, ProductPrototypes):
            return prototypes.parts
        return split(np.asarray(prototypes), len(self.factors), self.shapes)

    def _ends(self, prototypes: Prototypes, samples: Array) -> Iterator[tuple[Any, Prototypes, Array]]:
        """Yield each factor with its prototypes and its samples."""
        yield from zip(self.factors, self._split(prototypes), self._split(samples), strict=True)

    def _points(self, points: ArrayLike) -> list[Array]:
        """Return the points (N, ...) of each factor; raise ValueError if X has another form."""
        array = np.asarray(unmasked(points))
        if array.dtype.kind not in "biufc":
            raise ValueError(f"X must hold numbers, got dtype {array.dtype}")
        count = len(self.factors)
        wanted = count if self.shapes is None else sum(map(prod, self.shapes))
        right = array.ndim == 2 if self.shapes else array.ndim > 2
        if not right or array.shape[1] != wanted:
            form = f"(n_samples, {count}, ...)" if self.shapes is None else f"(n_samples, {wanted})"
            advice = ". If X is packed, state the shapes of the factors: Product(..., shapes=...)"
            raise ValueError(f"X must have shape {form}, got {array.shape}{'' if self.shapes else advice}")
        return split(array, count, self.shapes)

    def _by_factor(self, method: str, parts: Sequence[Prototypes]) -> Array:
        """Call a method of each factor with its part of the points, and join the results; errors name the factor."""
        results = []
        for index, (factor, part) in enumerate(zip(self.factors, parts, strict=True)):
            try:
                results.append(np.asarray(getattr(factor, method)(part)))
            except PointError as error:
                raise PointError(error.index, f"has a factor {index} that {error.reason}", error.name) from error
            except ValueError as error:
                raise ValueError(f"factor {index}, {factor!r}: {error}") from error
            if results[-1].shape != np.shape(part):
                raise ValueError(
                    f"factor {index}, {factor!r}, changes the shape of points from {np.shape(part)} to "
                    f"{results[-1].shape}: a product takes manifolds whose codes have the shape of their points"
                )
        return join(results, self.shapes)
