"""An initializer may return its prototypes in any order: everything that a model says is the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import GLVQ, RSLVQ, ClassKMeans, Constant, EuclideanVectors, Grow, HeldOut, Prune, RiemannianLVQ, Trainer
from rplvq.arrays import Samples
from rplvq.training import Window
from tests.problems import FEW, spd_classes, vector_classes

PROBLEMS = {
    "euclidean_vectors": ("euclidean_vectors", vector_classes(n_classes=3, per_class=12, shift=0.8)),
    "affine_invariant": ("affine_invariant", spd_classes(n_classes=3, per_class=12)),
    "complex": ("affine_invariant", spd_classes(n_classes=2, per_class=12, dtype=complex)),
    "learned_log_euclidean": ("learned_log_euclidean", spd_classes(n_classes=2, per_class=12)),
    "bures_wasserstein": ("bures_wasserstein", spd_classes(n_classes=2, per_class=12)),
}
GROWTH = {"fixed": [], "grows": [Grow(every=1, gain=None, min_samples=3)], "shrinks": [Prune(every=1, rise=0.05)]}


class Shuffled:
    """k-means, whose prototypes are returned in the order of ``keys``: one number per prototype."""

    def __init__(self, keys):
        self.keys = keys

    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        prototypes, labels = ClassKMeans(2)(manifold, codes, targets, n_classes, rng, sample_weight=sample_weight)
        order = np.argsort(self.keys[: len(labels)], kind="stable")
        return prototypes[order], labels[order]


def fitted(problem, keys, **settings):
    manifold, (X, y) = PROBLEMS[problem]
    settings = {"sigma2": 1.0, "max_epochs": 3, "init": Shuffled(np.asarray(keys)), "random_state": 0} | settings
    return RiemannianLVQ(manifold, **settings).fit(X, y)


def test_scores_of_prototypes_that_alternate_between_classes():
    def alternating(*_, **__):
        return np.array([[9.0], [0.0], [10.0], [1.0]]), np.array([1, 0, 1, 0])

    model = RiemannianLVQ("euclidean_vectors", init=alternating, sigma2=1.0, max_epochs=0)
    model.fit([[0.0], [1.0], [9.0], [10.0]], [0, 0, 1, 1])
    assert_array_equal(model.decision_function([[0.0], [1.0], [9.0], [10.0]]), [-81, -64, 64, 81])
    assert_array_equal(model.prototype_labels_, [0, 0, 1, 1])


# The slopes of GLVQ have no bound, so that few samples may have larger ones than at the start, and are cut alike.
@pytest.mark.filterwarnings("ignore:.* steps of epoch .* were cut:rplvq.exceptions.DivergenceWarning")
@FEW
@given(
    problem=st.sampled_from(sorted(PROBLEMS)),
    growth=st.sampled_from(sorted(GROWTH)),
    cost=st.sampled_from([RSLVQ(), GLVQ()]),
    sigma2=st.sampled_from([1.0, "auto", HeldOut(["auto", "half_median"])]),
    batch_size=st.sampled_from([1, 5, None]),
    order=st.permutations(range(3)),
)
def test_the_order_of_classes_does_not_matter(problem, growth, cost, sigma2, batch_size, order):
    X = PROBLEMS[problem][1][0]
    settings = {"growth": GROWTH[growth], "cost": cost, "sigma2": sigma2, "batch_size": batch_size}
    # Prototypes of one class keep their order, and classes are mixed: one of each, then the others.
    keys = [3 * (k % 2) + order[k // 2] for k in range(6)]
    plain, mixed = fitted(problem, range(6), **settings), fitted(problem, keys, **settings)
    assert_array_equal(mixed.prototype_labels_, plain.prototype_labels_)
    for name in ("prototypes_", "sigma2_"):
        assert_array_equal(getattr(mixed, name), getattr(plain, name))
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        assert_array_equal(getattr(mixed, method)(X), getattr(plain, method)(X))
    for column in plain.history_.keys() - {"seconds"}:
        assert_array_equal(mixed.history_[column], plain.history_[column])


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("decision", ["nearest", "posterior"])
def test_the_order_within_a_class_changes_nothing_but_the_order(problem, decision):
    X = PROBLEMS[problem][1][0]
    plain, turned = (fitted(problem, keys, max_epochs=0, decision=decision) for keys in (range(6), range(6)[::-1]))
    assert_array_equal(turned.predict(X), plain.predict(X))
    for method in ("predict_proba", "decision_function"):
        assert_allclose(getattr(turned, method)(X), getattr(plain, method)(X), rtol=1e-9, atol=1e-12)


def test_a_trainer_sorts_the_prototypes_that_it_is_given():
    samples = Samples(np.array([[0.0], [1.0], [9.0], [10.0]]), np.array([0, 0, 1, 1]))
    trainer = Trainer(EuclideanVectors(), sigma2=1.0)
    state = trainer.start(np.array([[9.0], [0.0], [10.0]]), np.array([1, 0, 1]), samples, 2)
    assert_array_equal(state.labels, [0, 1, 1])
    assert_array_equal(state.prototypes, [[0.0], [9.0], [10.0]])
    window = Window(EuclideanVectors(), RSLVQ(), state._replace(sigma2_schedule=Constant(1.0)), samples)
    assert_array_equal(window.added(0, np.array([1.0])).state.prototypes, [[0.0], [1.0], [9.0], [10.0]])
