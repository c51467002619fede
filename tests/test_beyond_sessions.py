"""The experiments of examples/beyond on re-centring, rejection and calibration."""

from __future__ import annotations

import pytest

from examples.beyond import recentering, rejection
from examples.paper import runner
from examples.paper.data import is_available

pytestmark = pytest.mark.skipif(not is_available("bci2a_cov22.npz"), reason="needs bci2a_cov22.npz")


def test_views_of_the_second_session_differ_and_are_kept(tmp_path):
    jobs = recentering.smoke()
    records = {record["method"]: record["result"] for record in runner.run(jobs, folder=tmp_path, verbose=0)}
    assert list(records) == list(recentering.VIEWS)
    kappas = [record["mean_kappa"] for record in records.values()]
    assert len(set(kappas)) == 3
    assert min(kappas) > 0.4
    assert runner.pending(jobs, tmp_path) == []


def test_refusing_and_calibrating_run(tmp_path):
    refused, calibrated = (record["result"] for record in runner.run(rejection.smoke(), folder=tmp_path, verbose=0))
    assert refused["error_at_coverage"] < refused["error"]
    assert 0.5 < refused["reached_coverage"] <= 1
    assert calibrated["ece"] < 0.2


def test_full_runs_have_ten_seeds_for_every_trained_view():
    counts = {}
    for job in recentering.jobs():
        counts[job.method] = counts.get(job.method, 0) + 1
    assert set(counts.values()) == {1, 10}
    assert len(counts) == len(recentering.VIEWS) * len(recentering.SETTINGS)
