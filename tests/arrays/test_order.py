"""The canonical order of samples, the visits of a sweep, and the blocks into which it is cut."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq.arrays import BLOCK_ROWS, blocks, canonical_order, repeats, subset, visits
from rplvq.arrays._samples import as_counts, distinct
from tests.problems import spd_classes


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("soft", [False, True])
def test_repeats_have_one_number_whatever_their_places(dtype, soft):
    X, y = spd_classes(n_classes=2, per_class=10, dtype=dtype)
    rng = np.random.default_rng(0)
    original = rng.permutation(np.repeat(np.arange(20), rng.integers(1, 4, 20)))
    codes, targets = X[original], np.eye(2)[y[original]] if soft else y[original]
    for given in (codes, subset(X, original)):  # an array, and samples that are read where they are asked for
        numbers = repeats(given, targets)
        assert_array_equal(numbers[:, None] == numbers, original[:, None] == original)
    other = targets.copy()
    other[0] = 1 - other[0]  # the same matrix of another class is another sample
    assert np.count_nonzero(repeats(codes, other) == repeats(codes, other)[0]) == 1


@pytest.mark.parametrize(("size", "n"), [(1, BLOCK_ROWS + 3), (1000, 9001), (7, 20), (None, 9001), (100, 20)])
def test_blocks_hold_whole_batches_and_every_row_once(size, n):
    cut = list(blocks(np.arange(n), np.arange(n) / n, size, np.random.default_rng(0)))
    assert_array_equal(np.sort(np.concatenate([rows for rows, _, _ in cut])), np.arange(n))
    for rows, weights, length in cut:
        assert_array_equal(weights, rows / n)
        assert length == min(size or n, n)
    assert all(len(rows) % length == 0 for rows, _, length in cut[:-1])


def test_visits_without_weights_are_one_per_sample():
    rows, weights = visits(4, None)
    assert rows.tolist() == [0, 1, 2, 3]
    assert weights is None


def test_a_sample_is_visited_as_often_as_its_weight_rounded_up_and_weighs_it_in_all():
    given = np.array([1.0, 0.0, 2.5, 0.25])
    rows, weights = visits(4, given)
    assert rows.tolist() == [0, 2, 2, 2, 3]
    assert_allclose(np.bincount(rows, weights), given)
    assert_allclose(weights[1:4], 2.5 / 3)


def test_weights_that_are_no_counts_are_scaled():
    few, many, counts = np.array([0.25, 0.75]), np.array([1e6, 3e6]), np.array([0.25, 2.0])
    assert as_counts(few, shares=True).tolist() == as_counts(many, shares=True).tolist() == [0.5, 1.5]
    assert as_counts(many).tolist() == [50.0, 150.0]
    for kept in (as_counts(few), as_counts(counts), as_counts(counts, shares=True)):
        assert kept is few or kept is counts
    assert_allclose(visits(2, many)[1], 1.0)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_the_canonical_order_sorts_permuted_samples_alike(dtype, layout):
    # Of one axis a sample too: points on a product of circles, say.
    rng = np.random.default_rng(0)
    for shape in [(9, 3), (9, 2, 2)]:
        codes = rng.normal(size=shape).astype(dtype)
        codes[4], codes[5, 0] = codes[3], 0.0
        targets, order = np.arange(9) % 2, rng.permutation(9)
        first = codes[canonical_order(np.asarray(codes, order=layout), targets)]
        negated = np.where(codes == 0, -0.0, codes)[order]
        second = negated[canonical_order(np.asarray(negated, order=layout), targets[order])]
        assert_array_equal(first, second)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("dtype", [float, complex])
def test_the_canonical_order_is_the_lexicographic_one_and_adds_up_the_weights_of_equal_samples(soft, dtype):
    """Values of few kinds, so that most samples agree in most numbers and some in all."""
    rng = np.random.default_rng(3)
    codes = rng.integers(-1, 2, (300, 2, 2)).astype(dtype)
    if dtype is complex:
        codes += 1j * rng.integers(0, 2, codes.shape)
    weights = rng.integers(0, 4, 300) / 4
    targets = rng.integers(0, 2, 300)
    targets = np.eye(2)[targets] if soft else targets
    columns = np.stack([*np.atleast_2d(targets.T), *codes.reshape(300, 4).view(float).T])
    assert_array_equal(canonical_order(codes, targets), np.lexsort(columns[::-1]))
    for given, used in ((None, np.ones(300)), (weights, weights)):
        rows, counts = distinct(codes, targets, given)
        found, inverse = np.unique(columns[:, used > 0], axis=1, return_inverse=True)
        assert_array_equal(columns[:, rows], found)
        assert_array_equal(counts, np.bincount(inverse.ravel(), used[used > 0]))
