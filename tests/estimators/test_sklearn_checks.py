"""scikit-learn's own checks of an estimator, with no expected failure."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from rplvq import EuclideanVectors, HeldOut, RiemannianLVQ


@parametrize_with_checks(
    [
        RiemannianLVQ(EuclideanVectors()),
        RiemannianLVQ(manifold="euclidean_vectors", sigma2=HeldOut(["auto"]), max_epochs=10),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
