"""sigma2 chosen on held-out samples: what is held out, what it costs, what is chosen, and where nothing can be."""

from __future__ import annotations

import pickle

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone

from rplvq import (
    PLVQ,
    RSLVQ,
    Annealed,
    ClassMeans,
    Constant,
    EuclideanVectors,
    GeometricDecay,
    Grow,
    HeldOut,
    RiemannianLVQ,
    StepSize,
    Trainer,
    load_model,
)
from rplvq.arrays import Samples, visits
from rplvq.costs import calibrated_loss
from rplvq.datasets import load_digits_covariances, make_syn1, make_syn2
from rplvq.schedules import AUTO, blended_sigma2, half_median, initial_evidence
from rplvq.training import choose_sigma2
from rplvq.training._selection import FEWEST, annealed, first_values, grid, is_one_round, price, split_classes
from tests.cases import EVERY
from tests.problems import refuse, spd_classes, vector_classes

X, Y = vector_classes(per_class=30, n_classes=3, shift=0.7)


def choice_for(rule, trainer, samples, n_classes, **settings):
    """Choice of a bare trainer from its own initial prototypes."""
    first = trainer.first_prototypes(samples, n_classes, np.random.default_rng(0))
    evidence = initial_evidence(trainer.manifold, trainer.cost, *first, samples)
    return choose_sigma2(rule, trainer, evidence, samples, n_classes, np.random.default_rng(1), **settings)


def chosen(rule=None, weights=None, cost=None, targets=Y, must_train=False, manifold=None, **settings):
    """Choice for the vectors, by a bare trainer."""
    settings = {"step_size": 0.1, "max_epochs": 12} | settings
    trainer = Trainer(manifold or EuclideanVectors(), cost or RSLVQ(), **settings)
    return choice_for(rule or HeldOut(), trainer, Samples(X, targets, weights), 3, must_train=must_train)


def evidence_of(samples, n_classes):
    """What the rules for sigma2 read."""
    trainer = Trainer(EuclideanVectors())
    first = trainer.first_prototypes(samples, n_classes, np.random.default_rng(0))
    return initial_evidence(trainer.manifold, trainer.cost, *first, samples)


# --- what is held out


def test_a_quarter_of_each_class_is_held_out():
    targets, labels = np.repeat([0, 1, 2], [40, 12, 4]), np.array([0, 0, 1, 2])
    samples = Samples(np.arange(56.0)[:, None], targets)
    kept, held = split_classes(samples, labels, np.random.default_rng(0))
    assert_array_equal(np.bincount(targets[held]), [10, 3, 1])
    assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(56))
    assert not np.array_equal(held, split_classes(samples, labels, np.random.default_rng(1))[1])


@pytest.mark.parametrize(
    ("sizes", "labels", "wanted"),
    [
        ((1, 2, 3, 4), (0, 1, 2, 3), (0, 0, 1, 1)),  # two stay of a class with one prototype
        ((4, 4, 5, 9), (0, 0, 0, 1, 2, 2, 3), (0, 1, 1, 2)),
        ((8, 8, 9, 3), (0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 3), (0, 2, 2, 1)),
    ],
)
def test_small_classes_keep_one_more_than_they_have_prototypes(sizes, labels, wanted):
    targets = np.repeat(np.arange(4), sizes)
    samples = Samples(np.arange(len(targets), dtype=float)[:, None], targets)
    _, held = split_classes(samples, np.array(labels), np.random.default_rng(0))
    found = np.bincount(targets[held], minlength=4)
    assert_array_equal(found, wanted)
    assert (np.array(sizes) - found >= np.minimum(np.bincount(labels) + 1, sizes)).all()


def test_samples_of_weight_zero_are_in_neither_part():
    weights = np.where(np.arange(len(Y)) % 3 == 0, 0.0, 1.5)
    kept, held = split_classes(Samples(X, np.eye(3)[Y], weights), np.arange(3), np.random.default_rng(0))
    assert_array_equal(np.sort(np.concatenate([kept, held])), np.flatnonzero(weights))


