"""Samples in parts: encoded, chosen and summed up as if at once."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    AffineInvariant,
    BuresWasserstein,
    ClassMeans,
    EuclideanVectors,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    Recenter,
    RiemannianLVQ,
)
from rplvq.arrays import LazyRows, Samples, by_block, encoded, materialise, reads_parts, subset
from rplvq.exceptions import PointError
from rplvq.manifolds import riemannian_mean
from rplvq.training import measure
from tests.cases import hpd, spd
from tests.problems import spd_classes, vector_classes


def test_parts_of_vectors_show_in_rounding_only(monkeypatch):
    X, y = vector_classes(per_class=50)
    weights = np.random.default_rng(0).uniform(0, 3, len(y))
    units = []
    for block in (1 << 25, 1 << 10):
        monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", block)
        units.append([EuclideanVectors().unit(X), EuclideanVectors().unit(subset(X, np.arange(9, 90)), weights[9:90])])
    assert_allclose(units[1], units[0], rtol=1e-12)
    center = np.average(X[9:90], axis=0, weights=weights[9:90])
    variance = np.average((X[9:90] - center) ** 2, axis=0, weights=weights[9:90])
    assert_allclose(units[0], [X.var(axis=0).mean(), variance.mean()], rtol=1e-12)


MANIFOLDS = [AffineInvariant(), LogEuclidean(), LogCholesky(), BuresWasserstein(), ProjectedEuclidean()]


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=lambda manifold: type(manifold).__name__)
@pytest.mark.parametrize("make", [spd, hpd])
def test_a_mean_of_parts_is_the_mean(monkeypatch, manifold, make):
    rng = np.random.default_rng(1)
    codes, weights = manifold.encode(make(rng, 60, 4)), rng.integers(0, 3, 60).astype(float)
    whole = riemannian_mean(manifold, codes, weights)
    monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", 1 << 13)
    parts = riemannian_mean(manifold, codes, weights)
    assert parts.converged
    assert_allclose(parts.code, whole.code, rtol=1e-7, atol=1e-8)


def test_scores_of_parts_have_the_same_bits(monkeypatch):
    X, y = spd_classes(n_classes=3, per_class=40, n=4)
    model = RiemannianLVQ(max_epochs=1, random_state=0).fit(X, y)
    arguments = model.trainer_.manifold, model.trainer_.cost, model.state_, Samples(X, y)
    whole = measure(*arguments).score()
    monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", 1 << 12)
    assert measure(*arguments).score() == whole


def test_points_that_are_their_codes_are_not_copied(monkeypatch, tmp_path):
    monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", 1 << 12)
    np.save(tmp_path / "X.npy", spd(np.random.default_rng(0), 50, 3))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    codes = encoded(AffineInvariant(), mapped)
    assert type(codes) is np.ndarray
    assert np.shares_memory(codes, mapped)
    assert codes.shape == mapped.shape


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=lambda manifold: type(manifold).__name__)
@pytest.mark.parametrize("kind", ["float32", "float64", "rounded", "late", "complex", "half real", "real as complex"])
def test_encoding_by_parts_gives_the_codes(monkeypatch, manifold, kind):
    X = spd(np.random.default_rng(2), 50, 3)
    H = hpd(np.random.default_rng(2), 50, 3)
    late = X.copy()
    late[40, 0, 1] *= 1 + 1e-13  # symmetric up to rounding
    points = {
        "float32": X.astype(np.float32),
        "float64": X,
        "rounded": X * (1 + 1e-14 * np.triu(np.ones((3, 3)))),
        "late": late,
        "complex": H,
        "half real": np.concatenate([X[:25], H[25:]]),
        "real as complex": X.astype(complex),
    }[kind]
    wanted = manifold.encode(points)
    monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", 1 << 12)
    found = encoded(manifold, points)
    assert found.dtype == wanted.dtype
    assert_allclose(found, wanted, rtol=1e-13, atol=1e-13 if kind == "half real" else 0)


def test_a_bad_sample_in_a_later_part_is_named_by_its_index(monkeypatch):
    monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", 1 << 12)
    X, y = spd_classes(per_class=30, n=4)
    X[50] = -np.eye(4)
    for call in (lambda: RiemannianLVQ().fit(X, y), lambda: Recenter().fit(X)):
        with pytest.raises(PointError, match=r"X\[50\] is not positive definite"):
            call()


@pytest.mark.parametrize(
    "index", [3, -1, slice(None), slice(2, 9, 3), [4, 0, 4], np.arange(12) % 2 == 0, (slice(2), 1), ([4, 0], 0, 1)]
)
def test_lazy_rows_are_those_of_the_array(index):
    source, rows = np.random.default_rng(0).normal(size=(30, 2, 2)), np.random.default_rng(1).permutation(30)[:12]
    chosen = subset(source, rows)
    assert isinstance(chosen, LazyRows)
    assert (len(chosen), chosen.shape, chosen.dtype, chosen.ndim) == (12, (12, 2, 2), float, 3)
    assert_array_equal(chosen[index], source[rows][index])
    assert_array_equal(np.asarray(chosen), source[rows])
    assert_array_equal(list(chosen), list(source[rows]))
    assert_array_equal(np.asarray(subset(chosen, [5, 2])), source[rows][[5, 2]])


def test_what_is_computed_by_block_is_what_is_computed_at_once(monkeypatch):
    monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", 1 << 8)
    codes, factors = np.arange(40.0).reshape(20, 2), np.arange(20)
    assert_array_equal(by_block(lambda a, b: a[:, :1] * b[:, None], codes, factors), codes[:, :1] * factors[:, None])


class Whole:
    """An initializer of a user's, who was promised an array."""

    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        assert type(codes) is np.ndarray
        return ClassMeans()(manifold, codes, targets, n_classes, rng)


