"""The check of an initializer."""

import attrs
import numpy as np

from rplvq.arrays import check_prototypes
from rplvq.protocols import AnyManifold, Array, ArrayLike, Initializer
from rplvq.testing._agreement import accepted, agree, pickled, require


def check_initializer(
    initializer: Initializer,
    manifold: AnyManifold,
    points: ArrayLike,
    targets: ArrayLike,
    *,
    pickling: bool = True,
    random_state: int = 0,
) -> None:
    """Check that an initializer keeps the promises of :class:`rplvq.protocols.Initializer`.

    It must return a prototype on the manifold for every class, and the same prototypes for the same seed. It must not
    change codes and targets, and must accept ``sample_weight``, which it may ignore. AssertionError is raised at the
    first broken promise, and ValueError if points or targets are not what is described below.

    Parameters
    ----------
    initializer : Initializer
        The part to check; an attrs class whose ``per_class`` is None gets one prototype per class, as in a fit.
    manifold : Manifold
        A geometry that passes :func:`rplvq.testing.check_manifold`.
    points, targets : array-like of shape (N, ...), and of int of shape (N,)
        Samples on this manifold, of at least 2 classes, and their class indices 0..C-1, of which none is missing.
    pickling : bool, default=True
        Whether the part must be picklable; a class defined in a function or doctest is not.
    random_state : int, default=0
        Seed of the generators that the initializer gets.

    Examples
    --------
    >>> from rplvq import ClassMeans, EuclideanVectors
    >>> points, targets = np.array([[0.0], [2.0], [9.0], [8.0]]), np.array([0, 0, 1, 1])
    >>> check_initializer(ClassMeans(), EuclideanVectors(), points, targets)
    >>> def first(manifold, codes, targets, n_classes, rng, sample_weight=None):
    ...     return codes[:1], np.array([0])
    >>> check_initializer(first, EuclideanVectors(), points, targets, pickling=False)
    Traceback (most recent call last):
    AssertionError: init has no prototype for class index 1 of 0..1
    """
    codes = manifold.encode(points)
    targets, n_classes = class_indices(targets, len(codes))
    before = codes.copy(), targets.copy()
    if attrs.has(type(initializer)) and getattr(initializer, "per_class", 1) is None:
        initializer = attrs.evolve(initializer, per_class=(1,) * n_classes)  # type: ignore[misc]

    def chosen(part: Initializer, **weights: Array) -> tuple[Array, Array]:
        choice = part(manifold, codes, targets, n_classes, np.random.default_rng(random_state), **weights)
        unchanged = np.array_equal(codes, before[0]) and np.array_equal(targets, before[1])
        require(unchanged, "an initializer must leave codes and targets as they are")
        try:
            prototypes, labels = check_prototypes(choice, codes.shape[1:], n_classes)
        except ValueError as error:
            raise AssertionError(str(error)) from error
        return np.asarray(prototypes), labels

    prototypes, labels = chosen(initializer)
    accepted(manifold, prototypes, "prototypes must be codes of points on the manifold, but")
    repeated(chosen(initializer), prototypes, labels, "with the same seed; draw from rng alone")
    chosen(initializer, sample_weight=np.ones(len(codes)))
    if pickling:
        again = chosen(pickled(initializer, "an initializer"))
        repeated(again, prototypes, labels, "after pickling")


def class_indices(targets: ArrayLike, n_points: int) -> tuple[Array, int]:
    """Return class indices (N,) and their number C; raise ValueError unless they are all of 0..C-1."""
    targets = np.asarray(targets)
    if targets.shape != (n_points,) or targets.dtype.kind not in "iu":
        raise ValueError(f"targets must be {n_points} integers, got shape {targets.shape} of {targets.dtype}")
    indices = np.unique(targets)
    if len(indices) < 2 or not np.array_equal(indices, np.arange(len(indices))):
        raise ValueError(f"targets must be the class indices 0..C-1 of at least 2 classes, got {indices.tolist()}")
    return targets, len(indices)


def repeated(again: tuple[Array, Array], prototypes: Array, labels: Array, when: str) -> None:
    """Require that an initializer returns the same prototypes and labels again."""
    rule = f"an initializer must return the same {when}"
    require(np.array_equal(again[1], labels), rule)
    agree(again[0], prototypes, np.abs(prototypes).max(), rule, rtol=1e-12)
