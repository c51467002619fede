"""Shares of the margin: they add up, carry over to mixed sensors, and find the source that was planted."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, given, strategies
from numpy.testing import assert_allclose, assert_array_equal
from pymanopt.manifolds import Sphere
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from rplvq import (
    BuresWasserstein,
    EuclideanVectors,
    FromPymanopt,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    Recenter,
    RiemannianLVQ,
    explain,
    load_model,
)
from rplvq.capabilities import Components
from rplvq.manifolds import flat_sqdist
from tests.cases import low_rank
from tests.problems import FEW, spd, spd_classes, sphere_classes, vector_classes

SHAPES = strategies.tuples(strategies.integers(1, 5), strategies.sampled_from([float, complex]))
SEEDS = strategies.integers(0, 2**32 - 1)


def with_prototypes(prototypes, labels, **options):
    """A model with these prototypes, which is not trained."""
    return RiemannianLVQ(init=(prototypes, labels), max_epochs=0, **options).fit(prototypes, labels)


def drawn(seed, n, dtype, spread=0.8):
    """Three samples, and a model with three prototypes of two classes."""
    matrices = spd(np.random.default_rng(seed), 6, n, spread, dtype)
    return matrices[:3], with_prototypes(matrices[3:], ["a", "b", "b"])


def generalised_margin(x, own, other):
    """Difference of squared distances by SciPy's generalised eigenvalues."""
    far, near = ((np.log(scipy.linalg.eigvalsh(x, w)) ** 2).sum() for w in (other, own))
    return far - near


def mixing(rng, n, dtype):
    """A well-conditioned invertible matrix."""
    noise = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    left, _, right = np.linalg.svd(noise if dtype is complex else noise.real)
    return (left * rng.uniform(0.5, 2.0, n)) @ right


@given(SEEDS, SHAPES)
def test_all_splits_add_up_to_the_margin_of_scipy(seed, shape):
    X, model = drawn(seed, *shape)
    for x, found in zip(X, explain(model, X), strict=True):
        own, other = model.prototypes_[found.own], model.prototypes_[found.other]
        margin = generalised_margin(x, own, other)
        apart = found.to_other.shares.sum() - found.to_own.shares.sum()
        for total in (found.margin, found.shares.sum(), found.channels.sum(), apart):
            assert_allclose(total, margin, rtol=1e-9, atol=1e-9)
        assert_allclose(found.to_own.shares, np.log(found.to_own.spectrum.eigenvalues) ** 2, atol=1e-12)


@given(SEEDS, SHAPES)
def test_filters_are_generalised_eigenvectors(seed, shape):
    X, model = drawn(seed, *shape)
    for x, found in zip(X, explain(model, X), strict=True):
        own, other = model.prototypes_[found.own], model.prototypes_[found.other]
        common = (found.ratios, found.filters, found.patterns)
        for a, b, split in ((x, own, found.to_own.spectrum), (x, other, found.to_other.spectrum), (other, own, common)):
            eigenvalues, filters, patterns = split
            assert_allclose(a @ filters, b @ filters * eigenvalues, atol=1e-8)
            assert_allclose(filters.conj().T @ b @ filters, np.eye(len(a)), atol=1e-8)
            assert_allclose(patterns, b @ filters, atol=1e-8)
            assert (np.diff(eigenvalues) >= 0).all()
        assert_allclose(found.powers, np.diagonal(found.filters.conj().T @ x @ found.filters).real, rtol=1e-8)


@given(SEEDS, SHAPES)
def test_mixed_sensors_have_the_same_shares_with_mixed_filters_and_patterns(seed, shape):
    X, model = drawn(seed, *shape)
    a = mixing(np.random.default_rng(seed), *shape)
    mixed = [0.5 * (m + m.conj().swapaxes(1, 2)) for m in (a @ X @ a.conj().T, a @ model.prototypes_ @ a.conj().T)]
    back = np.linalg.inv(a).conj().T
    for one, two in zip(explain(model, X), explain(with_prototypes(mixed[1], ["a", "b", "b"]), mixed[0]), strict=True):
        assume(len(one.ratios) == 1 or np.diff(np.log(one.ratios)).min() > 0.02)  # else single shares are not unique
        assert (one.own, one.other, one.label, one.other_label) == (two.own, two.other, two.label, two.other_label)
        assert_allclose(two.shares, one.shares, atol=1e-7)
        assert_allclose(two.ratios, one.ratios, rtol=1e-8)
        assert_allclose(two.powers, one.powers, rtol=1e-6)
        # Filters and patterns of one spectrum are inverse to each other, and phases are free.
        assert_allclose(np.abs(two.patterns.conj().T @ back @ one.filters), np.eye(len(a)), atol=1e-6)
        assert_allclose(np.abs(two.filters.conj().T @ a @ one.patterns), np.eye(len(a)), atol=1e-6)


