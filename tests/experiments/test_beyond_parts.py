"""The experiments of examples/beyond on costs, geometries and dimension reduction, and their tables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

from examples.beyond import costs, geometries, own_sigma2, problems, reduction, reference, report_parts
from examples.paper import data, records, runner
from rplvq import RSLVQ, AffineInvariant, CommonSubspace, RiemannianLVQ
from rplvq.datasets import make_syn2

pytestmark = pytest.mark.slow  # trains experiments or examples, which takes minutes in all

needs_eegmmi = pytest.mark.skipif(not data.is_available("eegmmi_s001_raw.npz"), reason="needs eegmmi_s001_raw.npz")
needs_bci = pytest.mark.skipif(not data.is_available("bci2a_cov22.npz"), reason="needs bci2a_cov22.npz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records of the smoke runs of costs and geometries, under the name of a data set that the tables show."""
    found = tmp_path_factory.mktemp("results")
    runner.run(costs.smoke() + geometries.smoke(), folder=found, verbose=0)
    assert runner.pending(costs.smoke() + geometries.smoke(), found) == []
    for part in ("costs", "geometries"):
        for record in runner.load(found, f"{part}-digits"):
            records.save(found, record | {"experiment": f"{part}-syn1"})
    return found


@pytest.mark.parametrize("module", [costs, geometries], ids=["costs", "geometries"])
def test_smoke_trains_every_method_through_the_runner(module, folder):
    found = runner.load(folder, f"{module.__name__.rsplit('.', 1)[1]}-syn1")
    results = {record["method"]: record["result"] for record in found}
    assert set(results) == set(module.METHODS)
    accuracies = [result["accuracy"] for result in results.values()]
    assert min(accuracies) > 0.6
    assert len(set(accuracies)) >= 4


@needs_bci
def test_a_projection_is_learned_alone_and_with_the_prototypes(tmp_path):
    results = {r["method"]: r["result"] for r in runner.run(reduction.smoke(), folder=tmp_path, verbose=0)}
    assert list(results) == list(reduction.METHODS)
    assert min(result["mean_kappa"] for result in results.values()) > 0.5
    assert results["8, pipeline"]["kappa"] != results["8, jointly"]["kappa"]


@pytest.mark.parametrize("module", [costs, geometries, reduction], ids=["costs", "geometries", "reduction"])
def test_jobs_have_files_of_their_own_and_equal_counts(module):
    jobs = module.jobs()
    assert len({runner.path_of("", job) for job in jobs}) == len(jobs)
    counts = Counter((job.experiment, job.method) for job in jobs)
    for experiment in {job.experiment for job in jobs}:
        assert len({counts[experiment, method] for method in module.METHODS}) == 1
    assert all(job.settings["max_epochs"] <= 4 for job in module.jobs(quick=True))


def test_the_spread_cost_has_a_variance_for_each_class_and_their_geometric_mean():
    X, y = make_syn2(n_per_class=15, random_state=0)
    cost, sigma2 = costs.spread_cost(X, y)
    assert len(cost.variances) == 4
    assert sigma2 == pytest.approx(float(np.exp(np.mean(np.log(cost.variances)))))
    named, _ = costs.spread_cost(X, np.array(list("abcd"))[y])
    assert named.variances == cost.variances


def test_joint_prototypes_are_those_of_the_projection_made_small():
    X, y = make_syn2(n_per_class=12, random_state=0)
    short = RiemannianLVQ(max_epochs=1, random_state=0)
    projection = reduction.SPDProjection(3, n_alternations=1, max_iter=2, classifier=short)
    joint = reduction.Joint(projection).fit(X, y)
    assert joint.model.prototypes_.shape == (4, 3, 3)
    V = projection.components_
    np.testing.assert_allclose(joint.model.prototypes_, V.T @ projection.prototypes_ @ V, rtol=1e-8)
    assert joint.score(X, y) == np.mean(joint.predict(X) == y)


def test_scores_of_one_split_are_numbers_and_absent_data_are_left_out(monkeypatch):
    seen = []

    def score(split, settings):
        seen.append(settings)
        return {"accuracy": float(len(split.y_test))}

    assert problems.score_each(score, "digits", 0, [], {"sigma2": 1.0}) == {"accuracy": 899.0}
    assert seen == [{"sigma2": 1.0}]
    monkeypatch.setattr(problems, "is_available", lambda name: False)
    assert list(problems.cells({"syn1": 2, "bci2a": 1}, ["a", "b"])) == [
        ("syn1", repetition, method) for repetition in (0, 1) for method in "ab"
    ]


