"""Runs of the trainer: seeds, order, batches, history, divergence, and settings that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    RSLVQ,
    AffineInvariant,
    Annealed,
    EuclideanVectors,
    GeometricDecay,
    HeldOut,
    RiemannianLVQ,
    StepDecay,
    StepSize,
    Trainer,
)
from rplvq.arrays import Samples
from rplvq.datasets import make_syn1
from rplvq.protocols import Evaluation
from rplvq.training import EpochScore, measure
from tests.problems import spd, spd_classes, vector_classes

COLUMNS = ["epoch", "cost", "training_error", "sigma2", "step_size", "n_capped", "seconds", "n_prototypes"]


def train(X, y, manifold=None, seed=0, validation=None, **settings):
    """Run a trainer on points as they come, without any reordering."""
    manifold = manifold or AffineInvariant()
    trainer = Trainer(manifold, **({"max_epochs": 3, "sigma2": 1.0, "step_size": 0.05} | settings))
    samples, rng = Samples(manifold.encode(X), y), np.random.default_rng(seed)
    return trainer.run(trainer.init(samples, y.max() + 1, rng), samples, rng, validation)


# --- what a run depends on


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("settings", [{}, {"batch_size": 5, "prototypes_per_class": 2, "init": "kmeans"}])
def test_a_seed_repeats_a_fit_whatever_the_order_of_the_samples(manifold, settings):
    X, y = spd_classes()
    shuffled = np.random.default_rng(1).permutation(len(X))
    models = [
        RiemannianLVQ(manifold, sigma2=HeldOut(["auto"]), max_epochs=3, random_state=7, **settings) for _ in range(3)
    ]
    first, again, other_order = models[0].fit(X, y), models[1].fit(X, y), models[2].fit(X[shuffled], y[shuffled])
    assert_array_equal(first.prototypes_, again.prototypes_)
    assert_array_equal(first.prototypes_, other_order.prototypes_)
    assert_array_equal(first.history_["cost"], other_order.history_["cost"])


def test_other_seeds_visit_in_another_order():
    X, y = spd_classes()
    models = [RiemannianLVQ(sigma2=1.0, max_epochs=3, step_size=0.1, random_state=seed).fit(X, y) for seed in (0, 1)]
    assert np.abs(models[0].prototypes_ - models[1].prototypes_).max() > 1e-6


def test_a_full_batch_does_not_depend_on_the_seed():
    X, y = spd_classes()
    models = [RiemannianLVQ(sigma2=1.0, max_epochs=3, batch_size=None, random_state=seed).fit(X, y) for seed in (0, 1)]
    assert_allclose(models[0].prototypes_, models[1].prototypes_, rtol=1e-10)


def test_training_is_invariant_under_congruences():
    X, y = spd_classes(n=4, n_classes=3)
    G = np.random.default_rng(3).normal(size=(4, 4)) + 2 * np.eye(4)
    settings = {"sigma2": None, "step_size": 0.2, "max_epochs": 5}
    here, there = train(X, y, **settings), train(G @ X @ G.T, y, **settings)
    assert_allclose(np.array(there.state.prototypes), G @ np.array(here.state.prototypes) @ G.T, rtol=1e-6)
    assert_allclose(there.history["cost"], here.history["cost"], rtol=1e-7)


@pytest.mark.parametrize(("batch_size", "size"), [(1, 1), (4, 4), (None, 16), (100, 16)])
@pytest.mark.parametrize("max_epochs", [2, 50])
def test_the_default_step_of_a_batch_is_that_of_its_samples_at_most_to_their_mean(max_epochs, batch_size, size):
    X, y = spd_classes(n=5, n_classes=2)
    settings = {"sigma2": 3.0, "prototypes_per_class": 3, "max_epochs": max_epochs, "batch_size": batch_size}
    history = RiemannianLVQ(**settings, random_state=0).fit(X, y).history_
    shares = 0.01 ** (np.arange(1, 1 + max_epochs) / max_epochs) / max_epochs
    assert_allclose(history["step_size"], 3.0 * size * np.minimum(shares, 6 / size))


def test_the_step_size_of_the_paper_is_a_word():
    X, y = spd_classes(n=5, n_classes=2)
    history = RiemannianLVQ(sigma2=3.0, step_size="paper", prototypes_per_class=3, max_epochs=4).fit(X, y).history_
    assert_allclose(history["step_size"], 5 * 3 / 100 * 0.01 ** (np.arange(1, 5) / 4))


# --- history


def test_the_history_has_one_row_per_epoch():
    X, y = vector_classes()
    _, history = train(X, y, EuclideanVectors(), sigma2=Annealed(2.0), step_size=StepDecay(0.1, every=2), max_epochs=5)
    assert list(history) == COLUMNS
    assert history["epoch"].tolist() == [1, 2, 3, 4, 5]
    assert_allclose(history["sigma2"], [Annealed(2.0)(t, 5) for t in range(1, 6)])
    assert_allclose(history["step_size"], [0.1, 0.05, 0.05, 0.025, 0.025])
    assert (history["seconds"] >= 0).all()
    assert history["n_prototypes"].tolist() == [2] * 5


def test_the_history_shows_what_was_met_on_the_way():
    X, y = vector_classes(shift=0.5)
    _, history = train(X, y, EuclideanVectors(), max_epochs=1, batch_size=None)
    samples = Samples(X, y)
    before = Trainer(EuclideanVectors(), sigma2=1.0).init(samples, 2, np.random.default_rng(0))
    score = measure(EuclideanVectors(), RSLVQ(), before, samples).score()
    # A full batch is met before its only step.
    assert_allclose(history["cost"], score.cost)
    assert_allclose(history["training_error"], score.error)
    assert 0 < score.error < 1


def test_cost_and_error_fall_on_syn1():
    X, y = make_syn1(n_per_class=30, random_state=0)
    settings = {"sigma2": 2.0, "random_state": 0}
    model = RiemannianLVQ(max_epochs=8, callbacks=[EpochScore()], **settings).fit(X, y)
    means = RiemannianLVQ(max_epochs=0, **settings).fit(X, y)
    began = -means.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(means.classes_, y)].sum()
    history = model.history_
    assert history["cost"][-1] < 0.8 * began
    assert history["cost"].argmax() == 0
    assert history["training_error"][-1] <= 1 - means.score(X, y)


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


# --- a run that is continued


def test_a_run_can_be_continued_from_a_state():
    X = spd(np.random.default_rng(0), 12, 3)
    y = np.arange(12) % 2
    manifold, settings = AffineInvariant(), {"sigma2": 1.0, "step_size": GeometricDecay(0.1)}
    samples, rng = Samples(manifold.encode(X), y), np.random.default_rng(0)
    whole = Trainer(manifold, max_epochs=4, **settings)
    start = whole.init(samples, 2, rng)
    stopping = Trainer(manifold, max_epochs=4, callbacks=[lambda r: r.row["epoch"] == 2], **settings)
    halfway, _ = stopping.run(start, samples, rng)
    end, history = whole.run(halfway, samples, rng)
    assert history["epoch"].tolist() == [3, 4]
    straight, _ = whole.run(start, samples, _advanced_rng(samples, whole))
    assert_array_equal(np.array(end.prototypes), np.array(straight.prototypes))


def _advanced_rng(samples, trainer):
    """The generator as it was after the initial prototypes were chosen."""
    rng = np.random.default_rng(0)
    trainer.init(samples, 2, rng)
    return rng


def test_the_progress_of_a_run_holds_all_that_is_needed_to_continue_it():
    X, y = vector_classes()
    trainer, samples, rng = (
        Trainer(EuclideanVectors(), sigma2=1.0, max_epochs=5),
        Samples(X, y),
        np.random.default_rng(4),
    )
    begun = trainer.begin(trainer.init(samples, 2, rng), rng)
    whole = list(trainer.epochs(begun, samples, rng))
    rest = list(trainer.epochs(whole[1], samples, np.random.default_rng(99)))  # whose random state is set back
    assert [progress.state.epoch for progress in rest] == [3, 4, 5]
    assert_array_equal(rest[-1].state.prototypes, whole[-1].state.prototypes)
    for name in ("epoch", "cost", "training_error"):
        assert_array_equal(rest[-1].result().history[name], whole[-1].result().history[name])


# --- divergence


class Exploding:
    """A cost that is infinite from its 20th sample on."""

    def __init__(self):
        self.calls = 0

    def __call__(self, sqdist, targets, labels, sigma2):
        self.calls += 1
        return Evaluation(np.full(len(sqdist), np.inf if self.calls > 20 else 1.0), np.zeros_like(sqdist))


def test_an_infinite_cost_is_reported_as_divergence():
    X, y = vector_classes()
    with pytest.raises(FloatingPointError, match=r"diverged in epoch 2 \(step_size 0.05, sigma2 1\): lower step_size"):
        train(X, y, EuclideanVectors(), cost=Exploding())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("manifold", ["euclidean_vectors", "log_euclidean", "euclidean", "affine_invariant"])
@pytest.mark.parametrize("settings", [{}, {"batch_size": None, "max_epochs": 1}], ids=["steps", "last step"])
def test_steps_beyond_all_numbers_end_in_floating_point_error_or_finite_prototypes(manifold, settings):
    X, y = vector_classes(shift=0.5) if manifold == "euclidean_vectors" else spd_classes(shift=0.2, spread=1.0)
    wild = {"step_size": StepSize(1e308, max_weight=None), "sigma2": 1e-3, "max_epochs": 3} | settings
    model = RiemannianLVQ(manifold, random_state=0, **wild)
    try:
        prototypes = model.fit(X, y).prototypes_
    except FloatingPointError as error:
        refusal = str(error)
        assert refusal.startswith("training diverged in epoch")
    else:
        assert np.isfinite(prototypes).all()


# --- what is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_epochs": -1}, "max_epochs must be an integer .*-1"),
        ({"max_epochs": 2.5}, "max_epochs must be an integer .*2.5"),
        ({"max_epochs": True}, "max_epochs must be an integer .*True"),
        ({"max_epochs": None}, "max_epochs must be an integer .*None"),
        ({"batch_size": 0}, "batch_size must be an integer .*0"),
        ({"batch_size": "all"}, "batch_size must be an integer .*'all'"),
        ({"growth": [3]}, r"growth\[0\] is 3, which cannot be called"),
        ({"callbacks": [print, "x"]}, r"callbacks\[1\] is 'x', which cannot be called"),
    ],
)
def test_bad_settings_are_refused_by_name_and_value(settings, message):
    with pytest.raises(ValueError, match=message):
        Trainer(AffineInvariant(), **settings)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "x", True, [1.0], {}])
@pytest.mark.parametrize("name", ["sigma2", "step_size"])
def test_schedules_are_refused_by_name_and_value(name, value):
    X, y = vector_classes()
    with pytest.raises(ValueError, match=rf"{name} must be .*positive.*got"):
        train(X, y, EuclideanVectors(), **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("sigma2", 0.0), *((name, value) for name in ("sigma2", "step_size") for value in (-1.0, np.nan, np.inf))],
)
def test_a_schedule_that_leaves_its_numbers_is_refused(name, value):
    X, y = vector_classes()
    schedule = {name: lambda epoch, n_epochs: value if epoch == 2 else 1.0}
    wanted = "positive and finite" if name == "sigma2" else "finite and not negative"
    with pytest.raises(ValueError, match=rf"{name} must be {wanted}, got {value} in epoch 2"):
        train(X, y, EuclideanVectors(), **schedule)


def test_an_initializer_that_forgets_a_class_is_refused():
    def forgetful(manifold, codes, targets, n_classes, rng):
        return codes[:2], np.array([0, 1])

    X, y = vector_classes(n_classes=3)
    with pytest.raises(ValueError, match="init has no prototype for class index 2"):
        train(X, y, EuclideanVectors(), initializer=forgetful)
