"""The experiment of examples/beyond on a sigma2 that sets itself."""

from __future__ import annotations

from examples.beyond import sigma2
from examples.paper import runner


def test_smoke_trains_every_method_through_the_runner(tmp_path):
    jobs = sigma2.smoke()
    records = {record["method"]: record["result"] for record in runner.run(jobs, folder=tmp_path, verbose=0)}
    assert set(records) == {name for name in sigma2.METHODS if not name.startswith("spread")}
    assert records["auto"]["sigma2"] < records["half-median"]["sigma2"]
    assert records["auto"]["train_accuracy"] > records["half-median"]["train_accuracy"]
    assert records["auto"]["accuracy"] > 0.6
    assert runner.pending(jobs, tmp_path) == []


def test_jobs_hold_thirty_repetitions_of_syn2_and_ten_of_the_others():
    counts = {}
    for job in sigma2.jobs():
        counts[job.experiment, job.method] = counts.get((job.experiment, job.method), 0) + 1
    assert counts["sigma2-syn2", "auto"] == 30
    assert {count for (name, _), count in counts.items() if name != "sigma2-syn2"} == {10}
    assert {name for name, method in counts if method.startswith("spread")} == {"sigma2-syn2"}
    assert all(job.settings.get("max_epochs", 0) <= 3 for job in sigma2.jobs(quick=True))