@given(SEEDS, strategies.permutations(range(4)))
def test_permuted_channels_have_permuted_shares(seed, order):
    X, model = drawn(seed, 4, float)
    places = np.ix_(range(3), order, order)
    permuted = with_prototypes(model.prototypes_[places], ["a", "b", "b"])
    for one, two in zip(explain(model, X), explain(permuted, X[places]), strict=True):
        assert_allclose(two.channels, one.channels[list(order)], atol=1e-9)
        assert_allclose(np.sort(two.shares), np.sort(one.shares), atol=1e-8)


def test_volts_change_nothing():
    X, model = drawn(0, 4, float)
    scaled = with_prototypes(1e-12 * model.prototypes_, ["a", "b", "b"])
    for one, two in zip(explain(model, X), explain(scaled, 1e-12 * X), strict=True):
        assert_allclose(two.shares, one.shares, atol=1e-9)
        assert_allclose(two.channels, one.channels, atol=1e-9)


def planted(seed, n=8, n_per_class=60, n_times=200):
    """Covariances of mixed sources whose power varies; source 2 has five times the power in class "b"."""
    rng = np.random.default_rng(seed)
    mixture = mixing(rng, n, float)
    powers = np.exp(0.5 * rng.normal(size=(2 * n_per_class, n)))
    y = np.repeat(["a", "b"], n_per_class)
    powers[:, 2] *= np.where(y == "b", 5.0, 1.0)
    sources = np.sqrt(powers)[..., None] * rng.normal(size=(len(y), n, n_times))
    signals = mixture @ sources
    return signals @ signals.swapaxes(1, 2) / n_times, y, mixture


def cosine(first, second):
    return abs(first @ second) / np.linalg.norm(first) / np.linalg.norm(second)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("max_epochs", [0, 10])
def test_the_planted_source_has_the_largest_share(seed, max_epochs):
    X, y, mixture = planted(seed)
    model = RiemannianLVQ(sigma2=2.0, max_epochs=max_epochs, random_state=0).fit(X, y)
    unmixing = np.linalg.inv(mixture)
    right = [found for found, label in zip(explain(model, X), y, strict=True) if found.label == label]
    tops = np.array([found.order[0] for found in right])
    hits = [
        (cosine(found.filters[:, top], unmixing[2]) > 0.95) and (cosine(found.patterns[:, top], mixture[:, 2]) > 0.95)
        for found, top in zip(right, tops, strict=True)
    ]
    assert len(right) > 100
    assert np.mean(hits) > 0.95


def test_a_direction_in_which_prototypes_agree_has_no_share():
    own, other = np.diag([1.0, 1.0, 1.0]), np.diag([1.0, 3.0, 1.0])
    (found,) = explain(with_prototypes(np.array([own, other]), [0, 1]), np.diag([50.0, 1.2, 1.0])[None])
    assert_allclose(np.sort(found.shares), [0, 0, found.margin], atol=1e-12)
    assert found.to_own.shares.max() > 10 * found.margin  # the same direction, which cancels
    assert_allclose(found.channels, [0, found.margin, 0], atol=1e-12)


def test_equal_ratios_share_one_sum():
    rng = np.random.default_rng(0)
    x, turn = spd(rng, 1, 3), np.linalg.qr(rng.normal(size=(2, 2)))[0]
    prototypes = np.array([np.eye(3), np.diag([2.0, 2.0, 0.5])])
    turn = scipy.linalg.block_diag(turn, 1.0)  # leaves both prototypes as they are
    one, two = (explain(with_prototypes(prototypes, [0, 1]), m)[0] for m in (x, turn @ x @ turn.T))
    assert_allclose(one.ratios, [0.5, 2, 2])
    assert_allclose([two.shares[0], two.shares[1:].sum()], [one.shares[0], one.shares[1:].sum()], atol=1e-10)


def log_difference(x, own, other):
    logs = [scipy.linalg.logm(m) for m in (x, own, other)]
    return np.abs(logs[0] - logs[2]) ** 2 - np.abs(logs[0] - logs[1]) ** 2


def cholesky_difference(x, own, other):
    roots = [np.linalg.cholesky(m) for m in (x, own, other)]
    codes = [np.tril(root, -1) + np.diag(np.log(np.diag(root).real)) for root in roots]
    return np.abs(codes[0] - codes[2]) ** 2 - np.abs(codes[0] - codes[1]) ** 2


