"""scikit-learn's own checks of an estimator, with no expected failure."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from rplvq import EuclideanVectors, RiemannianLVQ


@parametrize_with_checks(
    [
        RiemannianLVQ(EuclideanVectors()),
        RiemannianLVQ(metric="euclidean_vectors", step_size="paper", sigma2=1.0, max_epochs=10),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
