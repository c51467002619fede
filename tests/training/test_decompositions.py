"""How many eigendecompositions training and prediction take: as few as the geometry needs."""

from __future__ import annotations

import pytest

from rplvq import AffineInvariant, LogEuclidean, RiemannianLVQ
from rplvq.training import EpochScore
from tests.problems import counted_decompositions, spd_classes, vector_classes


def decompositions_per_epoch(manifold, X, y, **settings):
    counts = []
    for epochs in (2, 3):
        with counted_decompositions() as counter:
            RiemannianLVQ(manifold, sigma2=1.0, max_epochs=epochs, random_state=0, **settings).fit(X, y)
        counts.append(sum(counter.values()))
    return counts[1] - counts[0]


@pytest.mark.parametrize(
    ("settings", "per_epoch"),
    [
        ({}, 20 * 6),
        ({"callbacks": [EpochScore()]}, 2 * 20 * 6),
        ({"batch_size": 6}, 20 * 6 + 4 * 6),  # 6, 6, 6 and 2 samples: one more per prototype and batch
        ({"batch_size": 19}, 20 * 6 + 6),  # the last batch holds one sample, which needs none
        ({"batch_size": None}, 20 * 6 + 6),
        ({"batch_size": 100}, 20 * 6 + 6),
    ],
)
def test_decompositions_of_an_epoch_under_the_affine_invariant_metric(settings, per_epoch):
    X, y = spd_classes(per_class=10)
    assert (
        decompositions_per_epoch(AffineInvariant(compiled=False), X, y, prototypes_per_class=3, **settings) == per_epoch
    )


@pytest.mark.parametrize("settings", [{}, {"callbacks": [EpochScore()]}, {"batch_size": 7}])
def test_log_euclidean_training_decomposes_nothing(settings):
    X, y = spd_classes(per_class=10)
    assert decompositions_per_epoch(LogEuclidean(), X, y, **settings) == 0


def test_log_euclidean_takes_each_logarithm_once():
    X, y = spd_classes(per_class=10)
    with counted_decompositions() as counter:
        RiemannianLVQ("log_euclidean", sigma2=1.0, max_epochs=3).fit(X, y)
    # The logarithms of the samples, and the exponentials of two prototypes. For missing channels, at most 200 samples
    # are decoded and their logarithms at another point are taken; one more is that of their covariance.
    assert counter == {"eigh": len(X) + 2 + 2 * len(X) + 1, "eigvalsh": 0}


def test_predicting_needs_eigenvalues_only(monkeypatch):
    monkeypatch.setattr("rplvq.manifolds._logarithms.lane_kernels", lambda: None)
    X, y = spd_classes(per_class=10)
    model = RiemannianLVQ(sigma2=1.0, max_epochs=1).fit(X, y)
    with counted_decompositions() as counter:
        model.predict(X)
    assert counter == {"eigh": 0, "eigvalsh": len(X) * 2}  # every pair: with two prototypes nothing can be saved


def test_log_euclidean_prediction_takes_logarithms_alone():
    X, y = spd_classes(per_class=10)
    model = RiemannianLVQ("log_euclidean", sigma2=1.0, prototypes_per_class=4, max_epochs=1).fit(X, y)
    with counted_decompositions() as counter:
        model.predict(X.tolist())
    assert counter == {"eigh": len(X), "eigvalsh": 0}


def test_vectors_need_none():
    X, y = vector_classes()
    with counted_decompositions() as counter:
        RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=3).fit(X, y)
    assert sum(counter.values()) == 0
