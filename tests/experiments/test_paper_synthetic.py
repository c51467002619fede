"""The synthetic experiments of examples/paper: training data of each method, selection, curves."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from scipy.stats import wilcoxon
from sklearn.utils import check_random_state

from examples.paper import synthetic, synthetic_readings
from examples.paper.__main__ import RESULTS
from examples.paper.runner import load, path_of, run
from examples.paper.selection import coordinate_search
from examples.paper.synthetic_curves import POWERS, convergence, sigma2_curve
from examples.paper.synthetic_methods import METHODS, draw, settings_of
from rplvq import Annealed, GeometricDecay, RiemannianLVQ, StepSize
from rplvq.datasets import make_syn2, random_bases
from rplvq.presets import plrsq_annealed, plrsq_const

pytestmark = pytest.mark.slow  # trains experiments or examples, which takes minutes in all

SMALL = {"problem": "syn2", "n_per_class": 20}
TRAINED = {"sigma2": 0.5, "prototypes_per_class": 2, "max_epochs": 2}


@pytest.fixture(scope="module")
def problem():
    return draw("syn2", 3, 20)


def test_the_parts_of_a_problem_share_their_bases_and_nothing_else(problem):
    rng = check_random_state(3)
    bases = random_bases(10, random_state=rng)
    X, y = make_syn2(20, bases=bases, random_state=rng)
    np.testing.assert_array_equal(problem.X, X)
    np.testing.assert_array_equal(problem.y, y)
    assert not np.isin(problem.X, problem.X_validation).any()
    assert not np.isin(problem.X_validation, problem.X_test).any()


def test_a_repetition_is_its_seed(problem):
    np.testing.assert_array_equal(draw("syn2", 3, 20).X_test, problem.X_test)
    assert not np.array_equal(draw("syn2", 4, 20).X_test, problem.X_test)


@pytest.mark.parametrize(("method", "metric"), [("MDRM", "affine_invariant"), ("LE-MDM", "log_euclidean")])
def test_class_means_learn_from_training_and_validation_data(problem, method, metric):
    result = synthetic.table_entry(repetition=3, method=method, **SMALL)
    X, y = np.concatenate([problem.X, problem.X_validation]), np.concatenate([problem.y, problem.y_validation])
    means = RiemannianLVQ(metric, max_epochs=0).fit(X, y)
    assert result["accuracy"] == means.score(problem.X_test, problem.y_test)
    assert result["validation_accuracy"] == means.score(problem.X_validation, problem.y_validation)


@pytest.mark.parametrize("method", ["PLRSQ-Const", "PLRSQ-AN", "RSLVQ"])
def test_the_others_learn_from_training_data_alone(problem, method):
    result = synthetic.table_entry(repetition=3, method=method, **SMALL, **TRAINED)
    model = METHODS[method](**TRAINED, random_state=3).fit(problem.X, problem.y)
    assert result["accuracy"] == model.score(problem.X_test, problem.y_test)
    assert result["train_accuracy"] == model.score(problem.X, problem.y)
    assert result["kappa"] == pytest.approx((result["accuracy"] - 0.25) / 0.75)  # balanced classes


@pytest.mark.filterwarnings("ignore:steps were cut")  # two hundred times the step, to see a difference at once
def test_the_rate_multiplies_the_papers_step(problem):
    usual, double = (
        synthetic.table_entry(repetition=3, method="PLRSQ-Const, remark", rate=rate, **SMALL, **TRAINED)
        for rate in (1.0, 20.0)
    )
    model = plrsq_const(
        **TRAINED, step_size=StepSize(GeometricDecay(20 * 10 * 2 / 100), max_weight=None), random_state=3
    )
    assert double["accuracy"] == model.fit(problem.X, problem.y).score(problem.X_test, problem.y_test)
    assert double["accuracy"] != usual["accuracy"]


def test_selection_takes_what_is_best_on_the_validation_data(problem):
    result = synthetic.select(repetition=3, method="PLRSQ-AN", **SMALL, **synthetic.SMALL_SELECTION)
    tried = result["tried"]
    assert tried[0][:3] == list(synthetic.SMALL_SELECTION["start"].values())
    assert result["validation_accuracy"] == max(row[3] for row in tried)
    assert list(result["chosen"].values()) in [row[:3] for row in tried if row[3] == result["validation_accuracy"]]
    model = plrsq_annealed(**result["chosen"], random_state=3).fit(problem.X, problem.y)
    assert model.score(problem.X_validation, problem.y_validation) == result["validation_accuracy"]
    assert model.score(problem.X_test, problem.y_test) == result["accuracy"]


def test_the_search_goes_on_from_the_best_so_far():
    calls = []

    def score(a, b, c):
        calls.append((a, b, c))
        return -((a - 3) ** 2) - (b - 1) ** 2 + 0 * c

    grid = {"a": [1, 2, 3], "b": [0, 1], "c": [7, 8]}
    found = coordinate_search(score, grid, {"a": 2, "b": 0, "c": 8})
    assert calls == [(2, 0, 8), (1, 0, 8), (3, 0, 8), (3, 1, 8), (3, 1, 7)]
    assert found.chosen == {"a": 3, "b": 1, "c": 8}  # of equals the earlier stays
    assert found.tried == [[*call, score(*call)] for call in calls[:5]]
    with pytest.raises(ValueError, match="b=5"):
        coordinate_search(score, grid, {"a": 2, "b": 5, "c": 8})


def test_a_curve_over_sigma2_is_made_of_entries_of_the_table():
    others = {"prototypes_per_class": 2, "max_epochs": 10}
    curve = sigma2_curve(repetition=3, method="PLRSQ-Const, a remark", sigma2=[0.5, 50.0], **SMALL, **others)
    entries = [
        synthetic.table_entry(repetition=3, method="PLRSQ-Const", sigma2=variance, **SMALL, **others)
        for variance in curve["sigma2"]
    ]
    for name in ("accuracy", "validation_accuracy", "train_accuracy"):
        assert curve[name] == [entry[name] for entry in entries]
    assert curve["train_accuracy"][0] > curve["train_accuracy"][1]  # so wide a mixture separates less


@pytest.mark.parametrize("method", list(POWERS))
def test_convergence_is_that_of_the_same_training(problem, method):
    curve = convergence(repetition=3, method=method, **SMALL, **TRAINED | {"max_epochs": 4})
    power = POWERS[method]
    schedule = 0.5 if power is None else Annealed(0.5, power=power)
    expected = [0.5 if power is None else schedule(epoch, 4) for epoch in range(5)]
    assert curve["epoch"] == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(curve["sigma2"], expected, rtol=1e-5)
    for epochs in (0, 4):  # the schedule of the step size depends on the number of epochs, but not its start
        model = plrsq_const(schedule, 2, epochs, random_state=3).fit(problem.X, problem.y)
        assert curve["test_error"][epochs] == pytest.approx(1 - model.score(problem.X_test, problem.y_test), abs=1e-5)
        assert curve["training_error"][epochs] == pytest.approx(1 - model.score(problem.X, problem.y), abs=1e-5)
        own = model.predict_log_proba(problem.X)[np.arange(80), problem.y]
        assert curve["cost"][epochs] == pytest.approx(-own.sum(), rel=1e-5)


def test_settings_of_the_table():
    assert settings_of("MDRM", "syn1") == {}
    assert settings_of("PLRSQ-AN", "syn1") == settings_of("Log-Euclidean PLRSQ-AN", "syn1")
    assert settings_of("PLRSQ-AN", "syn2")["sigma2"] == 0.45
    assert "sigma2" not in settings_of("GMLVQ", "syn2")


@pytest.mark.parametrize("quick", [False, True])
def test_every_job_has_a_file_of_its_own(quick):
    jobs = synthetic.jobs(quick)
    assert len({path_of("", job) for job in jobs}) == len(jobs)
    kinds = {job.experiment for job in jobs}
    assert kinds == {a + b for a in ("syn1", "syn2") for b in ("", "-step", "-grid", "-curves", "-selection")}


def test_the_full_table_has_thirty_repetitions_and_the_quick_one_less():
    full, quick = (
        [job for job in synthetic.jobs(quick) if (job.experiment, job.method) == ("syn1", "PLRSQ-AN")]
        for quick in (False, True)
    )
    assert [job.repetition for job in full] == list(range(30))
    assert len(quick) < 5
    assert quick[0].settings["max_epochs"] < full[0].settings["max_epochs"]


def test_smoke_runs_and_is_not_run_twice(tmp_path):
    pytest.importorskip("examples.paper.gmlvq")
    jobs = synthetic.smoke()
    records = run(jobs, folder=tmp_path, verbose=0)
    assert {job.method for job in jobs if job.experiment == "syn1"} == set(METHODS)
    accuracies = [record["result"]["accuracy"] for record in records if record["experiment"] == "syn1"]
    assert min(accuracies) > 0.7  # chance is 0.25; even few samples and epochs are far above
    silent = [attrs.evolve(job, call=None) for job in jobs]
    assert run(silent, folder=tmp_path, verbose=0) == records


def test_the_grid_holds_every_combination_of_the_paper_once():
    grid = [job for job in synthetic.jobs() if (job.experiment, job.repetition) == ("syn2-grid", 29)]
    combinations = {(job.settings["prototypes_per_class"], job.settings["max_epochs"]) for job in grid}
    assert combinations == {(k, t) for k in (1, 2, 3) for t in (20, 50, 100)}
    assert len(grid) == 2 * 9  # both versions of the method
    assert all(len(job.settings["sigma2"]) == 20 for job in grid)


def test_a_reading_that_describes_the_data_as_the_library_does_scores_the_same():
    rng = np.random.RandomState(0)
    X, y = synthetic_readings.draw_reading(rng, np.eye(10), 400)
    expected, labels = make_syn2(400, bases=np.stack([np.eye(10)] * 2), random_state=1)
    for label in range(4):
        spectra = [np.linalg.eigvalsh(part[codes == label]) for part, codes in ((X, y), (expected, labels))]
        np.testing.assert_allclose(spectra[0].mean(axis=0), spectra[1].mean(axis=0), atol=0.02)
        np.testing.assert_allclose(spectra[0].min(axis=0), spectra[1].min(axis=0), atol=0.02)
        means = [part[codes == label].mean(axis=0) for part, codes in ((X, y), (expected, labels))]
        np.testing.assert_allclose(means[0], means[1], atol=0.2)


def test_readings_change_the_score_of_the_class_means(tmp_path):
    records = run(synthetic_readings.smoke(), folder=tmp_path, verbose=0)
    scores = {record["method"]: record["result"]["accuracy"] for record in records}
    assert set(scores) == set(synthetic_readings.READINGS)
    assert scores["one basis for all samples, without noise"] == 1.0
    assert scores["classes as arithmetic means"] < scores["as described"]


def committed(method):
    """Accuracies of the 30 repetitions of SynI from the committed records."""
    records = load(RESULTS / "full", "syn1", method)
    if [record["repetition"] for record in records] != list(range(30)):
        pytest.skip(f"results of the full run are incomplete: {len(records)} of 30 of {method}")
    return np.array([record["result"]["accuracy"] for record in records])


@pytest.mark.parametrize("method", ["PLRSQ-Const", "PLRSQ-AN"])
def test_in_the_results_kept_training_beats_the_class_means_on_syn1(method):
    difference = committed(method) - committed("MDRM")
    assert difference.mean() > 0
    assert wilcoxon(np.round(difference, 6)).pvalue < 0.01


@pytest.mark.parametrize("method", ["MDRM", "Log-Euclidean PLRSQ"])
def test_the_results_kept_are_those_of_this_code(method):
    kept = committed(method)[0]
    (job,) = [job for job in synthetic.jobs() if (job.experiment, job.method, job.repetition) == ("syn1", method, 0)]
    again = job.call(repetition=0, method=method, **job.settings)["accuracy"]
    assert again == pytest.approx(kept, abs=1e-9)
