"""The experiments of examples/beyond on step sizes."""

from __future__ import annotations

import pytest

from examples.beyond import batches, steps
from examples.paper import runner

pytestmark = pytest.mark.slow  # trains experiments or examples, which takes minutes in all


@pytest.mark.parametrize(
    ("module", "names"), [(steps, steps.RULES), (batches, batches.METHODS)], ids=["steps", "batches"]
)
def test_smoke_trains_every_method_through_the_runner(module, names, tmp_path):
    jobs = module.smoke()
    records = {record["method"]: record["result"] for record in runner.run(jobs, folder=tmp_path, verbose=0)}
    assert set(records) == set(names)
    assert len({result["start_cost"] for result in records.values()}) == 1
    for result in records.values():
        assert result["cost"] != result["start_cost"]
        assert result["accuracy"] > 0.5
    assert sum(result["cost"] < result["start_cost"] for result in records.values()) >= min(3, len(names))
    assert runner.pending(jobs, tmp_path) == []


@pytest.mark.parametrize("module", [steps, batches])
def test_jobs_have_files_of_their_own(module):
    jobs = module.jobs()
    assert len({runner.path_of("", job) for job in jobs}) == len(jobs)
    assert all(job.settings.get("max_epochs", 0) <= 3 for job in module.jobs(quick=True))


def test_numbers_of_several_subjects_are_means():
    rows = [{"kappa": k, "cost": 2 * k, "costs": {"1": k, "20": k, e: 9.0}} for k, e in ((0.2, "50"), (0.4, "100"))]
    found = steps.mean_of(rows)
    assert found["kappa"] == pytest.approx(0.3)
    assert list(found["costs"]) == ["1", "20"]
    assert found["kappas"] == [0.2, 0.4]
    assert steps.mean_of(rows[:1]) is rows[0]
