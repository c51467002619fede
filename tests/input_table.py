"""The table of inputs that real users send: the kind of report each row comes from, and the right behaviour.

A row is refused by a ValueError that matches, or it is learned from; see ``test_inputs.py`` for what that means.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pymanopt.manifolds import Sphere
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from rplvq.features import region_covariances, trial_covariances
from tests.problems import changed, spd_classes, sphere_classes, vector_classes

MATRICES = (
    "affine_invariant",
    "log_euclidean",
    "euclidean",
    "log_cholesky",
    "bures_wasserstein",
    "tangent",
    "learned_log_euclidean",
)
SIZED = MATRICES[:-1]
"""Manifolds for matrices of any size; the learned metric needs a low rank there."""
EVERY = (*MATRICES, "euclidean_vectors", "sphere")
X, Y = spd_classes(per_class=10)
GOOD = {"euclidean_vectors": vector_classes(per_class=10), "sphere": sphere_classes(per_class=10)}
INDEX = 617


class Row(NamedTuple):
    """One kind of input.

    Parameters
    ----------
    source : str
        Where such input comes from.
    make : callable
        Name of the manifold -> X, y, sample_weight.
    refused : str, optional
        Pattern of the ValueError of fit; None if the data are learned from.
    manifolds : tuple of str
        Where the row applies.
    settings : dict
        Of the classifier.
    warns : dict of str to type
        Warning that fit gives, by manifold; "every" for all.
    may_warn : type, optional
        Warning that fit gives or not, as rounding has it: the documented failure where a mean has no digits left.
    """

    source: str
    make: Callable[[str], tuple[Any, Any, Any]]
    refused: str | None = None
    manifolds: tuple[str, ...] = MATRICES
    settings: dict[str, Any] = {}  # noqa: RUF012
    warns: dict[str, Any] = {}  # noqa: RUF012
    may_warn: type[Warning] | None = None


def manifold(name: str) -> Any:
    return Sphere(3) if name == "sphere" else name


def good(name: str) -> tuple[Any, Any]:
    """Clean samples and labels for a manifold."""
    return GOOD.get(name, (X, Y))


def only(matrix: Any) -> Callable[[str], tuple[Any, Any, Any]]:
    """Clean data with one matrix in the place of sample 3."""
    n = len(matrix)

    def make(name: str) -> tuple[Any, Any, Any]:
        points, y = well_conditioned(n, 3)
        return changed(points, 3, matrix), y, None

    return make


def as_x(way: Callable[[Any], Any]) -> Callable[[str], tuple[Any, Any, Any]]:
    """Clean samples in another form."""
    return lambda name: (way(good(name)[0]), good(name)[1], None)


def as_y(way: Callable[[Any], Any]) -> Callable[[str], tuple[Any, Any, Any]]:
    """Clean samples, and labels made of the class indices."""
    return lambda name: (good(name)[0], way(good(name)[1]), None)


def weighted(way: Callable[[Any], Any]) -> Callable[[str], tuple[Any, Any, Any]]:
    """Clean samples with weights made of the class indices."""
    return lambda name: (*good(name), way(good(name)[1]))


def in_thousand(value: Any) -> Callable[[str], tuple[Any, Any, Any]]:
    """A thousand samples, one of which has one bad entry."""

    def make(name: str) -> tuple[Any, Any, Any]:
        points, y = good(name)
        times = -(-1000 // len(points))
        points, y = np.concatenate([points] * times)[:1000], np.concatenate([y] * times)[:1000]
        return changed(points, (INDEX, *[0] * (points.ndim - 1)), value), y, None

    return make


def short_trials() -> Any:
    """Covariance of 64 channels from 32 samples."""
    return trial_covariances(np.random.default_rng(0).normal(size=(1, 64, 32)))[0]


def average_reference(n: int = 8) -> Any:
    return np.eye(n) - 1 / n


def interpolated_channel() -> Any:
    """Covariance with a channel that is the mean of two others."""
    signals = np.random.default_rng(1).normal(size=(6, 500))
    signals[4] = 0.5 * (signals[0] + signals[2])
    return np.cov(signals)


def shifted_to(smallest: float) -> Any:
    """A matrix minus a multiple of the identity, so that its smallest eigenvalue is about this number."""
    matrix = spd_classes(n=4)[0][0]
    return matrix - (np.linalg.eigvalsh(matrix)[0] - smallest) * np.eye(4)


def grey_image() -> Any:
    """Region covariance of a colour image whose channels agree."""
    grey = np.random.default_rng(2).integers(0, 256, (1, 32, 32, 1))
    return region_covariances(np.repeat(grey, 3, axis=-1).astype(np.uint8), features="rgb9")[0]


def np_matrices(points: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return [np.asmatrix(point) for point in points]


def negative_strides(points: Any) -> Any:
    return np.ascontiguousarray(points[::-1])[::-1]


def read_only(points: Any) -> Any:
    points = np.array(points)
    points.flags.writeable = False
    return points


def integers(points: Any) -> Any:
    return np.array([np.diag([2, 3 + index % 3, 5 + index % 2]) for index in range(len(points))])


def tilted(points: Any, share: float) -> Any:
    """Points of which one is asymmetric by this share of its largest entry."""
    return changed(points, (4, 0, 1), points[4, 0, 1] + share * np.abs(points[4]).max())


def of_condition(condition: float) -> Any:
    def make(name: str) -> tuple[Any, Any, Any]:
        rng, n = np.random.default_rng(3), 4
        basis = np.linalg.qr(rng.normal(size=(20, n, n)))[0]
        values = condition ** -np.sort(np.hstack([np.zeros((20, 1)), np.ones((20, 1)), rng.uniform(0, 1, (20, n - 2))]))
        points = (basis * values[:, None]) @ basis.swapaxes(1, 2)
        return 0.5 * (points + points.swapaxes(1, 2)), np.arange(20) % 2, None

    return make


def heavy_tails(name: str) -> tuple[Any, Any, Any]:
    """A few samples with eigenvalues that are almost lost, whose logarithms are huge."""
    points, y = spd_classes(per_class=15, n=4, seed=2)
    values, vectors = np.linalg.eigh(points)
    values[::7, 0] = 1e-12 * values[::7, -1]
    points = (vectors * values[:, None]) @ vectors.swapaxes(1, 2)
    return 0.5 * (points + points.swapaxes(1, 2)), y, None


def sized(n: int, per_class: int = 3) -> Any:
    return lambda name: (*well_conditioned(n, per_class), None)


def well_conditioned(n: int, per_class: int) -> tuple[Any, Any]:
    """Covariances of long random signals, of two classes that differ in the power of half of the channels."""
    y = np.tile([0, 1], per_class)
    signals = np.random.default_rng(n).normal(size=(2 * per_class, n, 4 * n))
    signals[y == 1, : n // 2 + 1] *= 1.5
    return trial_covariances(signals), y


def identical(name: str) -> tuple[Any, Any, Any]:
    points, y = good(name)
    return np.repeat(points[:1], len(points), axis=0), y, None


def imbalanced(name: str) -> tuple[Any, Any, Any]:
    points, y = spd_classes(n=2, per_class=1000)
    keep = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:1]])
    return points[keep], y[keep], None


def one_sample_class(name: str) -> tuple[Any, Any, Any]:
    points, y = good(name)
    keep = np.sort(np.concatenate([np.flatnonzero(y != 1), np.flatnonzero(y == 1)[:1]]))
    return points[keep], y[keep], None


def far_apart(name: str) -> tuple[Any, Any, Any]:
    """Distances beyond 1e6."""
    points, y = vector_classes(per_class=10)
    return points + 1e7 * y[:, None], y, None


SINGULAR = r"X\[3\] is (singular to rounding|not positive definite).*smallest eigenvalue.*shrinkage"
HERMITIAN = spd_classes(per_class=10, dtype=complex)

ROWS = {
    # --- singular and nearly so
    "64 channels, 32 samples": Row("EEG toolbox", only(short_trials()), SINGULAR),
    "average reference": Row("EEG toolbox", only(average_reference()), SINGULAR),
    "interpolated channel": Row("EEG toolbox", only(interpolated_channel()), SINGULAR),
    "smallest eigenvalue -7e-17": Row("EEG toolbox", only(shifted_to(-7e-17)), SINGULAR),
    "smallest eigenvalue -1e-14": Row("probing", only(shifted_to(-1e-14)), SINGULAR),
    "smallest eigenvalue -4e-16": Row("geometry library", only(shifted_to(-4e-16)), SINGULAR),
    "grey image as RGB": Row("image descriptors", only(grey_image()), SINGULAR),
    "clearly indefinite": Row("probing", only(np.diag([1.0, 2.0, -0.1])), r"X\[3\] is not positive definite"),
    "condition 1e8": Row("probing", of_condition(1e8)),
    "condition 1e12": Row("probing", of_condition(1e12), may_warn=ConvergenceWarning, settings={"step_size": 0.02}),
    "heavy tails": Row("image descriptors", heavy_tails, settings={"sigma2": 5.0, "step_size": 3.0}),
    # --- not finite
    "NaN in one of a thousand": Row("EEG toolbox", in_thousand(np.nan), r"X\[617\] contains NaN.* is nan", EVERY),
    "infinity in one of a thousand": Row("EEG toolbox", in_thousand(np.inf), r"X\[617\] contains .* is inf", EVERY),
    # --- symmetry
    "asymmetric by 1e-12": Row("rounding", as_x(lambda points: tilted(points, 1e-12))),
    "asymmetric by 1e-3": Row("probing", as_x(lambda points: tilted(points, 1e-3)), r"X\[4\] is not symmetric"),
    "Hermitian": Row("radar", lambda name: (*HERMITIAN, None)),
    "imaginary diagonal": Row("radar", lambda name: (changed(HERMITIAN[0], (2, 1, 1), 1 + 0.5j), HERMITIAN[1], None),
                              r"X\[2\] is not Hermitian"),
    "complex without imaginary part": Row("radar", as_x(lambda points: points.astype(complex))),
    # --- kinds of arrays
    "float32": Row("deep learning", as_x(lambda points: points.astype(np.float32)), manifolds=EVERY),
    "float16": Row("deep learning", as_x(lambda points: points.astype(np.float16)), manifolds=EVERY[:-1]),
    "integers": Row("probing", as_x(integers)),
    "objects": Row("pandas", as_x(lambda points: points.astype(object))),
    "lists": Row("scikit-learn user", as_x(lambda points: points.tolist()), manifolds=EVERY),
    "np.matrix": Row("old code", as_x(np_matrices)),
    "Fortran order": Row("Matlab file", as_x(np.asfortranarray), manifolds=EVERY),
    "negative strides": Row("probing", as_x(negative_strides), manifolds=EVERY),
    "read-only": Row("joblib", as_x(read_only), manifolds=EVERY),
    "one matrix": Row("scikit-learn user", lambda name: (X[0], Y[:1], None), r"3 axes.*X\[None\]"),
    # --- sizes
    "n = 1": Row("probing", sized(1)),
    "n = 128": Row("EEG toolbox", sized(128), None, SIZED, {"max_epochs": 1}),
    "n = 256": Row("EEG toolbox", sized(256, 2), None, SIZED, {"max_epochs": 1}),
    "100 classes": Row("probing", lambda name: (*spd_classes(n_classes=100, per_class=2, n=2), None)),
    "imbalance 1000:1": Row("probing", imbalanced, settings={"max_epochs": 1}),
    "scale 1e-28": Row("EEG in volts", as_x(lambda points: 1e-28 * points)),
    "scale 1e12": Row("image descriptors", as_x(lambda points: 1e12 * points)),
    "distances beyond 1e6": Row("probing", far_apart, manifolds=("euclidean_vectors",), settings={"sigma2": 1.0}),
    # --- labels
    "labels of shape (N, 1)": Row("pandas", as_y(lambda y: y[:, None]), None, EVERY,
                                  warns={"every": DataConversionWarning}),
    "strings of different lengths": Row("scikit-learn user", as_y(lambda y: np.array(["a", "Fuß", "longer"])[y]), None,
                                        EVERY),
    "booleans": Row("scikit-learn user", as_y(lambda y: y > 0), None, EVERY),
    "mixed types": Row("pandas", as_y(lambda y: ["x", *y[1:].tolist()]), r"mixed types: y\[0\] is 'x'", EVERY),
    "NaN among labels": Row("pandas", as_y(lambda y: changed(y.astype(float), 2, np.nan)), "y contains NaN", EVERY),
    "a class with one sample": Row("scikit-learn user", one_sample_class, None, EVERY),
    "one sample, three prototypes": Row("probing", one_sample_class, r"class 1 has 1 sample\(s\).*fewer than its 3",
                                        EVERY, {"prototypes_per_class": 3}),
    # --- weights
    "weights as a list": Row("scikit-learn user", weighted(lambda y: (1 + y % 2).tolist()), None, EVERY),
    "integer weights": Row("scikit-learn user", weighted(lambda y: 1 + y % 2), None, EVERY),
    "no weight for a class": Row("scikit-learn user", weighted(lambda y: 1.0 * (y != 1)),
                                 r"class 1 has 0 sample\(s\) of positive weight", EVERY),
    "a negative weight": Row("probing", weighted(lambda y: changed(np.ones(len(y)), 5, -1.0)),
                             r"sample_weight\[5\] is -1.0", EVERY),
    "all weights zero": Row("probing", weighted(lambda y: 0 * y), "sample_weight is zero for every sample", EVERY),
    # --- coincidences
    "identical samples": Row("probing", identical, "median squared distance.*which is .*Give sigma2 a number", EVERY,
                             {"sigma2": "auto"}),
    "identical samples, given sigma2": Row("probing", identical, None, EVERY, {"prototypes_per_class": 3}),
    "identical samples, k-means": Row("probing", identical, None, EVERY, {"prototypes_per_class": 3, "init": "kmeans"}),
    "coincident prototypes": Row("probing", as_x(lambda points: points), settings={"init": (X[[0, 0, 1]], [0, 0, 1])}),
}  # fmt: skip
"""All rows, by name."""
