"""Runs of the trainer: seeds, order, batches, history, callbacks, early stopping, divergence, bad settings."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import spd, spd_classes, vector_classes

from rplvq import RSLVQ, AffineInvariant, Annealed, EuclideanVectors, GeometricDecay, RiemannianLVQ, StepDecay, Trainer
from rplvq.datasets import make_syn1
from rplvq.training import EpochReport

COLUMNS = ["epoch", "cost", "training_error", "sigma2", "step_size", "n_capped", "seconds", "n_prototypes"]


def train(X, y, manifold=None, seed=0, validation=None, **settings):
    """Run a trainer on points as they come, without any reordering."""
    manifold = manifold or AffineInvariant()
    trainer = Trainer(manifold, **({"max_epochs": 3, "sigma2": 1.0, "step_size": 0.05} | settings))
    codes, rng = manifold.encode(X), np.random.default_rng(seed)
    state = trainer.init(codes, y, y.max() + 1, rng)
    return trainer.run(state, codes, y, rng, validation=validation)


# --- what a run depends on


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("settings", [{}, {"batch_size": 5, "prototypes_per_class": 2, "init": "kmeans"}])
def test_a_seed_repeats_a_fit_whatever_the_order_of_the_samples(manifold, settings):
    X, y = spd_classes()
    shuffled = np.random.default_rng(1).permutation(len(X))
    models = [RiemannianLVQ(manifold, max_epochs=3, random_state=7, **settings) for _ in range(3)]
    first, again, other_order = models[0].fit(X, y), models[1].fit(X, y), models[2].fit(X[shuffled], y[shuffled])
    assert_array_equal(first.prototypes_, again.prototypes_)
    assert_array_equal(first.prototypes_, other_order.prototypes_)
    assert_array_equal(first.history_["cost"], other_order.history_["cost"])


def test_other_seeds_visit_in_another_order():
    X, y = spd_classes()
    models = [RiemannianLVQ(max_epochs=3, step_size=0.1, random_state=seed).fit(X, y) for seed in (0, 1)]
    assert np.abs(models[0].prototypes_ - models[1].prototypes_).max() > 1e-6


def test_a_full_batch_does_not_depend_on_the_seed():
    X, y = spd_classes()
    models = [RiemannianLVQ(max_epochs=3, batch_size=None, random_state=seed).fit(X, y) for seed in (0, 1)]
    assert_allclose(models[0].prototypes_, models[1].prototypes_, rtol=1e-10)


def test_training_is_invariant_under_congruences():
    X, y = spd_classes(n=4, n_classes=3)
    G = np.random.default_rng(3).normal(size=(4, 4)) + 2 * np.eye(4)
    settings = {"sigma2": "auto", "step_size": 0.2, "max_epochs": 5}
    here, there = train(X, y, **settings), train(G @ X @ G.T, y, **settings)
    assert_allclose(np.array(there.state.prototypes), G @ np.array(here.state.prototypes) @ G.T, rtol=1e-6)
    assert_allclose(there.history["cost"], here.history["cost"], rtol=1e-7)


def test_the_default_step_size_is_the_paper_s():
    X, y = spd_classes(n=5, n_classes=2)
    history = RiemannianLVQ(prototypes_per_class=3, max_epochs=4).fit(X, y).history_
    assert_allclose(history["step_size"], 5 * 3 / 100 * 0.01 ** (np.arange(1, 5) / 4))


# --- history


def test_history_has_a_line_an_epoch():
    X, y = vector_classes()
    _, history = train(X, y, EuclideanVectors(), sigma2=Annealed(2.0), step_size=StepDecay(0.1, every=2), max_epochs=5)
    assert list(history) == COLUMNS
    assert history["epoch"].tolist() == [1, 2, 3, 4, 5]
    assert_allclose(history["sigma2"], [Annealed(2.0)(t, 5) for t in range(1, 6)])
    assert_allclose(history["step_size"], [0.1, 0.05, 0.05, 0.025, 0.025])
    assert (history["seconds"] >= 0).all()


def test_monitor_sweep_reports_what_was_met_on_the_way():
    X, y = vector_classes(shift=0.5)
    _, history = train(X, y, EuclideanVectors(), max_epochs=1, batch_size=None)
    _, before = train(X, y, EuclideanVectors(), max_epochs=0, monitor="epoch")
    # A full batch is met before its only step.
    assert_allclose(history["cost"], before["cost"])
    assert_allclose(history["training_error"], before["training_error"])


def test_monitor_epoch_scores_the_prototypes_before_and_after_training():
    X, y = vector_classes(shift=0.5, n_classes=3)
    state, history = train(X, y, EuclideanVectors(), monitor="epoch")
    assert history["epoch"].tolist() == [0, 1, 2, 3]
    sqdist = ((X[:, None] - state.prototypes) ** 2).sum(axis=2)
    assert_allclose(history["cost"][-1], RSLVQ()(sqdist, y, state.labels, 1.0).loss.sum())
    assert_allclose(history["training_error"][-1], (sqdist.argmin(axis=1) != y).mean())


def test_cost_and_error_fall_on_syn1():
    X, y = make_syn1(n_per_class=30, random_state=0)
    history = RiemannianLVQ(sigma2=2.0, max_epochs=8, monitor="epoch", random_state=0).fit(X, y).history_
    assert history["cost"][-1] < 0.8 * history["cost"][0]
    assert history["cost"][1:].argmax() == 0
    assert history["training_error"][-1] <= history["training_error"][0]


def test_capped_weights_are_reported():
    X, y = vector_classes(shift=0.3)
    _, gentle = train(X, y, EuclideanVectors(), step_size=0.01)
    _, harsh = train(X, y, EuclideanVectors(), step_size=50.0, sigma2=5.0)
    assert (gentle["n_capped"] == 0).all()
    assert (harsh["n_capped"] > 0).all()


def test_the_progress_bar_is_shown_on_demand_only(capsys):
    X, y = vector_classes()
    train(X, y, EuclideanVectors())
    assert capsys.readouterr() == ("", "")
    train(X, y, EuclideanVectors(), verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "epoch" in err


# --- callbacks


def test_callbacks_are_told_of_each_epoch():
    X, y = vector_classes()
    seen: list[EpochReport] = []
    state, history = train(X, y, EuclideanVectors(), callbacks=[seen.append])
    assert [report.row["epoch"] for report in seen] == [1, 2, 3]
    assert [report.n_epochs for report in seen] == [3, 3, 3]
    assert [report.row["cost"] for report in seen] == history["cost"].tolist()
    assert_array_equal(seen[-1].state.prototypes, state.prototypes)
    assert np.abs(seen[0].state.prototypes - state.prototypes).max() > 0


def test_a_callback_that_returns_true_stops():
    X, y = vector_classes()
    late: list[int] = []
    settings = {"callbacks": [lambda report: report.row["epoch"] == 2, lambda report: late.append(1)]}
    state, history = train(X, y, EuclideanVectors(), max_epochs=9, **settings)
    assert history["epoch"].tolist() == [1, 2]
    assert state.epoch == 2
    assert len(late) == 2  # the other callback still heard of the last epoch
    assert RiemannianLVQ("euclidean_vectors", max_epochs=9, **settings).fit(X, y).n_epochs_ == 2


# --- going on


def test_a_run_can_go_on_from_a_state():
    X = spd(np.random.default_rng(0), 12, 3)
    y = np.arange(12) % 2
    manifold, settings = AffineInvariant(), {"sigma2": 1.0, "step_size": GeometricDecay(0.1)}
    codes, rng = manifold.encode(X), np.random.default_rng(0)
    whole = Trainer(manifold, max_epochs=4, **settings)
    start = whole.init(codes, y, 2, rng)
    halfway, _ = Trainer(manifold, max_epochs=4, callbacks=[lambda r: r.row["epoch"] == 2], **settings).run(
        start, codes, y, rng
    )
    end, history = whole.run(halfway, codes, y, rng)
    assert history["epoch"].tolist() == [3, 4]
    straight, _ = whole.run(start, codes, y, _advanced_rng(codes, y, whole))
    assert_array_equal(np.array(end.prototypes), np.array(straight.prototypes))


def _advanced_rng(codes, y, trainer):
    """The generator as it was after the initial prototypes were chosen."""
    rng = np.random.default_rng(0)
    trainer.init(codes, y, 2, rng)
    return rng
