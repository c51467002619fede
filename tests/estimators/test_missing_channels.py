"""Predictions for samples with missing channels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from examples.paper import data
from rplvq import AffineInvariant, EuclideanVectors, LogEuclidean, Product, RejectOption, RiemannianLVQ, load_model
from rplvq.datasets import make_syn1
from rplvq.exceptions import PointError
from rplvq.manifolds import MissingChannels, filler_of
from tests.manifolds.test_missing import without

X, Y = make_syn1(n_per_class=20, random_state=0)
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score_samples")
METRICS = (
    "affine_invariant",
    "log_euclidean",
    "euclidean",
    "log_cholesky",
    "wasserstein",
    "tangent",
    "whitened_tangent",
)


def mixed() -> np.ndarray:
    """Return samples without gaps, and with the gaps of two kinds."""
    return np.concatenate([X[:2], without(X[2:4], 0), without(X[4:6], 3, 7)])


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_of_matrices_predicts_with_missing_channels(metric):
    model = RiemannianLVQ(metric, random_state=0).fit(X, Y)
    for method in METHODS:
        both = getattr(model, method)(mixed())
        assert np.isfinite(both).all() if both.dtype.kind == "f" else np.isin(both, model.classes_).all()
        assert_array_equal(both[:2], getattr(model, method)(X[:2]))
        for index in (2, 5):
            assert_allclose(both[index], getattr(model, method)(mixed()[index : index + 1])[0], rtol=1e-8)
    filled = model.missing_channels_.fill(mixed())
    assert_allclose(model.transform(mixed()), model.transform(filled), rtol=1e-10)
    assert_allclose(model.predict_proba(mixed()).sum(axis=1), 1.0)


def test_a_model_file_keeps_what_is_needed_and_no_samples(tmp_path):
    model = RiemannianLVQ(random_state=0).fit(X, Y)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.missing_channels_ == model.missing_channels_
    assert_array_equal(again.predict_proba(mixed()), model.predict_proba(mixed()))
    with np.load(tmp_path / "model.npz") as arrays:
        assert not any(np.size(arrays[name]) >= X.size for name in arrays if name != "header")


def test_a_stream_fills_by_its_prototypes():
    model = RiemannianLVQ(random_state=0).partial_fit(X, Y)
    filler = filler_of(model.prototypes_)
    assert_allclose(model.transform(mixed()), model.transform(filler.fill(mixed())))


def test_partial_fit_keeps_what_the_fit_has_learned():
    model = RiemannianLVQ(random_state=0).fit(X, Y)
    before = model.missing_channels_
    assert model.partial_fit(X[:8], Y[:8]).missing_channels_ == before


def test_a_rejection_and_an_image_take_missing_channels():
    model = RiemannianLVQ(random_state=0).fit(X, Y)
    image = mixed().reshape(2, 3, 10, 10)
    assert_array_equal(model.predict(image).ravel(), model.predict(mixed()))
    assert len(RejectOption(RiemannianLVQ(random_state=0), coverage=0.9).fit(X, Y).predict(mixed())) == 6
    image[1, 2, 0, 1] = np.nan
    with pytest.raises(PointError, match=r"X\[1, 2\] contains NaN .* no whole rows"):
        model.predict(image)


def test_chunks_keep_their_index(monkeypatch):
    monkeypatch.setattr("rplvq.arrays._samples.BUDGET_BYTES", 1 << 14)
    model, many = RiemannianLVQ(random_state=0).fit(X, Y), np.concatenate([without(X, 1)] * 3)
    assert_array_equal(model.predict(many)[:80], model.predict(without(X, 1)))
    many[200, 0, 4] = np.nan
    with pytest.raises(PointError, match=r"X\[200\]"):
        model.predict(many)


def test_samples_without_gaps_never_reach_the_filling(monkeypatch):
    model = RiemannianLVQ(random_state=0).fit(X, Y)
    monkeypatch.setattr(MissingChannels, "fill", lambda *_: pytest.fail("filled"))
    model.predict(X)


def test_fit_names_what_to_do():
    with pytest.raises(PointError, match=r"X\[0\] contains NaN.*leave the channels out of all matrices: X\[:, kept\]"):
        RiemannianLVQ().fit(without(X, 2), Y)


def test_points_without_channels_are_refused():
    vectors = RiemannianLVQ(EuclideanVectors(), max_epochs=0).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        vectors.predict([[np.nan, 1.0]])
    pairs = np.stack([X, X], axis=1)
    model = RiemannianLVQ(Product((AffineInvariant(), LogEuclidean())), max_epochs=0).fit(pairs, Y)
    assert model.missing_channels_ is None
    pairs[3, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(pairs)


def test_eeg_comes_near_a_refit_without_the_channels(real_data):
    real_data("bci2a_cov22.npz")
    gains, losses = [], []
    for subject in (3, 8):
        trials, labels, test, wanted = data.load_bci2a(subject)
        model = RiemannianLVQ(random_state=0).fit(trials, labels)
        missing = np.random.default_rng(subject).choice(22, 4, replace=False)
        kept = np.setdiff1d(np.arange(22), missing)
        refit = RiemannianLVQ(random_state=0).fit(trials[:, kept][:, :, kept], labels)
        accuracy = model.score(without(test, *missing), wanted)
        gains.append(accuracy - refit.score(test[:, kept][:, :, kept], wanted))
        plain = MissingChannels(model.missing_channels_.reference, model.missing_channels_.center)
        losses.append(accuracy - model.score(plain.fill(without(test, *missing)), wanted))
    assert np.mean(gains) > -0.03
    assert np.mean(losses) > 0
