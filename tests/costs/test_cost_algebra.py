"""Sums and multiples of costs, GLVQ and Representability by hand values and independent formulas."""

from __future__ import annotations

import copy
import pickle
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone

from rplvq import GLVQ, PLVQ, RSLVQ, LogEuclidean, Representability, RiemannianLVQ, load_model
from rplvq.costs import Combinable, ScaledCost, SummedCost
from rplvq.datasets import make_syn1
from rplvq.protocols import Evaluation
from rplvq.training import EpochScore
from tests.problems import cost_before_training

LABELS = np.array([0, 1, 1, 2, 0])
SQDIST = np.random.default_rng(0).uniform(0.1, 8, (6, 5))
TARGETS = np.arange(6) % 3


class Own:
    """A user's cost that knows nothing of the library."""

    def __call__(self, sqdist, targets, labels, sigma2):
        own = labels == targets[:, None]
        return Evaluation((own * sqdist).sum(axis=1) / sigma2, own / sigma2)


# --- sums and multiples


def test_losses_and_slopes_add_and_scale():
    cost = RSLVQ() + 0.25 * GLVQ() + Own()
    parts = [part(SQDIST, TARGETS, LABELS, 0.7) for part in (RSLVQ(), GLVQ(), Own())]
    found = cost(SQDIST, TARGETS, LABELS, 0.7)
    for i in range(2):
        assert_allclose(found[i], parts[0][i] + 0.25 * parts[1][i] + parts[2][i], rtol=1e-14)


def test_once_a_cost_is_the_cost_bit_for_bit():
    found, wanted = (cost(SQDIST, TARGETS, LABELS, 0.7) for cost in (1.0 * RSLVQ(), RSLVQ()))
    assert_array_equal(found.loss, wanted.loss)
    assert_array_equal(found.slope, wanted.slope)


def test_expressions_are_flat_and_read_as_they_were_written():
    a, b, c = RSLVQ(), GLVQ(), Representability()
    assert (a + b) + c == a + (b + c) == sum([a, b, c])
    assert len((a + b + c).terms) == 3
    assert 2 * a == a * 2 == ScaledCost(2, a)
    assert repr(a + 0.1 * c) == "RSLVQ(priors=None) + 0.1 * Representability()"
    assert repr(0.5 * (a + b)) == "0.5 * (RSLVQ(priors=None) + GLVQ(steepness=1.0))"
    assert eval(repr(a + 0.1 * c)) == a + 0.1 * c


def test_own_costs_join_from_either_side():
    own = Own()
    assert (RSLVQ() + own).terms == (RSLVQ(), own)
    assert (own + RSLVQ()).terms == (own, RSLVQ())
    assert (own + 2 * RSLVQ()).terms == (own, 2 * RSLVQ())


@pytest.mark.parametrize("factor", [0, -1.0, np.inf, np.nan, True, "2"])
def test_factors_are_positive_numbers(factor):
    with pytest.raises((ValueError, TypeError), match=r"factor must be|unsupported operand|can't multiply"):
        factor * RSLVQ()


def test_what_is_no_cost_is_refused():
    for other in (1.0, None, "rslvq"):
        with pytest.raises(TypeError):
            RSLVQ() + other
    with pytest.raises(ValueError, match=r"terms\[1\] must be a cost, got"):
        RSLVQ() + GLVQ
    with pytest.raises(TypeError):
        RSLVQ() * RSLVQ()


def test_values_hash_copy_and_pickle():
    cost = RSLVQ([0.4, 0.6]) + 0.1 * Representability()
    for again in (copy.deepcopy(cost), pickle.loads(pickle.dumps(cost)), clone(RiemannianLVQ(cost=cost)).cost):
        assert again == cost
        assert hash(again) == hash(cost)
    assert cost != RSLVQ([0.4, 0.6]) + 0.2 * Representability()


def test_probabilities_are_those_of_the_first_term_that_has_them():
    priors = PLVQ([0.2, 0.3, 0.5])
    for cost in (priors + RSLVQ(), GLVQ() + priors, 2 * (Representability() + priors)):
        assert_array_equal(cost.log_proba(SQDIST, LABELS, 0.7), priors.log_proba(SQDIST, LABELS, 0.7))
    plain = RSLVQ().log_proba(SQDIST, LABELS, 0.7)
    assert_array_equal((GLVQ() + Representability()).log_proba(SQDIST, LABELS, 0.7), plain)
    assert_array_equal((3 * GLVQ()).log_proba(SQDIST, LABELS, 0.7), plain)


def test_a_sum_trains_as_a_model_is_saved_and_set_by_name(tmp_path):
    X, y = make_syn1(n_per_class=8, n=4, random_state=0)
    model = RiemannianLVQ(cost=RSLVQ() + 0.1 * Representability(), max_epochs=2, random_state=0).fit(X, y)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.cost == model.cost
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    scaled = RiemannianLVQ(cost=0.5 * RSLVQ()).set_params(cost__factor=2.0)
    assert scaled.cost == 2.0 * RSLVQ()


def test_the_operators_can_be_inherited():
    class Mine(Combinable, Own):
        pass

    mine = Mine()
    assert (0.5 * mine + Own()).terms[0] == ScaledCost(0.5, mine)
    assert isinstance(mine + mine, SummedCost)


# --- GLVQ