@attrs.frozen
class WithUnit:
    """A geometry of a user's whose distances carry units."""

    inner: EuclideanVectors

    def unit(self, codes, weights=None):
        assert type(codes) is np.ndarray
        return self.inner.unit(codes, weights)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_parts_of_others_get_arrays():
    X, y = vector_classes()
    wanted = RiemannianLVQ("euclidean_vectors", max_epochs=1, random_state=0).fit(X, y)
    found = RiemannianLVQ(WithUnit(EuclideanVectors()), init=Whole(), max_epochs=1, random_state=0).fit(X, y)
    assert_array_equal(found.prototypes_, wanted.prototypes_)


# --- who gets arrays, and who may read the rows where they lie


class Reader:
    """A part that reads its codes only by slices."""

    @reads_parts
    def total(self, codes):
        return sum(codes[rows].sum() for rows in (slice(0, 1), slice(1, None)))


class Override(Reader):
    """Overrides the marked function without a mark of its own."""

    def total(self, codes):
        return super().total(codes)


def test_only_a_marked_function_is_given_lazy_rows():
    rows = subset(np.arange(8.0).reshape(4, 2), np.array([3, 0, 1]))
    assert materialise(Reader().total, rows) is rows
    assert Reader().total(rows) == 6 + 7 + 0 + 1 + 2 + 3
    for plain in (Override().total, lambda codes: Reader().total(codes), np.sum):
        found = materialise(plain, rows)
        assert type(found) is np.ndarray
        assert_array_equal(found, [[6, 7], [0, 1], [2, 3]])


def test_an_array_is_materialised_without_a_copy():
    codes = np.ones((3, 2))
    assert materialise(np.sum, codes) is codes


def test_the_mark_is_one_of_the_function_and_keeps_it():
    def read(codes):
        return codes[0]

    assert reads_parts(read) is read
    assert_array_equal(read(subset(np.eye(2), np.array([1]))), [0, 1])


# --- the data record


RECORD = Samples(np.array([[3.0], [1.0], [2.0], [5.0]]), np.array([1, 0, 1, 0]), np.array([0.5, 0.0, 2.0, 1.0]))


