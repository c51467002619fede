"""Averaged prototypes: the mean by hand and by other formulas, the way on, persistence, misuse."""

from __future__ import annotations

import numpy as np
import pytest
from cases import EVERY, made
from problems import spd_classes, vector_classes
from rplvq.training._averaging import geodesic_step
from sklearn.base import clone

from rplvq import (
    AffineInvariant,
    Averaging,
    Checkpoint,
    Constant,
    LearnedLogEuclidean,
    LogEuclidean,
    RiemannianLVQ,
    load_model,
)
from rplvq.arrays import expm, logm

X, Y = spd_classes(per_class=8, n_classes=3)


def model(**settings):
    settings = {"sigma2": 1.0, "step_size": Constant(0.2), "max_epochs": 6, "random_state": 0} | settings
    return RiemannianLVQ(**settings)


def iterates(base):
    """Prototypes after each epoch of the same steps, without averaging."""
    seen, plain = [], clone(base).set_params(average=False)
    plain.set_params(callbacks=[lambda report: seen.append(np.array(report.state.prototypes))]).fit(X, Y)
    return seen


def test_log_euclidean_means_are_means_of_logarithms():
    base = model(manifold="log_euclidean", average=Averaging(0.4))
    logs = iterates(base)[2:]  # epochs 3 to 6 of 6
    np.testing.assert_allclose(base.fit(X, Y).prototypes_, expm(np.mean(logs, axis=0)), rtol=1e-10)


def test_affine_invariant_means_follow_geodesics():
    base = model(average=Averaging(0.5))
    mean, *others = iterates(base)[3:]
    for t, other in enumerate(others, start=2):
        root = expm(0.5 * logm(mean))
        inverse = np.linalg.inv(root)
        mean = root @ expm(logm(inverse @ other @ inverse) / t) @ root
    np.testing.assert_allclose(base.fit(X, Y).prototypes_, mean, rtol=1e-9)


def test_steps_do_not_see_the_mean():
    base = model(average=True)
    kept = base.fit(X, Y)._state.trail
    np.testing.assert_allclose(np.asarray(kept.iterate), iterates(base)[-1], rtol=1e-12)
    assert kept.n_averaged == 3
    plain = model().fit(X, Y)
    assert np.array_equal(base.history_["cost"], plain.history_["cost"])


def test_before_its_start_nothing_is_averaged():
    late = model(average=Averaging(0.99), max_epochs=3).fit(X, Y)
    assert np.array_equal(late.prototypes_, model(max_epochs=3).fit(X, Y).prototypes_)
    assert late._state.trail.n_averaged == 1
    assert model(average=True, max_epochs=0).fit(X, Y)._state.trail is None


@EVERY
def test_a_geodesic_step_shortens_the_distance_by_its_share(case):
    manifold, codes = made(case, count=6)
    moved = geodesic_step(manifold, codes[:3], codes[3:], 0.25)
    far, left = (manifold.sqdist(start, codes[3:]).diagonal() for start in (codes[:3], moved))
    np.testing.assert_allclose(left, 0.75**2 * far, rtol=1e-7)


def test_averaging_takes_out_the_noise_of_large_steps():
    data = vector_classes(per_class=60, n_classes=3, shift=0.7)
    settings = {"manifold": "euclidean_vectors", "monitor": "epoch", "max_epochs": 20}
    noisy = model(**settings).fit(*data).history_["cost"][-1]
    assert model(**settings, average=True).fit(*data).history_["cost"][-1] < 0.99 * noisy


def test_a_saved_model_goes_on_as_it_would_have(tmp_path):
    first = model(average=Averaging(0.3), step_size="adaptive")
    for _ in range(4):
        first.partial_fit(X, Y)
    first.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert np.array_equal(first.partial_fit(X, Y).prototypes_, again.partial_fit(X, Y).prototypes_)
    assert again._state.trail.n_averaged == first._state.trail.n_averaged == 4
    for _ in range(1):
        again.partial_fit(X, Y)
    np.testing.assert_allclose(again.prototypes_, clone(first).fit(X, Y).prototypes_, rtol=1e-10)


def test_a_checkpoint_goes_on_as_it_would_have(tmp_path):
    path = tmp_path / "fit.npz"

    def interrupt(report):
        if report.state.epoch == 5:
            raise RuntimeError("stop")

    base = model(average=True, step_size="adaptive")
    with pytest.raises(RuntimeError, match="stop"):
        clone(base).set_params(callbacks=[Checkpoint(path), interrupt]).fit(X, Y)
    resumed = clone(base).set_params(callbacks=[Checkpoint(path)]).fit(X, Y, resume=path)
    assert np.array_equal(resumed.prototypes_, base.fit(X, Y).prototypes_)


def test_early_stopping_scores_the_average():
    stopped = model(average=Averaging(0.0), early_stopping=True, max_epochs=8, validation_fraction=0.3).fit(X, Y)
    assert np.isfinite(stopped.history_["validation_cost"]).all()
    assert stopped.score(X, Y) > 0.5


@pytest.mark.parametrize("value", [-0.1, 1.0, "half", None, True])
def test_a_bad_start_is_refused(value):
    with pytest.raises(ValueError, match="start must be a number from 0 to below 1"):
        Averaging(value)


def test_a_learned_metric_has_no_mean():
    with pytest.raises(ValueError, match="average=True has no mean of the metric"):
        model(manifold=LearnedLogEuclidean(), average=True).fit(X, Y)
    assert model(manifold=LearnedLogEuclidean(rate=0), average=True, max_epochs=2).fit(X, Y).n_epochs_ == 2


def test_fields_are_parameters():
    assert model(average=Averaging()).set_params(average__start=0.1).average == Averaging(0.1)


def test_the_mean_of_equal_prototypes_stays():
    for manifold in (AffineInvariant(), LogEuclidean()):
        codes = manifold.encode(X[:4])
        np.testing.assert_allclose(geodesic_step(manifold, codes, codes, 0.3), codes, rtol=1e-10, atol=1e-12)
