"""scikit-learn's own checks of an estimator, with one expected failure of the default."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from rplvq import EuclideanVectors, RiemannianLVQ

EXPECTED = {
    "check_class_weight_classifiers": "the default keeps class means where held-out samples show no gain of training, "
    "and means of classes do not depend on the weights of classes"
}


def expected(estimator):
    """The checks that fail by design: one for the default, none for a fit that trains."""
    return EXPECTED if estimator.sigma2 == "auto" else {}


@parametrize_with_checks(
    [
        RiemannianLVQ(EuclideanVectors()),
        RiemannianLVQ(metric="euclidean_vectors", step_size="paper", sigma2=1.0, max_epochs=10),
    ],
    expected_failed_checks=expected,
)
def test_scikit_learn(estimator, check):
    check(estimator)
