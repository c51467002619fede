"""Numbers of any type and precision, NumPy's error settings, and messages that say what is wrong."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pytest
from pymanopt.manifolds import Sphere

from rplvq import RSLVQ, Annealed, LogEuclidean, Product, RiemannianLVQ, SPDProjection
from rplvq.datasets import make_syn1
from tests.problems import sphere_classes, vector_classes

X, y = make_syn1(n_per_class=15, random_state=0)
SETTINGS = [
    {"batch_size": 16, "max_epochs": 3},
    {"max_epochs": 3, "n_jobs": 2},
    {"max_epochs": 100},
    {"prototypes_per_class": 2, "init": "kmeans", "max_epochs": 3},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_counts_may_be_integers_of_numpy_of_every_width(settings):
    wanted = RiemannianLVQ(random_state=0, **settings).fit(X, y).partial_fit(X, y)
    for dtype in (np.int8, np.uint64):  # the narrowest, and the one that becomes a float beside others
        small = {name: dtype(value) if isinstance(value, int) else value for name, value in settings.items()}
        found = RiemannianLVQ(random_state=0, **small).fit(X, y).partial_fit(X, y)
        np.testing.assert_array_equal(found.predict_proba(X), wanted.predict_proba(X), str(dtype))


@pytest.mark.parametrize("metric", ["affine_invariant", "log_euclidean", "euclid", "whitened_tangent"])
@pytest.mark.parametrize("settings", [{}, {"sigma2": 1e-3, "max_epochs": 3, "batch_size": None}], ids=str)
def test_harmless_underflows_raise_nothing(metric, settings):
    with np.errstate(all="raise"):
        model = RiemannianLVQ(metric, random_state=0, **settings).fit(X, y)
        assert (model.predict_proba(9 * X) >= 0).all()
        model.partial_fit(X, y)
        SPDProjection(2, max_iter=2).fit(X, y)
        assert np.geterr()["under"] == "raise"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_soft_labels_of_any_precision_are_taken(dtype):
    soft = np.random.default_rng(0).dirichlet(np.ones(4), len(y)).astype(dtype)
    RiemannianLVQ(cost="plvq", max_epochs=0).fit(X, soft)
    soft[3] *= 1.1
    with pytest.raises(ValueError, match=r"y\[3\] sums to 1\.[01]"):
        RiemannianLVQ(cost="plvq", max_epochs=0).fit(X, soft)


def test_soft_labels_that_are_slightly_off_and_classes_that_are_never_likeliest_are_told():
    soft = np.full((len(y), 4), 0.25)
    soft[5, 0] += 2e-6
    with pytest.raises(ValueError, match=r"y\[5\] sums to 1\.000002"):
        RiemannianLVQ(cost="plvq", max_epochs=0).fit(X, soft)
    soft = np.eye(4)[y] * 0.8 + 0.05
    soft[:, 3] = 0.05
    with pytest.raises(ValueError, match=r"class 3 is the likeliest class of 0 sample\(s\)"):
        RiemannianLVQ(cost="plvq", max_epochs=0).fit(X, soft / soft.sum(axis=1, keepdims=True))


class Wrong:
    def __call__(self, sqdist, targets, labels, sigma2):
        found = RSLVQ()(sqdist, targets, labels, sigma2)
        return -found.loss, -found.slope


MESSAGES = {
    "dates": ({}, [datetime.date(2020, 1, 1 + k) for k in y], r"y\[0\] is datetime.date\(2020, .*, a date: labels are"),
    "decimals": ({}, [Decimal(int(k)) for k in y], r"y\[0\] is Decimal\('\d'\), a Decimal: labels are"),
    "step size": ({"step_size": "constant"}, y, r"got 'constant'; an estimator also takes 'adaptive' and 'paper'"),
    "class": ({"sigma2": Annealed}, y, r"sigma2 must be .*: it is a class, pass an instance"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_say_what_is_wrong(name):
    settings, labels, match = MESSAGES[name]
    with pytest.raises(ValueError, match=match):
        RiemannianLVQ(**settings).fit(X, labels)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_a_cost_of_the_wrong_sign_is_told_of_its_check():
    with pytest.raises(FloatingPointError, match="check_cost tells whether its slope has the wrong sign"):
        RiemannianLVQ(cost=Wrong(), sigma2=0.1, step_size=0.1, max_epochs=50, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("manifold", "data"),
    [
        ("euclidean_vectors", vector_classes()),
        (Sphere(3), sphere_classes()),
        (Product((LogEuclidean(), LogEuclidean())), (np.stack([X, X], axis=1), y)),
    ],
    ids=["vectors", "sphere", "product"],
)
def test_a_discriminant_says_what_it_needs(manifold, data):
    with pytest.raises(ValueError, match=r"init='discriminant' needs a metric of positive .*: take init='mean'"):
        RiemannianLVQ(manifold, init="discriminant", max_epochs=0).fit(*data)
