"""check_initializer catches planted faults, and names them."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rplvq import AffineInvariant, ClassKMeans, ClassMeans, LogEuclidean, ProjectedEuclidean
from rplvq.initializers import GivenPrototypes
from rplvq.testing import check_initializer
from tests.problems import spd_classes

TARGETS = np.repeat([0, 1, 2], 4)
POINTS = np.stack([np.diag([1.0 + i, 2.0]) for i in range(12)])


@attrs.frozen
class Firsts:
    """Good: the first sample of each class."""

    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        rows = [int(np.flatnonzero(targets == label)[0]) for label in range(n_classes)]
        return codes[rows], np.arange(n_classes)


@attrs.frozen
class Changed(Firsts):
    """The good one with its prototypes and labels changed."""

    change: object = None

    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        return self.change(*super().__call__(manifold, codes, targets, n_classes, rng))


class Careless(Firsts):
    """Draws from a generator of its own."""

    def __init__(self):
        object.__setattr__(self, "own", np.random.default_rng(0))

    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        codes, labels = super().__call__(manifold, codes, targets, n_classes, rng)
        return codes * self.own.uniform(1, 2), labels


class Overwriting(Firsts):
    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        codes *= 2
        return super().__call__(manifold, codes, targets, n_classes, rng)


class Aging(Firsts):
    """Comes back from pickle with other prototypes."""

    def __init__(self, factor=1.0):
        object.__setattr__(self, "factor", factor)

    def __reduce__(self):
        return Aging, (2.0,)

    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        codes, labels = super().__call__(manifold, codes, targets, n_classes, rng)
        return self.factor * codes, labels


class Unweighted(Firsts):
    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        codes, labels = super().__call__(manifold, codes, targets, n_classes, rng)
        return (codes, labels) if sample_weight is None else (codes[:2], labels[:2])


def with_nan(prototypes, labels):
    prototypes[1, 0, 0] = np.nan
    return prototypes, labels


FAULTS = {
    "prototypes alone": (Changed(lambda p, k: p), r"must return \(prototypes, labels\)"),
    "float labels": (Changed(lambda p, k: (p, k / 1.0)), "labels must be integers of shape"),
    "labels as a column": (Changed(lambda p, k: (p, k[:, None])), r"got shape \(3, 1\)"),
    "too few prototypes": (Changed(lambda p, k: (p[:2], k)), "init has 2 prototypes and 3 labels"),
    "a class beyond": (Changed(lambda p, k: (p, k + 1)), r"labels\[2\] is 3, not among class indices 0..2"),
    "a class missing": (Changed(lambda p, k: (p, k * (k != 1))), "no prototype for class index 1 of 0..2"),
    "nothing": (Changed(lambda p, k: (p[:0], k[:0])), "no prototype for class index 0 of 0..2"),
    "NaN": (Changed(with_nan), r"prototypes\[1\] has entries that are not finite"),
    "off the manifold": (Changed(lambda p, k: (-p, k)), "codes of points on the manifold, but: .*definite"),
    "its own randomness": (Careless(), "the same with the same seed; draw from rng alone"),
    "overwritten codes": (Overwriting(), "leave codes and targets as they are"),
    "pickles as another": (Aging(), "the same after pickling"),
    "weights lose a class": (Unweighted(), "no prototype for class index 2 of 0..2"),
    "lambda": (lambda *a, **weights: Firsts()(*a), "an initializer must be picklable"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_initializer_is_named(name):
    initializer, sentence = FAULTS[name]
    with pytest.raises(AssertionError, match=sentence):
        check_initializer(initializer, AffineInvariant(), POINTS, TARGETS)


@pytest.mark.parametrize("manifold", [AffineInvariant(), LogEuclidean(), ProjectedEuclidean()])
@pytest.mark.parametrize("initializer", [Firsts(), ClassMeans(2), ClassKMeans((1, 2, 3)), ClassMeans()])
def test_good_initializers_pass(initializer, manifold):
    X, y = spd_classes()
    targets = np.unique(y, return_inverse=True)[1]
    per_class = getattr(initializer, "per_class", None)
    if isinstance(per_class, tuple):
        initializer = attrs.evolve(initializer, per_class=per_class[: targets.max() + 1])
    assert check_initializer(initializer, manifold, X, targets) is None


def test_given_prototypes_pass():
    given = GivenPrototypes(POINTS[[0, 4, 8]], np.array([0, 1, 2]))
    assert check_initializer(given, AffineInvariant(), POINTS, TARGETS) is None


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        (TARGETS[:5], r"targets must be 12 integers, got shape \(5,\)"),
        (TARGETS / 1.0, "targets must be 12 integers"),
        (TARGETS + 1, r"0..C-1 of at least 2 classes, got \[1, 2, 3\]"),
        (0 * TARGETS, r"at least 2 classes, got \[0\]"),
    ],
)
def test_bad_targets_are_refused(targets, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_initializer(Firsts(), AffineInvariant(), POINTS, targets)
