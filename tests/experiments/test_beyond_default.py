"""The experiments of examples/beyond on the default classifier, and the tables made from their records."""

from __future__ import annotations

import numpy as np
import pytest

from examples.beyond import alternatives, default, discriminant, groups, home, more, report_more
from examples.paper import runner
from examples.paper.data import is_available
from rplvq import HeldOut, RiemannianLVQ
from rplvq.datasets import load_digits_covariances, make_syn2

pytest.importorskip("pyriemann")
pytestmark = pytest.mark.slow  # trains small experiments


@pytest.mark.parametrize(
    "module", [default, alternatives, discriminant, home, groups, more], ids=lambda module: module.__name__
)
def test_smoke_runs_through_the_runner(module, tmp_path):
    jobs = module.smoke()
    results = [record["result"] for record in runner.run(jobs, folder=tmp_path, verbose=0)]
    assert len(results) == len(jobs)
    for result in results:
        by_method = [value["accuracy"] for value in result.values() if isinstance(value, dict) and "accuracy" in value]
        assert all(0.3 < accuracy < 0.9 for accuracy in by_method or [result["accuracy"]])  # few samples and epochs
        if "behind" in result:
            difference = result["tangent space"]["accuracy"] - result["by groups"]["accuracy"]
            assert result["behind"]["difference"] == pytest.approx(difference)
            assert 0 < result["behind"]["standard_error"] < 0.05
    assert runner.pending(jobs, tmp_path) == []


def test_splits_share_no_sample_and_have_the_size_they_are_named_by():
    X, y = load_digits_covariances()
    (split,) = default.splits("digits", 100, 3)
    assert np.bincount(split.y_train).tolist() == [10] * 10
    assert len(split.y_train) + len(split.y_test) == len(y)
    both = np.concatenate([split.X_train, split.X_test]).reshape(len(y), -1)
    assert len(np.unique(both, axis=0)) == len(np.unique(X.reshape(len(y), -1), axis=0))
    (split,) = default.splits("syn2", 30, 0)
    assert (np.bincount(split.y_train.astype(int))[-4:] == 30).all()


@pytest.mark.parametrize(("data", "n_groups"), [("airsar", 20), ("eegmmi", 10), ("bci2a", 6), ("mask256", 48)])
def test_no_group_of_the_training_samples_is_tested(data, n_groups):
    if not is_available(groups.FILES[data]):
        pytest.skip(f"no {groups.FILES[data]}")
    split, own = next(groups.splits(data, 0))
    assert len(own) == len(split.y_train)
    assert len(np.unique(own)) >= n_groups
    if data == "mask256":
        assert np.unique(split.y_train, return_counts=True)[1].tolist() == [6 * 41] * 8
        assert {*np.unique(own, return_counts=True)[1]} == {41}
    trained = {sample.tobytes() for sample in split.X_train}
    assert len(trained) == len(split.y_train)
    assert not any(sample.tobytes() in trained for sample in split.X_test)


def test_the_calibration_error_of_known_probabilities():
    proba = np.array([[0.9, 0.1], [0.95, 0.05], [0.6, 0.4], [0.45, 0.55]])
    right = np.array([True, False, True, True])
    # Bins from .9, with |1 - 1.85|, from .6 with |1 - .6|, and from .5 with |1 - .55|.
    assert default.calibration_error(proba, right) == pytest.approx((0.85 + 0.4 + 0.45) / 4)


def test_shrinking_goes_from_the_class_means_to_the_trained_prototypes():
    X, y = make_syn2(n_per_class=20, random_state=0)
    trained = RiemannianLVQ(sigma2=HeldOut(("auto",)), max_epochs=5, random_state=0).fit(X, y)
    means = RiemannianLVQ(max_epochs=0).fit(X, y)
    ends = [alternatives.shrunk(trained, means, factor).prototypes_ for factor in (0.0, 1.0)]
    np.testing.assert_allclose(ends[0], means.prototypes_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ends[1], trained.prototypes_, rtol=1e-8, atol=1e-10)
    middle = alternatives.shrunk(trained, means, 0.5)
    assert np.diag(middle.transform(means.prototypes_)) == pytest.approx(np.diag(middle.transform(trained.prototypes_)))


def test_jobs_begin_with_one_repetition_of_everything():
    names = {job.experiment for job in default.jobs()}
    first = [job for job in default.jobs() if job.repetition == 0]
    assert default.jobs()[: len(first)] == first
    assert {job.experiment for job in first} == names
    assert all(
        job.settings["max_epochs"] == 3
        for module in (default, alternatives, discriminant)
        for job in module.jobs(quick=True)
    )


def test_each_way_has_its_scores_and_its_prototypes_per_class():
    (trials,) = more.splits("digits", 100, 0)
    rows = more.scored(trials, 2)
    assert {f"{metric}, {way}" for metric in more.METRICS for way in more.CHOICES} <= set(rows)
    for metric in more.METRICS:
        one, two, auto, better = (rows[f"{metric}, {way}"] for way in ("one", "two", "auto", "better on test"))
        assert (one["prototypes"], two["prototypes"]) == (1, 2)
        assert auto["prototypes"] in (1, 2)
        assert better["accuracy"] == max(one["accuracy"], two["accuracy"])


def test_gains_are_counted_against_the_default_under_the_same_metric(tmp_path):
    ways = [f"{metric}, {way}" for metric in more.METRICS for way in more.CHOICES]
    ways += [*(f"vote {name}" for name in more.VOTES), "TS + LR", "TS + SVC"]
    for (data, size), change in zip(more.NINE[:2], (0.03, -0.01), strict=True):
        scores = {way: {"accuracy": 0.5 + change * way.endswith("two"), "log_loss": 1.0} for way in ways}
        job = runner.Job(f"more-{data}-{size}", "all", 0, {}, lambda found=scores, **_: found)
        runner.run([job], folder=tmp_path, verbose=0)
    lines = report_more.summary(tmp_path).splitlines()
    assert lines[2].startswith("| two | +0.010 / -0.010 | +0.010 / -0.010 |")
    assert "| SynI, 120 per class [1] | 0.500 | 0.530 |" in report_more.by_split(tmp_path)
