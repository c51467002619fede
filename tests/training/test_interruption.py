"""Ctrl-C: a fit keeps its last whole epoch and says so; everything else is as if it had not been called."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rplvq import RSLVQ, AffineInvariant, EarlyStopping, EuclideanVectors, RiemannianLVQ, Trainer, compare
from rplvq.arrays import Samples
from rplvq.exceptions import TrainingInterruptedWarning
from tests.problems import refuse, snapshot, spd_classes, vector_classes

X, Y = spd_classes(per_class=10)
SETTINGS = {"metric": AffineInvariant(compiled=False), "max_epochs": 6, "random_state": 0, "sigma2": 1.0}


def press(*args, **kwargs):
    raise KeyboardInterrupt


class PressedIn:
    """A cost that is interrupted at its call of a certain number."""

    def __init__(self, cost, call):
        self.cost, self.call = cost, call

    def __call__(self, *arguments):
        self.call -= 1
        if self.call == 0:
            raise KeyboardInterrupt
        return self.cost(*arguments)


def interrupted(epochs, **settings):
    """A model that was interrupted in the middle of the epoch after ``epochs``, and one that stopped there."""
    settings = SETTINGS | settings
    cost = PressedIn(RSLVQ(), epochs * len(X) + 7)
    with pytest.warns(TrainingInterruptedWarning, match=f"interrupted after {epochs} of 6 epochs.*last whole epoch"):
        model = RiemannianLVQ(cost=cost, **settings).fit(X, Y)
    stop, never = [lambda report: report.state.epoch == epochs], PressedIn(RSLVQ(), 0)  # its steps are not compiled
    return model, RiemannianLVQ(cost=never, callbacks=stop, **settings).fit(X, Y)


@pytest.mark.parametrize("epochs", [1, 4])
@pytest.mark.parametrize("manifold", [SETTINGS["metric"], "log_euclidean", "euclidean"], ids=str)
def test_the_last_whole_epoch_is_kept(manifold, epochs):
    model, stopped = interrupted(epochs, metric=manifold)
    assert model.n_epochs_ == epochs
    assert_array_equal(model.prototypes_, stopped.prototypes_)
    assert_array_equal(model.history_["cost"], stopped.history_["cost"])
    assert_array_equal(model.predict_proba(X), stopped.predict_proba(X))
    model.cost = stopped.cost = "rslvq"
    assert_array_equal(model.partial_fit(X, Y).prototypes_, stopped.partial_fit(X, Y).prototypes_)


def test_before_the_first_whole_epoch_the_initial_prototypes_are_kept():
    with pytest.warns(TrainingInterruptedWarning, match="after 0 of 6 epochs"):
        model = RiemannianLVQ(cost=PressedIn(RSLVQ(), 7), **SETTINGS).fit(X, Y)
    means = RiemannianLVQ(**SETTINGS | {"max_epochs": 0}).fit(X, Y)
    assert model.n_epochs_ == 0
    assert_array_equal(model.prototypes_, means.prototypes_)
    assert_array_equal(model.predict(X), means.predict(X))


def test_an_interrupt_in_a_callback_keeps_the_epoch_that_it_was_told_of():
    def callback(report):
        if report.state.epoch == 3:
            raise KeyboardInterrupt

    with pytest.warns(TrainingInterruptedWarning, match="after 3 of 6"):
        model = RiemannianLVQ(callbacks=[callback], **SETTINGS).fit(X, Y)
    stopped = RiemannianLVQ(**SETTINGS, callbacks=[lambda report: report.state.epoch == 3]).fit(X, Y)
    assert_array_equal(model.prototypes_, stopped.prototypes_)


def test_with_early_stopping_the_best_epoch_is_kept():
    settings = SETTINGS | {"early_stopping": EarlyStopping(0.3), "step_size": 3.0, "sigma2": 0.1}
    costs = RiemannianLVQ(**settings).fit(X, Y).history_["validation_cost"]

    def callback(report):
        if report.state.epoch == 4:
            raise KeyboardInterrupt

    with pytest.warns(TrainingInterruptedWarning):
        model = RiemannianLVQ(callbacks=[callback], **settings).fit(X, Y)
    best = RiemannianLVQ(**settings, callbacks=[lambda report: report.state.epoch == 4]).fit(X, Y)
    assert len(model.history_["epoch"]) == 4 < len(costs)
    assert_array_equal(model.prototypes_, best.prototypes_)


def test_the_model_is_whole_where_the_warning_is_an_error():
    model = RiemannianLVQ(callbacks=[press], **SETTINGS)
    with pytest.raises(TrainingInterruptedWarning):  # as all warnings are errors in these tests
        model.fit(X, Y)
    assert model.n_epochs_ == 1
    model.predict(X)


@pytest.mark.parametrize("start", [None, "fit"])
def test_an_interrupt_before_training_changes_nothing(start):
    model = RiemannianLVQ(**SETTINGS)
    if start:
        model.fit(X, Y)
    refuse(model.set_params(init=press), "fit", X, Y, error=KeyboardInterrupt, match="^$")


def test_an_interrupted_partial_fit_changes_nothing(monkeypatch):
    model = RiemannianLVQ(**SETTINGS).fit(X, Y)
    before = snapshot(model)
    with monkeypatch.context() as patch:
        patch.setattr(AffineInvariant, "move", press)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, Y)
    assert snapshot(model) == before


def test_a_comparison_ends_instead_of_scoring_what_is_half_trained():
    V, y = vector_classes()
    model = RiemannianLVQ("euclidean_vectors", callbacks=[press], max_epochs=2, sigma2=1.0)
    with pytest.raises(KeyboardInterrupt):
        compare(V, y, [model], cv=2)


def test_a_bare_trainer_hands_out_whole_epochs_and_raises():
    samples, rng = Samples(*vector_classes()), np.random.default_rng(0)
    callbacks = [lambda report: report.state.epoch == 2 and press()]
    trainer = Trainer(EuclideanVectors(), max_epochs=4, sigma2=1.0, callbacks=callbacks)
    start = trainer.begin(trainer.init(samples, 2, rng), rng)
    training = trainer.epochs(start, samples, rng)
    assert [next(training).state.epoch, next(training).state.epoch] == [1, 2]
    with pytest.raises(KeyboardInterrupt):
        next(training)
    with pytest.raises(KeyboardInterrupt):
        trainer.run(start.state, samples, rng)