def content(samples):
    """Codes, targets and weights as lists."""
    weights = None if samples.weights is None else samples.weights.tolist()
    return np.asarray(samples.codes).ravel().tolist(), samples.targets.tolist(), weights


def test_rows_of_a_record_take_their_targets_and_weights_with_them():
    wanted = [5.0, 3.0], [0, 1], [1.0, 0.5]
    lazy, copied = RECORD.subset(np.array([3, 0])), RECORD.at([3, 0])
    assert content(lazy) == content(copied) == wanted
    assert isinstance(lazy.codes, LazyRows)
    assert type(copied.codes) is np.ndarray
    assert content(lazy.subset(np.array([1]))) == ([3.0], [1], [0.5])
    assert content(RECORD.at(slice(1, 3))) == ([1.0, 2.0], [0, 1], [0.0, 2.0])
    without = Samples(RECORD.codes, RECORD.targets)
    assert content(without.subset(np.array([3, 0]))) == content(without.at([3, 0])) == ([5.0, 3.0], [0, 1], None)


def test_a_record_knows_its_classes_and_weights():
    without = Samples(RECORD.codes, np.array([[0.9, 0.1], [0.4, 0.6], [1.0, 0.0], [0.0, 1.0]]))
    assert (len(without), without.total_weight, without.filled_weights.tolist()) == (4, 4.0, [1, 1, 1, 1])
    assert without.classes.tolist() == [0, 1, 0, 1]
    assert (RECORD.total_weight, RECORD.filled_weights.tolist()) == (3.5, [0.5, 0, 2, 1])
    assert RECORD.classes.tolist() == [1, 0, 1, 0]


def test_a_record_in_canonical_order_is_that_of_its_samples_as_a_set():
    wanted = [5.0, 2.0, 3.0], [0, 1, 1], [1.0, 2.0, 0.5]  # without the sample of weight 0
    assert content(RECORD.canonical()) == content(RECORD.at([2, 3, 0, 1]).canonical()) == wanted
    twice = RECORD.at([0, 1, 2, 3, 3, 2])
    assert content(twice.canonical()) == ([5.0, 2.0, 3.0], [0, 1, 1], [2.0, 4.0, 0.5])
    plain = Samples(twice.codes, twice.targets)
    assert content(plain.canonical()) == ([1.0, 5.0, 2.0, 3.0], [0, 0, 1, 1], [1.0, 2.0, 2.0, 1.0])
    assert content(plain.at(slice(4)).canonical())[2] is None


def test_the_samples_of_a_stream_are_appended_and_cut_to_the_latest():
    first, later = RECORD.at([0, 1]), Samples(np.array([[7.0]]), np.array([1]))
    both = first.followed_by(later)
    assert content(both) == ([3.0, 1.0, 7.0], [1, 0, 1], [0.5, 0.0, 1.0])
    assert content(both.latest(2)) == ([1.0, 7.0], [0, 1], [0.0, 1.0])
    assert content(both.latest(5)) == content(both)
    soft = Samples(np.array([[7.0]]), np.array([[0.2, 0.8]]))
    assert first.followed_by(soft) is soft  # labels and class probabilities cannot be stored together


def test_a_sample_in_several_groups_belongs_to_the_first_whatever_the_order():
    codes, targets = np.array([[1.0], [1.0], [1.0], [2.0], [2.0]]), np.array([0, 0, 1, 0, 0])
    weights, groups = np.array([1.0, 2.0, 1.0, 0.0, 1.0]), np.array([3, 1, 0, 0, 2])
    for order in (np.arange(5), np.arange(5)[::-1], np.array([3, 0, 4, 1, 2])):
        found = Samples(codes[order], targets[order], weights[order], groups[order]).canonical()
        rows = {(int(found.codes[i][0]), int(found.targets[i])): i for i in range(len(found))}
        assert [found.groups[rows[key]] for key in ((1, 0), (1, 1), (2, 0))] == [1, 0, 2]
        assert found.subset(np.array([2])).groups.tolist() == found.at([2]).groups.tolist() == [found.groups[2]]
