"""Products: one factor alone, order of factors, relevances, what travels with the prototypes, and messages."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rplvq import (
    RSLVQ,
    AffineInvariant,
    BuresWasserstein,
    EuclideanVectors,
    Grow,
    HeldOut,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    Product,
    ProjectedEuclidean,
    Prune,
    RiemannianLVQ,
    TangentSpace,
    explain,
)
from rplvq.arrays import LazyRows, sqrtm
from rplvq.datasets import load_digits_covariances, make_syn2
from rplvq.manifolds import is_additive
from rplvq.manifolds._packed import RelevancePrototypes, log_step
from rplvq.testing import check_manifold
from tests.covering import covering
from tests.problems import spd, spd_classes, vector_classes, wrapped_normal

AI, LE = AffineInvariant(compiled=False), LogEuclidean()
X, Y = spd_classes(per_class=12)
COMPLEX = spd_classes(per_class=12, dtype=complex)


def useful_and_noise(seed=0, per_class=40, n_classes=3):
    """Pairs of matrices (N, 2, 3, 3) of which only the first depends on the class, and classes (N,)."""
    useful, y = spd_classes(seed, per_class, n_classes=n_classes, spread=0.5, shift=0.7)
    return np.stack([useful, spd(np.random.default_rng(seed), len(y), 3, 0.7)], axis=1), y


ALONE = [AI, LE, LogCholesky(), BuresWasserstein(), ProjectedEuclidean(relative=True), LearnedLogEuclidean(rate=0.1)]


@pytest.mark.parametrize(
    ("factor", "setting", "relevances"),
    covering(
        ALONE,
        [("batch_size", 1), ("batch_size", 5), ("batch_size", None), ("early_stopping", True)],
        [None, (3.0,), "learned", "local"],
    ),
    ids=str,
)
def test_a_product_of_one_factor_trains_as_this_factor(factor, setting, relevances):
    common = {"max_epochs": 5, "sigma2": 1.0, "random_state": 0} | dict([setting])
    if relevances in ("learned", "local"):
        common["step_size"] = 0.05  # training with a learned metric is not ended early
    weights = np.random.default_rng(0).uniform(0, 2, len(Y))
    alone = RiemannianLVQ(factor, **common).fit(X, Y, weights)
    same = RiemannianLVQ(Product([factor], relevances=relevances), **common).fit(X[:, None], Y, weights)
    assert same.n_epochs_ == alone.n_epochs_ > 0
    assert_allclose(same.prototypes_[:, 0], alone.prototypes_, rtol=1e-9, atol=1e-12)
    assert_allclose(same.history_["cost"], alone.history_["cost"], rtol=1e-9)
    assert_allclose(same.predict_proba(X[:, None]), alone.predict_proba(X), rtol=1e-8)


def test_a_product_of_one_factor_chooses_sigma2_and_settles_as_this_factor():
    digits, y = (values[:200] for values in load_digits_covariances())
    rule = HeldOut(["auto", "untrained"])  # a product has no discriminant
    alone = RiemannianLVQ(LE, sigma2=rule, random_state=0).fit(digits, y)
    same = RiemannianLVQ(Product([LE]), sigma2=rule, random_state=0).fit(digits[:, None], y)
    assert same.n_epochs_ == alone.n_epochs_ > 0
    assert same.sigma2_ == pytest.approx(alone.sigma2_, rel=1e-4)  # its calibration is a search
    assert_allclose(same.prototypes_[:, 0], alone.prototypes_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("relevances", [[3.0, 1.0, 2.0], "learned", "local"])
def test_the_order_of_factors_does_not_matter(relevances):
    rng = np.random.default_rng(1)
    parts = [X, spd(rng, len(Y), 3), rng.normal(size=(len(Y), 2))]
    factors, order = [AI, LE, EuclideanVectors()], [2, 0, 1]
    fitted = []
    for places in ([0, 1, 2], order):
        given_ = relevances if isinstance(relevances, str) else [relevances[i] for i in places]
        shapes = [parts[i].shape[1:] for i in places]
        product = Product([factors[i] for i in places], shapes=shapes, relevances=given_)
        points = product.pack([parts[i] for i in places])
        # Full batches, because the order in which samples are visited depends on their codes.
        settings = {"sigma2": 1.0, "step_size": 0.5, "batch_size": None, "max_epochs": 5}
        model = RiemannianLVQ(product, **settings).fit(points, Y)
        fitted.append((model.decision_function(points), product.relevances_of(model.state_.prototypes)))
    (first, own), (second, other) = fitted
    assert_allclose(second, first, rtol=1e-8, atol=1e-10)
    assert_allclose(other, own[..., order], rtol=1e-8)


def test_distances_add_up_generalised_eigenvalues():
    rng = np.random.default_rng(2)
    a, b = spd(rng, 6, 3), spd(rng, 6, 2, dtype=complex)
    product = Product([AI, AI], shapes=[(3, 3), (2, 2)], relevances=[1, 4])
    codes = product.encode(product.pack([a, b]))
    for i, j in np.ndindex(6, 6):
        logs = [np.log(scipy.linalg.eigvalsh(part[i], part[j])) for part in (a, b)]
        wanted = 0.4 * logs[0] @ logs[0] + 1.6 * logs[1] @ logs[1]
        assert_allclose(product.sqdist(codes[j : j + 1], codes[i : i + 1])[0, 0], wanted, rtol=1e-9, atol=1e-12)


def test_a_step_of_weight_1_reaches_the_sample_whatever_the_relevances():
    codes = np.stack([X, X[::-1]], axis=1)
    for relevances in ([1, 1], [100, 1], [0, 1]):
        product = Product([AI, LE], relevances=relevances)
        codes_ = product.encode(codes)
        moved = product.move(product.connect(codes_[:2], codes_[5:6]), np.ones((1, 2)))
        assert_allclose(product.decode(moved), codes[[5, 5]], atol=1e-9)


def test_no_factor_steps_beyond_its_longest_step():
    short = AffineInvariant(max_step_length=0.5, compiled=False)
    product = Product([short, LE], relevances=[0.01, 1.99])
    assert product.max_step_length == 0.5
    codes = product.encode(np.stack([X, X], axis=1))
    far = int(short.sqdist(X[:1], X).argmax())
    moved = product.move(product.connect(codes[:1], codes[far : far + 1]), np.ones((1, 1)))
    assert np.sqrt(short.sqdist(X[:1], product.decode(moved)[:, 0])[0, 0]) == pytest.approx(0.5)


# --- learned relevances


@pytest.mark.parametrize("dtype", [float, complex])
def test_the_step_of_relevances_follows_the_gradient_of_the_loss(dtype):
    rng = np.random.default_rng(3)
    points = np.stack([spd(rng, 9, 3, dtype=dtype) for _ in range(3)], axis=1)
    logs, step, cost = np.array([0.4, -0.1, -0.5]), 0.01, RSLVQ()
    targets, labels = rng.integers(2, size=6), np.array([0, 0, 1])
    product = Product([AI, LE, AI], relevances="learned", rate=1.0, penalty=0.0)
    codes = product.encode(points)
    start = product.move(product.connect(codes[:3], codes[3:]), np.zeros((6, 3)))

    def at(logs):
        return RelevancePrototypes(start.parts, None, np.exp(logs))

    def loss(logs):
        return cost(product.sqdist(at(logs), codes[3:]), targets, labels, 0.8).loss.mean()

    wanted = np.array([(loss(logs + e) - loss(logs - e)) / 2e-5 for e in 1e-5 * np.eye(3)])
    geodesics = product.connect(at(logs), codes[3:])
    weights = 2 * step * cost(geodesics.sqdist, targets, labels, 0.8).slope / 6
    moved = product.move(geodesics, weights)
    assert_allclose(np.log(moved.weighted) - logs, -step * wanted / geodesics.sqdist.mean(), rtol=1e-6, atol=1e-12)
    assert_allclose(product.relevances_of(moved), 3 * moved.weighted / moved.weighted.sum(), rtol=1e-12)


def test_the_penalty_pulls_relevances_to_equality():
    weighted = np.array([1.5, 0.5])
    for _ in range(200):
        before = weighted
        weighted = log_step(weighted, np.zeros(2), np.ones((1, 2)), 0.2, 1.0, 1.0)
        assert (np.abs(weighted - 1) < np.abs(before - 1)).all()
    assert_allclose(weighted, 1, atol=1e-3)


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), st.floats(0, 1e3))
def test_relevances_stay_positive_with_mean_1(pulls, rate):
    product = Product([LE, LE, LE], relevances="learned")
    weighted = np.array([1.0, 2.0, 0.5])
    for _ in range(1000):
        weighted = log_step(weighted, np.array(pulls), np.full((1, 2), 3.0), 6.0, rate, 0.0)
    relevances = product.relevances_of(RelevancePrototypes((X[:2],) * 3, None, weighted))
    assert (relevances > 0).all()
    assert relevances.mean() == pytest.approx(1, abs=1e-12)


@pytest.mark.filterwarnings("ignore:training raised")  # with a factor of noise, and one relevance for both
def test_a_planted_useless_factor_gets_a_small_relevance_and_costs_no_accuracy():
    useful, y = make_syn2(n_per_class=300, random_state=0)
    rng = np.random.default_rng(0)
    both, rows = np.stack([useful, rng.permutation(useful)], axis=1), rng.permutation(len(y))
    train, test = rows[:600], rows[600:]
    settings = {"sigma2": 10.0, "step_size": 2.0, "batch_size": 8, "max_epochs": 20, "prototypes_per_class": 3}

    def score(points, **fields):
        product = Product([LE] * points.shape[1], **fields)
        model = RiemannianLVQ(product, random_state=0, **settings).fit(points[train], y[train])
        return model.score(points[test], y[test]), product.relevances_of(model.state_.prototypes)

    clean, equal, (learned, relevances) = score(both[:, :1])[0], score(both)[0], score(both, relevances="learned")
    assert relevances[1] < 0.1
    assert learned > clean - 0.005
    assert learned > equal + 0.05


def test_a_rate_of_0_changes_nothing():
    both, y = useful_and_noise(per_class=8)
    settings = {"sigma2": 1.0, "step_size": 0.1, "max_epochs": 3, "random_state": 0}
    fixed, learned = (
        RiemannianLVQ(product, **settings).fit(both, y)
        for product in (Product([AI, LE]), Product([AI, LE], relevances="learned", rate=0))
    )
    assert_allclose(learned.prototypes_, fixed.prototypes_, rtol=1e-10)
    check_manifold(Product([AI, LE], relevances="learned", rate=0), both[:8])


# --- relevances of each prototype


def own_factors(seed, per_class):
    """Class c of 3 is close to a centre in factor c, and spread out in the other factors: (N, 3, 3, 3), and classes."""
    rng = np.random.default_rng(seed)
    roots = sqrtm(wrapped_normal(np.random.default_rng(99), 3, 3, 0.7))
    y = rng.permutation(np.repeat(np.arange(3), per_class))
    points = np.stack([wrapped_normal(rng, len(y), 3, 0.8) for _ in range(3)], axis=1)
    points[np.arange(len(y)), y] = roots[y] @ wrapped_normal(rng, len(y), 3, 0.25) @ roots[y]
    return 0.5 * (points + points.swapaxes(-1, -2)), y


def local_model(**settings):
    common = {"sigma2": 1.0, "step_size": 0.3, "max_epochs": 30, "random_state": 0}
    return RiemannianLVQ(Product([LE] * 3, relevances="local"), **common | settings)


@pytest.mark.filterwarnings("ignore:training raised")  # without local relevances
def test_classes_that_different_factors_tell_apart_need_local_relevances():
    points, y = own_factors(0, 60)
    unseen, truth = own_factors(100, 200)
    scores = {}
    for relevances in (None, "learned", "local"):
        model = local_model().set_params(metric__relevances=relevances).fit(points, y)
        scores[relevances] = model.score(unseen, truth)
    relevances = model.metric.relevances_of(model.state_.prototypes)
    assert_array_equal(relevances.argmax(axis=1), [0, 1, 2])
    assert_allclose(relevances.mean(axis=1), 1, rtol=1e-12)
    assert relevances.max(axis=1).min() > 2
    assert scores["local"] > 0.96
    assert scores["local"] > max(scores[None], scores["learned"]) + 0.05


def test_local_relevances_follow_the_gradient_of_the_loss():
    rng = np.random.default_rng(4)
    points, labels, targets = (
        np.stack([spd(rng, 9, 3) for _ in range(3)], axis=1),
        np.array([0, 1, 1]),
        rng.permutation(6) % 2,
    )
    product, cost, step = Product([AI, LE, AI], relevances="local", rate=1.0, penalty=0.0), RSLVQ(), 1e-3
    codes, logs = product.encode(points), rng.normal(size=(3, 3)) * 0.2
    logs -= np.log(np.exp(logs).mean(axis=1, keepdims=True))  # one scale for all sets

    def at(logs):
        return RelevancePrototypes(tuple(codes[:3, i] for i in range(3)), None, np.exp(logs))

    def loss(logs):
        return cost(product.sqdist(at(logs), codes[3:]), targets, labels, 0.8).loss.mean()

    wanted = np.zeros((3, 3))
    for place in np.ndindex(3, 3):
        change = np.zeros((3, 3))
        change[place] = 1e-5
        wanted[place] = (loss(logs + change) - loss(logs - change)) / 2e-5
    geodesics = product.connect(at(logs), codes[3:])
    moved = product.move(geodesics, 2 * step * cost(geodesics.sqdist, targets, labels, 0.8).slope / 6)
    free = np.exp(logs - step * wanted / geodesics.sqdist.mean())
    means = free.mean(axis=1, keepdims=True)
    assert_allclose(moved.weighted, free / means * np.exp(np.log(means).mean()), rtol=1e-8)


def test_local_relevances_stay_with_their_prototypes():
    points, y = own_factors(1, 20)
    model = local_model(prototypes_per_class=2, max_epochs=5).fit(points, y)
    old = model.state_.prototypes
    codes = np.asarray(old)
    chosen = old.with_codes(np.concatenate([codes[[4, 1]], codes[:1] + 1e-3]))
    assert_array_equal(chosen.weighted[:2], old.weighted[[4, 1]])
    assert_allclose(chosen.weighted[2], np.exp(np.log(old.weighted).mean(axis=0)), rtol=1e-12)
    for rule in (Grow(at_most=3, every=2), Prune(every=2)):
        model = local_model(prototypes_per_class=2, max_epochs=6, growth=(rule,)).fit(points, y)
        assert len(model.state_.prototypes.weighted) == len(model.prototype_labels_)
        assert model.score(points, y) > 0.9
    late = local_model(max_epochs=5).fit(points[y < 2], y[y < 2])
    late.partial_fit(points, y, classes=[0, 1, 2])
    assert late.state_.prototypes.weighted.shape == (3, 3)


# --- what travels with prototypes


def test_codes_take_over_relevances_and_the_state_of_factors():
    both, y = useful_and_noise(per_class=8)
    product = Product([LearnedLogEuclidean(rate=0.5), AI], relevances="learned")
    model = RiemannianLVQ(product, sigma2=1.0, step_size=0.2, max_epochs=3, random_state=0).fit(both, y)
    learned = model.state_.prototypes
    more = learned.with_codes(np.asarray(learned)[[0, 1, 2, 0]])
    assert len(more) == 4
    codes = product.encode(both)
    assert_allclose(product.sqdist(more, codes)[:, [0, 1, 2]], product.sqdist(learned, codes), rtol=1e-9)
    assert not np.allclose(product.sqdist(np.asarray(learned), codes), product.sqdist(learned, codes))


def test_only_products_of_additive_factors_with_fixed_relevances_are_additive():
    assert is_additive(Product([AI, LE]))
    assert is_additive(Product([AI, LE], relevances=[1, 2]))
    assert not is_additive(Product([AI, LearnedLogEuclidean()]))
    assert not is_additive(Product([AI, LE], relevances="learned"))
    assert not is_additive(Product([AI, LE], relevances="local"))
    assert not hasattr(Product([AI]), "unit")
    weights = np.linspace(0.5, 1.5, len(Y))
    both, projected = np.stack([X, 3 * X], axis=1), ProjectedEuclidean(relative=True)
    wanted = (0.5 * projected.unit(X, weights) + 1.5 * 1.0) / 2
    assert Product([projected, LE], relevances=[1, 3]).unit(both, weights) == pytest.approx(wanted)


def test_pickled_products_predict_the_same():
    both, y = useful_and_noise(per_class=8)
    model = RiemannianLVQ(Product([AI, LE], relevances="learned"), max_epochs=3, random_state=0).fit(both, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(both), model.decision_function(both))


def test_cross_validation_grids_and_pipelines_take_products():
    both, y = useful_and_noise(per_class=12)
    product = Product([LE, LE])
    model = RiemannianLVQ(product, sigma2=0.5, step_size=0.1, max_epochs=2, random_state=0)
    assert cross_val_score(model, both, y, cv=3).shape == (3,)
    grid = GridSearchCV(model, {"metric__relevances": [None, [1.0, 0.0], "learned"]}, cv=3).fit(both, y)
    assert grid.best_params_["metric__relevances"] == [1.0, 0.0]
    step = FunctionTransformer(lambda stacked: product.pack([stacked[:, 0], stacked[:, 1]]))
    piped = make_pipeline(step, model).fit(both, y)
    assert_array_equal(piped.predict(both), model.fit(both, y).predict(both))


@pytest.mark.parametrize("second", [LE, TangentSpace()], ids=["fixed", "with a reference"])
def test_dask_arrays_of_products_are_learned(second):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("rplvq.distributed")
    both, y = useful_and_noise(per_class=12)
    X_lazy = da.from_array(both, chunks=(10, 2, 3, 3))
    model = RiemannianLVQ(Product([AI, second]), sigma2=1.0, batch_size=6, max_epochs=3, random_state=0)
    fitted = distributed.DistributedLVQ(model).fit(X_lazy, y)
    assert fitted.prototypes_.shape == (3, 2, 3, 3)
    assert np.mean(np.asarray(fitted.predict(X_lazy)) == y) > 0.8
    learned = RiemannianLVQ(Product([AI, LE], relevances="learned"), sigma2=1.0, random_state=0)
    with pytest.raises(ValueError, match="has no pull and exp, which distributed training needs"):
        distributed.DistributedLVQ(learned).fit(X_lazy, y)


def test_images_of_stacked_points_are_predicted():
    both, y = useful_and_noise(per_class=8)
    model = RiemannianLVQ(Product([AI, LE]), max_epochs=0).fit(both, y)
    image = both.reshape(4, 6, 2, 3, 3)
    assert_array_equal(model.predict(image).ravel(), model.predict(both))


# --- what factors learn from the data, and explanations


@pytest.mark.parametrize("packed", [False, True])
def test_factors_get_their_references(packed):
    both, y = useful_and_noise(per_class=10)
    tangents = TangentSpace(), TangentSpace(whiten=True)
    product = Product([*tangents, AI], shapes=[(3, 3)] * 3 if packed else None)
    points = product.pack([both[:, 0], both[:, 1], both[:, 0]])
    check_manifold(product, points)
    model = RiemannianLVQ(product, early_stopping=True, max_epochs=3, random_state=0).fit(points, y)
    fitted = model.trainer_.manifold
    assert fitted.factors[0].reference.shape == (3, 3)
    assert fitted.factors[1].covariance.shape == (6, 6)
    assert fitted.factors[2] == AI
    again = RiemannianLVQ(Product([TangentSpace()]), max_epochs=0).fit(both[:, :1], y)
    wanted = RiemannianLVQ(TangentSpace(), max_epochs=0).fit(both[:, 0], y)
    assert_allclose(again.transform(both[:, :1]), wanted.transform(both[:, 0]), rtol=1e-9)


def test_a_reference_that_is_missing_is_named_with_its_factor():
    with pytest.raises(ValueError, match=r"factor 1, TangentSpace.* has no reference yet"):
        Product([AI, TangentSpace()]).encode(np.stack([X, X], axis=1))


def test_lazy_rows_give_the_same_references():
    both, y = useful_and_noise(per_class=10)
    rows = np.arange(0, len(y), 2)
    product = Product([TangentSpace(), AI])
    lazy, lazy_codes = product.referenced(LazyRows(both, rows))
    plain, codes = product.referenced(both[rows])
    assert lazy == plain
    assert_array_equal(lazy_codes, codes)


@pytest.mark.parametrize("relevances", [[1.0, 3.0], "learned", "local"])
def test_explanations_are_shares_of_the_factors(relevances):
    both, y = useful_and_noise(per_class=10)
    product = Product([AI, LE], relevances=relevances)
    model = RiemannianLVQ(product, sigma2=1.0, max_epochs=3, random_state=0).fit(both, y)
    for sample, found in zip(both[:5], explain(model, both[:5]), strict=True):
        assert found.shares.shape == (2,)
        assert found.shares.sum() == pytest.approx(found.margin, rel=1e-9)
        distances = model.transform(sample[None])[0] ** 2
        assert found.margin == pytest.approx(distances[found.other] - distances[found.own], rel=1e-9)


# --- messages


def test_messages_name_the_factor():
    product, bad = Product([AI, LE]), np.stack([X, X], axis=1)
    bad[3, 1] = -bad[3, 1]
    with pytest.raises(ValueError, match=r"X\[3\] has a factor 1 that is not positive definite"):
        product.encode(bad)
    with pytest.raises(ValueError, match=r"X\[3\] has a factor 1 that is not positive"):
        RiemannianLVQ(product).fit(bad, Y)
    with pytest.raises(ValueError, match=r"factor 0, AffineInvariant.*square matrices"):
        Product([AI, LE]).encode(np.ones((4, 2, 3, 2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "factors must hold at least one manifold"),
        ((["riemann"],), r"factors\[0\] is the name 'riemann': pass an object"),
        (([AI, 3],), r"factors\[1\]=3 is not a Manifold"),
        (([AI, LE], [(2, 2)]), "shapes has 1 entries for 2 factors"),
        (([AI], [(2, 0)]), r"shapes\[0\] must be positive integers, got \(2, 0\)"),
        (([AI, LE], None, [1]), "relevances has 1 entries for 2 factors"),
        (([AI, LE], None, [1, -1]), r"relevances\[1\] must be a finite number of at least 0, got -1"),
        (([AI, LE], None, [1, np.nan]), r"relevances\[1\] must be a finite number"),
        (([AI, LE], None, [0, 0]), "at least one must be positive"),
        (
            ([AI, LE], None, "learn"),
            "relevances must be 'learned', 'local', a sequence of numbers or None, got 'learn'",
        ),
        (([AI, LE], None, None, -1), "rate must be a finite number of at least 0"),
        (([AI, LE], None, None, 1, np.inf), "penalty must be a finite number"),
    ],
)
def test_invalid_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Product(*arguments)


def test_input_of_another_form_is_refused():
    vectors, _ = vector_classes()
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 2, \.\.\.\), got \(16, 3\).*shapes"):
        Product([LE, LE]).encode(vectors)
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 2, \.\.\.\), got \(24, 3, 3\)"):
        Product([LE, LE]).encode(X)
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 12\), got \(16, 3\)"):
        Product([LE, EuclideanVectors()], shapes=[(3, 3), 3]).encode(vectors)
    with pytest.raises(ValueError, match=r"parts has 1 arrays for 2 factors"):
        Product([LE, LE]).pack([X])
    with pytest.raises(ValueError, match=r"parts\[1\] has shape \(16, 3\), expected \(24, 3, 3\)\. If factors have"):
        Product([LE, EuclideanVectors()]).pack([X, vectors])
    with pytest.raises(ValueError, match=r"parts\[1\] has shape \(16, 3\), expected \(24, 3\)"):
        Product([LE, EuclideanVectors()], shapes=[(3, 3), (3,)]).pack([X, vectors])
    with pytest.raises(ValueError, match="X must hold numbers"):
        Product([LE]).encode([["a"]])


def test_a_factor_that_changes_the_shape_of_points_is_refused():
    class Half(EuclideanVectors):
        def encode(self, points):
            return super().encode(points)[:, ::2]

    with pytest.raises(ValueError, match=r"factor 1, .* changes the shape of points"):
        Product([EuclideanVectors(), Half()]).encode(np.ones((5, 2, 4)))
