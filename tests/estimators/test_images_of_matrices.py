"""An image with one matrix per pixel: every answer has its rows and columns, and errors name them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rplvq import RejectOption, RiemannianLVQ
from rplvq.exceptions import PointError
from tests.problems import spd_classes

ROWS, COLUMNS = 6, 7
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")


def problem(n_classes=3, dtype=float):
    """A batch (42, 3, 3) with labels, to be cut into an image of 6 x 7 pixels."""
    return spd_classes(n_classes=n_classes, per_class=ROWS * COLUMNS // n_classes, n=3, spread=0.6, dtype=dtype)


def as_image(values):
    return values.reshape(ROWS, COLUMNS, *values.shape[1:])


def fitted(X, y, **parameters):
    return RiemannianLVQ(prototypes_per_class=2, max_epochs=2, random_state=0, **parameters).fit(X, y)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("decision", ["nearest", "posterior"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_answers_are_those_of_the_batch(dtype, decision, n_classes):
    X, y = problem(n_classes, dtype)
    model = fitted(X, y, decision=decision)
    assert len(np.unique(model.predict(X))) == n_classes
    for method in METHODS:
        assert_array_equal(getattr(model, method)(as_image(X)), as_image(getattr(model, method)(X)))
    assert model.predict(as_image(X)).shape == (ROWS, COLUMNS)
    assert model.predict_proba(as_image(X)).shape == (ROWS, COLUMNS, n_classes)
    assert model.transform(as_image(X)).shape == (ROWS, COLUMNS, 2 * n_classes)


@pytest.mark.parametrize("manifold", ["log_euclidean", "log_cholesky", "euclidean", "learned_log_euclidean", "tangent"])
def test_every_metric_takes_images(manifold):
    X, y = problem()
    model = fitted(X, y, metric=manifold)
    assert_array_equal(model.predict(as_image(X)), as_image(model.predict(X)))


def test_a_series_of_images_and_parts_of_images_are_taken():
    X, y = problem()
    model, image = fitted(X, y), as_image(X)
    assert_array_equal(model.predict(np.stack([image, image])), np.stack([model.predict(image)] * 2))
    assert_array_equal(model.predict(image[::2, 1:5]), model.predict(image)[::2, 1:5])
    assert_array_equal(model.predict(image[:1, :1]), model.predict(X[:1])[None])


def test_an_image_on_disk_is_read_in_parts_by_several_threads(tmp_path):
    X, y = problem()
    model = fitted(X, y, n_jobs=2)
    path = tmp_path / "scene.npy"
    np.save(path, as_image(X))
    assert_array_equal(model.predict(np.load(path, mmap_mode="r")), as_image(model.predict(X)))


def test_an_error_names_row_and_column():
    X, y = problem()
    model, image = fitted(X, y), as_image(X).copy()
    image[4, 5] = -np.eye(3)
    image[5, 0, 1, 1] = np.nan
    with pytest.raises(PointError, match=r"^X\[5, 0\] contains NaN or infinity: its entry \[1, 1\] is nan"):
        model.predict(image)
    with pytest.raises(PointError, match=r"^X\[4, 5\] is not positive definite") as caught:
        model.predict_proba(image[:5])
    assert caught.value.index == (4, 5)
    hidden = np.zeros(image.shape, dtype=bool)
    hidden[0, 2] = True
    with pytest.raises(PointError, match=r"^X\[0, 2\] has masked entries"):
        model.predict(np.ma.masked_array(image, hidden))
    with pytest.raises(ValueError, match="X has 2 features, but RiemannianLVQ is expecting 3 features"):
        model.transform(image[:4, :, :2, :2])
    with pytest.raises(ValueError, match=r"Found array with 0 sample"):
        model.predict(image[:0])


def test_fit_takes_a_batch_only():
    X, y = problem()
    with pytest.raises(ValueError, match=r"X must have 3 axes.*got shape \(6, 7, 3, 3\)"):
        RiemannianLVQ(max_epochs=1).fit(as_image(X), as_image(y))


def test_three_axes_of_vectors_are_refused():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0], [5.0, 4.0]]), [0, 0, 1, 1]
    model = RiemannianLVQ("euclidean_vectors", max_epochs=0).fit(X, y)
    with pytest.raises(ValueError, match="array with dim 3"):
        model.predict(X.reshape(2, 2, 2))


def test_the_score_of_an_image_is_that_of_its_pixels():
    X, y = problem()
    model, weights = fitted(X, y), np.arange(1.0, 43.0)
    wrong = np.where(np.arange(42) % 5 == 0, (y + 1) % 3, y)
    assert model.score(as_image(X), as_image(wrong)) == model.score(X, wrong) < 1
    weighted = model.score(as_image(X), as_image(wrong), sample_weight=as_image(weights))
    assert weighted == model.score(X, wrong, sample_weight=weights)
    with pytest.raises(ValueError, match=r"y must have the shape \(6, 7\) of the image X, got shape \(42,\)"):
        model.score(as_image(X), wrong)


@pytest.mark.parametrize("criterion", ["posterior", "relative_distance"])
def test_a_reject_option_takes_images(criterion):
    X, y = problem()
    model = RejectOption(RiemannianLVQ(max_epochs=2, random_state=0), coverage=0.7, criterion=criterion).fit(X, y)
    labels = model.predict(X)
    assert 0 < np.count_nonzero(labels == -1) < len(labels)
    assert_array_equal(model.predict(as_image(X)), as_image(labels))
    assert_array_equal(model.certainty(as_image(X)), as_image(model.certainty(X)))
    assert_array_equal(model.predict_proba(as_image(X)), as_image(model.predict_proba(X)))
    assert model.score(as_image(X), as_image(y)) == model.score(X, y)
