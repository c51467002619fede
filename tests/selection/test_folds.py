"""Folds: what is held out of each class, how evenly, whole groups, and what happens where no group can be held out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import StratifiedGroupKFold

from rplvq.arrays import Samples
from rplvq.selection import split_classes
from rplvq.selection._candidates import FOLDS, deal_folds, deal_groups
from tests.problems import vector_classes

THREE = np.arange(3)
X, Y = vector_classes(per_class=32, n_classes=3, shift=0.7)


def parts_of(samples):
    """The part for early stopping, and all folds."""
    return [
        split_classes(samples, THREE, np.random.default_rng(0), 0.25),
        *deal_folds(samples, THREE, np.random.default_rng(0)),
    ]


# --- without groups


def test_a_quarter_of_each_class_is_held_out_for_early_stopping():
    targets, labels = np.repeat([0, 1, 2], [40, 12, 4]), np.array([0, 0, 1, 2])
    samples = Samples(np.arange(56.0)[:, None], targets)
    kept, held = split_classes(samples, labels, np.random.default_rng(0), 0.25)
    assert_array_equal(np.bincount(targets[held]), [10, 3, 1])
    assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(56))
    assert not np.array_equal(held, split_classes(samples, labels, np.random.default_rng(1), 0.25)[1])


def test_each_sample_of_large_classes_is_held_out_in_one_fold():
    targets, labels = np.repeat([0, 1, 2], [41, 12, 5]), np.array([0, 0, 1, 2])
    samples = Samples(np.arange(58.0)[:, None], targets)
    folds = deal_folds(samples, labels, np.random.default_rng(0))
    assert len(folds) == FOLDS
    for kept, held in folds:
        assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(58))
        assert set(np.bincount(targets[held])) <= {10, 11, 3, 1, 2}
    assert_array_equal(np.sort(np.concatenate([held for _, held in folds])), np.arange(58))
    assert {len(held) for _, held in folds} == {14, 15}  # all folds have about the same size
    others = deal_folds(samples, labels, np.random.default_rng(1))
    assert not all(np.array_equal(fold[1], other[1]) for fold, other in zip(folds, others, strict=True))


@pytest.mark.parametrize(
    ("sizes", "labels"),
    [
        ((1, 2, 3, 4), (0, 1, 2, 3)),
        ((4, 4, 5, 9), (0, 0, 0, 1, 2, 2, 3)),
        ((8, 8, 9, 3), (0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 3)),
    ],
)
def test_small_classes_keep_one_more_than_they_have_prototypes(sizes, labels):
    targets = np.repeat(np.arange(4), sizes)
    samples = Samples(np.arange(len(targets), dtype=float)[:, None], targets)
    needed, sizes = np.bincount(labels) + 1, np.array(sizes)
    folds = deal_folds(samples, np.array(labels), np.random.default_rng(0))
    for kept, held in folds:
        assert (np.bincount(targets[kept], minlength=4) >= np.minimum(needed, sizes)).all()
        assert (np.bincount(targets[held], minlength=4) <= -(-sizes // FOLDS)).all()
    ever = np.bincount(targets[np.concatenate([held for _, held in folds])], minlength=4)
    assert_array_equal(ever > 0, sizes > needed)


def test_samples_of_weight_zero_are_in_no_part_and_equal_samples_stay_together():
    weights = np.where(np.arange(len(Y)) % 3 == 0, 0.0, 1.5)
    for kept, held in parts_of(Samples(X, np.eye(3)[Y], weights)):
        assert_array_equal(np.sort(np.concatenate([kept, held])), np.flatnonzero(weights))
    order = np.random.default_rng(0).permutation(2 * len(X))
    codes, targets = np.repeat(X, 2, axis=0)[order], np.repeat(Y, 2)[order]
    for kept, held in parts_of(Samples(codes, targets)):
        assert {*map(tuple, codes[kept])}.isdisjoint(map(tuple, codes[held]))
        assert_array_equal(np.bincount(targets[held]), [16, 16, 16])  # 8 of 32, twice


# --- with groups


def grouped(per_class=40, n_groups=10, seed=0):
    X, y = vector_classes(per_class=per_class, n_classes=3)
    return Samples(X, y, None, np.random.default_rng(seed).integers(n_groups, size=len(y)))


def unevenness(folds, samples):
    """Mean over the classes of the standard deviation of their shares over the folds."""
    shares = [np.bincount(samples.targets[held], minlength=3) / np.bincount(samples.targets) for _, held in folds]
    return np.std(shares, axis=0).mean()


@pytest.mark.parametrize("deal", [deal_folds, lambda *arguments: [split_classes(*arguments, 0.25)]])
def test_a_group_is_held_out_as_a_whole(deal):
    samples = grouped()
    folds = deal(samples, THREE, np.random.default_rng(0))
    for kept, held in folds:
        assert set(samples.groups[kept]).isdisjoint(samples.groups[held])
        assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(len(samples)))
        assert set(samples.targets[held]) == {0, 1, 2}
    if len(folds) > 1:
        assert_array_equal(np.sort(np.concatenate([held for _, held in folds])), np.arange(len(samples)))
    others = deal(samples, THREE, np.random.default_rng(1))
    assert any(not np.array_equal(one[1], other[1]) for one, other in zip(folds, others, strict=True))


def test_folds_are_about_as_even_as_those_of_scikit_learn():
    found, theirs = [], []
    for seed in range(10):
        samples = grouped(n_groups=20, seed=seed)
        found.append(unevenness(deal_folds(samples, THREE, np.random.default_rng(seed)), samples))
        splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
        folds = list(splitter.split(samples.codes, samples.targets, samples.groups))
        theirs.append(unevenness(folds, samples))
    assert np.mean(found) <= 1.1 * np.mean(theirs)


def test_the_share_for_early_stopping_is_about_that_asked_for():
    samples = grouped(n_groups=60)
    for fraction in (0.1, 0.25, 0.5, 0.9):
        _, held = split_classes(samples, THREE, np.random.default_rng(0), fraction)
        assert len(held) / len(samples) == pytest.approx(min(fraction, 0.5), abs=0.03)


def test_fewer_groups_than_folds_give_one_fold_each():
    samples = grouped(n_groups=3)
    folds = deal_folds(samples, THREE, np.random.default_rng(0))
    assert sorted(np.unique(samples.groups[held]).tolist() for _, held in folds) == [[0], [1], [2]]


def test_the_only_group_of_a_class_is_kept_in_all_folds():
    samples = grouped()
    groups = np.where(samples.targets == 2, 99, samples.groups)
    samples = Samples(samples.codes, samples.targets, None, groups)
    folds = deal_folds(samples, THREE, np.random.default_rng(0))
    assert len(folds) == FOLDS
    for kept, held in folds:
        assert set(samples.targets[held]) == {0, 1}
        assert (groups[kept] == 99).sum() == 40


def test_each_class_keeps_one_more_sample_than_it_has_prototypes():
    targets, groups = np.repeat([0, 1], [40, 8]), np.arange(48) % 4  # each group has two samples of class 1
    samples, rng = Samples(np.arange(48.0)[:, None], targets, None, groups), np.random.default_rng
    assert len(deal_groups(samples, np.repeat([0, 1], [1, 5]), rng(0), FOLDS)) == 4
    assert deal_groups(samples, np.repeat([0, 1], [1, 6]), rng(0), FOLDS) == []
    # Two groups together would leave four samples, so that folds of two groups are left out.
    assert deal_groups(samples, np.repeat([0, 1], [1, 4]), rng(0), 2) == []


def test_samples_of_weight_zero_are_in_no_fold_and_count_in_none():
    samples = grouped()
    weights = np.where(samples.groups == 0, 0.0, 1.0)
    weighted = Samples(samples.codes, samples.targets, weights, samples.groups)
    folds = deal_folds(weighted, THREE, np.random.default_rng(0))
    assert_array_equal(np.sort(np.concatenate([held for _, held in folds])), np.flatnonzero(weights))
    rows = np.flatnonzero(weights)
    without = deal_folds(samples.subset(rows), THREE, np.random.default_rng(0))
    for (kept, held), (other_kept, other_held) in zip(folds, without, strict=True):
        assert_array_equal(kept, rows[other_kept])
        assert_array_equal(held, rows[other_held])


@pytest.mark.parametrize("groups", [np.zeros(120, dtype=int), "classes"], ids=["one group", "one group per class"])
def test_random_samples_are_held_out_where_no_group_can_be(groups):
    samples = grouped()
    groups = samples.targets if isinstance(groups, str) else groups
    alone, without = (Samples(samples.codes, samples.targets, None, own) for own in (groups, None))
    with pytest.warns(UserWarning, match="no held-out part of whole groups leaves enough samples of each class"):
        folds = deal_folds(alone, THREE, np.random.default_rng(0))
    for fold, other in zip(folds, deal_folds(without, THREE, np.random.default_rng(0)), strict=True):
        assert_array_equal(fold[1], other[1])
    with pytest.warns(UserWarning, match="no held-out part of whole groups has samples of each class"):
        part = split_classes(alone, THREE, np.random.default_rng(0), 0.25)
    assert_array_equal(part[1], split_classes(without, THREE, np.random.default_rng(0), 0.25)[1])
