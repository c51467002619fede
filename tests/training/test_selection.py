"""sigma2, and whether to train, chosen on held-out samples: what is held out, the price, the choice, where none is."""

from __future__ import annotations

import pickle
from typing import Any, cast

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rplvq.training._folds import FOLDS, deal_folds
from rplvq.training._judge import MIN_HELD_OUT, Judge, Judged, Plan, Trial
from rplvq.training._selection import trial_size
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone

from rplvq import (
    GLVQ,
    PLVQ,
    RSLVQ,
    Annealed,
    Checkpoint,
    ClassMeans,
    Constant,
    EuclideanVectors,
    GeometricDecay,
    Grow,
    HeldOut,
    Representability,
    RiemannianLVQ,
    StepSize,
    Trainer,
    load_model,
)
from rplvq.arrays import Samples
from rplvq.costs import FlatGaussian, SpreadRSLVQ, calibrated_loss
from rplvq.datasets import make_syn1, make_syn2
from rplvq.schedules import blended_sigma2, half_median, initial_evidence, likeliest_sigma2
from rplvq.training import choose_sigma2, split_classes
from tests.cases import EVERY
from tests.problems import refuse, spd_classes, vector_classes

X, Y = vector_classes(per_class=32, n_classes=3, shift=0.7)
VALUES = HeldOut([0.2, 0.5, 1.0, "untrained"])


def evidence_of(samples, n_classes, cost=None):
    """What the rules for sigma2 read."""
    trainer = Trainer(EuclideanVectors(), cost or RSLVQ())
    first = trainer.first_prototypes(samples, n_classes, np.random.default_rng(0))
    return initial_evidence(trainer.manifold, trainer.cost, *first, samples)


def choice_for(rule, trainer, samples, n_classes, **settings):
    """Choice of a bare trainer from its own initial prototypes."""
    first = trainer.first_prototypes(samples, n_classes, np.random.default_rng(0))
    evidence = initial_evidence(trainer.manifold, trainer.cost, *first, samples)
    return choose_sigma2(rule, trainer, evidence, samples, n_classes, np.random.default_rng(1), **settings)


def chosen(rule=None, weights=None, cost=None, targets=Y, must_train=False, manifold=None, **settings):
    """Choice for the vectors, by a bare trainer."""
    settings = {"max_epochs": 24} | settings
    trainer = Trainer(manifold or EuclideanVectors(), cost or RSLVQ(), **settings)
    return choice_for(rule or HeldOut(), trainer, Samples(X, targets, weights), 3, must_train=must_train)


def dealt(samples, labels):
    """The folds that chosen() makes, and the seed of its trials."""
    dealing, seed = (int(number) for number in np.random.default_rng(1).integers(2**31, size=2))
    return deal_folds(samples, labels, np.random.default_rng(dealing)), seed


# --- what is held out


def test_a_quarter_of_each_class_is_held_out_for_early_stopping():
    targets, labels = np.repeat([0, 1, 2], [40, 12, 4]), np.array([0, 0, 1, 2])
    samples = Samples(np.arange(56.0)[:, None], targets)
    kept, held = split_classes(samples, labels, np.random.default_rng(0), 0.25)
    assert_array_equal(np.bincount(targets[held]), [10, 3, 1])
    assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(56))
    assert not np.array_equal(held, split_classes(samples, labels, np.random.default_rng(1), 0.25)[1])


def test_each_sample_of_large_classes_is_held_out_in_one_fold():
    targets, labels = np.repeat([0, 1, 2], [41, 12, 5]), np.array([0, 0, 1, 2])
    samples = Samples(np.arange(58.0)[:, None], targets)
    folds = deal_folds(samples, labels, np.random.default_rng(0))
    assert len(folds) == FOLDS
    for kept, held in folds:
        assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(58))
        assert set(np.bincount(targets[held])) <= {10, 11, 3, 1, 2}
    assert_array_equal(np.sort(np.concatenate([held for _, held in folds])), np.arange(58))
    assert {len(held) for _, held in folds} == {14, 15}  # all folds have about the same size
    others = deal_folds(samples, labels, np.random.default_rng(1))
    assert not all(np.array_equal(fold[1], other[1]) for fold, other in zip(folds, others, strict=True))


