"""The page on the authors' other methods: GLRSQ's verdicts, and the metric on matrices with its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from examples.paper import leml, published, report_later
from examples.paper.runner import run
from examples.paper.selection import without_sigma2
from rplvq import LogEuclidean, RiemannianLVQ
from rplvq.testing import check_manifold
from tests.experiments.test_paper_report import record
from tests.problems import spd, spd_classes


@pytest.mark.parametrize("sides", [1, 2])
def test_the_metric_on_matrices_is_the_trace_and_follows_its_gradient(sides):
    rng = np.random.default_rng(0)
    omega, ends, starts = rng.normal(size=(3, 3)), *(LogEuclidean().encode(spd(rng, k, 3)) for k in (4, 2))
    manifold = leml.MatrixLogEuclidean(1e-6, sides)

    def distances(omega):
        Q, D = omega.T @ omega, ends[:, None] - starts
        middle = Q @ D @ Q @ D if sides == 2 else Q @ D @ D
        return np.trace(middle, axis1=2, axis2=3)

    prototypes = leml.WithMetric(starts, omega)
    assert_allclose(manifold.sqdist(prototypes, ends), distances(omega), rtol=1e-10)
    weights = rng.normal(size=(4, 2))
    moved = manifold.move(manifold.connect(prototypes, ends), weights)
    # The step is along minus half the gradient of the weighted distances, and is then scaled to the trace n.
    h, gradient = 1e-6, np.zeros((3, 3))
    for i, j in np.ndindex(3, 3):
        change = np.zeros((3, 3))
        change[i, j] = h
        gradient[i, j] = np.sum(weights * (distances(omega + change) - distances(omega - change))) / (2 * h)
    stepped = omega - 1e-6 * gradient / 2
    assert_allclose(moved.omega, stepped * np.sqrt(3 / np.vdot(stepped, stepped)), rtol=1e-9)
    assert_allclose(moved.codes, starts + np.einsum("bk,bkij->kij", weights, ends[:, None] - starts), rtol=1e-10)


def test_the_metric_on_matrices_is_a_metric_of_ones_own():
    X, y = spd_classes(n_classes=3, per_class=15, shift=1.0, spread=0.25)
    check_manifold(leml.MatrixLogEuclidean(rate=0.0), X)
    models = [RiemannianLVQ(leml.MatrixLogEuclidean(1.0, sides), sigma2=1.0, random_state=0) for sides in (1, 2)]
    assert all(model.fit(X, y).score(X, y) > 0.9 for model in models)


@pytest.mark.slow  # trains experiments
def test_each_metric_is_scored_and_has_a_row(tmp_path):
    records = run(leml.smoke(), folder=tmp_path, verbose=0)
    assert {job.method for job in leml.jobs(quick=True)} == {
        "vector [fixed]",
        *(f"{m} [rate 0.1]" for m in leml.METRICS),
    }
    assert all(0.6 < record["result"]["accuracy"] < 0.95 for record in records)
    table = report_later.leml(tmp_path)
    assert len(table.splitlines()) == 2 + 1 + len(leml.METRICS)
    assert "| vector, fixed |" in table


def test_figures_of_glrsq_have_verdicts(tmp_path):
    assert report_later.glrsq(tmp_path).count("not run | not run") == len(published.GLRSQ) + 2
    for repetition in range(3):
        record(tmp_path, "syn1", "GLRSQ", repetition, accuracy=0.97 + 0.005 * repetition)
        record(tmp_path, "syn2", "GLRSQ", repetition, accuracy=0.95 + 0.005 * repetition)
    record(tmp_path, "syn2-selection", "GLRSQ", 0, accuracy=0.94)
    record(tmp_path, "bci2a-folds", "GLRSQ, session 1", 0, accuracy=[0.6, 0.7, 0.8] * 3)
    record(tmp_path, "bci2a", "GLRSQ", 0, kappa=[0.8, 0.3] + [0.6] * 7)
    lines = {line.split(" | ")[0].strip("| "): line for line in report_later.glrsq(tmp_path).splitlines()}
    assert lines["SynI"].endswith("| 0.9754 | 0.9750 ± 0.0050 [3] | reproduced |")
    assert lines["SynII"].endswith("| 0.9137 | 0.9550 ± 0.0050 [3] | not reproduced |")
    assert lines["SynII, chosen"].endswith("| 0.9137 | 0.9400 [1] | one repetition |")
    # Nine subjects deviate by 0.087, their mean by 0.029, and it is 0.037 below the published one.
    assert lines["BCI 2a, 30 folds"].endswith("| 0.7371 | 0.7000 [1] | not reproduced |")
    assert "| 0.586 | 0.589 [1] | reproduced |" in report_later.glrsq(tmp_path)
    assert np.mean(published.GLRSQ_KAPPAS) == pytest.approx(0.586, abs=5e-4)  # as its table prints


def test_a_search_without_sigma2_keeps_the_rest():
    search = {"grid": {"sigma2": [1], "max_epochs": [2]}, "start": {"sigma2": 1, "max_epochs": 2}, "n_folds": 5}
    assert without_sigma2(search) == {"grid": {"max_epochs": [2]}, "start": {"max_epochs": 2}, "n_folds": 5}