def test_the_margin_by_hand():
    """d+ = 2 and d- = 6: mu = -1/2."""
    loss, slope = GLVQ(steepness=3.0)(np.array([[9.0, 2.0, 6.0, 7.0]]), np.array([0]), np.array([0, 0, 1, 1]), 1.0)
    wanted = 1 / (1 + np.exp(1.5))
    assert_allclose(loss, [wanted])
    rate = 3 * wanted * (1 - wanted)
    assert_allclose(slope, [[0, rate * 2 * 6 / 64, -rate * 2 * 2 / 64, 0]])


def test_the_margin_has_no_scale_and_no_sigma2():
    loss, slope = GLVQ()(SQDIST, TARGETS, LABELS, 1.0)
    scaled = GLVQ()(1e-24 * SQDIST, TARGETS, LABELS, 5.0)
    assert_allclose(scaled.loss, loss, rtol=1e-13)
    assert_allclose(scaled.slope, 1e24 * slope, rtol=1e-13)


def test_a_sample_on_both_prototypes_stays_there():
    found = GLVQ()(np.zeros((1, 3)), np.array([1]), np.array([0, 1, 1]), 1.0)
    assert_array_equal(found.loss, [0.5])
    assert_array_equal(found.slope, np.zeros((1, 3)))


def test_ties_go_to_the_first_prototype():
    slope = GLVQ()(np.array([[1.0, 1.0, 2.0, 2.0]]), np.array([0]), np.array([0, 0, 1, 1]), 1.0).slope
    assert_array_equal(slope != 0, [[True, False, True, False]])


def test_glvq_refuses_soft_labels_and_a_single_class():
    with pytest.raises(ValueError, match="GLVQ learns from one class per sample; for soft labels use cost='plvq'"):
        GLVQ()(SQDIST, np.full((6, 3), 1 / 3), LABELS, 1.0)
    with pytest.raises(ValueError, match="all prototypes have the same class"):
        GLVQ()(SQDIST[:, :2], np.zeros(6, dtype=int), np.zeros(2, dtype=int), 1.0)


def test_glvq_goes_by_name_and_learns():
    X, y = make_syn1(n_per_class=30, n=5, random_state=0)
    start = RiemannianLVQ(cost="glvq", max_epochs=0).fit(X, y)
    model = RiemannianLVQ(cost="glvq", max_epochs=20, callbacks=[EpochScore()], random_state=0).fit(X, y)
    assert model.history_["cost"][-1] < cost_before_training(model, X, y)
    assert model.score(X, y) >= start.score(X, y)


# --- Representability


def test_representability_is_the_likelihood_of_the_own_mixture():
    found = Representability()(SQDIST, TARGETS, LABELS, 0.7)
    for b, target in enumerate(TARGETS):
        own = -SQDIST[b, target == LABELS] / 1.4
        assert_allclose(found.loss[b], np.log(len(own)) - logsumexp(own))
        assert_allclose(found.slope[b, target == LABELS], np.exp(own - logsumexp(own)) / 1.4)
        assert not found.slope[b, target != LABELS].any()


def test_soft_labels_take_the_expectation():
    soft = np.random.default_rng(1).dirichlet(np.ones(3), 6)
    found = Representability()(SQDIST, soft, LABELS, 0.7)
    parts = [Representability()(SQDIST, np.full(6, c), LABELS, 0.7) for c in range(3)]
    assert_allclose(found.loss, sum(soft[:, c] * parts[c].loss for c in range(3)))
    assert_allclose(found.slope, sum(soft[:, [c]] * parts[c].slope for c in range(3)))


def test_class_means_are_at_rest():
    """With one prototype a class the summed pull vanishes exactly where the class means are."""
    X, y = make_syn1(n_per_class=20, n=4, random_state=0)
    manifold = LogEuclidean()
    codes = manifold.encode(X)
    means = np.stack([codes[y == c].mean(axis=0) for c in range(4)])
    geodesics = manifold.connect(means, codes)
    slope = Representability()(geodesics.sqdist, y, np.arange(4), 1.0).slope
    assert np.abs(manifold.pull(geodesics, slope)).max() < 1e-12 * np.abs(codes).max() * len(y)


def test_it_holds_prototypes_at_their_data():
    """With a large factor training ends nearer to the class means than without."""
    X, y = make_syn1(n_per_class=30, n=4, random_state=1)
    ends = {}
    for factor in (0.01, 10.0):
        cost = RSLVQ() + factor * Representability()
        model = RiemannianLVQ(cost=cost, sigma2=0.5, step_size=0.02, max_epochs=15, random_state=0).fit(X, y)
        means = RiemannianLVQ(max_epochs=0).fit(X, y)
        ends[factor] = np.diag(means.transform(model.prototypes_)).max()
    assert ends[10.0] < 0.3 * ends[0.01]


def test_prototypes_of_a_class_are_exchangeable():
    for order in permutations([0, 4]):
        swapped = SQDIST.copy()
        swapped[:, [0, 4]] = SQDIST[:, list(order)]
        found = Representability()(swapped, TARGETS, LABELS, 0.7)
        assert_allclose(found.loss, Representability()(SQDIST, TARGETS, LABELS, 0.7).loss, rtol=1e-14)


def test_wrong_columns_are_named():
    with pytest.raises(ValueError, match="2 columns for 3 classes"):
        Representability()(SQDIST, np.full((6, 2), 0.5), LABELS, 1.0)