@pytest.mark.parametrize(
    ("sizes", "labels"),
    [
        ((1, 2, 3, 4), (0, 1, 2, 3)),
        ((4, 4, 5, 9), (0, 0, 0, 1, 2, 2, 3)),
        ((8, 8, 9, 3), (0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 3)),
    ],
)
def test_small_classes_keep_one_more_than_they_have_prototypes(sizes, labels):
    targets = np.repeat(np.arange(4), sizes)
    samples = Samples(np.arange(len(targets), dtype=float)[:, None], targets)
    needed, sizes = np.bincount(labels) + 1, np.array(sizes)
    folds = deal_folds(samples, np.array(labels), np.random.default_rng(0))
    for kept, held in folds:
        assert (np.bincount(targets[kept], minlength=4) >= np.minimum(needed, sizes)).all()
        assert (np.bincount(targets[held], minlength=4) <= -(-sizes // FOLDS)).all()
    ever = np.bincount(targets[np.concatenate([held for _, held in folds])], minlength=4)
    assert_array_equal(ever > 0, sizes > needed)


def test_samples_of_weight_zero_are_in_no_part():
    weights = np.where(np.arange(len(Y)) % 3 == 0, 0.0, 1.5)
    samples = Samples(X, np.eye(3)[Y], weights)
    parts = [
        split_classes(samples, np.arange(3), np.random.default_rng(0), 0.25),
        *deal_folds(samples, np.arange(3), np.random.default_rng(0)),
    ]
    for kept, held in parts:
        assert_array_equal(np.sort(np.concatenate([kept, held])), np.flatnonzero(weights))


def test_equal_samples_stay_together_and_count_once():
    codes, targets = np.repeat(X, 2, axis=0), np.repeat(Y, 2)
    order = np.random.default_rng(0).permutation(len(codes))
    codes, targets = codes[order], targets[order]
    samples = Samples(codes, targets)
    parts = [
        split_classes(samples, np.arange(3), np.random.default_rng(0), 0.25),
        *deal_folds(samples, np.arange(3), np.random.default_rng(0)),
    ]
    for kept, held in parts:
        assert {*map(tuple, codes[kept])}.isdisjoint(map(tuple, codes[held]))
        assert_array_equal(np.bincount(targets[held]), [16, 16, 16])  # 8 of 32, twice


# --- how candidates are judged


@pytest.mark.parametrize("soft", [False, True])
def test_the_loss_is_the_least_over_sigma2(soft):
    rng = np.random.default_rng(0)
    sqdist, labels, weights = rng.uniform(0.1, 4, (40, 3)), np.arange(3), rng.uniform(0, 2, 40)
    own = np.eye(3)[sqdist.argmin(axis=1) * rng.integers(0, 2, 40)]
    own = 0.7 * np.eye(3)[sqdist.argmin(axis=1)] + 0.3 * rng.dirichlet(np.ones(3), 40) if soft else own
    targets = own if soft else own.argmax(axis=1)

    def loss(log_sigma2):
        log_p = log_softmax(-sqdist / 2 / np.exp(log_sigma2), axis=1)
        return -weights @ (own * log_p).sum(axis=1) / weights.sum()

    best = minimize_scalar(loss, bounds=(-6, 6), method="bounded", options={"xatol": 1e-9})
    for factor in (1.0, 1e-12):
        found = calibrated_loss(PLVQ(), factor * sqdist, targets, labels, 2.0 * factor, weights)
        assert_allclose(found[0], best.fun, rtol=1e-9)
        assert_allclose(found[1], factor * np.exp(best.x), rtol=1e-4)


def test_a_class_of_probability_zero_is_no_loss():
    loss, _ = calibrated_loss(RSLVQ(priors=(1.0, 1e-300)), np.array([[1e4, 2e4]]), np.array([0]), np.array([0, 1]), 1.0)
    assert loss == pytest.approx(0, abs=1e-12)


def judged_by_hand(sqdist, targets, weights):
    """Losses, their mean, error and recalibrated sigma2 for distances to one prototype per class, by SciPy alone."""
    total, own = len(targets) if weights is None else weights.sum(), np.eye(sqdist.shape[1])[targets]

    def losses(log_sigma2, soft=own):
        return -(soft * log_softmax(-sqdist / 2 / np.exp(log_sigma2), axis=1)).sum(axis=1)

    def best(soft):
        def mean(log_sigma2):
            return np.average(losses(log_sigma2, soft), weights=weights)

        return minimize_scalar(mean, bounds=(-7, 4), method="bounded", options={"xatol": 1e-10})

    hard = best(own)
    one_more = best((total * own + 1 / sqdist.shape[1]) / (total + 1))  # a sample of unknown class
    error = np.average(sqdist.argmin(axis=1) != targets, weights=weights)
    return losses(hard.x), hard.fun, error, np.exp(one_more.x)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_epochs", [24, 60, 120])
@pytest.mark.parametrize("rule", [HeldOut(), VALUES, HeldOut(["half_median", Annealed(2.0), "untrained"])], ids=repr)
def test_trials_are_fits_of_the_other_folds_judged_by_the_samples_held_out(rule, max_epochs, weighted):
    weights = np.random.default_rng(0).integers(1, 3, len(Y)).astype(float) if weighted else None
    choice, samples = chosen(rule, weights, max_epochs=max_epochs), Samples(X, Y, weights)
    all_folds, seed = dealt(samples, np.arange(3))
    shares = [3 / samples.total_weight, 0.1]
    schedules = {"auto": Constant(blended_sigma2(evidence_of(samples, 3))), "untrained": None}
    schedules["half_median"] = Constant(evidence_of(samples, 3).half_median)
    plans = []
    for value in rule.candidates:
        if value == "discriminant":  # these vectors have none
            continue
        schedule = schedules[value] if isinstance(value, str) else value if callable(value) else Constant(value)
        plans += [(schedule, share, isinstance(value, str)) for share in (shares if schedule else [None])]
    assert len(choice.trials) == len(plans)
    for number, (trial, (schedule, share, is_named)) in enumerate(zip(choice.trials, plans, strict=True)):
        sqdist, folds = [], all_folds[: trial.n_folds]
        pooled = np.concatenate([held for _, held in folds])
        for kept, held in folds:
            part, value = Samples(X[kept], Y[kept], None if weights is None else weights[kept]), schedule or Constant(1)
            start = value(0, trial.n_epochs) * min((share or 0.1) * 100 / max(trial.n_epochs, 1), 0.5)
            fit = Trainer(EuclideanVectors(), sigma2=value, step_size=GeometricDecay(start), max_epochs=trial.n_epochs)
            state = fit.init(part, 3, np.random.default_rng(seed))
            state, _ = fit.run(state, part, np.random.default_rng(seed))
            sqdist.append(((X[held][:, None] - np.asarray(state.prototypes)) ** 2).sum(axis=2))
        found = judged_by_hand(np.concatenate(sqdist), Y[pooled], None if weights is None else weights[pooled])
        assert trial.loss == pytest.approx(found[1], rel=1e-7)
        assert trial.error == pytest.approx(found[2], rel=1e-12)
        last = trial.sigma2 if schedule is None else schedule(trial.n_epochs, trial.n_epochs)
        is_recalibrated = is_named and number == choice.winner
        assert trial.calibration == pytest.approx(found[3] / last if is_recalibrated else 1.0, rel=1e-3)
        if schedule is None:
            assert (trial.step_size, trial.n_epochs, trial.n_visits) == (0.0, 0, 0)
        else:
            assert trial.sigma2 == pytest.approx(schedule(0, max_epochs), rel=1e-9)
            of_fit = trial.sigma2 * min(share * 100 / max_epochs, 0.5)
            assert trial.step_size == pytest.approx(of_fit, rel=1e-9)


def test_a_step_size_that_is_given_is_that_of_the_trials():
    choice = chosen(HeldOut(["auto", "untrained"]), step_size=0.05)
    first, untrained = choice.trials
    assert (first.step_size, untrained.step_size, choice.share) == (0.05, 0.0, None)
    samples = Samples(X, Y)
    folds, seed = dealt(samples, np.arange(3))
    sqdist, targets = [], []
    for kept, held in folds[: first.n_folds]:
        fit, part = Trainer(EuclideanVectors(), sigma2=first.sigma2, step_size=0.05, max_epochs=first.n_epochs), None
        part = Samples(X[kept], Y[kept])
        state, _ = fit.run(fit.init(part, 3, np.random.default_rng(seed)), part, np.random.default_rng(seed))
        sqdist.append(((X[held][:, None] - np.asarray(state.prototypes)) ** 2).sum(axis=2))
        targets.append(Y[held])
    assert first.loss == pytest.approx(judged_by_hand(np.concatenate(sqdist), np.concatenate(targets), None)[1])


@pytest.mark.parametrize("cost", [RSLVQ(), PLVQ()], ids=repr)
def test_the_loss_of_the_initial_prototypes_is_that_of_the_means_of_the_kept_samples(cost, monkeypatch):
    monkeypatch.setattr("rplvq.training._selection.FEW_VISITS", 0)  # one fold
    choice = chosen(cost=cost)
    [(kept, held), *_], _ = dealt(Samples(X, Y), np.arange(3))
    means = np.array([X[kept][Y[kept] == label].mean(axis=0) for label in range(3)])
    _, loss, error, _ = judged_by_hand(((X[held][:, None] - means) ** 2).sum(axis=2), Y[held], None)
    untrained = choice.trials[-1]
    assert (untrained.loss, untrained.error) == (pytest.approx(loss, rel=1e-7), pytest.approx(error))


# --- what it costs


@pytest.mark.parametrize("max_epochs", [1, 2, 3, 5, 12, 40, 100])
@pytest.mark.parametrize("step_size", ["auto", 0.1], ids=["two steps", "one step"])
@pytest.mark.parametrize("rule", [HeldOut(), VALUES, HeldOut([Annealed(), "half_median"])], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_trials_of_one_value_visit_at_most_a_third_of_the_samples_of_the_fit_or_3000(
    max_epochs, step_size, rule, weighted
):
    weights = np.full(len(Y), 2.0) if weighted else None
    choice = chosen(rule, weights, max_epochs=max_epochs, step_size=step_size)
    training = [trial for trial in choice.trials if trial.n_epochs]
    n_values = len([value for value in rule.candidates if value not in ("discriminant", "untrained")])
    per_value = np.reshape([trial.n_visits for trial in training], (n_values, -1)).sum(axis=1)
    fit = max_epochs * Samples(X, Y, weights).n_visits
    fold = Samples(X, Y, weights).n_visits * (1 - 1 / FOLDS)
    tiny = fold * len(training) // n_values  # one epoch on one fold for each step
    short = min(3000, 0.35 * 100 * Samples(X, Y, weights).n_visits)
    for visits in per_value:
        assert 0 < visits <= max(0.35 * fit, tiny, short)


@pytest.mark.parametrize("max_epochs", [90, 100])
def test_the_trials_cost_at_most_a_third_of_a_fit(max_epochs):
    visited = []

    def cost(sqdist, targets, labels, sigma2):
        visited.append(len(sqdist))
        return RSLVQ()(sqdist, targets, labels, sigma2)

    for step_size in ("auto", 0.1):
        visited.clear()
        rule = HeldOut(["auto", 0.5])
        model = RiemannianLVQ("euclidean_vectors", cost, step_size=step_size, max_epochs=max_epochs, random_state=0)
        model.fit(X, Y)
        plain = max(model.n_epochs_, 1) * len(Y)  # the cost of a fit without epochs is one pass
        assert plain < sum(visited) <= plain + 0.35 * max_epochs * len(Y)
        visited.clear()
        model = clone(model).set_params(sigma2=rule).fit(X, Y)
        plain = model.n_epochs_ * len(Y)
        assert plain < sum(visited) <= plain + 0.7 * max_epochs * len(Y)


def test_more_epochs_are_shared_among_folds_until_1000_samples_are_held_out():
    for n_samples, n_folds in ((40, 4), (1000, 4), (1333, 4), (1334, 3), (1999, 3), (2000, 2), (3999, 2), (4000, 1)):
        assert trial_size(100, n_samples)[0] == n_folds
    for max_epochs in range(1, 400):
        for n_plans in (1, 2):
            n_folds, n_epochs = trial_size(max_epochs, 40, n_plans)
            assert n_folds == 1 or n_epochs >= min(4, max_epochs)
            assert 1 <= n_epochs <= max_epochs
            # 0.35 times the fit, or 3000 visits of 40 samples, but not more than in a fit of 100 epochs
            assert n_folds * n_epochs * 0.75 * n_plans <= max(0.35 * max_epochs, 35)


def test_short_fits_of_few_samples_hold_out_all_folds():
    for max_epochs in (1, 3, 10, 20):
        assert trial_size(max_epochs, 120, 2) == (4, min(4, max_epochs))
        assert trial_size(max_epochs, 2000, 2)[0] == 1


# --- what is chosen


class Planted(Judge):
    """Knows the weights of held-out samples without any folds."""

    weights: np.ndarray | None
    n_held: int = 100

    @property
    def held(self):
        return Samples(np.empty(self.n_held), np.zeros(self.n_held, int), self.weights)


def planted(*columns, weights=None, n_tried=2):
    """A judge after ``n_tried`` of four folds, and what it found, for (name, losses (M,), error).

    "untrained" is the initial prototypes, and "discriminant" others that do not train either.
    """
    judge = Planted(Trainer(EuclideanVectors()), (None,) * n_tried, 3, Samples(X, Y), 100.0, 4)
    object.__setattr__(judge, "weights", weights)
    object.__setattr__(judge, "n_held", len(columns[0][1]))
    found = []
    for index, (name, losses, error) in enumerate(columns):
        plan, losses = Plan("auto", Constant(1.0 + index)), np.asarray(losses, float)
        if name in ("discriminant", "untrained"):
            plan = Plan(name, None, start=cast(Any, object()) if name == "discriminant" else None)
        found.append(Judged(plan, 1.0, np.empty((len(losses), 3)), 1.0, losses, judge.mean(losses), error, 0.0))
    return judge, found


def picked(*columns, weights=None):
    """Winner, and standard errors of the differences from the preferred candidate; arguments as for planted."""
    judge, found = planted(*columns, weights=weights)
    winner, first = judge.pick(found)
    return winner, [judge.margin(one, found[first]) for one in found]


def losses_of(mean, spread=0.0):
    """100 losses whose mean is known, half of them ``spread`` above it and half below."""
    return mean + spread * np.tile([1.0, -1.0], 50)


BASE = np.linspace(0.2, 1.0, 100)
NOISE = np.random.default_rng(0).permutation(np.repeat([1.0, -1.0], 50))  # of standard error 0.1


@pytest.mark.parametrize(
    ("gains", "wanted"),
    [
        ([0.0, 0.19], 0),  # the standard error of the difference is 0.1
        ([0.0, 0.21], 1),
        ([0.0, -0.21], 0),
        ([0.0, 0.15, 0.30], 1),  # the third does not beat the second
        ([0.0, 0.05, 0.30], 2),
        ([0.0, 0.15, 0.19], 0),
        ([0.0, 0.25, 0.30], 1),
    ],
)
def test_a_later_candidate_must_be_better_by_two_standard_errors(gains, wanted):
    """All differences to the first and to each other have the standard error 0.1, however the losses vary."""
    rng = np.random.default_rng(0)
    noise = np.linalg.qr(np.column_stack([np.ones(100), rng.normal(size=(100, len(gains)))]))[0][:, 1:]
    noise *= np.sqrt(0.5 * 100) * 1.0  # variance 1/2 each, so that differences have variance 1
    columns = [("value", BASE + noise[:, i] - gain, 0.1) for i, gain in enumerate(gains)]
    winner, margins = picked(*columns)
    assert winner == wanted
    assert margins[wanted] == 0
    assert_allclose(np.delete(margins, wanted), 0.1, rtol=1e-9)


@pytest.mark.parametrize(
    ("gain", "error", "trains"),
    [
        (0.09, 0.1, False),  # lower by less than a standard error
        (0.11, 0.1, True),
        (0.11, 0.2, False),  # as many errors
        (0.11, 0.3, False),  # more errors
        (-0.5, 0.0, False),  # fewer errors, but a larger loss
    ],
)
def test_training_must_lower_the_loss_by_a_standard_error_and_make_fewer_errors(gain, error, trains):
    trained = BASE - gain + losses_of(0.0, 1.0)
    for order in (1, -1):
        columns = [("value", trained, error), ("untrained", BASE, 0.2)][::order]
        winner, margins = picked(*columns)
        assert (columns[winner][0] != "untrained") == trains
        assert margins == pytest.approx([0.0, 0.1][::order])


def test_the_initial_prototypes_are_compared_with_the_candidate_that_would_train():
    """The second is best, the first is close to it, and is no better than the initial prototypes."""
    noisy = BASE + losses_of(0.0, 1.0)
    winner, _ = picked(("first", noisy, 0.1), ("second", BASE - 0.15, 0.1), ("untrained", noisy - 0.01, 0.2))
    assert winner == 2
    winner, _ = picked(("first", noisy, 0.1), ("second", BASE - 0.25, 0.1), ("untrained", noisy - 0.01, 0.2))
    assert winner == 1


@pytest.mark.parametrize(
    ("gain", "error", "wanted"),
    [
        (0.31, 0.1, "discriminant"),  # lower than training, though by less than two standard errors
        (0.29, 0.1, "value"),
        (0.31, 0.2, "untrained"),  # as many errors as the initial prototypes
        (0.09, 0.1, "value"),
    ],
)
def test_the_lower_loss_decides_between_training_and_a_discriminant(gain, error, wanted):
    columns = [
        ("value", BASE - 0.3 + NOISE, 0.1),
        ("discriminant", BASE - gain + NOISE[::-1], error),
        ("untrained", BASE, 0.2),
    ]
    assert columns[picked(*columns)[0]][0] == wanted
    without = [columns[1], columns[2]]
    assert without[picked(*without)[0]][0] == ("discriminant" if gain > 0.1 and error < 0.2 else "untrained")


def test_weights_of_losses_are_repetitions():
    weights = np.arange(100) % 3 + 0.0
    trained = BASE - 0.1 + np.random.default_rng(0).normal(size=100)
    _, margins = picked(("value", trained, 0.1), ("untrained", BASE, 0.2), weights=weights)
    difference = np.repeat(trained - BASE, weights.astype(int))
    assert margins[1] == pytest.approx(difference.std() / np.sqrt(len(difference)))


@pytest.mark.parametrize(("with_untrained", "wanted"), [(True, 2), (False, 0)])
def test_losses_that_are_infinite_win_over_nothing(with_untrained, wanted):
    lost = ("lost", np.full(100, np.inf), 1.0)
    untrained = [("untrained", BASE, 0.3)] if with_untrained else []
    assert picked(lost, lost, *untrained)[0] == wanted
    winner, margins = picked(lost, ("value", BASE - 0.1, 0.1), *untrained)
    assert winner == 1
    assert np.isfinite(margins).all()


def still_open(*columns, **more):
    """The names of the candidates that may still win."""
    judge, found = planted(*columns, **more)
    return [columns[i][0] for i in judge.open(found)]


def test_a_later_candidate_that_is_not_ahead_is_given_up_and_an_earlier_one_that_is_far_behind():
    def names(gain):
        return still_open(("first", BASE, 0.1), ("second", BASE + NOISE - gain, 0.1))

    assert names(-0.01) == ["first"]
    assert names(0.01) == names(0.29) == ["first", "second"]
    assert names(0.31) == ["second"]


@pytest.mark.parametrize(
    ("n_held", "gain", "wanted"),
    [
        (100, 0.13, ["careful"]),  # two standard errors on four folds are 0.14 on two
        (100, 0.15, ["bold"]),
        (50, 0.15, ["careful", "bold"]),
        (50, -0.01, ["careful"]),
    ],
)
def test_two_steps_of_one_sigma2_are_decided_by_half_of_the_folds(n_held, gain, wanted):
    noise = np.tile([1.0, -1.0], 50)[:n_held]
    judge, found = planted(("careful", BASE[:n_held], 0.1), ("bold", BASE[:n_held] + noise - gain, 0.1))
    found[1] = found[1]._replace(plan=found[0].plan)
    assert [("careful", "bold")[i] for i in judge.open(found)] == wanted


def test_trials_end_once_training_clearly_helps_or_harms():
    def names(gain, error, n_tried=2):
        return still_open(("value", BASE + NOISE - gain, error), ("untrained", BASE, 0.2), n_tried=n_tried)

    assert names(0.31, 0.1) == ["value"]
    assert names(0.31, 0.2) == names(0.29, 0.1) == names(-0.04, 0.2) == ["value", "untrained"]
    assert names(-0.06, 0.0) == names(-0.01, 0.0, n_tried=3) == names(0.09, 0.0, n_tried=4) == ["untrained"]
    assert names(0.01, 0.2, n_tried=3) == names(0.11, 0.2, n_tried=4) == ["value", "untrained"]


@pytest.mark.parametrize(
    ("gain", "wanted"),
    [
        (0.06, ["value", "discriminant", "untrained"]),  # one standard error on four folds is 0.07 on two
        (0.08, ["discriminant", "untrained"]),
        (-0.08, ["value", "untrained"]),
    ],
)
def test_training_and_a_discriminant_are_decided_by_half_of_the_folds(gain, wanted):
    trained = BASE - 0.2 + 0.5 * NOISE
    columns = [("value", trained, 0.1), ("discriminant", trained - gain + NOISE[::-1], 0.1), ("untrained", BASE, 0.1)]
    assert still_open(*columns) == wanted


def test_a_candidate_that_cannot_help_ends_without_the_other():
    columns = [
        ("value", BASE + NOISE + 0.06, 0.1),
        ("discriminant", BASE + 3 * NOISE[::-1] + 0.06, 0.1),
        ("untrained", BASE, 0.2),
    ]
    assert still_open(*columns) == ["discriminant", "untrained"]


def test_candidates_that_were_given_up_have_fewer_folds_and_the_winner_is_among_the_others():
    S, y = make_syn1(60, random_state=0)
    model = RiemannianLVQ("log_euclidean", random_state=0).fit(S, y)
    n_folds, won = model.trials_["n_folds"], model.trials_["chosen"]
    assert n_folds[won] == n_folds.max() > n_folds.min() >= 1
    assert np.isfinite(model.trials_["loss"]).all()


def test_training_that_diverges_is_no_candidate():
    choice = chosen(VALUES, step_size=StepSize(3e2, max_weight=None))
    losses = [trial.loss for trial in choice.trials if trial.n_epochs]
    assert np.isinf(losses).any()
    assert not np.isnan(losses).any()
    assert not choice.trains
    assert choice.winner == len(choice.trials) - 1
    assert choice.trials[0].calibration == 1


def test_where_it_must_train_the_initial_prototypes_are_no_candidate(monkeypatch):
    monkeypatch.setattr("rplvq.training._selection.FEW_VISITS", 0)  # one fold, so that nothing is given up
    free, bound = chosen(VALUES, step_size=1e-6), chosen(VALUES, step_size=1e-6, must_train=True)
    assert (free.trains, bound.trains) == (False, True)
    same = [trial._replace(seconds=0, margin=0) for trial in bound.trials]
    assert same == [trial._replace(seconds=0, margin=0) for trial in free.trials[:-1]]
    assert bound.schedule == Constant(VALUES.candidates[bound.winner])


def test_labels_as_soft_labels_choose_the_same():
    hard, soft = chosen(VALUES, cost=PLVQ()), chosen(VALUES, cost=PLVQ(), targets=np.eye(3)[Y])
    assert_allclose([t.loss for t in hard.trials], [t.loss for t in soft.trials], rtol=1e-9)
    assert [t.error for t in hard.trials] == pytest.approx([t.error for t in soft.trials])
    assert (hard.schedule, hard.winner) == (soft.schedule, soft.winner)


@pytest.mark.parametrize("make", [make_syn1, make_syn2])
@pytest.mark.parametrize("rule", ["auto", HeldOut(["half_median", 0.1, "untrained"])], ids=repr)
def test_a_fit_is_the_one_that_its_trials_chose_to_the_bit(make, rule):
    S, y = make(150, random_state=0)
    model = RiemannianLVQ("log_euclidean", sigma2=rule, max_epochs=20, random_state=0).fit(S, y)
    trials, (winner,) = model.trials_, np.flatnonzero(model.trials_["chosen"])
    settings = {"sigma2": trials["sigma2"][winner], "max_epochs": model.trainer_.max_epochs}
    if model.n_epochs_:
        settings["step_size"] = GeometricDecay(model.step_size_)  # it never ends early
        assert model.step_size_ == trials["step_size"][winner]
    else:
        assert trials["n_epochs"][winner] == 0
        settings |= {"max_epochs": 0, "init": "mean" if winner == len(trials["loss"]) - 1 else "discriminant"}
    same = RiemannianLVQ("log_euclidean", random_state=0, **settings).fit(S, y)
    assert_array_equal(model.prototypes_, same.prototypes_)
    assert model.state_.sigma2 == same.sigma2_
    assert model.sigma2_ == model.state_.sigma2 * trials["calibration"][winner]


def test_a_sigma2_that_is_given_is_not_recalibrated():
    model = RiemannianLVQ("euclidean_vectors", sigma2=HeldOut([0.2, 0.5]), max_epochs=12, random_state=0).fit(X, Y)
    assert model.sigma2_ in (0.2, 0.5)
    assert_array_equal(model.trials_["calibration"], 1.0)


@pytest.mark.parametrize("step_size", [0.05, GeometricDecay(0.05), "paper", "adaptive"], ids=repr)
def test_a_step_size_that_is_given_stays(step_size):
    S, y = make_syn2(40, random_state=0)
    rule = HeldOut(["auto", "half_median"])
    model = RiemannianLVQ("log_euclidean", sigma2=rule, step_size=step_size, max_epochs=10, random_state=0).fit(S, y)
    assert len(model.trials_["loss"]) == 2
    same = clone(model).set_params(sigma2=model.state_.sigma2).fit(S, y)
    assert_array_equal(model.prototypes_, same.prototypes_)


@pytest.mark.parametrize(("step_size", "n_trials"), [(StepSize(max_weight=0.5), 3), (None, 3), (GeometricDecay(), 2)])
def test_both_default_steps_are_tried_wherever_the_step_is_the_default(step_size, n_trials):
    trials = chosen(step_size=step_size, max_epochs=100).trials
    assert len(trials) == n_trials
    steps = [trial.step_size / trial.sigma2 for trial in trials]
    assert_allclose(steps, [3 / 96, *([0.1] if n_trials == 3 else []), 0.0])


def test_one_default_step_is_tried_where_few_samples_make_it_the_larger():
    samples = Samples(*vector_classes(per_class=8, n_classes=2))
    trials = choice_for(HeldOut(), Trainer(EuclideanVectors(), max_epochs=100), samples, 2).trials
    assert_allclose([trial.step_size / trial.sigma2 for trial in trials], [2 / 16, 0.0])


def test_where_training_harms_the_class_means_stay():
    S, y = make_syn2(60, random_state=0)
    settings = {"max_epochs": 20, "random_state": 0}
    model = RiemannianLVQ(**settings).fit(S, y)
    means = RiemannianLVQ(max_epochs=0, sigma2="half_median").fit(S, y)
    assert model.n_epochs_ == 0
    assert model.history_["epoch"].tolist() == [0]
    assert model.trials_["chosen"].tolist() == [False, False, False, True]
    assert_array_equal(model.prototypes_, means.prototypes_)
    fresh, labels = make_syn2(60, random_state=1)
    right = np.searchsorted(model.classes_, labels)
    loss, wide = (-m.predict_log_proba(fresh)[np.arange(len(labels)), right].mean() for m in (model, means))
    assert loss < wide  # its sigma2 is that of held-out samples
    trained = RiemannianLVQ(sigma2=HeldOut(["auto"]), **settings).fit(S, y)
    assert trained.n_epochs_ == 15
    assert len(model.partial_fit(S, y).history_["epoch"]) == 2


def test_the_trials_name_their_candidates():
    S, y = make_syn2(30, random_state=0)
    model = RiemannianLVQ(max_epochs=10, random_state=0).fit(S, y)
    assert model.trials_["candidate"].tolist() == ["auto", "auto", "discriminant", "untrained"]
    model = RiemannianLVQ(sigma2=HeldOut([0.5, Annealed(), "half_median"]), max_epochs=4, random_state=0).fit(S, y)
    numbers = [rule for rule in ("0.5", str(Annealed()), "half_median") for _ in range(2)]
    assert model.trials_["candidate"].tolist() == numbers
    assert RiemannianLVQ(max_epochs=0).fit(S, y).trials_["candidate"].dtype.kind == "U"


def test_partial_fit_trains_from_its_first_batch_on():
    S, y = make_syn2(60, random_state=0)
    means = RiemannianLVQ(sigma2=1.0, max_epochs=0).fit(S, y)
    for rule in ("auto", HeldOut()):
        model = RiemannianLVQ(sigma2=rule, max_epochs=20, random_state=0).partial_fit(S, y)
        assert model.n_epochs_ == 1
        assert np.abs(model.prototypes_ - means.prototypes_).max() > 0
        assert model.partial_fit(S, y).n_epochs_ == 2


def test_the_line_of_a_verbose_fit_says_what_was_chosen(capsys):
    S, y = make_syn2(60, random_state=0)
    model = RiemannianLVQ(max_epochs=20, random_state=0, verbose=1).fit(S, y)
    lines = [line for line in capsys.readouterr().err.splitlines() if "held-out" in line]
    loss = ", ".join(f"{value:.4g}" for value in model.trials_["loss"])
    best = f"{model.trials_['loss'][-1]:.4g}"
    assert lines == [f"RiemannianLVQ: chose the initial prototypes: held-out loss {best} of {loss}"]
    RiemannianLVQ(sigma2=HeldOut([0.1, 0.2]), max_epochs=4, random_state=0, verbose=1).fit(S, y)
    assert "RiemannianLVQ: chose sigma2 0." in capsys.readouterr().err
    RiemannianLVQ(max_epochs=20, random_state=0).fit(S, y)
    assert capsys.readouterr().err == ""


# --- where nothing can be chosen


@pytest.mark.parametrize("per_class", [1, 2, 3])
def test_too_few_samples_keep_the_initial_prototypes_or_take_the_first_candidate(per_class):
    S, y = spd_classes(per_class=per_class, n_classes=3)
    folds = deal_folds(Samples(S, y), np.arange(3), np.random.default_rng(0))
    assert sum(len(held) for _, held in folds) < MIN_HELD_OUT
    settings = {"max_epochs": 8, "random_state": 0}
    default = RiemannianLVQ(**settings).fit(S, y)
    means = RiemannianLVQ(max_epochs=0).fit(S, y)
    assert default.n_epochs_ == 0
    assert default.sigma2_ == means.sigma2_
    assert_array_equal(default.prototypes_, means.prototypes_)
    assert all(len(column) == 0 for column in default.trials_.values())
    first = RiemannianLVQ(sigma2=HeldOut([0.7, 0.1]), **settings).fit(S, y)
    assert (first.sigma2_, first.n_epochs_) == (0.7, 8)


def test_where_the_rule_cannot_tell_the_trials_cannot():
    S, y = np.repeat([[0.0], [1.0]], 30, axis=0), np.repeat([0, 1], 30)
    model = RiemannianLVQ("euclidean_vectors", init=(S[:1].repeat(2, 0), [0, 1]))
    refuse(model, "fit", S[:30] * 0, y[15:45], match="half the median .* Give sigma2 a number")


def test_a_class_of_one_sample_beside_large_ones():
    S, y = np.concatenate([X, [[30.0, 30.0, 30.0]]]), np.append(Y, 7)
    model = RiemannianLVQ("euclidean_vectors", max_epochs=24, random_state=0).fit(S, y)
    assert len(model.trials_["loss"]) == 3
    assert model.predict(S[-1:]) == 7
    one = np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:2]]  # only one class can be judged
    model = RiemannianLVQ("euclidean_vectors", max_epochs=24, random_state=0).fit(X[one], Y[one])
    assert len(model.trials_["loss"]) == model.n_epochs_ == 0


def test_no_epochs_need_no_trials():
    choice = chosen(max_epochs=0)
    assert (choice.trials, choice.trains) == ((), False)
    assert choice.schedule == Constant(likeliest_sigma2(evidence_of(Samples(X, Y), 3)))
    assert chosen(HeldOut([0.3, "untrained"]), max_epochs=0).schedule == Constant(0.3)


@pytest.mark.parametrize(
    ("candidate", "wanted"),
    [
        (0.5, lambda evidence: 0.5),
        ("half_median", lambda evidence: half_median(evidence.sqdist)),
        ("auto", blended_sigma2),
    ],
    ids=["number", "half_median", "auto"],
)
def test_a_single_value_is_used_without_trials(candidate, wanted):
    choice = chosen(HeldOut([candidate]), step_size=0.1)
    assert choice == (Constant(wanted(evidence_of(Samples(X, Y), 3))), None, True, (), -1, None)


def test_the_share_of_the_samples_decides_the_step_where_there_are_no_trials():
    model = RiemannianLVQ("euclidean_vectors", random_state=0)
    assert model.partial_fit(X, Y).step_size_ == pytest.approx(model.state_.sigma2 * 3 / len(Y))


# --- an initializer of the user's own on a part of the samples


def test_folds_whose_first_prototypes_have_other_labels_are_left_out():
    """This initializer gives the class of the first sample that it sees one prototype more."""

    def moody(manifold, codes, targets, n_classes, rng, **extra):
        counts = [1] * n_classes
        counts[int(targets[np.argmax(codes[:, 0])])] += 1
        return ClassMeans(tuple(counts))(manifold, codes, targets, n_classes, rng, **extra)

    n_folds = []
    for seed in range(6):
        model = RiemannianLVQ("euclidean_vectors", init=moody, max_epochs=100, random_state=seed).fit(X, Y)
        assert np.isfinite(model.trials_["loss"]).all()
        n_folds.append(int(model.trials_["n_folds"][0]))
    assert min(n_folds) < 4


def test_an_initializer_that_needs_all_samples_leaves_nothing_to_compare():
    def greedy(manifold, codes, targets, n_classes, rng, **extra):
        if len(codes) < len(Y):
            raise ValueError("give me all samples")
        return ClassMeans()(manifold, codes, targets, n_classes, rng, **extra)

    model = RiemannianLVQ("euclidean_vectors", init=greedy, max_epochs=24, random_state=0).fit(X, Y)
    assert len(model.trials_["loss"]) == model.n_epochs_ == 0
    model.set_params(sigma2=HeldOut([0.5, 1.0])).fit(X, Y)
    assert (model.sigma2_, model.n_epochs_) == (0.5, 15)


@pytest.mark.parametrize("max_epochs", [0, 1, 24])
def test_prototypes_are_made_for_the_folds_that_are_tried_and_for_the_fit(max_epochs):
    seen = []

    def means(*given, **other):
        seen.append(len(given[1]))
        return ClassMeans()(*given, **other)

    model = RiemannianLVQ("euclidean_vectors", init=means, max_epochs=max_epochs, random_state=0).fit(X, Y)
    n_folds = int(model.trials_["n_folds"][0]) if max_epochs else 0
    assert seen == [96, *[72] * n_folds]


# --- as any other sigma2


@EVERY
def test_every_manifold_chooses(case):
    S, y = case.points(np.random.default_rng(0), 48, 3), np.repeat([0, 1], 24)
    for rule in ("auto", HeldOut(["auto", "half_median", 1.0])):
        model = RiemannianLVQ(case.manifold(3), sigma2=rule, max_epochs=6, random_state=0).fit(S, y)
        assert 0 < model.sigma2_ < np.inf
        assert np.isfinite(model.predict_log_proba(S)).all()
        assert np.isfinite(model.trials_["loss"]).all()
        assert model.trials_["chosen"].sum() == 1


@pytest.mark.parametrize(
    "cost",
    [
        GLVQ(),
        PLVQ(),
        SpreadRSLVQ([1.0, 0.5, 2.0], FlatGaussian(3)),
        RSLVQ(priors=(0.2, 0.3, 0.5)),
        RSLVQ() + 0.1 * Representability(),
        2.0 * PLVQ(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("init", ["mean", "kmeans"])
def test_every_cost_and_several_prototypes_per_class(cost, init):
    model = RiemannianLVQ(
        "euclidean_vectors", cost, prototypes_per_class={0: 2, 1: 1, 2: 3}, init=init, max_epochs=100, random_state=0
    ).fit(X, Y)
    assert 2 <= model.trials_["n_folds"].max() <= 4
    assert np.isfinite(model.trials_["loss"]).all()
    assert model.trials_["chosen"].sum() == 1
    assert model.n_epochs_ == model.history_["epoch"][-1]
    assert model.score(X, Y) > 0.5


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean"])
def test_complex_matrices_are_chosen_for(manifold):
    S, y = spd_classes(per_class=30, dtype=complex, spread=0.6)
    model = RiemannianLVQ(manifold, max_epochs=12, random_state=0).fit(S, y)
    assert len(model.trials_["loss"]) == 3
    assert model.score(S, y) > 0.6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("init", ["mean", "kmeans"])
def test_a_seed_gives_the_same_bits_in_any_order(weighted, init):
    S, y = spd_classes(per_class=30, spread=0.6)
    weights = np.random.default_rng(0).uniform(0, 2, len(y)) if weighted else None
    model = RiemannianLVQ(prototypes_per_class=2, init=init, max_epochs=12, random_state=3)
    order = np.random.default_rng(0).permutation(len(y))
    first = clone(model).fit(S, y, weights)
    again = clone(model).fit(S[order], y[order], None if weights is None else weights[order])
    assert_array_equal(first.prototypes_, again.prototypes_)
    assert first.sigma2_ == again.sigma2_
    for name in set(first.trials_) - {"seconds"}:
        assert_array_equal(first.trials_[name], again.trials_[name])


@pytest.mark.parametrize("rule", ["auto", HeldOut(["half_median", 0.3, "untrained"])], ids=repr)
@pytest.mark.parametrize("max_epochs", [20, 90])
def test_an_integer_weight_is_a_repetition(rule, max_epochs):
    S, y = spd_classes(per_class=30, spread=0.6)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    model = RiemannianLVQ("log_euclidean", sigma2=rule, max_epochs=max_epochs, random_state=0)
    weighted, repeated = clone(model).fit(S, y, weights), clone(model).fit(S.repeat(weights, 0), y.repeat(weights))
    assert weighted.trials_["candidate"].tolist() == repeated.trials_["candidate"].tolist()
    for name in set(weighted.trials_) - {"candidate", "seconds"}:
        assert_allclose(weighted.trials_[name], repeated.trials_[name], rtol=1e-9, atol=1e-12)
    assert weighted.sigma2_ == pytest.approx(repeated.sigma2_, rel=1e-12)
    assert_allclose(weighted.prototypes_, repeated.prototypes_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rule", ["auto", HeldOut([0.3, "half_median", Annealed(power=1.0), "untrained"])], ids=repr)
def test_saved_and_pickled_models_are_the_same(tmp_path, rule):
    S, y = spd_classes(per_class=30)
    model = RiemannianLVQ(sigma2=rule, max_epochs=6, random_state=0).fit(S, y)
    model.save(tmp_path / "model.npz")
    for again in (load_model(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert again.sigma2 == rule
        assert_array_equal(again.predict_proba(S), model.predict_proba(S))
        assert (again.sigma2_, again.step_size_, again.n_epochs_) == (model.sigma2_, model.step_size_, model.n_epochs_)
        assert list(again.trials_) == list(model.trials_) == [*Trial._fields, "chosen"]
        for name, column in model.trials_.items():
            assert_array_equal(again.trials_[name], column)
            assert again.trials_[name].dtype == column.dtype


def test_a_model_that_did_not_train_is_saved(tmp_path):
    S, y = make_syn2(60, random_state=0)
    model = RiemannianLVQ(max_epochs=20, random_state=0).fit(S, y)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert model.n_epochs_ == 0
    assert (again.sigma2_, again.n_epochs_) == (model.sigma2_, 0)
    assert_array_equal(again.predict_proba(S), model.predict_proba(S))


def test_a_resumed_fit_has_the_trials_of_the_one_that_ended(tmp_path):
    S, y = spd_classes(per_class=30, spread=0.6)

    def stop(report):
        if report.state.epoch == 3:
            raise RuntimeError("the machine is switched off")

    path = tmp_path / "fit.npz"
    rule = HeldOut(["auto", "half_median"])
    whole = RiemannianLVQ(sigma2=rule, max_epochs=6, callbacks=[Checkpoint(path)], random_state=0)
    whole.fit(S, y)
    broken = clone(whole).set_params(callbacks=[Checkpoint(path), stop])
    with pytest.raises(RuntimeError, match="switched off"):
        broken.fit(S, y)
    resumed = clone(whole).fit(S, y, resume=path)
    assert_array_equal(resumed.prototypes_, whole.prototypes_)
    assert (resumed.sigma2_, resumed.step_size_) == (whole.sigma2_, whole.step_size_)
    assert list(resumed.trials_) == list(whole.trials_)
    for name in set(whole.trials_) - {"seconds"}:
        assert_array_equal(resumed.trials_[name], whole.trials_[name])


def test_where_it_cannot_be_is_said():
    S, y = spd_classes(per_class=30)
    refuse(RiemannianLVQ(step_size=HeldOut()), "fit", S, y, match="step_size must be a positive number, a Schedule")
    trainer = Trainer(EuclideanVectors(), sigma2=HeldOut())
    with pytest.raises(ValueError, match="sigma2 must be a positive number, a Schedule"):
        trainer.init(Samples(X, Y), 3, np.random.default_rng(0))
    for name in ("heldout", "blended", "untrained"):
        with pytest.raises(ValueError, match=f"sigma2 must be a positive number, a Schedule .* got '{name}'"):
            attrs.evolve(trainer, sigma2=name).init(Samples(X, Y), 3, np.random.default_rng(0))


def test_trials_leave_growth_to_the_fit():
    """A fit with rules of growth trains in any case, and its trials do not grow."""
    S, y = make_syn1(n_per_class=30, random_state=0)
    model = RiemannianLVQ(max_epochs=8, growth=[Grow(every=1, gain=None)], random_state=0).fit(S, y)
    plain = clone(model).set_params(growth=(), sigma2=HeldOut(["auto"])).fit(S, y)
    assert len(model.trials_["loss"]) == 2
    assert model.n_epochs_ == 8
    assert model.history_["sigma2"][0] == plain.history_["sigma2"][0]
    assert len(model.prototypes_) > len(plain.prototypes_) == 4


# --- the probabilities


def losses_and_confidence(model, S, y):
    """Accuracy, mean confidence and log-loss."""
    proba = model.predict_proba(S)
    own = proba[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return model.score(S, y), proba.max(axis=1).mean(), -np.log(own).mean()


@pytest.mark.parametrize("per_class", [8, 16])
@pytest.mark.parametrize("make", [make_syn1, make_syn2])
def test_few_samples_give_probabilities_that_are_neither_timid_nor_certain(make, per_class):
    found, timid = [], []
    for seed in range(4):
        S, y = make(per_class + 100, random_state=seed)
        few = np.concatenate([np.flatnonzero(y == label)[:per_class] for label in np.unique(y)])
        fresh, labels = np.delete(S, few, axis=0), np.delete(y, few)
        S, y = S[few], y[few]
        found.append(losses_and_confidence(RiemannianLVQ(max_epochs=40, random_state=0).fit(S, y), fresh, labels))
        timid.append(losses_and_confidence(RiemannianLVQ(sigma2="half_median", max_epochs=0).fit(S, y), fresh, labels))
    (accuracy, confidence, loss), (_, low, high) = np.mean(found, axis=0), np.mean(timid, axis=0)
    assert abs(accuracy - confidence) < 0.25
    assert accuracy - low > 0.08
    assert loss < high


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("shift", [6.0, 10.0, 40.0])
def test_held_out_samples_that_are_all_right_do_not_make_probabilities_one(shift, seed):
    S, y = vector_classes(seed=seed, per_class=8, n_classes=3, shift=shift)
    model = RiemannianLVQ("euclidean_vectors", max_epochs=100, random_state=0).fit(S, y)
    assert (model.trials_["error"] == 0).all()
    between = 0.5 * (model.prototypes_[0] + model.prototypes_[1]) + 0.02 * (model.prototypes_[0] - model.prototypes_[1])
    confidence = model.predict_proba([between]).max()
    assert 0.5 < confidence < 0.95


def test_recalibration_with_many_samples_is_that_of_the_held_out_samples_alone():
    trials = chosen(max_epochs=100).trials
    [*_, untrained], samples = trials, Samples(X, Y)
    sqdist, targets = [], []
    for kept, held in dealt(samples, np.arange(3))[0]:
        means = np.array([X[kept][Y[kept] == label].mean(axis=0) for label in range(3)])
        sqdist.append(((X[held][:, None] - means) ** 2).sum(axis=2))
        targets.append(Y[held])
    sqdist, targets = np.concatenate(sqdist), np.concatenate(targets)
    count = len(targets)
    soft = (count * np.eye(3)[targets] + 1 / 3) / (count + 1)
    alone, mixed = (calibrated_loss(RSLVQ(), sqdist, each, np.arange(3), 1.0)[1] for each in (targets, soft))
    assert untrained.sigma2 * untrained.calibration == pytest.approx(mixed, rel=1e-4)
    assert mixed == pytest.approx(alone, rel=0.1)
