"""check_cost catches planted faults, and names them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from rplvq import PLVQ, RSLVQ
from rplvq.protocols import Evaluation
from rplvq.testing import check_cost


class Wrapped:
    """A cost whose evaluation is changed by a function of (evaluation, the four arguments)."""

    def __init__(self, change, good=None):
        self.change, self.good = change, good or PLVQ()

    def __call__(self, sqdist, targets, labels, sigma2):
        found = self.good(sqdist, targets, labels, sigma2)
        return self.change(found, sqdist, targets, labels, sigma2)


class Cost:
    """A cost from a function, with an optional log_proba."""

    def __init__(self, function, log_proba=None):
        self.function = function
        if log_proba is not None:
            self.log_proba = log_proba

    def __call__(self, *arguments):
        return self.function(*arguments)


def naive(sqdist, targets, labels, sigma2):
    """RSLVQ with exponentials that underflow."""
    p = np.exp(-sqdist / (2 * sigma2))
    own = labels == targets[:, None]
    inside, total = (p * own).sum(axis=1), p.sum(axis=1)
    slope = (p * own / inside[:, None] - p / total[:, None]) / (2 * sigma2)
    return Evaluation(-np.log(inside / total), slope)


def hard_only(function):
    def cost(sqdist, targets, labels, sigma2):
        if targets.ndim != 1:
            raise ValueError("no soft labels")
        return function(sqdist, targets, labels, sigma2)

    return cost


def log_distance(sqdist, targets, labels, sigma2):
    own = labels == targets[:, None]
    return Evaluation((own * np.log(sqdist)).sum(axis=1), own / sqdist)


def in_place(sqdist, targets, labels, sigma2):
    sqdist -= sqdist.min(axis=1, keepdims=True)
    return PLVQ()(sqdist, targets, labels, sigma2)


def sorts(sqdist, targets, labels, sigma2):
    return RSLVQ()(sqdist, targets, np.sort(labels), sigma2)


def generalized_lvq(sqdist, targets, labels, sigma2):
    """(a - b) / (a + b), a the nearest of the own class, b of the others: one's own cost."""
    own = labels == targets[:, None]
    rows = np.arange(len(sqdist))
    i = np.where(own, sqdist, np.inf).argmin(axis=1)
    j = np.where(own, np.inf, sqdist).argmin(axis=1)
    a, b = sqdist[rows, i], sqdist[rows, j]
    slope = np.zeros_like(sqdist)
    slope[rows, i] = 2 * (b / (a + b)) / (a + b)
    slope[rows, j] = -2 * (a / (a + b)) / (a + b)
    return Evaluation((a - b) / (a + b), slope)


def reversed_rows(found, *_):
    return Evaluation(found.loss[::-1], found.slope[::-1])


def mean_over_batch(found, *_):
    return Evaluation(found.loss / len(found.loss), found.slope / len(found.loss))


def own_class_only(found, sqdist, targets, labels, sigma2):
    attracted = found.slope > 0
    return found._replace(slope=found.slope * attracted)


def wrong_for_soft(found, sqdist, targets, labels, sigma2):
    return found if targets.ndim == 1 else found._replace(slope=0.9 * found.slope)