def frobenius_difference(x, own, other):
    return np.abs(x - other) ** 2 - np.abs(x - own) ** 2


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(
    ("manifold", "formula"),
    [
        (LogEuclidean(), log_difference),
        (LogCholesky(), cholesky_difference),
        (ProjectedEuclidean(), frobenius_difference),
        (LearnedLogEuclidean(rate=0), log_difference),
    ],
    ids=["Log-Euclidean", "log-Cholesky", "Frobenius", "learned, at the start"],
)
def test_flat_metrics_split_by_entry(manifold, formula, dtype):
    matrices = spd(np.random.default_rng(3), 5, 3, dtype=dtype)
    model = with_prototypes(matrices[3:], ["a", "b"], metric=manifold)
    for x, found in zip(matrices, explain(model, matrices[:3]), strict=False):
        wanted = formula(x, model.prototypes_[found.own], model.prototypes_[found.other])
        assert found.filters is found.patterns is found.ratios is found.powers is None
        assert_allclose(found.shares, wanted, atol=1e-10)
        assert_allclose(found.channels, wanted.sum(axis=1), atol=1e-10)
        assert_allclose(found.shares.sum(), found.margin, atol=1e-10)


@FEW
@given(SEEDS, strategies.sampled_from([float, complex]))
def test_a_learned_metric_is_part_of_the_shares(seed, dtype):
    X, y = spd_classes(seed=seed, dtype=dtype)
    model = RiemannianLVQ(LearnedLogEuclidean(rate=0.5), sigma2=1.0, max_epochs=2, random_state=0).fit(X, y)
    for found, distances in zip(explain(model, X), model.transform(X) ** 2, strict=True):
        assert_allclose(found.shares, found.shares.T)
        assert_allclose(found.shares.sum(), distances[found.other] - distances[found.own], atol=1e-9)
    metric = model.trainer_.manifold.metric(model.state_.prototypes)
    assert np.abs(metric - np.eye(len(metric))).max() > 0.01


def test_a_metric_of_low_rank_adds_up():
    X, y = spd_classes(n=4)
    model = RiemannianLVQ(low_rank(4), max_epochs=0).fit(X, y)
    distances = model.transform(X) ** 2
    for row, found in enumerate(explain(model, X)):
        assert_allclose(found.shares.sum(), distances[row, found.other] - distances[row, found.own], atol=1e-9)


def test_vectors_split_by_feature():
    X, y = vector_classes(n_classes=3)
    model = RiemannianLVQ("euclidean_vectors", max_epochs=0).fit(X, y)
    for x, found in zip(X, explain(model, X), strict=True):
        own, other = model.prototypes_[found.own], model.prototypes_[found.other]
        assert_allclose(found.shares, (x - other) ** 2 - (x - own) ** 2)
        assert_array_equal(found.channels, found.shares)


class TwoFactors(EuclideanVectors):
    """Vectors as points of a product of two planes, which explains its distances by factor."""

    @staticmethod
    def components(prototypes, samples):
        return Components(np.stack([flat_sqdist(prototypes[:, f], samples[:, f]) for f in ([0, 1], [2, 3])], axis=-1))


def test_a_product_is_explained_by_factor():
    X, y = vector_classes(d=4)
    model = RiemannianLVQ(TwoFactors(), max_epochs=0).fit(X, y)
    for x, found in zip(X, explain(model, X), strict=True):
        squares = (x - model.prototypes_[found.other]) ** 2 - (x - model.prototypes_[found.own]) ** 2
        assert_allclose(found.shares, [squares[:2].sum(), squares[2:].sum()])
        assert_allclose(found.shares.sum(), found.margin)


def test_own_and_other_are_the_nearest_of_each_side():
    X, y = spd_classes(n_classes=3, per_class=10)
    model = RiemannianLVQ(prototypes_per_class=2, init="kmeans", max_epochs=1, random_state=0).fit(X, y)
    sqdist, labels = model.transform(X) ** 2, model.prototype_labels_
    predicted, wanted = explain(model, X), explain(model, X, target=y)
    assert [found.label for found in predicted] == model.predict(X).tolist()
    assert [found.label for found in wanted] == y.tolist()
    for found, row in zip([*predicted, *wanted], [*sqdist, *sqdist], strict=True):
        assert labels[found.own] == found.label != found.other_label == labels[found.other]
        assert row[found.own] == row[labels == found.label].min()
        assert row[found.other] == row[labels != found.label].min()
        assert_allclose(found.margin, row[found.other] - row[found.own], atol=1e-9)
    assert min(found.margin for found in predicted) >= 0
    assert [found.margin > 0 for found in wanted] == (model.predict(X) == y).tolist()
    assert {found.label for found in explain(model, X, target=1)} == {1}


