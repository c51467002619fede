"""Real samples meet complex prototypes, and complex samples real ones, in every call and under every metric."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    AffineInvariant,
    BuresWasserstein,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    RiemannianLVQ,
    TangentSpace,
)
from tests import cases
from tests.covering import covering
from tests.problems import refuse, spd_classes

REFERENCE = cases.reference_of(3)  # real, for real and for complex samples


def tangent_distance(x, w):
    inverse = np.linalg.inv(scipy.linalg.sqrtm(REFERENCE))
    return np.linalg.norm(scipy.linalg.logm(inverse @ x @ inverse) - scipy.linalg.logm(inverse @ w @ inverse))


METRICS = {
    "affine_invariant": (AffineInvariant(), cases.affine_invariant_distance),
    "plain affine_invariant": (AffineInvariant(compiled=False), cases.affine_invariant_distance),
    "log_euclidean": (LogEuclidean(), cases.log_euclidean_distance),
    "log_cholesky": (LogCholesky(), cases.log_cholesky_distance),
    "tangent": (TangentSpace(REFERENCE), tangent_distance),
    "bures_wasserstein": (BuresWasserstein(), cases.bures_wasserstein_distance),
    "euclidean": (ProjectedEuclidean(relative=True), cases.norm_of_difference),
}
OTHER = {float: complex, complex: float}
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def mixed(first, second, n_classes):
    """Samples of one kind to fit, and of the other kind for the calls after it."""
    X, y = spd_classes(n_classes=n_classes, dtype=first)
    return X, y, *spd_classes(seed=1, n_classes=n_classes, dtype=second)


@pytest.mark.parametrize(
    ("metric", "first", "n_classes", "decision"), covering(METRICS, OTHER, [2, 3], ["nearest", "posterior"])
)
def test_every_prediction_follows_from_the_distances(metric, first, n_classes, decision):
    manifold, distance = METRICS[metric]
    X, y, Z, _ = mixed(first, OTHER[first], n_classes)
    model = RiemannianLVQ(manifold, sigma2=1.0, max_epochs=1, decision=decision, random_state=0).fit(X, y)
    d = np.array([[distance(z, w) for w in model.prototypes_] for z in Z])
    assert_allclose(model.transform(Z), d, rtol=1e-6)
    likelihood = np.exp(-(d**2) / 2)
    proba = likelihood / likelihood.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(Z), proba, rtol=1e-5)
    assert_allclose(model.predict_log_proba(Z), np.log(proba), rtol=1e-5)
    assert_array_equal(model.predict(Z), d.argmin(axis=1))
    score = -(d**2) if decision == "nearest" else np.log(proba)
    assert_allclose(model.decision_function(Z), score if n_classes > 2 else score[:, 1] - score[:, 0], rtol=1e-5)
    both = np.concatenate([X, Z])
    assert_array_equal(model.predict(both), np.concatenate([model.predict(X), model.predict(Z)]))
    assert_allclose(model.transform(both), np.concatenate([model.transform(X), model.transform(Z)]), atol=1e-7)


@pytest.mark.parametrize(("metric", "first", "n_classes", "batch_size"), covering(METRICS, OTHER, [2, 3], [1, None]))
def test_a_stream_may_change_between_real_and_complex(metric, first, n_classes, batch_size):
    """Conjugate samples give conjugate prototypes, which have imaginary parts."""
    manifold, _ = METRICS[metric]
    X, y, Z, z = mixed(first, OTHER[first], n_classes)
    found = []
    for conjugate in (np.asarray, np.conj):
        settings = {"sigma2": 1.0, "step_size": 0.5, "max_epochs": 0, "batch_size": batch_size, "random_state": 0}
        model = RiemannianLVQ(manifold, **settings)
        model.fit(conjugate(X), y)
        for call in np.arange(6)[:, None] if batch_size == 1 else [slice(None)]:  # in an order known here
            model.partial_fit(conjugate(Z[call]), z[call])
        found.append(model.prototypes_)
    assert np.abs(found[0].imag).max() > 1e-3 * np.abs(found[0]).max()
    assert_allclose(found[1], found[0].conj(), rtol=0, atol=1e-9 * np.abs(found[0]).max())


@CLASSES
@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "decision_function", "partial_fit"])
def test_a_metric_that_was_learned_on_real_matrices_refuses_complex_ones(n_classes, method):
    X, y, Z, z = mixed(float, complex, n_classes)
    model = RiemannianLVQ(LearnedLogEuclidean(), sigma2=1.0, max_epochs=1, random_state=0).fit(X, y)
    arguments = (Z, z) if method == "partial_fit" else (Z,)
    refuse(model, method, *arguments, match="X is complex, but the metric was learned on real matrices")
