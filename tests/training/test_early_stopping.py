"""Early stopping on held-out data: what is held out, when training stops, which prototypes it keeps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import counted_decompositions, spd_classes, vector_classes

from rplvq import RSLVQ, AffineInvariant, Annealed, EuclideanVectors, RiemannianLVQ, Trainer
from rplvq.protocols import Evaluation


class Scripted:
    """RSLVQ, except that three samples at once, the validation data, cost what the script says."""

    def __init__(self, costs):
        self.costs = iter(costs)

    def __call__(self, sqdist, targets, labels, sigma2):
        evaluation = RSLVQ()(sqdist, targets, labels, sigma2)
        return Evaluation(np.full(3, next(self.costs) / 3), evaluation.slope) if len(sqdist) == 3 else evaluation


def run(costs, before=1e9, **settings):
    """Run with scripted validation costs, first that before training: state, history, states after each epoch."""
    X, y = vector_classes()
    states = {}
    script = costs if settings.get("patience", 2) is None else [before, *costs]
    callbacks = [lambda report: states.update({report.row["epoch"]: report.state}), *settings.pop("callbacks", ())]
    settings = {"sigma2": 1.0, "step_size": 0.05, "patience": 2, "max_epochs": 20} | settings
    trainer = Trainer(EuclideanVectors(), Scripted(script), callbacks=callbacks, **settings)
    rng = np.random.default_rng(0)
    state, history = trainer.run(trainer.init(X, y, 2, rng), X, y, rng, validation=(X[:3], y[:3], None))
    return state, history, states


@pytest.mark.parametrize(
    ("costs", "settings", "n_epochs", "best"),
    [
        ([5, 3, 4, 4], {}, 4, 2),  # two epochs without a better cost than that of epoch 2
        ([5, 3, 4, 2, 3, 3], {}, 6, 4),  # patience starts anew
        ([5, 3, 3, 3], {}, 4, 2),  # no better is not better
        ([5, 3, 4], {"patience": 1}, 3, 2),
        ([5, 4, 3, 2], {"max_epochs": 4}, 4, 4),  # never stopped, still the best
        ([5, 3, 4], {"max_epochs": 3}, 3, 2),  # out of epochs before out of patience
        ([10, 9.5, 9.2, 9], {"tol": 0.2}, 3, 1),  # not better by a fifth
        ([10, 9.5, 7.9, 7.9, 7.9], {"tol": 0.2}, 5, 3),
    ],
)
def test_training_stops_and_returns_the_best_state(costs, settings, n_epochs, best):
    state, history, states = run(costs, **settings)
    assert_allclose(history["validation_cost"], costs[:n_epochs])
    assert state.epoch == best
    assert_array_equal(state.prototypes, states[best].prototypes)


def test_a_stopping_callback_keeps_the_best_state_too():
    stop = {"callbacks": [lambda report: report.row["epoch"] == 3]}
    assert run([5, 4, 3], **stop)[0].epoch == 3
    assert run([5, 3, 4], **stop)[0].epoch == 2


def test_prototypes_that_training_only_harms_are_returned_as_they_began():
    state, history, _ = run([5, 6], before=4)
    assert state.epoch == 0
    assert len(history["epoch"]) == 2  # patience counts from the start
    X, y = vector_classes()
    began = Trainer(EuclideanVectors(), sigma2=1.0).init(X, y, 2, np.random.default_rng(0))
    assert_array_equal(state.prototypes, began.prototypes)


def test_without_patience_the_last_state_is_returned():
    state, history, _ = run([1, 2, 3, 4], patience=None, max_epochs=4)
    assert state.epoch == 4
    assert_allclose(history["validation_cost"], [1, 2, 3, 4])


def test_validation_is_scored_after_each_epoch():
    X, y = vector_classes(n_classes=3, shift=0.5)
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=0.05, max_epochs=2)
    rng = np.random.default_rng(0)
    held, weights = (X[:6], y[:6]), np.array([1.0, 2, 0, 1, 3, 1])
    state, history = trainer.run(trainer.init(X, y, 3, rng), X, y, rng, validation=(*held, weights))
    sqdist = ((X[:6, None] - state.prototypes) ** 2).sum(axis=2)
    assert_allclose(history["validation_cost"][-1], weights @ RSLVQ()(sqdist, y[:6], state.labels, 1.0).loss)
    assert_allclose(history["validation_error"][-1], weights @ (sqdist.argmin(axis=1) != y[:6]) / weights.sum())


# --- the estimator


def stopping(**settings):
    defaults = {"early_stopping": True, "validation_fraction": 0.25, "n_iter_no_change": 2, "random_state": 0}
    return RiemannianLVQ(**(defaults | settings))


def test_a_model_keeps_prototypes_sigma2_and_history_of_the_best_epoch():
    X, y = spd_classes(per_class=20, spread=0.9, shift=0.2)
    states = {}

    def remember(report):
        states[report.row["epoch"]] = np.array(report.state.prototypes)

    # From one random sample a class, so that training has something to gain.
    rows = [int(np.flatnonzero(y == label)[0]) for label in np.unique(y)]
    first = (X[rows], y[rows])
    settings = {"init": first, "sigma2": Annealed(1.0), "step_size": 0.1, "max_epochs": 50}
    model = stopping(**settings, callbacks=[remember]).fit(X, y)
    history = model.history_
    best = int(history["validation_cost"].argmin())
    assert list(history)[-2:] == ["validation_cost", "validation_error"]
    assert model.n_epochs_ == len(history["epoch"]) < 50
    assert model.n_epochs_ == best + 1 + 2
    assert_allclose(model.prototypes_, states[best + 1], rtol=1e-12)
    assert model.sigma2_ == history["sigma2"][best]


def test_held_out_samples_are_stratified_and_not_trained_on():
    X, y = spd_classes(per_class=12)
    with counted_decompositions() as few:
        stopping(max_epochs=1).fit(X, y)
    with counted_decompositions() as all_samples:
        RiemannianLVQ(max_epochs=1).fit(X, y)
    trained = {"with": few["eigh"], "without": all_samples["eigh"]}
    assert trained["with"] < trained["without"]
    rows = AffineInvariant().encode(X)
    kept, held = stopping()._split(y, np.random.default_rng(0))
    assert sorted([*kept, *held]) == list(range(len(rows)))
    assert np.bincount(y[held]).tolist() == [3, 3]


def test_early_stopping_repeats_by_seed_in_any_order():
    X, y = spd_classes(per_class=12)
    order = np.random.default_rng(0).permutation(len(X))
    first = stopping(max_epochs=4).fit(X, y)
    assert_array_equal(first.prototypes_, stopping(max_epochs=4).fit(X[order], y[order]).prototypes_)


@pytest.mark.parametrize("weights", [None, "random"])
def test_early_stopping_takes_weights_and_soft_labels(weights):
    X, y = spd_classes(per_class=12)
    soft = np.stack([1 - 0.8 * y - 0.1, 0.8 * y + 0.1], axis=1)
    w = None if weights is None else np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = stopping(cost="plvq", max_epochs=5).fit(X, soft, sample_weight=w)
    assert model.score(X, y) > 0.8
    assert np.isfinite(model.history_["validation_cost"]).all()


@pytest.mark.parametrize("fraction", [0, 1.5, -0.1, "x", np.nan, None])
def test_a_bad_fraction_is_refused_by_its_name(fraction):
    X, y = spd_classes()
    with pytest.raises(ValueError, match="validation_fraction"):
        stopping(validation_fraction=fraction).fit(X, y)


def test_too_few_samples_to_hold_out_are_refused_with_advice():
    X, y = spd_classes(per_class=3)
    with pytest.raises(ValueError, match="validation_fraction"):
        stopping(validation_fraction=0.1).fit(X, y)