def test_one_sample_is_explained_as_among_many():
    X, model = drawn(1, 3, float)
    whole = explain(model, X)
    for row in range(3):
        (found,) = explain(model, X[row : row + 1].tolist())
        assert_allclose(found.shares, whole[row].shares, atol=1e-12)
        assert sorted(found.order.tolist()) == [0, 1, 2]
        assert (np.diff(np.abs(found.shares[found.order])) <= 0).all()


@pytest.mark.parametrize("manifold", ["affine_invariant", "learned_log_euclidean"])
def test_a_saved_model_explains_the_same(manifold, tmp_path):
    X, y = spd_classes()
    model = RiemannianLVQ(manifold, sigma2=1.0, max_epochs=2, random_state=0).fit(X, y)
    model.save(tmp_path / "model.zip")
    for one, two in zip(explain(model, X), explain(load_model(tmp_path / "model.zip"), X), strict=True):
        assert_allclose(two.shares, one.shares, atol=1e-9)
        assert_allclose(two.channels, one.channels, atol=1e-9)


def test_an_explanation_is_frozen():
    X, model = drawn(1, 3, float)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        explain(model, X)[0].margin = 0.0


def test_a_decision_by_posterior_is_explained_only_where_the_margin_decides():
    prototypes = np.array([[-1.0], [1.2], [1.3]])
    model = with_prototypes(prototypes, ["a", "b", "b"], metric="euclidean_vectors", sigma2=5.0, decision="posterior")
    X = np.array([[3.0], [0.0]])
    assert model.predict(X).tolist() == ["b", "b"]  # two far prototypes outweigh a nearer one
    assert explain(model, X[:1])[0].label == "b"
    with pytest.raises(ValueError, match=r"X\[1\] is predicted as 'b' by its posterior, but .* 'a'"):
        explain(model, X)
    assert explain(model, X, target="b")[1].margin < 0


def test_what_it_can_not_explain_is_refused():
    X, y = spd_classes()
    model = RiemannianLVQ(max_epochs=0).fit(X, y)
    refused = [
        (
            RiemannianLVQ(BuresWasserstein(), max_epochs=0).fit(X, y),
            X,
            None,
            ValueError,
            "BuresWasserstein.*components",
        ),
        (make_pipeline(Recenter(), model), X, None, TypeError, r"explain\(pipeline\[-1\]"),
        (RiemannianLVQ(), X, None, NotFittedError, "not fitted"),
        (
            RiemannianLVQ().partial_fit(X, np.zeros(16), classes=[0, 1]),
            X,
            None,
            ValueError,
            "class 0.* only.*no margin",
        ),
        (model, X[:, :2, :2], None, ValueError, r"shape \(2, 2\), the prototypes have \(3, 3\)"),
        (model, X[0], None, ValueError, r"X\[None\]"),
        (model, X, 7, ValueError, r"target\[0\] is 7"),
        (model, X, y[:3], ValueError, "target has 3 labels for 16 samples"),
        (model, np.where(np.arange(16)[:, None, None] == 2, np.nan, X), None, ValueError, r"X\[2\] contains NaN"),
    ]
    for estimator, samples, target, error, sentence in refused:
        with pytest.raises(error, match=sentence):
            explain(estimator, samples, target)
    points, labels = sphere_classes()
    with pytest.raises(ValueError, match="FromPymanopt"):
        explain(RiemannianLVQ(FromPymanopt(Sphere(3)), max_epochs=0).fit(points, labels), points)


def test_a_class_without_prototype_is_no_target():
    X, y = spd_classes()
    model = RiemannianLVQ().partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"target\[0\] is 2, a class that has no prototype yet"):
        explain(model, X, target=2)


def test_deleting_the_largest_shares_turns_recorded_trials(real_data, unpack_symmetric):
    with np.load(real_data("bci2a_cov22.npz"), allow_pickle=False) as data:
        X, y, test = unpack_symmetric(data["s3_cov"], 22), data["s3_y"], data["s3_test"]
    model = RiemannianLVQ(max_epochs=0).fit(X[~test], y[~test])
    rng, turned = np.random.default_rng(0), []
    for x, found in zip(X[test][:100], explain(model, X[test][:100]), strict=True):
        own, other = model.prototypes_[found.own], model.prototypes_[found.other]
        orders = np.argsort(-found.shares), rng.permutation(22), np.argsort(np.abs(found.shares))
        left = [found.filters[:, order[2:]] for order in orders]
        turned.append([generalised_margin(*(v.T @ m @ v for m in (x, own, other))) < 0 for v in left])
    largest, at_random, smallest = np.mean(turned, axis=0)
    assert largest > 0.5
    assert at_random < 0.5 * largest
    assert smallest < at_random
