"""Where sigma2 begins: the half-median, the likeliest value, and the default between them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from rplvq import PLVQ, RSLVQ, AffineInvariant, Constant, HeldOut, Representability, RiemannianLVQ
from rplvq.datasets import make_syn2
from rplvq.exceptions import DivergenceWarning
from rplvq.schedules import InitialEvidence, blended_sigma2, free_numbers, half_median, likeliest_sigma2, resolve_sigma2
from tests.cases import EVERY
from tests.problems import counted_decompositions, distances, refuse, spd_classes, vector_classes


def evidence(seed=0, per_class=30, priors=None, **other):
    """Distances of overlapping classes to their means."""
    X, y = vector_classes(seed, per_class, n_classes=3, shift=0.7)
    means = np.array([X[y == label].mean(axis=0) for label in range(3)])
    sqdist = ((X[:, None] - means) ** 2).sum(axis=2)
    return InitialEvidence(sqdist, y, np.arange(3), 9, priors=priors)._replace(**other)


def test_half_median_by_hand():
    assert half_median(np.array([[1.0, 2.0], [7.0, 10.0]])) == 4.5 / 2
    assert half_median(np.array([[3.0, 1.0, 8.0]])) == 1.5


@pytest.mark.parametrize("weights", [[2, 1, 3], [1, 0, 0], [4, 1, 1], [1, 1, 0]])
def test_half_median_counts_a_sample_by_its_weight(weights):
    sqdist = np.array([[1.0, 9.0], [2.0, 4.0], [5.0, 6.0]])
    repeated = np.repeat(sqdist, weights, axis=0)
    assert half_median(sqdist, np.array(weights, float)) == np.median(repeated) / 2
    assert half_median(sqdist, 0.1 * np.array(weights)) == np.median(repeated) / 2


def test_half_median_of_a_model_is_that_of_the_distances_to_the_means():
    X, y = spd_classes()
    model = RiemannianLVQ(sigma2="half_median", max_epochs=0).fit(X, y)
    assert model.sigma2_ == pytest.approx(np.median(distances(X, model.prototypes_) ** 2) / 2, rel=1e-9)


@pytest.mark.parametrize("priors", [None, (0.5, 0.3, 0.2)])
def test_the_likeliest_value_minimises_the_loss_with_one_sample_more_of_unknown_class(priors):
    given = evidence(priors=priors)
    own = np.eye(3)[given.targets]

    def loss(log_sigma2):
        log_p = log_softmax(-given.sqdist / 2 / np.exp(log_sigma2) + np.log(priors or np.ones(3)), axis=1)
        n = len(own)
        return -(own * log_p).sum() * n / (n + 1) - log_p.sum() / 3 / (n + 1)

    wanted = np.exp(minimize_scalar(loss, bounds=(-8, 4), method="bounded", options={"xatol": 1e-10}).x)
    assert wanted < half_median(given.sqdist)
    assert_allclose(likeliest_sigma2(given), wanted, rtol=1e-6)


@pytest.mark.parametrize("rule", [likeliest_sigma2, blended_sigma2])
def test_rules_follow_units_and_count_weights_as_copies(rule):
    given = evidence()
    assert_allclose(rule(given._replace(sqdist=1e-12 * given.sqdist)), 1e-12 * rule(given), rtol=1e-9)
    times = np.arange(len(given.sqdist)) % 3
    copies = given._replace(sqdist=given.sqdist.repeat(times, axis=0), targets=given.targets.repeat(times))
    assert_allclose(rule(given._replace(sample_weight=times.astype(float))), rule(copies), rtol=1e-9)
    soft = given._replace(targets=np.eye(3)[given.targets])
    assert_allclose(rule(soft), rule(given), rtol=1e-12)


def test_auto_goes_from_half_the_likeliest_value_to_the_half_median_with_the_free_numbers():
    given = evidence()
    low, high = likeliest_sigma2(given) / 2, half_median(given.sqdist)
    values = [blended_sigma2(given._replace(n_free=n)) for n in (0, 10, 90, 1000, 10**9)]
    assert_allclose([values[0], values[2], values[-1]], [low, np.sqrt(low * high), high], rtol=1e-6)
    assert (np.diff(values) > 0).all()


def test_prototypes_that_make_no_mistake_do_not_let_sigma2_vanish():
    sqdist = np.array([[0.1, 9.0], [0.2, 8.0], [7.0, 0.3], [9.0, 0.1]])
    given = InitialEvidence(sqdist, np.array([0, 0, 1, 1]), np.array([0, 1]), 2)
    assert 0.1 < likeliest_sigma2(given) <= half_median(sqdist)


def test_prototypes_that_tell_nothing_leave_the_half_median():
    sqdist = np.array([[5.0, 1.0], [6.0, 1.0], [1.0, 5.0], [2.0, 6.0]])  # nearest is always wrong
    given = InitialEvidence(sqdist, np.array([0, 0, 1, 1]), np.array([0, 1]), 2)
    assert likeliest_sigma2(given) == half_median(sqdist)
    assert blended_sigma2(given._replace(n_free=10**12)) == pytest.approx(half_median(sqdist))
    equal = given._replace(sqdist=np.ones((4, 2)), n_free=4)  # as many free numbers as samples
    assert blended_sigma2(equal) == pytest.approx(np.sqrt(0.25 * 0.5))


@EVERY
@pytest.mark.parametrize("init", ["mean", "kmeans"])
def test_auto_is_positive_and_at_most_the_half_median_on_every_manifold(case, init):
    X, y = case.points(np.random.default_rng(0), 12, 3), np.repeat([0, 1], 6)
    settings = {"prototypes_per_class": 2, "init": init, "max_epochs": 0, "random_state": 0}
    auto, half = (
        RiemannianLVQ(case.manifold(3), sigma2=s, **settings).fit(X, y).sigma2_ for s in ("auto", "half_median")
    )
    assert 0 < auto <= half


@pytest.mark.parametrize("cost", [RSLVQ(priors=(0.9, 0.1)), PLVQ()], ids=repr)
def test_auto_takes_one_pass_of_distances(cost):
    X, y = spd_classes(per_class=10)
    counts = []
    for sigma2 in (1.0, "auto"):
        with counted_decompositions() as counter:
            RiemannianLVQ(AffineInvariant(compiled=False), cost=cost, sigma2=sigma2, max_epochs=0).fit(X, y)
        counts.append(sum(counter.values()))
    assert counts[1] - counts[0] == len(X) * 2


@pytest.mark.parametrize("rule", ["auto", "half_median"])
def test_samples_that_are_their_prototypes_are_refused(rule):
    X, y = np.repeat([[0.0], [1.0]], 5, axis=0), np.repeat([0, 1], 5)
    X[0] = 1e-3
    model = RiemannianLVQ("euclidean_vectors", sigma2=rule, init=(X[5:9], [0, 0, 0, 1]))
    refuse(
        model,
        "fit",
        X[5:],
        y[:5] * 0 + [0, 0, 0, 1, 1],
        match=r"half the median .* which is 0: .* Give sigma2 a number",
    )


def test_names_numbers_and_schedules():
    looks = []

    def look():
        looks.append(0)
        return evidence()

    for name in (None, "auto"):
        assert resolve_sigma2(name, look) == Constant(blended_sigma2(evidence()))
    assert resolve_sigma2("half_median", look).value == half_median(evidence().sqdist)
    seen = len(looks)
    assert resolve_sigma2(2, look) == Constant(2.0)
    assert resolve_sigma2(Constant(0.5), look) == Constant(0.5)
    assert len(looks) == seen
    with pytest.raises(ValueError, match=r"one of \['auto', 'half_median'\], got 'median'"):
        resolve_sigma2("median", look)


@pytest.mark.parametrize(
    ("shape", "dtype", "count"), [((3, 3), float, 6), ((3, 3), complex, 9), ((4, 2), float, 8), ((5,), float, 5)]
)
def test_free_numbers_of_a_point(shape, dtype, count):
    assert free_numbers(np.zeros((2, *shape), dtype)) == count


def test_the_default_does_not_end_below_the_class_means_where_the_papers_training_does():
    X, y = make_syn2(100, random_state=0)

    def score(**settings):
        return RiemannianLVQ(random_state=0, **settings).fit(X, y).score(X, y)

    means, default = score(max_epochs=0), score(max_epochs=10)
    with pytest.warns(DivergenceWarning, match="training raised the training error"):
        paper = score(max_epochs=10, sigma2="half_median", step_size="paper")
    assert default >= means > paper + 0.01


def test_without_epochs_the_default_is_the_likeliest_value_which_is_calibrated():
    X, y = vector_classes(per_class=30, n_classes=3, shift=0.7)
    model = RiemannianLVQ("euclidean_vectors", max_epochs=0).fit(X, y)
    sqdist = ((X[:, None] - model.prototypes_) ** 2).sum(axis=2)
    given = InitialEvidence(sqdist, y, np.arange(3), 9)
    assert model.sigma2_ == pytest.approx(likeliest_sigma2(given), rel=1e-9)
    blended = RiemannianLVQ("euclidean_vectors", sigma2=HeldOut(["auto"]), max_epochs=1).fit(X, y)
    assert blended.state_.sigma2 == pytest.approx(blended_sigma2(given), rel=1e-9)


# --- sigma2 of costs that scale or add others


BLENDED_PRIORS = (0.7, 0.2, 0.1)


@pytest.mark.parametrize(
    "cost",
    [1.0 * RSLVQ(BLENDED_PRIORS), RSLVQ(BLENDED_PRIORS) + 0.1 * Representability(), PLVQ(BLENDED_PRIORS)],
    ids=["scaled", "sum", "PLVQ"],
)
@pytest.mark.parametrize("sigma2", ["auto", HeldOut(["auto"]), "half_median"], ids=repr)
def test_a_cost_that_scales_or_adds_gets_the_sigma2_of_the_cost_with_the_priors(cost, sigma2):
    X, y = vector_classes(per_class=30, n_classes=3, shift=0.7)
    settings = {"sigma2": sigma2, "max_epochs": 0, "random_state": 0}
    found = RiemannianLVQ("euclidean_vectors", cost, **settings).fit(X, y).sigma2_
    assert found == RiemannianLVQ("euclidean_vectors", RSLVQ(BLENDED_PRIORS), **settings).fit(X, y).sigma2_
    without = RiemannianLVQ("euclidean_vectors", RSLVQ(), **settings).fit(X, y).sigma2_
    assert (found == without) == (sigma2 == "half_median")  # the priors count wherever labels do


def test_a_scaled_cost_is_tried_on_held_out_samples_as_the_cost_itself():
    X, y = vector_classes(per_class=30, n_classes=3, shift=0.7)
    settings = {"step_size": 0.1, "max_epochs": 24, "random_state": 0}
    plain, scaled = (
        RiemannianLVQ("euclidean_vectors", cost, **settings).fit(X, y)
        for cost in (RSLVQ(BLENDED_PRIORS), 1.0 * RSLVQ(BLENDED_PRIORS))
    )
    assert scaled.sigma2_ == plain.sigma2_
    assert_allclose(scaled.prototypes_, plain.prototypes_, rtol=1e-12)


# --- the start of the step size, which follows sigma2


@pytest.mark.parametrize("sigma2", [1e-3, 1.0, "auto", Constant(1.0)])
def test_the_papers_step_does_not_follow_sigma2_and_the_default_does(sigma2):
    X, y = spd_classes()
    for step, wanted in (("paper", 0.03), ("auto", None), (None, None), ("adaptive", None)):
        model = RiemannianLVQ(sigma2=sigma2, step_size=step, max_epochs=0).fit(X, y)
        assert model.step_size_ == pytest.approx(wanted or model.state_.sigma2, rel=0.6 if step == "adaptive" else 1e-9)


def test_other_words_for_the_step_are_refused():
    X, y = spd_classes()
    with pytest.raises(ValueError, match="step_size must be a positive number, a Schedule, None or 'auto', got 'slow'"):
        RiemannianLVQ(step_size="slow").fit(X, y)
