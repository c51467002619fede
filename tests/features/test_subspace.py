"""CommonSubspace: the directions it keeps for every kind of lost rank, invariances, refusals, and real recordings."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh, subspace_angles
from scipy.signal import butter, sosfiltfilt
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from rplvq import CommonSubspace, Recenter, RiemannianLVQ, SPDProjection, TrialCovariances

N = 6


def matrices(seed=0, n_samples=12, n=N, is_complex=False):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(n_samples, n, 4 * n))
    roots = roots + 1j * rng.normal(size=roots.shape) if is_complex else roots
    return roots @ roots.conj().swapaxes(1, 2)


def reduced(X, maps):
    """Return ``M X M^H`` for one map M (n, n), or one per sample."""
    return maps @ X @ np.conj(np.swapaxes(maps, -1, -2))


def without(columns):
    """Return the projector (n, n) that removes the span of columns (n, k)."""
    basis = np.linalg.qr(columns)[0]
    return np.eye(len(columns)) - basis @ basis.conj().T


def sqdist(a, b):
    return np.sum(np.log(eigh(a, b, eigvals_only=True)) ** 2)


REFERENCE = without(np.ones((N, 1)))
MIXING = np.random.default_rng(1).normal(size=(N, N))
ICA = MIXING @ np.diag([0.0, 1, 1, 0, 1, 1]) @ np.linalg.inv(MIXING)
MAXWELL = np.random.default_rng(2).normal(size=(N, 3)) @ np.random.default_rng(3).normal(size=(3, N))
COPY = np.eye(N)[[0, 1, 2, 2, 4, 5]]


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("unit", [1.0, 1e-6], ids=["microvolt", "volt"])
@pytest.mark.parametrize(
    ("lost", "rank"), [(REFERENCE, 5), (ICA, 4), (MAXWELL, 3), (COPY, 5)], ids=["reference", "ica", "maxwell", "copy"]
)
def test_the_kept_directions_are_those_with_power(lost, rank, unit, is_complex):
    X = reduced(unit**2 * matrices(is_complex=is_complex), lost)
    step = CommonSubspace().fit(X)
    assert step.n_components_ == rank
    assert_allclose(step.components_.conj().T @ step.components_, np.eye(rank), atol=1e-12)
    assert subspace_angles(step.components_, lost)[:rank].max() < 1e-7  # the range of the map
    assert_allclose(np.abs(step.components_.conj().T @ step.dropped_), 0, atol=1e-12)
    assert_allclose(step.missing_, 1.0)
    small = step.transform(X)
    assert np.linalg.eigvalsh(small).min() > 1e-4 * unit**2
    assert_allclose(step.inverse_transform(small), X, atol=1e-12 * np.abs(X).max())
    mean = np.mean(small / np.trace(small, axis1=1, axis2=2).real[:, None, None], axis=0)
    assert_allclose(mean, np.diag(np.sort(np.diagonal(mean).real)[::-1]), atol=1e-10)


def test_distances_are_those_of_the_signals_that_are_left():
    """Dropping any one channel of average-referenced signals gives the same affine-invariant distances."""
    X = reduced(matrices(), REFERENCE)
    small = CommonSubspace().fit_transform(X)
    for channel in (0, 3):
        kept = np.delete(np.arange(N), channel)
        others = X[:, kept][:, :, kept]
        assert_allclose(sqdist(small[0], small[1]), sqdist(others[0], others[1]), rtol=1e-9)


def test_complete_matrices_pass_unchanged():
    X = matrices()
    step = CommonSubspace().fit(X)
    assert_array_equal(step.transform(X), X)
    assert str(step) == "CommonSubspace keeps 6 of 6 directions"
    assert step.get_feature_names_out(list("abcdef")).tolist() == list("abcdef")
    assert str(clone(step)) == "CommonSubspace()"


def test_one_subject_has_another_rank():
    X = reduced(matrices(), REFERENCE)
    X[9:] = reduced(X[9:], without(np.c_[np.ones(N), np.eye(N)[0]]))
    step = CommonSubspace().fit(X)
    assert step.n_components_ == 4
    assert_allclose(step.missing_, [1.0, 0.25])
    assert_allclose(np.abs(step.dropped_[:, 0]), 1 / np.sqrt(N))
    assert str(step).endswith("keeps 4 of 6 directions; 25 % to 100 % of the samples have no power in the 2 other(s)")
    smallest = np.sort(np.linalg.eigvalsh(X), axis=1)[np.arange(12), np.r_[np.full(9, 1), np.full(3, 2)]]
    assert (np.linalg.eigvalsh(step.transform(X))[:, 0] >= smallest * (1 - 1e-9)).all()


def test_subjects_have_lost_different_directions():
    """One component of each of three subjects: their ranks leave 5 directions, and their ranges share 3."""
    X = matrices()
    for subject in range(3):
        direction = np.random.default_rng(subject).normal(size=(N, 1))
        X[4 * subject : 4 * subject + 4] = reduced(X[4 * subject : 4 * subject + 4], without(direction))
    step = CommonSubspace().fit(X)
    assert 3 <= step.n_components_ <= 5
    lowest = np.linalg.eigvalsh(step.transform(X))[:, 0]
    assert (lowest >= 0.01 * np.linalg.eigvalsh(X)[:, 1]).all()
    orthogonal = matrices()
    for subject in range(3):
        one = np.eye(N)[:, [subject]]
        orthogonal[4 * subject : 4 * subject + 4] = reduced(orthogonal[4 * subject : 4 * subject + 4], without(one))
    step = CommonSubspace().fit(orthogonal)  # e1, e2 and e3 are lost, and their sum is in no null space
    assert 3 <= step.n_components_ <= 5
    assert (np.linalg.eigvalsh(step.transform(orthogonal))[:, 0] >= 0.01 * np.linalg.eigvalsh(orthogonal)[:, 1]).all()


def test_weights_choose_the_samples():
    X = reduced(matrices(), REFERENCE)
    X[0] = np.zeros((N, N)) + np.eye(N)[:, [0]] @ np.eye(N)[[0]]
    weights = np.r_[0.0, np.ones(11)]
    step = CommonSubspace().fit(X, sample_weight=weights)
    alone = CommonSubspace().fit(X[1:])
    assert_allclose(step.components_, alone.components_, atol=1e-12)
    loud = CommonSubspace(1).fit(X, sample_weight=np.r_[0.0, np.full(10, 1e-9), 1.0])
    top = np.linalg.eigh(X[11])[1][:, -1]
    assert abs(top @ loud.components_[:, 0]) > 1 - 1e-6


def test_the_rank_may_be_given():
    X = reduced(matrices(), REFERENCE)
    assert CommonSubspace({"mag": 2, "grad": 1}).fit(X).n_components_ == 3
    step = CommonSubspace(2).fit(X)
    mean = np.mean(X / np.trace(X, axis1=1, axis2=2)[:, None, None], axis=0)
    assert subspace_angles(step.components_, np.linalg.eigh(mean)[1][:, -2:]).max() < 1e-7
    assert CommonSubspace(tol=0.5).fit(matrices()).n_components_ < N


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rounded_signals_have_the_same_rank(dtype):
    """Rounding to single precision leaves a little power in the lost direction."""
    trials = np.random.default_rng(0).normal(size=(10, N, 100))
    trials = (trials - trials.mean(axis=1, keepdims=True)).astype(dtype)
    X = TrialCovariances().fit_transform(trials)
    tol = 1e-12 if dtype == np.float32 else 1e-5
    assert CommonSubspace(tol=tol).fit(X).n_components_ == N - 1


NAN = matrices()
NAN[3, 0, 1] = NAN[3, 1, 0] = np.nan
SPLIT = np.stack([np.diag([1.0, 0.0]), np.diag([0.0, 1.0])])
REFUSED = {
    "nan": ({}, NAN, r"X\[3\] contains NaN"),
    "sign": ({}, -matrices(), r"X\[0\] is not positive semidefinite.*check the sign"),
    "zero": ({}, np.zeros((2, 3, 3)), r"X\[0\] is not positive semidefinite, or zero"),
    "nothing in common": ({}, SPLIT, "share 0 of 2 directions"),
    "rank": ({"n_components": 6}, reduced(matrices(), REFERENCE), r"n_components=6, but X\[0\] has rank 5"),
    "no count": ({"n_components": 0}, matrices(), "n_components must be an integer of at least 1"),
    "tolerance": ({"tol": 1.0}, matrices(), "tol must be a number from 0 to below 1"),
    "trials": ({}, np.ones((3, 2, 9)), "TrialCovariances"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_fit(name):
    params, X, message = REFUSED[name]
    step = CommonSubspace().fit(matrices())
    before = step.components_
    with pytest.raises(ValueError, match=message):
        step.set_params(**params).fit(X)
    assert step.components_ is before


def test_new_samples():
    X = reduced(matrices(), REFERENCE)
    step = CommonSubspace().fit(X)
    raw = matrices(5)
    assert_allclose(step.transform(raw), step.transform(reduced(raw, REFERENCE)), rtol=1e-9, atol=1e-9)
    poorer = X.copy()
    poorer[4] = reduced(X[4], without(np.eye(N)[:, :2]))
    with pytest.raises(ValueError, match=r"X\[4\] is not positive definite in the common subspace of 5 .*n_components"):
        step.transform(poorer)
    with pytest.raises(ValueError, match="X has 5 features, but CommonSubspace is expecting 6"):
        step.transform(matrices(n=5))
    with pytest.raises(ValueError, match="size 5, got shape"):
        step.inverse_transform(raw)


def test_mixed_units_are_told():
    X = reduced(matrices(), REFERENCE) * np.outer(scale := np.r_[1e-5, np.ones(5)], scale)
    with pytest.warns(UserWarning, match="directions were dropped by their power. Channels 0 and .* scale all"):
        CommonSubspace(3).fit(X)


def test_trials_of_few_samples_need_shrinkage():
    trials = np.random.default_rng(0).normal(size=(200, 8, 6))
    with pytest.warns(UserWarning, match="have rank 6 or more, and share . directions: .*'oas'"):
        make_pipeline(TrialCovariances(), CommonSubspace()).fit(trials)
    assert make_pipeline(TrialCovariances("oas"), CommonSubspace()).fit(trials)[1].n_components_ == 8


def test_names_and_tables_in_pipelines():
    X = reduced(matrices(), REFERENCE)
    y = np.tile([0, 1], 6)
    steps = make_pipeline(Recenter(), SPDProjection(n_components=2)).set_output(transform="pandas")
    small = steps.fit_transform(matrices(), y)
    assert isinstance(small, np.ndarray)
    assert steps.get_feature_names_out().tolist() == ["spdprojection0", "spdprojection1"]
    assert CommonSubspace().fit(X).get_feature_names_out().tolist() == [f"commonsubspace{i}" for i in range(5)]


@pytest.mark.parametrize(
    "metric", ["affine_invariant", "log_euclidean", "log_cholesky", "bures_wasserstein", "tangent"]
)
def test_every_metric_learns_after_it(metric):
    X = reduced(matrices(n_samples=20), REFERENCE)
    y = np.tile([0, 1], 10)
    X[y == 1] *= 5.0
    with pytest.raises(ValueError, match=r"in this order: Restore the rank: rplvq.CommonSubspace\(\)"):
        RiemannianLVQ(metric).fit(X, y)
    model = make_pipeline(CommonSubspace(), RiemannianLVQ(metric, max_epochs=0)).fit(X, y)
    assert model.score(X, y) > 0.9


def test_recorded_trials_with_an_average_reference_score_as_well(real_data):
    """They score as the original ones, and exactly as without any one channel, which has the same distances."""
    with np.load(real_data("eegmmi_s001_raw.npz"), allow_pickle=False) as data:
        kept = np.isin(data["y"], ["left fist", "right fist"])
        trials, y = 1e-6 * data["unit_microvolt"] * data["trials"][kept], data["y"][kept]
    trials = sosfiltfilt(butter(4, (8, 30), "bandpass", fs=160, output="sos"), trials)[..., 80:480]
    referenced = trials - trials.mean(axis=1, keepdims=True)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
    plain = make_pipeline(TrialCovariances(), RiemannianLVQ(max_epochs=0))
    reduced_model = make_pipeline(TrialCovariances(), CommonSubspace(), RiemannianLVQ(max_epochs=0))
    scores = cross_val_score(reduced_model, referenced, y, cv=folds)
    assert abs(scores.mean() - cross_val_score(plain, trials, y, cv=folds).mean()) < 0.01
    assert_array_equal(scores, cross_val_score(plain, referenced[:, 1:], y, cv=folds))
    grid = {"trialcovariances__shrinkage": [0.0, "oas"]}
    assert GridSearchCV(reduced_model, grid, cv=2).fit(referenced, y).best_estimator_[1].n_components_ in {21, 22}


@pytest.mark.parametrize("subject", [1, 3])
def test_average_referenced_bci_2a_scores_as_well(subject, real_data, unpack_symmetric):
    with np.load(real_data("bci2a_cov22.npz"), allow_pickle=False) as data:
        X, y = unpack_symmetric(data[f"s{subject}_cov"], 22), data[f"s{subject}_y"]
    referenced = reduced(X, without(np.ones((22, 1))))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = RiemannianLVQ(max_epochs=0)
    expected = cross_val_score(model, X, y, cv=folds).mean()
    assert (
        abs(cross_val_score(make_pipeline(CommonSubspace(), model), referenced, y, cv=folds).mean() - expected) < 0.01
    )