@needs_bci
def test_scores_of_subjects_are_lists_with_their_means_and_settings_of_their_own():
    def score(split, settings):
        return {"kappa": settings["sigma2"] * settings.get("prototypes_per_class", 10)}

    found = problems.score_each(score, "bci2a", 0, [[1, 2, 0.5], [2, 4, 1.5]], {"sigma2": 9.0})
    assert found == {"kappa": [1.0, 6.0], "mean_kappa": 3.5}
    assert problems.score_each(score, "bci2a", 0, [[1]], {"sigma2": 0.1})["kappa"] == [1.0]


def test_tests_on_subjects_pair_their_means_over_the_seeds():
    found = report_parts.over_subjects({"a": {0: [0.1, 0.5], 1: [0.3, 0.7]}})
    assert found == {"a": {1: pytest.approx(0.2), 2: pytest.approx(0.6)}}


def test_tables_hold_what_the_records_say(folder):
    assert "\n| RSLVQ, the paper's | 0." in report_parts.costs(folder)
    assert "**" not in report_parts.costs(folder)  # one repetition is too few for a difference
    lines = report_parts.geometries(folder).splitlines()
    assert len(lines) == 2 + len(geometries.METHODS)
    assert lines[2].startswith("| AffineInvariant | 0.")


def test_the_derivative_of_the_loss_by_log_sigma2_is_that_of_differences():
    rng = np.random.default_rng(0)
    sqdist = rng.uniform(0.5, 4.0, size=(20, 3))
    targets = rng.integers(0, 2, size=20)
    labels = np.array([0, 1, 1])
    losses = [RSLVQ()(sqdist, targets, labels, 0.7 * np.exp(h)).loss.mean() for h in (1e-5, -1e-5)]
    expected = (losses[0] - losses[1]) / 2e-5
    assert own_sigma2.derivative(sqdist, targets, labels, 0.7) == pytest.approx(expected, rel=1e-6)


def test_a_learned_sigma2_moves_and_that_of_the_rule_stays(tmp_path):
    (record,) = runner.run(own_sigma2.smoke(), folder=tmp_path, verbose=0)
    found = record["result"]
    assert found["rule"]["factor"] == 1
    assert abs(found["learned, rate 1"]["factor"] - 1) > abs(found["learned, rate 0.1"]["factor"] - 1) > 0
    assert all(0.3 < found[way]["accuracy"] < 0.9 for way in ("default", "rule", "learned, rate 1"))
    assert len(report_parts.own_sigma2(tmp_path).splitlines()) == 3


def test_inputs_without_a_direction_have_one_size_less_and_equal_distances_in_any_basis():
    rng = np.random.default_rng(0)
    trials = rng.normal(size=(6, 5, 40))
    plain, referenced = (own @ own.mT / 40 for own in (trials, trials - trials.mean(axis=1, keepdims=True)))
    found = reference.inputs(plain, referenced, 0)
    assert [own.shape[1] for own in found.values()] == [5, 5, 4, 4]
    metric = AffineInvariant()
    samples = found["Helmert"], CommonSubspace().fit_transform(referenced)
    first, second = (metric.sqdist(metric.encode(own), metric.encode(own)) for own in samples)
    assert_allclose(second, first, rtol=1e-8, atol=1e-12)
    assert first[0, 1] > 0.1
    assert np.all(np.linalg.eigvalsh(found["random"]) > 0)


@needs_eegmmi
def test_an_average_reference_is_scored_by_run(tmp_path):
    (record,) = runner.run(reference.smoke(), folder=tmp_path, verbose=0)
    found = record["result"]
    assert len(found) == len(reference.INPUTS) * len(reference.CLASSIFIERS)
    assert {len(scores) for scores in found.values()} == {6}  # two fists are in half of the twelve runs
    assert min(np.mean(scores) for scores in found.values()) > 0.6
    assert found["class means, Helmert"] == found["class means, common subspace"]
    assert len(report_parts.reference(tmp_path).splitlines()) == 2 + len(reference.CLASSIFIERS)
