"""The experiment of examples/beyond on annotators who disagree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from examples.beyond import report_soft, soft_labels
from examples.paper import runner
from rplvq import AffineInvariant, RiemannianLVQ

RNG = np.random.default_rng


def test_smoke_trains_every_method_through_the_runner(tmp_path):
    jobs = soft_labels.smoke()
    records = {record["method"]: record["result"] for record in runner.run(jobs, folder=tmp_path, verbose=0)}
    assert list(records) == list(soft_labels.METHODS)
    for result in records.values():
        assert 0 < result["lost_at_best"] <= result["lost"] + 1e-6
        assert result["accuracy"] > 0.6
        assert result["likeliest"] > 0.8
    assert runner.pending(jobs, tmp_path) == []


def test_centres_have_the_separation_asked_for_and_labels_follow_the_posterior():
    found = soft_labels.gaussians(4000, 2.0, RNG(0))
    sqdist = AffineInvariant().sqdist(found.centres, found.centres)
    mean = np.sqrt(sqdist[np.triu_indices(3, 1)]).mean()
    assert mean == pytest.approx(2 * np.sqrt(soft_labels.VARIANCE), rel=1e-3)
    expected = softmax(-AffineInvariant().sqdist(found.centres, found.X) / (2 * soft_labels.VARIANCE), axis=1)
    np.testing.assert_allclose(found.known, expected)
    right = found.known[np.arange(4000), found.y].mean()
    assert right == pytest.approx(np.square(found.known).sum(axis=1).mean(), abs=0.02)


def test_votes_follow_the_probabilities_and_random_ones_flatten_them():
    known = np.tile([0.7, 0.2, 0.1], (3000, 1))
    votes, majority = soft_labels.vote(known, 5, 0.0, RNG(0))
    assert (votes.sum(axis=1) == 5).all()
    np.testing.assert_allclose(votes.mean(axis=0) / 5, known[0], atol=0.02)
    assert (votes[np.arange(3000), majority] == votes.max(axis=1)).all()
    mixed, _ = soft_labels.vote(known, 5, 0.3, RNG(0))
    np.testing.assert_allclose(mixed.mean(axis=0) / 5, 0.7 * known[0] + 0.1, atol=0.02)
    ties, drawn = soft_labels.vote(np.tile([0.5, 0.5], (2000, 1)), 2, 0.0, RNG(0))
    assert 0.4 < drawn[ties[:, 0] == 1].mean() < 0.6


def test_each_vote_a_sample_takes_as_many_steps_as_the_others():
    found = soft_labels.gaussians(60, 2.0, RNG(1))
    votes, majority = soft_labels.vote(found.known, 5, 0.0, RNG(1))
    settings = {"sigma2": 0.5, "max_epochs": 10, "random_state": 0}
    one, each = (
        soft_labels.fitted(name, found.X, votes, majority, found.known, settings)
        for name in ("RSLVQ, majority", "RSLVQ, each vote a sample")
    )
    assert one.n_epochs_ * 60 == each.n_epochs_ * 300


def test_measures_of_the_truth_itself():
    """Prototypes at the centres lose nothing with the true variance, and lose something with another sigma2."""
    found = soft_labels.gaussians(300, 2.0, RNG(2))
    start = {"init": (found.centres, [0, 1, 2]), "max_epochs": 0}
    labels = np.arange(300) % 3
    model = RiemannianLVQ(sigma2=soft_labels.VARIANCE, **start).fit(found.X, labels)
    result = soft_labels.measured(model, found, found.centres)
    for name in ("lost", "lost_at_best", "calibration", "distance"):
        assert result[name] == pytest.approx(0, abs=1e-6)
    assert result["likeliest"] == 1
    narrow = RiemannianLVQ(sigma2=0.1, **start).fit(found.X, labels)
    result = soft_labels.measured(narrow, found, found.centres)
    assert result["lost"] > 0.1
    assert result["lost_at_best"] == pytest.approx(0, abs=1e-4)


def test_jobs_hold_twenty_repetitions_with_files_of_their_own():
    jobs = soft_labels.jobs()
    assert len({runner.path_of("", job) for job in jobs}) == len(jobs)
    counts = {}
    for job in jobs:
        counts[job.experiment, job.method] = counts.get((job.experiment, job.method), 0) + 1
    assert set(counts.values()) == {20}
    assert all(job.settings["max_epochs"] == 2 for job in soft_labels.jobs(quick=True))


def test_scenes_are_named_by_their_settings():
    names = {scene: report_soft.title_of(settings) for scene, settings in soft_labels.SCENES.items()}
    assert len(set(names.values())) == len(names)
    assert names["overlap-1"] == "centres 2 sigma apart, 1 vote"
    assert names["digits-5-random"] == "digits, 5 votes, 30 % at random"
