"""What goes beyond the paper: a slice of each experiment, and the page made from the cached results."""

from __future__ import annotations

import pytest

from examples.beyond import recentering, rejection, report
from examples.beyond.__main__ import EXPERIMENTS, RESULTS
from examples.paper import data
from examples.paper.runner import run


@pytest.mark.skipif(not data.is_available("bci2a_cov22.npz"), reason="real data absent: no bci2a_cov22.npz")
@pytest.mark.parametrize("module", [recentering, rejection], ids=lambda module: module.__name__)
def test_a_slice_of_each_experiment(module, tmp_path):
    jobs = module.smoke()
    records = run(jobs, folder=tmp_path, verbose=0)
    assert [record["method"] for record in records] == [job.method for job in jobs]
    for record in records:
        assert all(0 <= value <= 10 for value in record["result"].values() if isinstance(value, float))


@pytest.mark.skipif(not data.is_available("bci2a_cov22.npz"), reason="real data absent: no bci2a_cov22.npz")
def test_views_show_what_they_say():
    """Online differs from transductive by the running mean only: the first session is the same in both."""
    whole = data.load_bci2a(1)
    online, transductive = (recentering.seen(whole, view, 10.0) for view in ("online", "transductive"))
    assert (online.X_train == transductive.X_train).all()
    assert not (online.X_test == transductive.X_test).all()
    assert recentering.seen(whole, "as measured", 10.0) is whole


def test_the_page_is_made_from_the_cached_results(tmp_path):
    report.write(RESULTS / "full", tmp_path)
    text = (tmp_path / "beyond.md").read_text(encoding="utf-8")
    assert "{{" not in text
    committed = (report.DOCS / "beyond.md").read_text(encoding="utf-8")
    assert text == committed, "run `python -m examples.beyond report`"
    for row in ("| one for all, transductive |", "| BCI 2a, posterior |", "| ETH-80, whole image, auto |"):
        assert row in text


def test_groups_of_the_command_are_those_of_the_modules():
    names = {job.experiment.split("-")[0] for job in EXPERIMENTS.collect(quick=True, only=[])}
    assert names <= {"sigma2", "steps", "solvers", "recentering", "rejection", "calibration"}
    assert "sigma2" in names
