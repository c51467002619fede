"""The BCI IV 2a experiments of examples/paper and their baselines."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyriemann", reason="baselines need pyriemann: pip install pyriemann")

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

from examples.paper import bci2a, bci2a_readings, tssm
from examples.paper.__main__ import RESULTS
from examples.paper.data import Split, load_bci2a
from examples.paper.runner import load, path_of, run
from rplvq import AffineInvariant
from rplvq.arrays import invsqrtm, logm
from rplvq.manifolds import riemannian_mean
from rplvq.presets import plrsq_const

pytestmark = pytest.mark.slow  # trains experiments or examples, which takes minutes in all


@pytest.fixture(scope="module")
def mixed():
    """Samples A diag(e^v) A^T of 3 classes that differ in v_1 and v_4 only, their labels, and A."""
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((6, 6))
    y = np.repeat([0, 1, 2], 30)
    logs = 0.2 * rng.standard_normal((90, 6))
    logs[:, 1] += np.array([0.0, 2.0, 0.0])[y]
    logs[:, 4] += np.array([0.0, 0.0, 2.0])[y]
    return (mixing * np.exp(logs)[:, None, :]) @ mixing.T, y, mixing


@pytest.fixture
def subject1(real_data):
    real_data("bci2a_cov22.npz")
    return load_bci2a(1)


def test_the_subspace_is_where_the_classes_differ(mixed):
    X, y, mixing = mixed
    space = tssm.DiscriminativeSubspace(2).fit(X, y)
    response = np.abs(space.components_ @ mixing)
    assert set(response.argmax(axis=1)) == {1, 4}
    others = np.delete(response, [1, 4], axis=1)
    assert others.max() < 0.1 * response.max(axis=1).min()
    assert (np.diff(space.separation_) <= 0).all()
    assert space.separation_[1] > 20 * space.separation_[2]


def test_the_projection_is_bilinear_and_keeps_matrices_positive_definite(mixed):
    X, y, _ = mixed
    space = tssm.DiscriminativeSubspace(3).fit(X, y)
    small = space.transform(X)
    assert small.shape == (90, 3, 3)
    assert np.linalg.eigvalsh(small).min() > 0
    np.testing.assert_allclose(space.transform(2 * X[:1] + X[1:2]), 2 * small[:1] + small[1:2], atol=1e-10)


@pytest.mark.parametrize("criterion", ["global", "local", "classes"])
def test_other_criteria_find_the_subspace_too(mixed, criterion):
    X, y, mixing = mixed
    space = tssm.DiscriminativeSubspace(2, criterion).fit(X, y)
    assert (np.diff(space.separation_) <= 0).all()
    found, true = np.linalg.qr(space.components_.T)[0], np.linalg.qr(np.linalg.inv(mixing).T[:, [1, 4]])[0]
    # The cosines of the angles between the two planes: exact directions are not to be expected of 90 samples.
    assert np.linalg.svd(found.T @ true, compute_uv=False).min() > 0.9


def test_the_whole_space_keeps_the_distances_of_tangent_space_lda(mixed):
    X, y, _ = mixed
    for criterion in ("means", "local"):
        small = tssm.DiscriminativeSubspace(6, criterion).fit(X, y).transform(X)
        manifold = AffineInvariant()
        np.testing.assert_allclose(
            manifold.sqdist(manifold.encode(small[:3]), manifold.encode(small)),
            manifold.sqdist(manifold.encode(X[:3]), manifold.encode(X)),
            rtol=1e-6,
            atol=1e-9,
        )


def test_readings_of_the_submanifold_are_scored(tmp_path, real_data):
    real_data("bci2a_cov22.npz")
    results = {r["method"]: r["result"] for r in run(bci2a_readings.smoke(), folder=tmp_path, verbose=0)}
    folds = {name: result["accuracy"] for name, result in results.items() if "kappa" not in result}
    results = {name: result for name, result in results.items() if name not in folds}
    assert set(folds) == {f"{m}, {s}" for m in ("MDRM", "GLRSQ") for s in ("session 1", "both sessions")}
    assert all(0.6 < accuracy < 1 for (accuracy,) in folds.values())
    assert set(results) == set(bci2a_readings.READINGS)
    assert all(0.4 < result["kappa"][0][0] < 0.9 for result in results.values())
    assert len({result["kappa"][0][0] for result in results.values()}) > 1  # the readings differ


def test_criteria_have_names(mixed):
    with pytest.raises(ValueError, match="criterion must be 'means'"):
        tssm.DiscriminativeSubspace(2, "other").fit(*mixed[:2])


@pytest.mark.parametrize("size", [0, 7])
def test_the_subspace_fits_into_the_space(mixed, size):
    with pytest.raises(ValueError, match="n_components must be 1 to 6"):
        tssm.DiscriminativeSubspace(size).fit(*mixed[:2])


def test_two_dimensions_are_enough_where_classes_differ_in_two(mixed):
    X, y, _ = mixed
    model = tssm.tssm_lda(dimensions=(1, 2), n_folds=3).fit(X[::2], y[::2])
    assert model.best_params_ == {"space__n_components": 2}
    assert model.score(X[1::2], y[1::2]) > 0.95


def test_common_spatial_patterns_find_them_too(mixed):
    X, y, _ = mixed
    model = tssm.csp_lda(filters=(2, 4), n_folds=3).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.95


def test_tangent_space_lda_is_lda_of_the_logarithms_at_the_mean(subject1):
    X, y = subject1.X_train[::3], subject1.y_train[::3]
    root = invsqrtm(riemannian_mean(AffineInvariant(), AffineInvariant().encode(X)).code)
    rows, columns = np.triu_indices(22)
    factor = np.where(rows == columns, 1.0, np.sqrt(2.0))
    train, test = (
        logm(root @ (part + part.swapaxes(1, 2)) / 2 @ root)[:, rows, columns] * factor for part in (X, subject1.X_test)
    )
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(train, y)
    model = tssm.tangent_space_lda().fit(X, y)
    assert np.mean(lda.predict(test) == model.predict(subject1.X_test)) > 0.99


def test_soft_labels_are_probabilities():
    soft = bci2a.softened(np.array(["b", "a", "b"]), 0.2)
    np.testing.assert_allclose(soft, [[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    np.testing.assert_array_equal(bci2a.softened(np.array([4, 2]), 0.0), [[0, 1], [1, 0]])


def test_recentred_sessions_have_the_identity_as_mean(mixed):
    X, y, _ = mixed
    data = bci2a.recentred(Split(X[:60], y[:60], 3 * X[60:], y[60:]))
    for part in (data.X_train, data.X_test):
        np.testing.assert_allclose(riemannian_mean(AffineInvariant(), part).code, np.eye(6), atol=1e-7)
    np.testing.assert_array_equal(data.y_test, y[60:])


def test_the_programs_annealing_is_around_sigma2():
    schedule = bci2a.TRAINED["PLRSQ-AN of the program"](2.0, 1, 50).sigma2
    assert (schedule(0, 50), schedule(50, 50)) == (2.2, pytest.approx(1.8, abs=0.1))


def test_the_class_means_reach_the_papers_kappa(real_data):
    real_data("bci2a_cov22.npz")
    result = bci2a.evaluate(repetition=0, method="MDRM", subjects=[[subject] for subject in range(1, 10)])
    assert result["mean_kappa"] == pytest.approx(0.52, abs=0.01)
    assert result["kappa"][0] == pytest.approx(0.75, abs=0.01)
    assert len(result["accuracy"]) == 9


def test_an_entry_of_the_table_is_the_preset_on_these_sessions(subject1):
    result = bci2a.evaluate(repetition=3, method="PLRSQ-Const", subjects=[[1, 1, 2, 3.5]])
    model = plrsq_const(3.5, 1, 2, random_state=3).fit(subject1.X_train, subject1.y_train)
    predicted = model.predict(subject1.X_test)
    assert result["kappa"] == [cohen_kappa_score(subject1.y_test, predicted)]
    assert result["accuracy"] == [model.score(subject1.X_test, subject1.y_test)]
    assert result["train_accuracy"] == [model.score(subject1.X_train, subject1.y_train)]


def test_recentring_helps_the_class_means_of_subject_1(subject1):
    plain, moved = (
        bci2a.evaluate(repetition=0, method=method, subjects=[[1]])["mean_kappa"]
        for method in ("MDRM", "MDRM, re-centred")
    )
    assert moved > plain


def test_selection_follows_the_folds(subject1):
    result = bci2a.select(repetition=0, method="PLRSQ-Const, S1", subject=1, **bci2a.SMALL_SELECTION)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    *values, mean = result["tried"][0]
    model = plrsq_const(*values, random_state=0)
    assert mean == cross_val_score(model, subject1.X_train, subject1.y_train, cv=folds).mean()
    best = max(row[3] for row in result["tried"])
    assert [*result["chosen"].values(), best] in result["tried"]
    model = plrsq_const(**result["chosen"], random_state=0).fit(subject1.X_train, subject1.y_train)
    assert result["accuracy"] == model.score(subject1.X_test, subject1.y_test)


def test_the_line_over_sigma2_is_made_of_the_first_trials_of_the_selection(subject1):
    result = bci2a.sigma2_line(repetition=2, method="PLRSQ-Const", sigma2=[3.5], subjects=[1], max_epochs=2)
    entry = bci2a.evaluate(repetition=2, method="PLRSQ-Const", subjects=[[1, 1, 2, 3.5]])
    assert result["kappa"] == [entry["kappa"]]


@pytest.mark.parametrize("quick", [False, True])
def test_every_job_has_a_file_of_its_own(quick):
    jobs = bci2a.jobs(quick)
    assert len({path_of("", job) for job in jobs}) == len(jobs)
    assert {job.experiment for job in jobs} == {"bci2a", "bci2a-selection", "bci2a-sigma2"}


def test_the_full_table_has_ten_seeds_at_the_papers_settings():
    jobs = [job for job in bci2a.jobs() if (job.experiment, job.method) == ("bci2a", "PLRSQ-Const")]
    assert [job.repetition for job in jobs] == list(range(10))
    assert all(job.settings == {"subjects": bci2a.PAPER_SETTINGS} for job in jobs)


def test_smoke_runs(tmp_path, subject1):
    records = {record["method"]: record["result"] for record in run(bci2a.smoke(), folder=tmp_path, verbose=0)}
    assert records["PLVQ"] == records["PLRSQ-Const"]  # from plain labels the two costs are one
    assert records["PLVQ, soft labels"] != records["PLRSQ-Const"]
    assert min(result["mean_kappa"] for result in records.values() if "mean_kappa" in result) > 0.2


def committed(method):
    """Mean kappas over the nine subjects, one per seed, from the committed records."""
    records = load(RESULTS / "full", "bci2a", method)
    if not records:
        pytest.skip(f"no results of the full run of {method}")
    assert all(len(record["result"]["kappa"]) == 9 for record in records)
    return np.array([record["result"]["mean_kappa"] for record in records])


def test_the_results_kept_reach_the_papers():
    assert committed("PLRSQ-Const").mean() > 0.575
    assert committed("PLRSQ-AN").mean() > 0.575
    assert committed("MDRM").mean() == pytest.approx(0.52, abs=0.01)
    assert committed("TSLDA").mean() == pytest.approx(0.567, abs=0.015)


@pytest.mark.parametrize("method", ["MDRM", "PLRSQ-Const"])
def test_the_results_kept_are_those_of_this_code(method, subject1):
    committed(method)
    record = load(RESULTS / "full", "bci2a", method)[0]
    again = bci2a.evaluate(repetition=0, method=method, subjects=record["settings"]["subjects"][:1])
    assert again["kappa"] == pytest.approx(record["result"]["kappa"][:1], abs=1e-9)
