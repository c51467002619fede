"""Early stopping on held-out data: what is held out, when training stops, which prototypes it keeps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import RSLVQ, Annealed, Constant, EarlyStopping, EuclideanVectors, HeldOut, RiemannianLVQ, Trainer
from rplvq.arrays import Samples
from rplvq.datasets import load_digits_covariances
from rplvq.protocols import Evaluation
from rplvq.training import Progress, State
from tests.problems import refuse, spd_classes, vector_classes


class Scripted:
    """RSLVQ, except that three samples at once, the validation data, cost what the script says."""

    def __init__(self, costs):
        self.costs = iter(costs)

    def __call__(self, sqdist, targets, labels, sigma2):
        evaluation = RSLVQ()(sqdist, targets, labels, sigma2)
        return Evaluation(np.full(3, next(self.costs) / 3), evaluation.slope) if len(sqdist) == 3 else evaluation


def run(costs, before=1e9, **settings):
    """Run with scripted validation costs, first that before training: state, history, states after each epoch."""
    samples = Samples(*vector_classes())
    states = {}
    stopping = EarlyStopping(patience=settings.pop("patience", 2), tol=settings.pop("tol", 1e-4))
    callbacks = [lambda report: states.update({report.row["epoch"]: report.state}), *settings.pop("callbacks", ())]
    settings = {"sigma2": 1.0, "step_size": 0.05, "early_stopping": stopping, "max_epochs": 20} | settings
    script = costs if settings["early_stopping"] is None else [before, *costs]
    trainer = Trainer(EuclideanVectors(), Scripted(script), callbacks=callbacks, **settings)
    rng = np.random.default_rng(0)
    validation = samples.at(slice(0, 3))
    state, history = trainer.run(trainer.init(samples, 2, rng), samples, rng, validation)
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
    samples = Samples(*vector_classes())
    began = Trainer(EuclideanVectors(), sigma2=1.0).init(samples, 2, np.random.default_rng(0))
    assert_array_equal(state.prototypes, began.prototypes)


def test_without_early_stopping_the_last_state_is_returned():
    state, history, _ = run([1, 2, 3, 4], early_stopping=None, max_epochs=4)
    assert state.epoch == 4
    assert_allclose(history["validation_cost"], [1, 2, 3, 4])


def test_validation_is_scored_after_each_epoch():
    X, y = vector_classes(n_classes=3, shift=0.5)
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=0.05, max_epochs=2)
    samples, rng = Samples(X, y), np.random.default_rng(0)
    weights = np.array([1.0, 2, 0, 1, 3, 1])
    state, history = trainer.run(trainer.init(samples, 3, rng), samples, rng, Samples(X[:6], y[:6], weights))
    sqdist = ((X[:6, None] - state.prototypes) ** 2).sum(axis=2)
    assert_allclose(history["validation_cost"][-1], weights @ RSLVQ()(sqdist, y[:6], state.labels, 1.0).loss)
    assert_allclose(history["validation_error"][-1], weights @ (sqdist.argmin(axis=1) != y[:6]) / weights.sum())


def test_without_validation_data_nothing_stops_and_nothing_is_scored():
    samples, rng = Samples(*vector_classes()), np.random.default_rng(0)
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, early_stopping=EarlyStopping(patience=1), max_epochs=4)
    state, history = trainer.run(trainer.init(samples, 2, rng), samples, rng)
    assert state.epoch == 4
    assert "validation_cost" not in history


# --- the hook by itself


def after(epoch, validation_cost, best_epoch=1, best_cost=5.0, stopped=False):
    """A progress after an epoch, whose best state so far is that of an earlier one."""
    one = Constant(1.0)
    state, best = (State(np.zeros((1, 1)), np.array([0]), one, one, number) for number in (epoch, best_epoch))
    return Progress(state, best, best_cost, ({"validation_cost": validation_cost},), None, stopped)


@pytest.mark.parametrize(
    ("epoch", "cost", "best_epoch", "best_cost", "stopped"),
    [
        (2, 4.0, 2, 4.0, False),  # better
        (2, 4.995, 1, 5.0, False),  # better, but by less than a hundredth
        (2, 6.0, 1, 5.0, False),
        (4, 6.0, 1, 5.0, True),  # the third epoch that is not better
        (4, 4.0, 4, 4.0, False),  # better in time
        (2, np.nan, 1, 5.0, False),
        (4, np.nan, 1, 5.0, True),
    ],
)
def test_the_hook_takes_in_the_validation_cost(epoch, cost, best_epoch, best_cost, stopped):
    found = EarlyStopping(patience=3, tol=0.01)(after(epoch, cost))
    assert (found.best.epoch, found.best_cost, found.stopped) == (best_epoch, best_cost, stopped)
    assert found.state.epoch == epoch


def test_the_hook_does_not_resume_what_something_else_stopped():
    assert EarlyStopping()(after(2, 4.0, stopped=True)).stopped


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("fraction", value) for value in (0, 1.0, 1.5, -0.1, "x", np.nan, None, True)],
        *[("patience", value) for value in (0, -1, 2.5, "x", None, True)],
        *[("tol", value) for value in (-0.1, np.nan, "x", None, True)],
    ],
)
def test_bad_fields_are_refused_by_their_name_and_value(field, value):
    wanted = {"fraction": "a number between 0 and 1", "patience": "an integer of at least 1"}
    with pytest.raises(ValueError, match=rf"{field} must be {wanted.get(field, 'a number of at least 0')}.*{value!r}"):
        EarlyStopping(**{field: value})


def test_fields_have_their_defaults_and_limits():
    assert EarlyStopping() == EarlyStopping(fraction=0.1, patience=10, tol=1e-4)
    assert EarlyStopping(fraction=0.999, patience=1, tol=0).tol == 0


# --- the estimator


def stopping(**settings):
    given = {"early_stopping": EarlyStopping(0.25, patience=2), "sigma2": HeldOut(["auto"]), "random_state": 0}
    return RiemannianLVQ(**(given | settings))


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


@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_samples_are_stratified_and_not_trained_on(weighted):
    X, y = vector_classes(per_class=12)
    weights = np.arange(1.0, 25.0) if weighted else None
    seen = []

    def cost(sqdist, targets, labels, sigma2):
        if len(sqdist) == 1:  # a step; validation looks at all of its samples
            trained.append(float(sqdist[0, 0]))
        else:
            seen.append((np.sort(targets).tolist(), len(sqdist)))
        return RSLVQ()(sqdist, targets, labels, sigma2)

    trained: list[float] = []
    held = {"metric": "euclidean_vectors", "cost": cost, "sigma2": 1.0, "max_epochs": 1, "random_state": 0}
    stopping(init=(X[:1].repeat(2, 0), [0, 1]), step_size=1e-12, **held).fit(X, y, weights)
    assert seen == [([0, 0, 0, 1, 1, 1], 6)] * 2  # before and after the epoch
    every = ((X - X[0]) ** 2).sum(axis=1)
    numbers = [int(np.abs(every - value).argmin()) for value in trained]
    kept = sorted(set(numbers))
    assert np.bincount(y[kept]).tolist() == [9, 9]
    visits = np.bincount(numbers, minlength=24)[kept]
    assert_array_equal(visits, np.ones(18) if weights is None else weights[kept])


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


@pytest.mark.parametrize("value", [1, "yes", {}, EarlyStopping], ids=repr)
def test_what_is_no_early_stopping_is_refused(value):
    X, y = spd_classes()
    refuse(stopping(early_stopping=value), "fit", X, y, match="early_stopping must be True, False or an EarlyStopping")


def test_true_means_the_defaults():
    X, y = spd_classes(per_class=20)
    models = [stopping(early_stopping=value, max_epochs=4, sigma2=1.0).fit(X, y) for value in (True, EarlyStopping())]
    assert_array_equal(models[0].prototypes_, models[1].prototypes_)
    assert_array_equal(models[0].history_["validation_cost"], models[1].history_["validation_cost"])
    assert models[0].trainer_.early_stopping == EarlyStopping()


def test_fields_are_parameters():
    model = stopping().set_params(early_stopping__fraction=0.5, early_stopping__tol=0.0)
    assert model.early_stopping == EarlyStopping(0.5, patience=2, tol=0.0)


def test_too_few_samples_to_hold_out_are_refused_with_advice():
    X, y = spd_classes(per_class=3)
    X, y = np.concatenate([X, X]), np.concatenate([y, y])  # copies cannot judge each other
    settings = {"early_stopping": EarlyStopping(0.1), "max_epochs": 2}
    stopping(**settings).fit(X, y)
    refuse(
        stopping(prototypes_per_class=2, **settings),
        "fit",
        X,
        y,
        match=r"early_stopping: class 0 has 3 distinct sample\(s\) and needs 4, so that one can be held out",
    )


@pytest.mark.parametrize("settings", [{"max_epochs": 0}, {}], ids=str)
def test_a_fit_that_does_not_train_holds_out_nothing(settings):
    X, y = spd_classes(per_class=20, spread=0.2, shift=1.0)  # so far apart that training cannot help
    whole = RiemannianLVQ(max_epochs=0).fit(X, y)
    model = RiemannianLVQ(early_stopping=True, random_state=0, **settings).fit(X, y)
    assert "validation_cost" not in model.history_
    assert model.choice_ is None or model.choice_.chosen == "untrained"
    assert_allclose(model.prototypes_, whole.prototypes_, rtol=1e-9)


def test_a_chosen_discriminant_is_that_of_all_samples():
    X, y = load_digits_covariances()
    model = RiemannianLVQ("tangent", early_stopping=True, random_state=0).fit(X[:200], y[:200])
    assert model.choice_.chosen == "discriminant"
    whole = RiemannianLVQ(model.trainer_.manifold, init="discriminant", max_epochs=0).fit(X[:200], y[:200])
    assert_allclose(model.prototypes_, whole.prototypes_, rtol=1e-6)
