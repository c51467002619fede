"""The contract of every cost; then the mixture's: hand values, independent formulas, extreme distances, priors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from rplvq import GLVQ, PLVQ, RSLVQ, Representability
from rplvq.costs import FlatGaussian, RiemannianGaussian, SpreadRSLVQ, class_groups
from rplvq.costs._mixture import class_log_proba
from rplvq.protocols import Cost
from rplvq.testing import check_cost

MIXTURES = {
    "RSLVQ": RSLVQ(),
    "PLVQ": PLVQ(),
    "RSLVQ, priors": RSLVQ(priors=[0.2, 0.3, 0.5]),
    "PLVQ, priors": PLVQ(priors=[0.2, 0.3, 0.5]),
}
COSTS = {
    **MIXTURES,
    "GLVQ": GLVQ(),
    "GLVQ, steep": GLVQ(steepness=5.0),
    "GLVQ, annealed": GLVQ(steepness=None),
    "Representability": Representability(),
    "SpreadRSLVQ": SpreadRSLVQ([1.0, 4.0, 0.5], FlatGaussian(2)),
    "SpreadRSLVQ, curved": SpreadRSLVQ([0.05, 0.5, 3.0], RiemannianGaussian(10)),
    "SpreadRSLVQ, complex": SpreadRSLVQ([1e-3, 1.0, 1.0], RiemannianGaussian(4, hermitian=True)),
    "multiple": 0.3 * RSLVQ(),
    "sum": RSLVQ() + 0.1 * Representability() + 2 * GLVQ(),
    "sum of sums": PLVQ(priors=[0.2, 0.3, 0.5]) + 0.5 * (PLVQ() + Representability()),
    "sum with SpreadRSLVQ": RSLVQ() + 0.5 * SpreadRSLVQ([1.0, 4.0, 0.5], FlatGaussian(2)),
}
"""Every cost of the library, for three classes."""
EVERY = pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
MIXTURE = pytest.mark.parametrize("cost", MIXTURES.values(), ids=MIXTURES.keys())
LABELS = np.array([0, 1, 1, 2, 0])


def problem(seed=0, n_samples=6, soft=False):
    """Squared distances (B, 5) and targets for LABELS."""
    rng = np.random.default_rng(seed)
    hard = np.arange(n_samples) % 3
    targets = rng.dirichlet(np.ones(3), n_samples) if soft else hard
    return rng.uniform(0.1, 8, (n_samples, 5)), targets


def targets_of(cost):
    return (False, True) if isinstance(cost, PLVQ) else (False,)


# --- the contract of every cost


@EVERY
def test_the_contract_holds(cost):
    assert isinstance(cost, Cost)
    for sigma2 in (0.05, 0.7, 9.5):
        check_cost(cost, sigma2=sigma2, random_state=1)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_contract_holds_for_other_numbers_of_classes(n_classes):
    check_cost(RSLVQ(), n_classes=n_classes)
    check_cost(PLVQ(), n_classes=n_classes)


# --- the mixture: hand values


def by_hand():
    """With sigma2 = 1/2, p = exp(-d) / sum: (4, 2, 1) / 7 here, two of them of class 0."""
    return np.log([[1.0, 2.0, 4.0]]), np.array([0, 0, 1]), 0.5


@pytest.mark.parametrize("cost", [RSLVQ(), PLVQ()], ids=repr)
@pytest.mark.parametrize(
    ("target", "loss", "slope"),
    [(0, np.log(7 / 6), [2 / 3 - 4 / 7, 1 / 3 - 2 / 7, -1 / 7]), (1, np.log(7), [-4 / 7, -2 / 7, 1 - 1 / 7])],
)
def test_class_indices_by_hand(cost, target, loss, slope):
    sqdist, labels, sigma2 = by_hand()
    found = cost(sqdist, np.array([target]), labels, sigma2)
    assert_allclose(found.loss, [loss], rtol=1e-14)
    assert_allclose(found.slope, [slope], rtol=1e-13)


def test_soft_labels_by_hand():
    sqdist, labels, sigma2 = by_hand()
    found = PLVQ()(sqdist, np.array([[0.25, 0.75]]), labels, sigma2)
    assert_allclose(found.loss, [0.25 * np.log(7 / 6) + 0.75 * np.log(7)], rtol=1e-14)
    attraction = 0.25 / (6 / 7) - 1
    assert_allclose(found.slope, [[4 / 7 * attraction, 2 / 7 * attraction, 0.75 - 1 / 7]], rtol=1e-13)


@pytest.mark.parametrize("cost", [RSLVQ(), PLVQ()], ids=repr)
def test_posterior_by_hand(cost):
    sqdist, labels, sigma2 = by_hand()
    assert_allclose(np.exp(cost.log_proba(sqdist, labels, sigma2)), [[6 / 7, 1 / 7]])


@MIXTURE
@pytest.mark.parametrize("sigma2", [0.4, 5.0])
def test_values_agree_with_plain_exponentials(cost, sigma2):
    """Where nothing underflows, the definition itself is the reference."""
    sqdist, targets = problem()
    prior = np.ones(5) if cost.priors is None else (np.array(cost.priors) / [2, 2, 1])[LABELS]
    p = prior * np.exp(-sqdist / (2 * sigma2))
    p /= p.sum(axis=1, keepdims=True)
    p_class = np.stack([p[:, c == LABELS].sum(axis=1) for c in range(3)], axis=1)
    found = cost(sqdist, targets, LABELS, sigma2)
    own = targets[:, None] == LABELS
    inside = p / p_class[:, LABELS]
    assert_allclose(found.loss, -np.log(p_class[np.arange(6), targets]), rtol=1e-12)
    assert_allclose(found.slope, (own * inside - p) / (2 * sigma2), atol=1e-14)
    assert_allclose(np.exp(cost.log_proba(sqdist, LABELS, sigma2)), p_class, rtol=1e-12)


# --- what belongs together


@pytest.mark.parametrize("priors", [None, (0.2, 0.3, 0.5)])
def test_plvq_with_one_hot_labels_is_rslvq(priors):
    sqdist, targets = problem(1)
    wanted = RSLVQ(priors)(sqdist, targets, LABELS, 0.8)
    for form in (targets, np.eye(3)[targets]):
        found = PLVQ(priors)(sqdist, form, LABELS, 0.8)
        assert_allclose(found.loss, wanted.loss, rtol=1e-13)
        assert_allclose(found.slope, wanted.slope, atol=1e-14)


def test_plvq_is_linear_in_the_labels():
    sqdist, targets = problem(2, soft=True)
    pure = [PLVQ()(sqdist, np.full(6, c), LABELS, 0.8) for c in range(3)]
    found = PLVQ()(sqdist, targets, LABELS, 0.8)
    assert_allclose(found.loss, sum(targets[:, c] * pure[c].loss for c in range(3)), rtol=1e-12)
    slope = sum(targets[:, c, None] * pure[c].slope for c in range(3))
    assert_allclose(found.slope, slope, atol=1e-13)


@MIXTURE
def test_the_slope_by_sigma2_follows_from_the_slopes_by_sqdist(cost):
    """d loss / d sigma2 = -sum_k slope_k sqdist_k / sigma2, as the loss sees sqdist / sigma2 only."""
    for soft in targets_of(cost):
        sqdist, targets = problem(3, soft=soft)
        sigma2, step = 0.8, 1e-5
        ahead = cost(sqdist, targets, LABELS, sigma2 + step).loss
        behind = cost(sqdist, targets, LABELS, sigma2 - step).loss
        slope = cost(sqdist, targets, LABELS, sigma2).slope
        wanted = -(slope * sqdist).sum(axis=1) / sigma2
        assert_allclose((ahead - behind) / (2 * step), wanted, rtol=1e-7, atol=1e-9)


@MIXTURE
def test_attraction_and_repulsion_balance(cost):
    for soft in targets_of(cost):
        sqdist, targets = problem(4, soft=soft)
        slope = cost(sqdist, targets, LABELS, 0.8).slope
        assert_allclose(slope.sum(axis=1), 0, atol=1e-14)


def test_own_prototypes_attract_and_others_repel():
    sqdist, targets = problem(5)
    slope = RSLVQ()(sqdist, targets, LABELS, 0.8).slope
    own = targets[:, None] == LABELS
    assert (slope[own] > 0).all()
    assert (slope[~own] < 0).all()


@given(
    seed=st.integers(0, 2**32 - 1),
    shift=st.floats(-0.1, 1e3),
    scale=st.floats(1e-6, 1e6),
    sigma2=st.floats(0.01, 100),
    soft=st.booleans(),
)
def test_only_differences_in_units_of_sigma2_matter(seed, shift, scale, sigma2, soft):
    sqdist, targets = problem(seed, soft=soft)
    wanted = PLVQ()(sqdist, targets, LABELS, sigma2)
    moved = PLVQ()(scale * (sqdist + shift), targets, LABELS, scale * sigma2)
    size = 1 + 1e3 / sigma2
    assert_allclose(moved.loss, wanted.loss, rtol=1e-9, atol=1e-12 * size)
    assert_allclose(moved.slope * scale, wanted.slope, atol=1e-12 * size / sigma2)


@given(
    seed=st.integers(0, 2**32 - 1),
    magnitude=st.floats(-10, 200),
    sigma2=st.floats(1e-3, 1e3),
    n_classes=st.integers(1, 4),
)
def test_loss_is_a_likelihood_and_slopes_are_bounded(seed, magnitude, sigma2, n_classes):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=3)])
    sqdist = 10.0**magnitude * rng.uniform(size=(5, len(labels)))
    targets = rng.integers(n_classes, size=5)
    loss, slope = RSLVQ()(sqdist, targets, labels, sigma2)
    assert np.isfinite(loss).all()
    assert (loss >= -1e-12).all()
    assert (np.abs(slope) <= (1 + 1e-12) / (2 * sigma2)).all()
    posterior = RSLVQ().log_proba(sqdist, labels, sigma2)
    assert_allclose(logsumexp(posterior, axis=1), 0, atol=1e-12)
    assert_allclose(-loss, posterior[np.arange(5), targets], rtol=1e-9, atol=1e-12)


# --- extreme distances


TWO = np.array([0, 1])


@pytest.mark.parametrize("cost", [RSLVQ(), PLVQ()], ids=repr)
@pytest.mark.parametrize(
    ("sqdist", "loss", "slope"),
    [
        ([1e6, 0.0], 1e6, [1.0, -1.0]),
        ([0.0, 1e6], 0.0, [0.0, 0.0]),
        ([1e300, 0.0], 1e300, [1.0, -1.0]),
        ([0.0, 1e300], 0.0, [0.0, 0.0]),
        ([1e300, 1e300], np.log(2), [0.5, -0.5]),
        ([0.0, 0.0], np.log(2), [0.5, -0.5]),
        ([1e-300, 0.0], np.log(2), [0.5, -0.5]),
        ([5e17, 5e17 + 128], np.exp(-128), [np.exp(-128), -np.exp(-128)]),
    ],
)
def test_extreme_distances_by_hand(cost, sqdist, loss, slope):
    """With sigma2 = 1/2 the logits are the distances themselves, and 1 / (2 sigma2) is 1."""
    found = cost(np.array([sqdist]), np.array([0]), TWO, 0.5)
    assert_allclose(found.loss, [loss], rtol=1e-12, atol=1e-15)
    assert_allclose(found.slope, [slope], rtol=1e-12, atol=1e-15)


def test_soft_labels_far_away():
    found = PLVQ()(np.array([[1e6, 0.0]]), np.array([[0.25, 0.75]]), TWO, 0.5)
    assert_allclose(found.loss, [0.25e6])
    assert_allclose(found.slope, [[0.25, -0.25]])


def test_the_nearer_of_two_far_prototypes_of_the_class_is_attracted():
    found = RSLVQ()(np.array([[2e6, 1e6, 0.0]]), np.array([0]), np.array([0, 0, 1]), 0.5)
    assert_allclose(found.slope, [[0.0, 1.0, -1.0]])


def test_log_posteriors_do_not_underflow():
    found = class_log_proba(np.array([[0.0, 1e6, 3e6]]), np.array([0, 1, 2]), 0.5)
    assert_allclose(found, [[0.0, -1e6, -3e6]])


# --- priors


@pytest.mark.parametrize("kind", [RSLVQ, PLVQ])
def test_equal_priors_change_nothing_for_equal_counts(kind):
    labels = np.array([0, 1, 2, 2, 1, 0])
    sqdist = np.random.default_rng(6).uniform(0, 5, (4, 6))
    targets = np.array([0, 1, 2, 1])
    wanted, found = (cost(sqdist, targets, labels, 0.8) for cost in (kind(), kind(priors=[1 / 3] * 3)))
    assert_allclose(found.loss, wanted.loss, rtol=1e-13)
    assert_allclose(found.slope, wanted.slope, atol=1e-14)


@pytest.mark.parametrize("kind", [RSLVQ, PLVQ])
def test_unequal_priors_by_hand(kind):
    """Equal distances leave the priors; those of a class are shared by its prototypes."""
    cost, sqdist, labels = kind(priors=[0.75, 0.25]), np.full((1, 3), 2.0), np.array([0, 0, 1])
    loss, slope = cost(sqdist, np.array([1]), labels, 0.5)
    assert_allclose(loss, [np.log(4)])
    assert_allclose(slope, [[-0.375, -0.375, 0.75]])
    assert_allclose(np.exp(cost.log_proba(sqdist, labels, 0.5)), [[0.75, 0.25]])


@MIXTURE
def test_the_slope_by_the_logits_of_the_priors_follows_from_the_slopes_by_sqdist(cost):
    """With priors softmax(b), d loss / d b_c = -2 sigma2 times the summed slopes of the class."""
    start = np.zeros(3) if cost.priors is None else np.log(cost.priors)
    sqdist, targets, sigma2, step = *problem(7), 0.8, 1e-5

    def loss(b):
        return type(cost)(np.exp(b - logsumexp(b)))(sqdist, targets, LABELS, sigma2)

    slope = loss(start).slope
    for c in range(3):
        direction = step * np.eye(3)[c]
        found = (loss(start + direction).loss - loss(start - direction).loss) / (2 * step)
        wanted = -2 * sigma2 * slope[:, c == LABELS].sum(axis=1)
        assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", [RSLVQ, PLVQ])
@pytest.mark.parametrize(
    ("priors", "sentence"),
    [
        ([0.5, 0.0, 0.5], r"priors\[1\] must be positive, got 0.0"),
        ([1.5, -0.5], r"priors\[1\] must be positive, got -0.5"),
        ([0.5, float("nan")], r"priors\[1\] must be positive, got nan"),
        ([0.5, 0.4], "priors must sum to one, got 0.9"),
    ],
)
def test_bad_priors_are_refused(kind, priors, sentence):
    with pytest.raises(ValueError, match=sentence):
        kind(priors=priors)


@pytest.mark.parametrize("kind", [RSLVQ, PLVQ])
def test_the_number_of_priors_must_be_that_of_the_classes(kind):
    sqdist, targets = problem()
    with pytest.raises(ValueError, match="priors has 2 entries, but there are 3 classes"):
        kind(priors=[0.5, 0.5])(sqdist, targets, LABELS, 1.0)


def test_costs_compare_and_hash_by_value():
    assert RSLVQ(priors=[0.5, 0.5]) == RSLVQ(priors=np.array([0.5, 0.5]))
    assert hash(PLVQ(priors=[0.5, 0.5])) == hash(PLVQ(priors=(0.5, 0.5)))
    assert RSLVQ() != PLVQ()
    assert RSLVQ(priors=[0.4, 0.6]) != RSLVQ()


# --- bad input


def test_rslvq_refuses_soft_labels_and_says_what_takes_them():
    sqdist, targets = problem(soft=True)
    with pytest.raises(ValueError, match=r"cost RSLVQ learns from one class per sample.*cost='plvq'"):
        RSLVQ()(sqdist, targets, LABELS, 1.0)


def test_soft_labels_need_a_column_a_class():
    sqdist, targets = problem(soft=True)
    with pytest.raises(ValueError, match="soft labels have 2 columns for 3 classes"):
        PLVQ()(sqdist, targets[:, :2], LABELS, 1.0)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_each_class_needs_a_prototype(dtype):
    with pytest.raises(ValueError, match="class index 1 has no prototype among labels="):
        class_groups(np.array([0, 2, 2], dtype=dtype))


def test_groups_of_unsorted_labels():
    order, starts, counts = class_groups(np.array([1, 0, 2, 0, 1, 1]))
    assert order.tolist() == [1, 3, 0, 4, 5, 2]
    assert starts.tolist() == [0, 2, 5]
    assert counts.tolist() == [2, 3, 1]