COST_FAULTS = {
    "wrong sign": (Wrapped(lambda e, *_: e._replace(slope=-e.slope)), "everywhere it is -1 times"),
    "factor 2": (Wrapped(lambda e, *_: e._replace(slope=2 * e.slope)), "everywhere it is 2 times"),
    "no sigma2": (Wrapped(lambda e, d, t, c, s: e._replace(slope=s * e.slope)), "it is 0.7 times"),
    "only attracts": (Wrapped(own_class_only), r"derivative of loss by sqdist: at index \(\d, \d\)"),
    "wrong for soft": (Wrapped(wrong_for_soft), "everywhere it is 0.9 times"),
    "loss alone": (Wrapped(lambda e, *_: e.loss), r"must return \(loss, slope\), got <class 'numpy.ndarray'>"),
    "three arrays": (Wrapped(lambda e, *_: (*e, 1)), r"must return \(loss, slope\), got <class 'tuple'>"),
    "summed": (Wrapped(lambda e, *_: e._replace(loss=e.loss.sum())), r"loss must have shape \(6,\)"),
    "slope of (K, B)": (Wrapped(lambda e, *_: e._replace(slope=e.slope.T)), r"slope must have shape \(6, 3\)"),
    "NaN": (
        Wrapped(lambda e, *_: e._replace(slope=np.where(e.slope > 0, np.nan, e.slope))),
        "slope must be finite at ordinary distances: at index .* it is nan",
    ),
    "underflow": (Cost(hard_only(naive)), "finite at distances of 1e8"),
    "log of 0": (Cost(hard_only(log_distance)), "loss must be finite at a distance of 0.* is -inf"),
    "writes": (Cost(in_place), "must not write into sqdist, targets or labels"),
    "mixes up samples": (Wrapped(reversed_rows), "as its samples one by one"),
    "mean over batch": (Wrapped(mean_over_batch), "as its samples one by one"),
    "needs sorted labels": (Cost(hard_only(sorts)), "not depend on the order of the prototypes"),
    "unnormalised": (
        Cost(hard_only(RSLVQ()), lambda d, labels, s: RSLVQ().log_proba(d, labels, s) + 0.1),
        r"exp\(log_proba\) must sum to one: at index \(0,\) it is 1.1",
    ),
    "one a prototype": (
        Cost(hard_only(RSLVQ()), lambda d, labels, s: log_softmax(-d / (2 * s), axis=1)),
        r"log_proba must have shape \(6, 3\), got \(6, 6\)",
    ),
}


@pytest.mark.parametrize("name", COST_FAULTS)
def test_a_faulty_cost_is_named(name):
    cost, sentence = COST_FAULTS[name]
    with pytest.raises(AssertionError, match=sentence):
        check_cost(cost, pickling=False)


@pytest.mark.parametrize(
    "cost",
    [
        Cost(hard_only(generalized_lvq)),
        Cost(hard_only(RSLVQ()), RSLVQ().log_proba),
        Wrapped(lambda e, *_: e),
        Wrapped(lambda e, *_: tuple(e)),
        Wrapped(lambda e, *_: Evaluation(3 * e.loss + 5, 3 * e.slope)),
    ],
    ids=["generalized LVQ", "RSLVQ wrapped", "PLVQ wrapped", "a plain tuple", "affine"],
)
def test_good_costs_of_ones_own_pass(cost):
    assert check_cost(cost, pickling=False) is None
    check_cost(cost, n_classes=2, sigma2=3.0, pickling=False, random_state=1)


def test_a_cost_for_class_indices_that_does_not_look_at_its_targets_passes():
    """The trainer turns its IndexErrors at soft labels into a sentence, which is what a cost has to promise."""
    check_cost(Cost(generalized_lvq), pickling=False)
    check_cost(Cost(RSLVQ().__call__), pickling=False)


def test_an_unpicklable_cost_is_named():
    with pytest.raises(AssertionError, match="a cost must be picklable"):
        check_cost(Wrapped(lambda e, *_: e))


def test_a_cost_that_refuses_class_indices_is_not_skipped():
    def soft_only(sqdist, targets, labels, sigma2):
        raise ValueError("soft labels, please")

    with pytest.raises(ValueError, match="soft labels, please"):
        check_cost(Cost(soft_only), pickling=False)


def test_a_cost_needs_two_classes():
    with pytest.raises(ValueError, match="n_classes must be at least 2, got 1"):
        check_cost(RSLVQ(), n_classes=1)


def test_priors_need_their_number_of_classes():
    check_cost(RSLVQ(priors=[0.4, 0.6]), n_classes=2)
