"""Manifolds see points, never the label of a sample. Each meets :class:`rplvq.protocols.Manifold`; all have means."""

from collections.abc import Callable
from typing import Literal

from rplvq.manifolds._affine_invariant import (
    EPS,
    AffineInvariant,
    AffineInvariantGeodesics,
    InverseFactors,
    decompose,
    inverse_factors,
)
from rplvq.manifolds._bures_wasserstein import LOWEST_SHARE, BuresWasserstein
from rplvq.manifolds._flat import (
    EuclideanVectors,
    FlatGeodesics,
    LogCholesky,
    LogEuclidean,
    flat_components,
    flat_connect,
    flat_exp,
    flat_move,
    flat_nearest,
    flat_pull,
    flat_sqdist,
)
from rplvq.manifolds._from_pymanopt import FromPymanopt, is_from_pymanopt
from rplvq.manifolds._learned_log_euclidean import LONGEST, LearnedLogEuclidean, MetricPrototypes
from rplvq.manifolds._means import Mean, is_additive, is_stateful, means_of_folds, means_of_groups, riemannian_mean
from rplvq.manifolds._missing import MissingChannels, chosen_rows, filler_of, variation_of
from rplvq.manifolds._product import Product
from rplvq.manifolds._projected_euclidean import ProjectedEuclidean
from rplvq.manifolds._shrinkage import (
    LowRankCovariance,
    Shrunk,
    coordinates,
    from_coordinates,
    n_coordinates,
    within_covariance,
)
from rplvq.manifolds._tangent_space import TangentSpace
from rplvq.protocols import AnyManifold

__all__ = [
    "EPS", "LONGEST", "LOWEST_SHARE", "MANIFOLDS", "AffineInvariant", "AffineInvariantGeodesics", "BuresWasserstein",
    "EuclideanVectors", "FlatGeodesics", "FromPymanopt", "InverseFactors", "LearnedLogEuclidean", "LogCholesky",
    "LogEuclidean", "LowRankCovariance", "Mean", "MetricName", "MetricPrototypes", "MissingChannels", "Product",
    "ProjectedEuclidean", "Shrunk", "TangentSpace", "chosen_rows", "coordinates", "decompose", "filler_of",
    "flat_components", "flat_connect", "flat_exp", "flat_move", "flat_nearest", "flat_pull", "flat_sqdist",
    "from_coordinates", "inverse_factors", "is_additive", "is_from_pymanopt", "is_stateful", "means_of_folds",
    "means_of_groups", "n_coordinates", "riemannian_mean", "variation_of", "within_covariance",
]  # fmt: skip

MetricName = Literal[
    "affine_invariant", "airm", "riemann", "log_euclidean", "logeuclid", "euclidean", "euclid", "euclidean_vectors",
    "log_cholesky", "logchol", "bures_wasserstein", "wasserstein", "learned_log_euclidean", "tangent",
    "whitened_tangent",
]  # fmt: skip
"""The keys of :data:`MANIFOLDS` as a type, so that editors complete them."""
MANIFOLDS: dict[str, Callable[[], AnyManifold]] = {
    "affine_invariant": AffineInvariant,
    "airm": AffineInvariant,
    "riemann": AffineInvariant,
    "log_euclidean": LogEuclidean,
    "logeuclid": LogEuclidean,
    "euclidean": lambda: ProjectedEuclidean(relative=True),
    "euclid": lambda: ProjectedEuclidean(relative=True),
    "euclidean_vectors": EuclideanVectors,
    "log_cholesky": LogCholesky,
    "logchol": LogCholesky,
    "bures_wasserstein": BuresWasserstein,
    "wasserstein": BuresWasserstein,
    "learned_log_euclidean": LearnedLogEuclidean,
    "tangent": TangentSpace,
    "whitened_tangent": lambda: TangentSpace(whiten=True),
}
"""Manifolds by name; "riemann", "logeuclid", "euclid", "logchol" and "wasserstein" are the names of pyRiemann."""


def __dir__() -> list[str]:
    """List what users call, which is what completion shows; the other names are for rooms of the library."""
    return [
        "MANIFOLDS", "AffineInvariant", "BuresWasserstein", "EuclideanVectors", "FlatGeodesics", "FromPymanopt",
        "LearnedLogEuclidean", "LogCholesky", "LogEuclidean", "LowRankCovariance", "Mean", "MissingChannels", "Product",
        "ProjectedEuclidean", "TangentSpace", "flat_components", "flat_connect", "flat_exp", "flat_move",
        "flat_nearest", "flat_pull", "flat_sqdist", "is_additive", "riemannian_mean",
    ]  # fmt: skip
