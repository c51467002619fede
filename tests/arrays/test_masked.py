"""Masked arrays: no entry that a mask hides is ever used. Every door refuses them by name and first index."""

from __future__ import annotations

import numpy as np
import pytest

from rplvq import Recenter, RejectOption, RiemannianLVQ
from rplvq.arrays import check_labels, check_weights, encoded, one_type, unmasked
from rplvq.evaluation import compare
from rplvq.features import region_covariances, trial_covariances
from rplvq.inspection import accuracy_reject_curve, calibrate_sigma2, reliability
from rplvq.preprocessing import SPDProjection
from tests.cases import CASES
from tests.problems import refuse, spd_classes

X, Y = spd_classes(per_class=6)
NAMES = ("fit", "partial_fit", "predict", "predict_proba", "transform", "decision_function")


def hiding(values, index):
    """The values as a masked array that hides one entry, whose value is wrong."""
    values = np.ma.array(values, copy=True)
    values[index] = np.array(-999).astype(values.dtype)
    values[index] = np.ma.masked
    return values


def masked(points):
    points = np.asarray(points)
    return hiding(points, (2,) + (0,) * (points.ndim - 1))


FORMS = {
    "one array": masked,
    "a list of arrays": lambda points: list(masked(points)),
    "an array of objects": lambda points: np.array([*masked(points), None], dtype=object)[:-1],
}


def small_model():
    return RiemannianLVQ(sigma2=1.0, max_epochs=1, random_state=0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_manifold_refuses_points_that_a_mask_hides(case, form):
    points = FORMS[form](case.points(np.random.default_rng(0), 5, 3))
    for call in (case.manifold(3).encode, lambda given: encoded(case.manifold(3), given)):
        with pytest.raises(ValueError, match=r"^X\[2\] has masked entries"):
            call(points)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_mask_that_hides_nothing_changes_nothing(case):
    points = case.points(np.random.default_rng(0), 5, 3)
    np.testing.assert_array_equal(case.manifold(3).encode(np.ma.array(points)), case.manifold(3).encode(points))


class Trusting:
    """A manifold of one's own whose encode converts whatever it gets, and so loses a mask."""

    def __init__(self, inner):
        self.inner = inner

    def encode(self, points):
        return self.inner.encode(np.asarray(points))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)


@pytest.mark.parametrize("wrap", [lambda inner: inner, Trusting], ids=["library", "own manifold"])
@pytest.mark.parametrize("case", list(CASES.values())[:2], ids=list(CASES)[:2])
def test_the_estimator_refuses_masked_samples_in_every_call(case, wrap):
    rng = np.random.default_rng(0)
    points, labels = case.points(rng, 12, 3), np.tile([0, 1], 6)
    model = RiemannianLVQ(wrap(case.manifold(3)), sigma2=1.0, max_epochs=1, random_state=0, n_jobs=2)
    model.fit(points, labels)
    for name in NAMES:
        arguments = (labels,) if name.endswith("fit") else ()
        with pytest.raises(ValueError, match=r"^X\[2\] has masked entries"):
            getattr(model, name)(masked(points), *arguments)


LABELS = {
    "integers": hiding(Y, 3),
    "strings": hiding(np.array(["left", "right"])[Y], 3),
    "a list": [*Y[:3].tolist(), np.ma.masked, *Y[4:].tolist()],
    "soft labels": hiding(np.eye(2)[Y], (3, 0)),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_that_a_mask_hides_are_refused(labels):
    why = r"^y\[3\] has masked entries"
    for method in ("fit", "partial_fit"):
        refuse(small_model().fit(X, Y), method, X, labels, match=why)
    calls = [
        lambda: one_type(labels, "y"),
        lambda: check_labels(labels, len(X)),
        lambda: small_model().fit(X, Y).score(X, labels),
        lambda: SPDProjection().fit(X, labels),
        lambda: compare(X, labels, [small_model()], cv=2),
        lambda: RejectOption(small_model(), threshold=0.5).fit(X, labels),
        lambda: calibrate_sigma2(small_model().fit(X, Y), X, labels),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=why):
            call()


def test_weights_that_a_mask_hides_are_refused():
    weights = hiding(np.ones(len(X)), 4)
    for method in ("fit", "partial_fit"):
        refuse(small_model(), method, X, Y, sample_weight=weights, match=r"^sample_weight\[4\] has masked entries")
    with pytest.raises(ValueError, match=r"^sample_weight\[4\] has masked"):
        check_weights(weights, len(X))


OTHERS = {
    "trials": (lambda: trial_covariances(masked(np.ones((4, 2, 9)))), r"X\[2\]"),
    "images": (lambda: region_covariances(masked(np.ones((4, 8, 8)))), r"images\[2\]"),
    "masks of regions": (
        lambda: region_covariances(np.ones((4, 8, 8)), masks=masked(np.full((4, 8, 8), True))),
        r"masks\[2\]",
    ),
    "features": (
        lambda: region_covariances(np.ones((1, 8, 8)), lambda image: masked(np.stack([image, image], axis=2))),
        r"features of images\[0\]\[2\]",
    ),
    "classes": (lambda: small_model().partial_fit(X, Y, classes=hiding([0, 1, 2], 2)), r"classes\[2\]"),
    "init labels": (lambda: RiemannianLVQ(init=(X[:3], hiding([0, 1, 1], 2))).fit(X, Y), r"init labels\[2\]"),
    "init prototypes": (lambda: RiemannianLVQ(init=(masked(X[:3]), [0, 1, 1])).fit(X, Y), r"init prototypes\[2\]"),
    "groups of Recenter": (lambda: Recenter().fit(X, groups=masked(Y)), r"groups\[2\]"),
    "samples of Recenter": (lambda: Recenter().fit(masked(X)), r"X\[2\]"),
    "samples of compare": (lambda: compare(masked(X), Y, [small_model()], cv=2), r"X\[2\]"),
    "groups of compare": (lambda: compare(X, Y, [small_model()], cv=2, groups=masked(np.arange(12))), r"groups\[2\]"),
    "samples of RejectOption": (lambda: RejectOption(small_model(), coverage=0.5, cv=2).fit(masked(X), Y), r"X\[2\]"),
    "probabilities": (lambda: reliability(Y, masked(np.eye(2)[Y]), [0, 1]), r"proba\[2\]"),
    "true labels": (lambda: reliability(masked(Y), np.eye(2)[Y], [0, 1]), r"y_true\[2\]"),
    "certainties": (lambda: accuracy_reject_curve(Y, Y, masked(np.ones(12))), r"certainty\[2\]"),
}


@pytest.mark.parametrize(("call", "where"), OTHERS.values(), ids=OTHERS)
def test_every_other_door_refuses_them(call, where):
    with pytest.raises(ValueError, match=f"^{where} has masked entries"):
        call()


@pytest.mark.parametrize(
    "values", [[1, 2], [[1.0], [2.0]], "text", None, np.ones(3), np.array(3, dtype=object)], ids=repr
)
def test_anything_without_a_mask_passes_as_it_is(values):
    assert unmasked(values) is values