def test_equal_samples_stay_together_and_count_once():
    codes, targets = np.repeat(X, 2, axis=0), np.repeat(Y, 2)
    order = np.random.default_rng(0).permutation(len(codes))
    kept, held = split_classes(Samples(codes[order], targets[order]), np.arange(3), np.random.default_rng(0))
    assert {*map(tuple, codes[order][kept])}.isdisjoint(map(tuple, codes[order][held]))
    assert_array_equal(np.bincount(targets[order][held]), [16, 16, 16])  # 8 of 30, twice


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
        assert_allclose(found, (best.fun, factor * np.exp(best.x)), rtol=1e-5)


def test_a_class_of_probability_zero_is_no_loss():
    loss, _ = calibrated_loss(RSLVQ(priors=(1.0, 1e-300)), np.array([[1e4, 2e4]]), np.array([0]), np.array([0, 1]), 1.0)
    assert loss == pytest.approx(0, abs=1e-12)


# --- what it costs


@pytest.mark.parametrize("max_epochs", [1, 2, 3, 5, 12, 40])
@pytest.mark.parametrize(
    "rule",
    [HeldOut(), HeldOut([0.3, 0.4, 0.5, 0.6, "annealed", "untrained"]), HeldOut([0.2, 0.4, 0.6, 0.8, 1.0])],
    ids=["all", "four and annealed", "five values"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_trials_visit_fewer_samples_than_two_fits(max_epochs, rule, weighted):
    weights = np.random.default_rng(0).uniform(0, 3, len(Y)) if weighted else None
    choice = chosen(rule, weights, max_epochs=max_epochs)
    total = sum(trial.n_visits for trial in choice.trials)
    assert 0 < total <= 2 * max_epochs * len(visits(len(Y), weights)[0])
    assert max(trial.n_epochs for trial in choice.trials) <= max_epochs
    if max_epochs > 5:
        assert len({trial.n_epochs for trial in choice.trials if trial.n_epochs}) == 2


def test_a_whole_fit_visits_fewer_samples_than_three():
    class Counting:
        count = 0

        def __call__(self, sqdist, targets, labels, sigma2):
            Counting.count += len(sqdist)
            return RSLVQ()(sqdist, targets, labels, sigma2)

    rule = HeldOut(["grid", "gentle", "annealed"])
    RiemannianLVQ("euclidean_vectors", Counting(), sigma2=rule, step_size=0.1, max_epochs=20).fit(X, Y)
    assert 2.5 * 20 * len(Y) < Counting.count <= 3 * 20 * len(Y)


def test_the_default_costs_less_than_half_a_fit_more():
    visits = []

    def cost(sqdist, targets, labels, sigma2):
        visits.append(len(sqdist))
        return RSLVQ()(sqdist, targets, labels, sigma2)

    for step_size in (0.1, None):  # two trials and three
        visits.clear()
        RiemannianLVQ("euclidean_vectors", cost, step_size=step_size, max_epochs=40).fit(X, Y)
        assert 1.35 * 40 * len(Y) < sum(visits) <= 1.4 * 40 * len(Y)


# --- what is chosen


def test_the_grid_goes_from_half_of_blended_to_twice_the_half_median():
    assert_allclose(grid(1.0, 4.0, 5), [0.5, 1, 2, 4, 8])
    assert grid(1.0, 4.0, 2) == [1.0, 4.0]
    assert grid(1.0, 4.0, 1) == [1.0]
    fallen = annealed(3.0)
    assert fallen.start == 3.0
    assert fallen.start - fallen.drop == pytest.approx(0.75)
    assert 0.6 < fallen(100, 100) < 0.75


@pytest.mark.parametrize(
    ("candidates", "at_most", "wanted"),
    [
        (["blended", 5.0], 9, [1.0, 5.0]),
        (["half_median", "gentle", 0.5, "untrained", "annealed"], 9, [4.0, 0.5]),
        (["grid"], 3, [0.5, 2.0, 8.0]),
        (
            ["grid", 7.0],
            9,
            [0.5, 0.5 * 2 ** (2 / 3), 0.5 * 2 ** (4 / 3), 2.0, 2 * 2 ** (2 / 3), 2 * 2 ** (4 / 3), 8.0, 7.0],
        ),
        ([1, np.float32(0.5), np.array(2.0)], 9, [1.0, 0.5, 2.0]),
        ([1.0, 2.0, 3.0], 2, [1.0, 2.0]),
    ],
)
def test_the_first_round_tries_names_numbers_and_schedules_in_their_order(candidates, at_most, wanted):
    found = first_values(HeldOut(candidates), 1.0, 4.0, at_most)
    assert_allclose([schedule(0, 1) for schedule in found], wanted)
    assert all(isinstance(schedule, Constant) for schedule in found)


def test_schedules_are_tried_as_they_are_and_start_where_blended_does():
    rule = HeldOut([Annealed(2.0), Annealed(), GeometricDecay(ratio=0.5), 3.0])
    assert first_values(rule, 1.5, 4.0, 9) == [
        Annealed(2.0), Annealed(1.5), GeometricDecay(1.5, ratio=0.5), Constant(3.0)
    ]  # fmt: skip
    trials = chosen(rule).trials
    assert trials[0].schedule == Annealed(2.0)
    assert {trial.schedule for trial in trials} == set(first_values(rule, trials[1].schedule.start, 4.0, 9))
    assert trials[1].schedule.start == blended_sigma2(evidence_of(Samples(X, Y), 3))


@pytest.mark.parametrize(
    ("candidates", "one_round"),
    [
        (("grid", "gentle", "annealed", "untrained"), False),
        (("blended", "half_median", "gentle"), True),
        (("blended", "half_median", "gentle", "untrained"), True),
        ((0.1, 0.2, 0.3, "untrained"), True),
        ((0.1, 0.2, 0.3, 0.4), False),
        ((0.1, 0.2, 0.3, 0.4, "annealed"), False),
        (("grid",), False),
    ],
)
def test_few_candidates_are_decided_in_one_round_at_a_lower_price(candidates, one_round):
    rule = HeldOut(candidates)
    assert is_one_round(rule) == one_round
    assert price(rule) == (0.4 if one_round else 2.0)
    choice = chosen(rule, max_epochs=30)
    counts = {trial.n_epochs for trial in choice.trials if trial.n_epochs}
    assert len(counts) == (1 if one_round else 2)
    total = sum(trial.n_visits for trial in choice.trials)
    assert 0.7 * price(rule) * 30 * len(Y) < total <= price(rule) * 30 * len(Y)


def test_the_best_of_the_second_round_or_the_initial_prototypes_are_chosen():
    choice = chosen()
    n_epochs = [trial.n_epochs for trial in choice.trials]
    first, last, untrained = choice.trials[:7], choice.trials[7:10], choice.trials[10]
    assert n_epochs == [n_epochs[0]] * 7 + [n_epochs[7]] * 3 + [0]
    best = sorted(first, key=lambda trial: trial.loss)[:2]
    assert [trial.schedule for trial in last[:2]] == [trial.schedule for trial in best]
    assert isinstance(last[2].schedule, Annealed)
    assert last[2].schedule == annealed(best[0].schedule.value)
    winner = min([*last, untrained], key=lambda trial: trial.loss)
    assert choice.schedule == winner.schedule
    assert choice.trains == (winner is not untrained)


@pytest.mark.parametrize("cost", [RSLVQ(), PLVQ()], ids=repr)
def test_the_loss_of_the_initial_prototypes_is_that_of_the_means_of_the_kept_samples(cost):
    choice = chosen(HeldOut(["blended", "untrained"]), cost=cost)
    kept, held = halves()
    means = np.array([X[kept][Y[kept] == label].mean(axis=0) for label in range(3)])
    sqdist = ((X[held][:, None] - means) ** 2).sum(axis=2)
    blended = blended_sigma2(evidence_of(Samples(X, Y), 3))
    loss, sigma2 = calibrated_loss(cost, sqdist, Y[held], np.arange(3), blended)
    untrained = choice.trials[-1]
    assert untrained.n_epochs == untrained.n_visits == 0
    assert untrained.loss == pytest.approx(loss, rel=1e-9)
    assert untrained.schedule.value == pytest.approx(sigma2, rel=1e-6)


def halves():
    """Rows that chosen() keeps and holds out."""
    splitting, _ = (int(number) for number in np.random.default_rng(1).integers(2**31, size=2))
    return split_classes(Samples(X, Y), np.arange(3), np.random.default_rng(splitting))


def test_a_trial_is_the_fit_of_the_kept_samples():
    trial = chosen().trials[3]
    _, seed = (int(number) for number in np.random.default_rng(1).integers(2**31, size=2))
    trainer, (kept, held) = Trainer(EuclideanVectors(), step_size=0.1), halves()
    pilot = attrs.evolve(trainer, sigma2=trial.schedule, max_epochs=trial.n_epochs)
    samples = Samples(X[kept], Y[kept])
    state = pilot.init(samples, 3, np.random.default_rng(seed))
    state, _ = pilot.run(state, samples, np.random.default_rng(seed))
    sqdist = trainer.manifold.sqdist(state.prototypes, X[held])
    assert trial.loss == calibrated_loss(RSLVQ(), sqdist, Y[held], np.arange(3), trial.schedule.value)[0]


def test_where_training_harms_the_start_stays():
    S, y = make_syn2(60, random_state=0)
    settings = {"max_epochs": 20, "random_state": 0}
    model = RiemannianLVQ(sigma2="heldout", **settings).fit(S, y)
    means = RiemannianLVQ(max_epochs=0).fit(S, y)
    assert model.n_epochs_ == 0
    assert model.history_ == {}
    assert_array_equal(model.prototypes_, means.prototypes_)
    fresh, labels = make_syn2(60, random_state=0)
    right = np.searchsorted(model.classes_, labels)
    loss, wide = (-m.predict_log_proba(fresh)[np.arange(len(labels)), right].mean() for m in (model, means))
    assert loss < wide  # its sigma2 is that of held-out samples
    trained = RiemannianLVQ(sigma2=HeldOut(["grid", "gentle", "annealed"]), **settings).fit(S, y)
    assert trained.n_epochs_ == 20
    assert len(model.partial_fit(S, y).history_["epoch"]) == 1


def test_partial_fit_trains_from_its_first_batch_on():
    S, y = make_syn2(60, random_state=0)
    model = RiemannianLVQ(sigma2="heldout", max_epochs=20, random_state=0).partial_fit(S, y)
    assert model.n_epochs_ == 1
    means = RiemannianLVQ(sigma2=1.0, max_epochs=0).fit(S, y)
    assert np.abs(model.prototypes_ - means.prototypes_).max() > 0
    assert model.partial_fit(S, y).n_epochs_ == 2


def test_where_it_must_train_the_initial_prototypes_are_no_candidate():
    free, bound = chosen(), chosen(must_train=True)
    assert bound.trains
    assert bound.trials == free.trials[:-1]
    assert bound.schedule == min(bound.trials[7:], key=lambda trial: trial.loss).schedule


def test_the_annealed_candidate_is_tried_where_the_first_round_trains_for_all_epochs():
    choice = chosen(HeldOut(["blended", "annealed"]))
    first, last = choice.trials
    assert first.n_epochs == last.n_epochs
    assert last.schedule == annealed(first.schedule.value)
    assert choice.schedule == min(choice.trials, key=lambda trial: trial.loss).schedule


def test_labels_as_soft_labels_choose_the_same():
    hard, soft = chosen(cost=PLVQ()), chosen(cost=PLVQ(), targets=np.eye(3)[Y])
    assert_allclose([t.loss for t in hard.trials], [t.loss for t in soft.trials], rtol=1e-9)
    assert hard.schedule == soft.schedule


def test_training_that_diverges_is_no_candidate():
    choice = chosen(step_size=StepSize(3e2, max_weight=None))
    losses = [trial.loss for trial in choice.trials if trial.n_epochs]
    assert np.isinf(losses).any()
    assert not np.isnan(losses).any()
    assert not choice.trains
    assert choice.schedule == choice.trials[-1].schedule


# --- the default: the best of two rules and a gentle step


def digits(count, random_state):
    """Covariances of handwritten digits."""
    S, y = load_digits_covariances()
    order = np.random.default_rng(random_state).permutation(len(y))[: 4 * count]
    return S[order], y[order]


def rules_of(S, y):
    """sigma2 by "blended" and by the half-median, in a fit that does not train."""
    return [RiemannianLVQ(sigma2=rule, max_epochs=0).fit(S, y).sigma2_ for rule in ("blended", "half_median")]


def test_the_default_tries_blended_and_the_half_median_once():
    choice = chosen(AUTO, max_epochs=24)
    evidence = evidence_of(Samples(X, Y), 3)
    assert [trial.schedule.value for trial in choice.trials] == [blended_sigma2(evidence), half_median(evidence.sqdist)]
    assert [trial.n_epochs for trial in choice.trials] == [6, 6]
    assert choice.schedule == min(choice.trials, key=lambda trial: trial.loss).schedule


@pytest.mark.parametrize(("per_class", "schedules"), [(30, [None, None]), (300, [None, None, "auto"])])
@pytest.mark.parametrize("max_weight", [1.0, 0.5])
def test_a_gentle_step_is_tried_where_it_is_smaller_than_the_papers(per_class, schedules, max_weight):
    samples = Samples(*vector_classes(per_class=per_class, shift=0.7))
    trainer = Trainer(EuclideanVectors(), step_size=StepSize(max_weight=max_weight), max_epochs=24)
    trials = choice_for(AUTO, trainer, samples, 2).trials
    assert [trial.step_size for trial in trials] == [StepSize(schedule, max_weight) for schedule in schedules]
    assert {trial.n_epochs for trial in trials} == {12 // len(trials)}
    assert len({trial.loss for trial in trials}) == len(trials)


@pytest.mark.parametrize(
    ("make", "count", "max_epochs", "wanted"),
    [
        (make_syn1, 400, 40, {"sigma2": "half_median"}),
        (make_syn2, 200, 20, {"sigma2": "blended", "step_size": "auto"}),
        (digits, 200, 20, {"sigma2": "blended"}),
    ],
    ids=["SynI", "SynII", "digits"],
)
def test_the_default_takes_what_suits_the_data(make, count, max_epochs, wanted):
    """On SynI "blended" overfits, on SynII the half-median harms and the paper's steps overfit; digits need them."""
    every, labels = make(count, random_state=0)
    S, y, fresh, right = every[::2], labels[::2], every[1::2], labels[1::2]
    model = RiemannianLVQ(max_epochs=max_epochs, random_state=0).fit(S, y)
    others = [{"sigma2": "blended"}, {"sigma2": "half_median"}, {"sigma2": "blended", "step_size": "auto"}]
    fitted = [clone(model).set_params(**other).fit(S, y) for other in others]
    scores = [other.score(fresh, right) for other in fitted]
    assert scores[others.index(wanted)] == max(scores)
    assert_array_equal(model.prototypes_, fitted[others.index(wanted)].prototypes_)  # to the bit: trials draw nothing
    assert model.n_epochs_ == max_epochs


@pytest.mark.parametrize("step_size", [0.05, GeometricDecay(), "auto", "adaptive"])
def test_a_step_size_that_is_given_stays(step_size):
    S, y = make_syn2(40, random_state=0)
    model = RiemannianLVQ(step_size=step_size, max_epochs=10, random_state=0).fit(S, y)
    same = clone(model).set_params(sigma2=model.sigma2_).fit(S, y)
    assert_array_equal(model.prototypes_, same.prototypes_)


def test_where_the_default_tries_nothing_it_is_blended():
    """Streams, few epochs, few samples; and a bare trainer, which never runs trials."""
    S, y = make_syn1(100, random_state=0)
    blended = rules_of(S, y)[0]
    assert RiemannianLVQ(max_epochs=40).partial_fit(S, y).sigma2_ == blended
    assert RiemannianLVQ(max_epochs=8).fit(S, y).sigma2_ == blended
    assert RiemannianLVQ(sigma2=None, max_epochs=40).fit(S[::20], y[::20]).sigma2_ == rules_of(S[::20], y[::20])[0]
    samples, trainer = Samples(X, Y), Trainer(EuclideanVectors(), max_epochs=40)
    state = trainer.init(samples, 3, np.random.default_rng(0))
    assert state.sigma2_schedule == Constant(blended_sigma2(evidence_of(samples, 3)))


@pytest.mark.parametrize(("max_epochs", "calls"), [(0, 1), (10, 1), (20, 2)])
def test_no_prototypes_are_made_for_trials_that_do_not_come(max_epochs, calls):
    """With 10 epochs there are five for three trials: too few, and known before any is begun."""
    samples, targets = vector_classes(per_class=300, shift=0.7)
    seen = []

    def means(*given, **other):
        seen.append(len(given[1]))
        return ClassMeans()(*given, **other)

    RiemannianLVQ("euclidean_vectors", init=means, max_epochs=max_epochs, random_state=0).fit(samples, targets)
    assert seen == [600, 450][:calls]


@pytest.mark.parametrize("rule", ["auto", "heldout"])
def test_an_integer_weight_is_a_repetition(rule):
    S, y = make_syn1(30, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    model = RiemannianLVQ(sigma2=rule, max_epochs=20, random_state=0)
    weighted, repeated = clone(model).fit(S, y, weights), clone(model).fit(S.repeat(weights, 0), y.repeat(weights))
    assert weighted.sigma2_ == pytest.approx(repeated.sigma2_, rel=1e-12)
    assert_allclose(weighted.prototypes_, repeated.prototypes_, rtol=1e-9, atol=1e-12)


# --- where nothing can be chosen


@pytest.mark.parametrize("per_class", [1, 2, 3, 13])
def test_too_few_samples_take_auto(per_class):
    S, y = spd_classes(per_class=per_class, n_classes=3)
    held = split_classes(Samples(S, y), np.arange(3), np.random.default_rng(0))[1]
    assert len(held) < FEWEST
    models = [RiemannianLVQ(sigma2=rule, max_epochs=2, random_state=0).fit(S, y) for rule in ("heldout", "auto")]
    assert models[0].sigma2_ == models[1].sigma2_


def test_where_auto_cannot_tell_the_trials_cannot():
    S, y = np.repeat([[0.0], [1.0]], 30, axis=0), np.repeat([0, 1], 30)
    refuse(
        RiemannianLVQ("euclidean_vectors", sigma2="heldout", init=(S[:1].repeat(2, 0), [0, 1])),
        "fit",
        S[:30] * 0,
        y[15:45],
        match="half the median .* Give sigma2 a number",
    )


def test_a_class_of_one_sample_beside_large_ones():
    S, y = np.concatenate([X, [[30.0, 30.0, 30.0]]]), np.append(Y, 7)
    model = RiemannianLVQ("euclidean_vectors", sigma2="heldout", max_epochs=6, random_state=0).fit(S, y)
    assert model.predict(S[-1:]) == 7
    one = np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:2]]  # only one class can be judged
    found, wanted = (
        RiemannianLVQ("euclidean_vectors", sigma2=s, max_epochs=6, random_state=0).fit(X[one], Y[one])
        for s in ("heldout", "auto")
    )
    assert found.sigma2_ == wanted.sigma2_


def test_no_epochs_need_no_trials():
    assert chosen(max_epochs=0).trials == ()


@pytest.mark.parametrize(
    ("candidate", "wanted"),
    [
        (0.5, lambda evidence: 0.5),
        ("half_median", lambda evidence: evidence.half_median),
        ("blended", blended_sigma2),
        ("grid", None),
    ],
    ids=lambda value: str(value) if isinstance(value, (str, float)) else "",
)
def test_a_single_value_is_used_without_trials(candidate, wanted):
    choice, step_size = chosen(HeldOut([candidate])), StepSize(0.1)
    if wanted is None:
        assert len(choice.trials) == 9  # a grid of seven, and the best two again
        return
    assert choice == (Constant(wanted(evidence_of(Samples(X, Y), 3))), (), step_size, True)


# --- as any other sigma2


@EVERY
def test_every_manifold_chooses(case):
    S, y = case.points(np.random.default_rng(0), 48, 3), np.repeat([0, 1], 24)
    model = RiemannianLVQ(
        case.manifold(3), sigma2=HeldOut(["blended", "half_median", 1.0]), max_epochs=3, random_state=0
    ).fit(S, y)
    assert 0 < model.sigma2_ < np.inf
    assert np.isfinite(model.predict_log_proba(S)).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_seed_gives_the_same_bits_in_any_order(weighted):
    S, y = spd_classes(per_class=30)
    weights = np.random.default_rng(0).uniform(0, 2, len(y)) if weighted else None
    model = RiemannianLVQ(sigma2="heldout", max_epochs=4, random_state=3)
    order = np.random.default_rng(0).permutation(len(y))
    first = clone(model).fit(S, y, weights)
    again = clone(model).fit(S[order], y[order], None if weights is None else weights[order])
    assert_array_equal(first.prototypes_, again.prototypes_)
    assert first.sigma2_ == again.sigma2_


def test_saved_and_pickled_models_are_the_same(tmp_path):
    S, y = spd_classes(per_class=30)
    for rule in ("heldout", HeldOut([0.3, "blended", Annealed(power=1.0), "annealed"])):
        model = RiemannianLVQ(sigma2=rule, max_epochs=4, random_state=0).fit(S, y)
        model.save(tmp_path / "model.npz")
        for again in (load_model(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
            assert again.sigma2 == rule
            assert_array_equal(again.predict_proba(S), model.predict_proba(S))


def test_a_model_that_did_not_train_is_saved(tmp_path):
    S, y = make_syn2(60, random_state=0)
    model = RiemannianLVQ(sigma2="heldout", max_epochs=20, random_state=0).fit(S, y)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert model.n_epochs_ == 0
    assert again.state_.sigma2_schedule == model.state_.sigma2_schedule == Constant(model.sigma2_)
    assert (again.sigma2_, again.n_epochs_) == (model.sigma2_, 0)
    assert_array_equal(again.predict_proba(S), model.predict_proba(S))


def test_where_it_cannot_be_is_said():
    S, y = spd_classes(per_class=30)
    refuse(RiemannianLVQ(step_size=HeldOut()), "fit", S, y, match="step_size must be a positive number, a Schedule")
    trainer = Trainer(EuclideanVectors(), sigma2=HeldOut())
    with pytest.raises(ValueError, match="sigma2 must be a positive number, a Schedule"):
        trainer.init(Samples(X, Y), 3, np.random.default_rng(0))
    for name in ("heldout", "median"):
        with pytest.raises(ValueError, match=f"sigma2 must be a positive number, a Schedule, .* got '{name}'"):
            attrs.evolve(trainer, sigma2=name).init(Samples(X, Y), 3, np.random.default_rng(0))


def test_trials_leave_growth_to_the_fit():
    """A trial's loss is that of the prototypes it began with; the fit then grows."""
    X, y = make_syn1(n_per_class=30, random_state=0)
    model = RiemannianLVQ(sigma2="heldout", max_epochs=4, growth=[Grow(every=1, gain=None)], random_state=0).fit(X, y)
    plain = clone(model).set_params(growth=()).fit(X, y)
    assert model.history_["sigma2"][0] == plain.history_["sigma2"][0]
    assert len(model.prototypes_) > len(plain.prototypes_) == 4
