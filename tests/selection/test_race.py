"""The race between candidates: differences of losses, who falls out and who wins, by scores that are made by hand."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from rplvq import PLVQ, RSLVQ, Constant
from rplvq.arrays import Samples
from rplvq.costs import calibrated_loss
from rplvq.selection._candidates import Candidate, Judged
from rplvq.selection._race import CLEAR, MIN_HELD_OUT, Score, difference, improves, is_ahead, race, still_running
from rplvq.selection._race import winner_of as winner_among

BASE = np.linspace(0.2, 1.0, 100)
NOISE = np.random.default_rng(0).permutation(np.repeat([1.0, -1.0], 50))  # the mean has the standard error 0.1
TRAINS = {name: Candidate(name, Constant(1.0)) for name in ("value", "other")}
MORE = {"two per class": Candidate("two per class", Constant(1.0), more=cast(Any, object()))}
STILL = {"untrained": Candidate("untrained"), "discriminant": Candidate("discriminant", start=cast(Any, object()))}


def held_out(count=100, weights=None, groups=None):
    return Samples(np.empty(count), np.arange(count) % 2, weights, groups)


def scored(name, losses, error=0.2):
    """The score of a candidate with these losses (M,), of which a share is classified wrongly."""
    losses = np.asarray(losses, float)
    wrong = (np.arange(len(losses)) < round(error * len(losses))).astype(float)
    return Score((TRAINS | STILL | MORE)[name], np.empty((len(losses), 2)), np.arange(2), losses, wrong, 1.0, 1)


def names_left(*scores, share=0.5):
    """The names of those that stay in the race after a share of the folds."""
    found = dict(enumerate(scores))
    return [found[i].candidate.name for i in still_running(found, list(found), held_out(), share)]


def name_of_winner(*scores, is_part=False):
    found = dict(enumerate(scores))
    return found[winner_among(found, list(found), held_out(), is_part=is_part)].candidate.name


# --- the loss


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


# --- differences


def test_weights_of_losses_are_repetitions():
    rng, weights = np.random.default_rng(0), np.arange(100) % 3
    one, other = rng.normal(size=100), rng.normal(size=100)
    mean, error = difference(one, other, held_out(weights=weights.astype(float)))
    repeated = np.repeat(one - other, weights)
    assert mean == pytest.approx(repeated.mean())
    assert error == pytest.approx(repeated.std() / math.sqrt(len(repeated)))


def test_only_samples_that_both_were_judged_by_count():
    mean, error = difference(BASE[:40] + 0.3 * NOISE[:40], BASE, held_out())
    assert mean == pytest.approx(0.3 * NOISE[:40].mean())
    assert error == pytest.approx(0.3 * NOISE[:40].std() / math.sqrt(40))


def test_losses_that_are_alike_within_a_group_give_a_larger_standard_error():
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(8), 20)
    found, tried = [], []
    for _ in range(400):
        losses = 0.1 * rng.normal(size=len(groups)) + rng.normal(size=8)[groups]
        tried.append(losses.mean())
        found.append([difference(losses, np.zeros(160), held_out(160, groups=own))[1] for own in (groups, None)])
    wide, narrow = np.mean(found, axis=0)
    assert wide == pytest.approx(np.std(tried), rel=0.1)
    assert narrow < 0.4 * np.std(tried)


def test_the_standard_error_of_groups_is_at_least_that_of_samples():
    losses, weights = np.array([0.0, 2.0, 0.0, 2.0]), np.array([1.0, 1.0, 2.0, 2.0])
    for groups in (np.array([0, 0, 1, 1]), np.zeros(4, dtype=int), None):  # with equal means, one group, no groups
        assert difference(losses, np.zeros(4), held_out(4, weights, groups))[1] == pytest.approx(1 / math.sqrt(6))


def test_groups_with_weights_are_those_of_the_formula():
    rng = np.random.default_rng(1)
    losses, weights, groups = rng.normal(size=60), rng.uniform(0, 3, 60), rng.integers(5, size=60)
    mean, error = difference(losses, np.zeros(60), held_out(60, weights, groups))
    assert mean == pytest.approx(np.average(losses, weights=weights))
    sums = [sum(weights[i] * (losses[i] - mean) for i in range(60) if groups[i] == group) for group in range(5)]
    own = math.sqrt(sum(weights * (losses - mean) ** 2))
    by_group = math.sqrt(sum(value**2 for value in sums) * 5 / 4)
    assert error == pytest.approx(max(own, by_group) / weights.sum())


def test_infinite_losses_are_behind_all_others_and_level_with_each_other():
    lost = np.full(100, np.inf)
    assert difference(BASE, lost, held_out()) == (-np.inf, 0.0)
    assert difference(lost, BASE, held_out()) == (np.inf, 0.0)
    assert difference(lost, lost, held_out()) == (0.0, 0.0)


# --- who falls out, and who wins


@pytest.mark.parametrize(("gain", "times", "ahead"), [(0.21, 2.0, True), (0.19, 2.0, False), (0.01, 0.0, True)])
def test_one_is_ahead_by_a_number_of_standard_errors(gain, times, ahead):
    one, other = scored("value", BASE - gain + NOISE), scored("other", BASE)
    assert is_ahead(one, other, times, held_out()) == ahead
    assert not is_ahead(other, one, times, held_out())
    assert not is_ahead(one, one, times, held_out())


@pytest.mark.parametrize(
    ("name", "gain", "error", "wanted"),
    [
        ("value", 0.21, 0.1, True),
        ("value", 0.19, 0.1, False),  # below two standard errors
        ("discriminant", 0.01, 0.1, True),  # a closed form needs no standard error
        ("discriminant", -0.01, 0.1, False),
        ("value", 0.21, 0.2, False),  # as many errors
        ("discriminant", 0.21, 0.2, False),
        ("value", 0.90, 0.3, False),  # more errors
        ("value", -0.50, 0.0, False),  # fewer errors, but a larger loss
    ],
)
def test_the_initial_prototypes_stay_unless_both_loss_and_errors_are_lower(name, gain, error, wanted):
    one, initial = scored(name, BASE - gain + NOISE, error), scored("untrained", BASE, 0.2)
    assert improves(one, initial, 1.0, held_out()) == wanted
    if name == "value":
        assert not improves(one, initial, 4.6, held_out())  # 0.9 is below 4.6 times 0.2
    for order in ([one, initial], [initial, one]):
        assert name_of_winner(*order) == (name if wanted else "untrained")


def test_the_lowest_loss_wins_among_those_that_improve():
    initial = scored("untrained", BASE, 0.2)
    low = scored("value", BASE - 0.5 + NOISE, 0.2)  # lowest, but makes no fewer errors
    middle, high = scored("other", BASE - 0.4 + NOISE, 0.1), scored("discriminant", BASE - 0.3 + NOISE, 0.1)
    assert name_of_winner(low, middle, high, initial) == "other"
    assert name_of_winner(low, high, initial) == "discriminant"
    assert name_of_winner(low, middle, high) == "value"  # nothing to improve on
    assert name_of_winner(low, initial) == "untrained"


def test_of_many_samples_training_takes_precedence_if_it_improves():
    initial, still = scored("untrained", BASE, 0.2), scored("discriminant", BASE - 0.5 + NOISE, 0.1)
    trained = scored("value", BASE - 0.4 + NOISE, 0.1)
    assert name_of_winner(still, trained, initial) == "discriminant"
    assert name_of_winner(still, trained, initial, is_part=True) == "value"
    assert name_of_winner(still, scored("value", BASE - 0.4 + NOISE, 0.2), initial, is_part=True) == "discriminant"


def test_more_prototypes_win_if_they_are_clearly_better_than_the_winner_without_them():
    initial, one = scored("untrained", BASE, 0.3), scored("value", BASE - 0.4 + NOISE, 0.2)
    for gain, error, wanted in ((0.21, 0.1, True), (0.19, 0.1, False), (0.21, 0.2, False), (0.9, 0.3, False)):
        two = scored("two per class", one.losses - gain + NOISE[::-1], error)
        standard_error = difference(one.losses, two.losses, held_out())[1]
        assert standard_error == pytest.approx(0.1)
        for order in ((initial, one, two), (two, initial, one)):
            assert name_of_winner(*order) == ("two per class" if wanted else "value")
        assert name_of_winner(one, two) == ("two per class" if wanted else "value")  # without the initial ones


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 1.0])
def test_more_prototypes_must_still_be_able_to_beat_the_leader_and_remove_nobody(share):
    initial, one = scored("untrained", BASE, 0.2), scored("value", BASE - 0.25 + NOISE, 0.1)
    far = scored("two per class", one.losses - 1.0 + NOISE[::-1], 0.0)
    assert {"two per class", "value"} <= set(names_left(initial, one, far, share=share))
    behind = scored("two per class", one.losses + 0.21 + NOISE[::-1], 0.0)
    assert "two per class" not in names_left(initial, one, behind, share=share)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 1.0])
def test_a_candidate_that_trains_must_still_be_able_to_win(share):
    """With a gain by chance of z standard deviations on the other folds, its sum must reach z on all of them.

    The leader of the race stays in any case.
    """
    all_folds, so_far = 400, round(400 * share)
    z_so_far = CLEAR * (math.sqrt(all_folds) - math.sqrt(all_folds - so_far)) / math.sqrt(so_far)
    for times, stays in ((0.99, share == 1), (1.01, True)):
        one, untrained = scored("value", BASE - 0.1 * times * z_so_far + NOISE), scored("untrained", BASE)
        leader = scored("discriminant", one.losses - 0.01 + NOISE[::-1])
        assert ("value" in names_left(one, leader, untrained, share=share)) == stays
        assert names_left(one, untrained, share=share) == ["value", "untrained"]


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_those_that_do_not_train_fall_out_late(share):
    """The bound is z standard errors of all folds, if the difference stays as it is."""
    for times, left in ((0.99, True), (1.01, False)):
        bound = 0.1 * times * CLEAR / math.sqrt(share)
        first = scored("value", BASE - bound + NOISE, 0.1)
        for name in STILL:
            assert (name in names_left(first, scored(name, BASE, 0.2), share=share)) == left
        still = scored("discriminant", BASE - bound + NOISE, 0.1)
        assert names_left(still, scored("untrained", BASE, 0.2), share=share) == ["discriminant", "untrained"]
        same = scored("value", BASE - bound + NOISE, 0.2)  # as many errors
        assert names_left(same, scored("untrained", BASE, 0.2), share=share) == ["value", "untrained"]


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_candidate_that_trains_must_still_be_able_to_catch_up(share):
    """With a gain by chance of z standard deviations on the other folds, its sum must reach that of the leader."""
    far = min(CLEAR * math.sqrt((1 - share) / share), CLEAR)
    leader = scored("discriminant", BASE, 0.1)
    for times, stays in ((0.99, True), (1.01, False)):
        one = scored("value", BASE + 0.1 * times * far + NOISE, 0.1)
        assert ("value" in names_left(one, leader, share=share)) == stays


def test_a_candidate_that_trains_falls_out_two_standard_errors_behind_the_leader():
    for gain, left in ((0.19, ["value", "other"]), (0.21, ["value"])):
        assert names_left(scored("value", BASE - gain + NOISE), scored("other", BASE)) == left
    lost = scored("other", np.full(100, np.inf), 1.0)
    assert names_left(scored("value", BASE), lost) == ["value"]
    assert names_left(lost, scored("untrained", BASE)) == ["untrained"]


# --- fold by fold


class Planted(NamedTuple):
    """A fold with 20 held-out samples of two classes, at known distances to the two prototypes of each candidate.

    ``rights`` says for each name how many of them are right; None stands for a candidate that is not possible.
    """

    rights: dict[str, int | None]
    asked: list[str]
    n_held: int = 20

    @property
    def held(self):
        return held_out(self.n_held)

    def judge(self, candidate, n_epochs):
        self.asked.append(candidate.name)
        right = self.rights[candidate.name]
        if right is None:
            return Judged(None, np.arange(2))
        own = np.where(np.arange(self.n_held) < right, 1.0, 4.0)
        is_own = np.eye(2, dtype=bool)[self.held.classes]
        return Judged(np.where(is_own, own[:, None], 5.0 - own[:, None]), np.arange(2))


def run(*rights, names=("value", "untrained"), n_folds=None, **settings):
    """The race over planted folds, and who was asked in each."""
    asked: list[list[str]] = [[] for _ in rights]
    folds = [
        Planted(dict(zip(names, own, strict=True)), said, **settings) for own, said in zip(rights, asked, strict=True)
    ]
    candidates = [(TRAINS | STILL)[name] for name in names]
    return race(RSLVQ(), folds, candidates, [1.0] * len(names), n_folds or len(folds), 5), asked


def test_a_race_ends_when_one_is_left_that_trains():
    found, asked = run((19, 18), (20, 10), (20, 10), (20, 10))
    assert asked == [["untrained", "value"], ["value", "untrained"], [], []]
    assert (found.winner, [score.n_folds for score in found.scores]) == (0, [2, 2])
    found, asked = run((10, 19), (10, 19), (10, 19), (10, 19))  # the one that does not train is asked on all folds
    assert asked == [["untrained", "value"]] + [["untrained"]] * 3
    assert (found.winner, [score.n_folds for score in found.scores]) == (1, [1, 4])


def test_nothing_trains_in_trials_if_the_initial_prototypes_make_no_error():
    found, asked = run((20, 20), (20, 20), (20, 20), (20, 20))
    assert asked == [["untrained"]] * 4
    assert [score.candidate.name for score in found.scores] == ["untrained"]
    assert run((20, 20), (20, 20), (20, 20), (20, 19))[1][0] == ["untrained", "value"]


def test_a_tie_of_one_fold_goes_on_to_the_next_ones():
    found, asked = run((16, 16), (20, 10), (20, 10), (20, 10))
    assert asked[1] == ["value", "untrained"]
    assert found.winner == 0


def test_a_candidate_that_is_not_possible_drops_out():
    found, asked = run((None, 10), (20, 10))
    assert asked == [["untrained", "value"], ["untrained"]]
    assert found.winner == 1
    assert np.isinf(found.scores[0].losses).all()
    found, _ = run((20, 18), (None, 18))  # as it fails in a later fold
    assert found.winner == 1
    found, _ = run((None, 18), (None, 18), names=("value", "other"))
    assert found.winner == 1


def test_few_held_out_samples_choose_nothing():
    assert run((4, 2), n_held=MIN_HELD_OUT - 1)[0] is None
    assert run((4, 2), (4, 2), n_held=MIN_HELD_OUT // 2)[0] is not None
    assert race(RSLVQ(), [], list(TRAINS.values()), [1.0, 1.0], 4, 5) is None


@pytest.mark.parametrize("is_rule", [True, False])
def test_the_winner_of_a_rule_is_recalibrated_with_half_a_sample_of_unknown_class(is_rule):
    """The least loss by SciPy alone."""
    candidates = [Candidate("value", Constant(1.0), is_rule=is_rule), STILL["untrained"]]
    folds = [Planted({"value": 19, "untrained": 5}, []) for _ in range(4)]
    found = race(RSLVQ(), folds, candidates, [1.0, 1.0], 4, 5)
    count = len(found.scores[found.winner].losses)
    soft = np.append(np.eye(2)[found.held.classes[:count]], [[0.5, 0.5]], axis=0)
    soft = (count * soft[:-1] + soft[-1] / 2) / (count + 0.5)  # half of that label, spread over the others

    def loss(log_sigma2):
        log_p = log_softmax(-found.scores[found.winner].sqdist / 2 / np.exp(log_sigma2), axis=1)
        return -(soft * log_p).sum()

    best = minimize_scalar(loss, bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    assert found.winner == 0
    assert found.calibration(RSLVQ(), 0.7) == pytest.approx(np.exp(best.x) / 0.7 if is_rule else 1.0, rel=1e-4)
