"""First prototypes by a discriminant: it decides as the LDA of scikit-learn, and held-out samples may take it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rplvq import (
    AffineInvariant,
    DiscriminantMeans,
    EarlyStopping,
    HeldOut,
    LogEuclidean,
    RiemannianLVQ,
    TangentSpace,
    load_model,
)
from rplvq.datasets import load_digits_covariances
from rplvq.initializers import discriminant_beside, discriminant_points
from rplvq.manifolds import _shrinkage, riemannian_mean
from rplvq.testing import check_initializer
from tests.problems import refuse, vector_classes

DTYPES = pytest.mark.parametrize("dtype", [float, complex])


def stretched(seed=0, per_class=25, n=4, n_classes=3, dtype=float):
    """Wrapped normal distributions that vary much along some directions, so that class means are a bad guide.

    The classes are the same for every seed.
    """
    m = n * n if dtype is complex else n * (n + 1) // 2
    places, rng = np.random.default_rng(99).normal(scale=0.35, size=(n_classes, m)), np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), per_class)
    deviations = np.where(np.arange(m) % 3 == 0, 1.2, 0.25)
    values = places[y] + deviations * rng.normal(size=(len(y), m))
    tangents = np.zeros((len(y), n, n), dtype)
    rows, columns = np.triu_indices(n, 1)
    tangents[:, rows, columns] = values[:, n : n + len(rows)] / np.sqrt(2)
    if dtype is complex:
        tangents[:, rows, columns] += 1j * values[:, n + len(rows) :] / np.sqrt(2)
    tangents = tangents + tangents.conj().swapaxes(1, 2)
    tangents[:, np.arange(n), np.arange(n)] = values[:, :n]
    return expm(tangents), y


def vectors(codes):
    """Coordinates of Hermitian matrices, written independently of the library."""
    upper = np.triu_indices(codes.shape[-1], 1)
    above = np.sqrt(2) * codes[:, upper[0], upper[1]]
    parts = [np.diagonal(codes, axis1=1, axis2=2).real, above.real]
    return np.hstack([*parts, above.imag] if np.iscomplexobj(codes) else parts)


def discriminant(X, y, manifold="affine_invariant", **settings):
    return RiemannianLVQ(manifold, init="discriminant", max_epochs=0, **settings).fit(X, y)


# --- what it computes


@DTYPES
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_in_the_tangent_space_it_decides_as_the_lda_of_scikit_learn(dtype, n_classes):
    X, y = stretched(n_classes=n_classes, dtype=dtype)
    fresh, _ = stretched(seed=1, per_class=200, n_classes=n_classes, dtype=dtype)
    model = discriminant(X, y, "tangent")
    space = model.trainer_.manifold
    shrinkage = TangentSpace(space.reference, whiten=True).referenced(X, y)[0].shrinkage
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage, priors=np.full(n_classes, 1 / n_classes))
    lda.fit(vectors(space.encode(X)), y)
    assert_array_equal(model.predict(fresh), lda.predict(vectors(space.encode(fresh))))
    # Beyond the decisions: differences of squared distances are those of the LDA's scores, up to one positive factor.
    sqdist, scores = model.transform(fresh) ** 2, lda.decision_function(vectors(space.encode(fresh)))
    if n_classes > 2:
        lost, gained = (sqdist[:, :1] - sqdist[:, 1:]).ravel(), (scores[:, 1:] - scores[:, :1]).ravel()
        assert_allclose(lost, gained * (lost @ gained) / (gained @ gained), atol=1e-8 * np.abs(lost).max())


def scattered(seed, n_classes, m):
    """Random class means (C, m) and a covariance (m, m) within classes."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(m, m))
    return rng.normal(size=(n_classes, m)), 0.3 * (root @ root.T / m + 0.05 * np.eye(m))


@pytest.mark.parametrize(("n_classes", "least"), [(3, 1), (4, 0.9999), (5, 0.98), (10, 0.8), (30, 0.55)])
def test_with_more_classes_than_coordinates_the_nearest_points_come_close_to_lda(n_classes, least):
    m, agreement, longest = 3, [], []
    for seed in range(40):
        means, covariance = scattered(seed, n_classes, m)
        noise = np.random.default_rng(seed).multivariate_normal(np.zeros(m), covariance, 100 * n_classes)
        x = means.repeat(100, axis=0) + noise
        precision = np.linalg.inv(covariance)
        scores = x @ precision @ means.T - 0.5 * np.einsum("ki,ij,kj->k", means, precision, means)
        points = discriminant_points(means, covariance)
        nearest = ((x[:, None] - points) ** 2).sum(axis=2).argmin(axis=1)
        agreement.append((nearest == scores.argmax(axis=1)).mean())
        radius = np.sqrt(np.trace(covariance) + means.var(axis=0).sum())
        longest.append(np.linalg.norm(points.mean(axis=0) - means.mean(axis=0)) / radius)
    assert np.mean(agreement) >= least
    assert max(longest) < 3.6 + 1e-9


@pytest.mark.parametrize("manifold", ["tangent", "affine_invariant", "log_euclidean", "bures_wasserstein"])
def test_as_many_classes_as_a_matrix_has_entries_and_one_more_have_prototypes(manifold):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = np.repeat(np.arange(4), 8)
        values = rng.normal(size=(4, 3))[y] + rng.normal(size=(32, 3)) * [1.0, 0.2, 0.5]
        X = expm(np.array([[[a, c], [c, b]] for a, b, c in values]))
        model = discriminant(X, y, manifold)
        assert np.abs(np.log(np.linalg.eigvalsh(model.prototypes_))).max() < 15


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9])
def test_a_covariance_without_directions_leaves_the_class_means(scale):
    means = np.random.default_rng(0).normal(size=(4, 6))
    assert_allclose(discriminant_points(means, scale * np.eye(6)), means, atol=1e-12)


def test_equal_class_means_stay():
    means = np.tile(np.arange(3.0), (2, 1))
    assert_array_equal(discriminant_points(means, np.diag([1.0, 2.0, 3.0])), means)
    assert_array_equal(discriminant_points(means[:1], np.eye(3)), means[:1])


def test_points_follow_a_rotation_and_an_order_of_classes():
    rng = np.random.default_rng(0)
    means, root = rng.normal(size=(3, 5)), rng.normal(size=(5, 5))
    covariance, rotation = root @ root.T, np.linalg.qr(rng.normal(size=(5, 5)))[0]
    points = discriminant_points(means, covariance)
    turned = discriminant_points(means @ rotation.T, rotation @ covariance @ rotation.T)
    assert_allclose(turned, points @ rotation.T, atol=1e-8)
    assert_allclose(discriminant_points(means[[2, 0, 1]], covariance), points[[2, 0, 1]], atol=1e-8)


@DTYPES
def test_it_follows_a_congruence_of_the_data(dtype):
    X, y = stretched(dtype=dtype)
    A = 1e-6 * (np.eye(4) + 0.4 * np.random.default_rng(1).normal(size=(4, 4)))
    moved = A @ X @ A.T
    moved = 0.5 * (moved + moved.conj().swapaxes(1, 2))
    assert_allclose(discriminant(moved, y).prototypes_, A @ discriminant(X, y).prototypes_ @ A.T, rtol=1e-6, atol=1e-20)


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "tangent", "bures_wasserstein"])
def test_it_classifies_better_than_class_means_where_one_direction_varies_most(manifold):
    X, y = stretched(per_class=40)
    fresh, labels = stretched(seed=1, per_class=200)
    means = RiemannianLVQ(manifold, max_epochs=0).fit(X, y).score(fresh, labels)
    assert discriminant(X, y, manifold).score(fresh, labels) > means + 0.1


def test_weights_are_repetitions():
    X, y = stretched()
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = RiemannianLVQ(init="discriminant", max_epochs=0).fit(X, y, weights)
    repeated = discriminant(X.repeat(weights, 0), y.repeat(weights))
    assert_allclose(weighted.prototypes_, repeated.prototypes_, rtol=1e-7)


def test_the_order_of_samples_does_not_count():
    X, y = stretched()
    order = np.random.default_rng(0).permutation(len(y))
    assert_array_equal(discriminant(X[order], y[order]).prototypes_, discriminant(X, y).prototypes_)


@pytest.mark.parametrize("manifold", [AffineInvariant(), LogEuclidean()], ids=repr)
def test_it_keeps_the_promises_of_an_initializer(manifold):
    X, y = stretched()
    check_initializer(DiscriminantMeans(), manifold, X, y)
    check_initializer(DiscriminantMeans(per_class=(1, 2, 3)), manifold, X, y)


def test_several_prototypes_of_a_class_are_moved_a_little():
    X, y = stretched()
    model = discriminant(X, y, prototypes_per_class={0: 1, 1: 3, 2: 1})
    single = discriminant(X, y)
    assert model.prototype_labels_.tolist() == [0, 1, 1, 1, 2]
    assert_array_equal(model.prototypes_[[0, 4]], single.prototypes_[[0, 2]])
    assert 0 < np.abs(model.prototypes_[1:4] - single.prototypes_[1]).max() < 0.05
    trained = RiemannianLVQ(init="discriminant", sigma2=0.5, prototypes_per_class=2, max_epochs=5, random_state=0)
    assert trained.fit(X, y).score(X, y) > 0.8


def test_bad_input_is_refused():
    X, y = stretched()
    vectors_, labels = vector_classes()
    model = RiemannianLVQ("euclidean_vectors", init="discriminant", max_epochs=0)
    refuse(model, "fit", vectors_, labels, match="X must have 3 axes, .n_matrices, n, n., got shape")
    same = X[[0, 30, 60]].repeat(4, axis=0)
    refuse(
        RiemannianLVQ(init="discriminant", max_epochs=0),
        "fit",
        same,
        np.repeat([0, 1, 2], 4),
        match="a discriminant needs a class with at least two different samples, and there is none",
    )
    with pytest.raises(ValueError, match="class index 2 has 0 sample"):
        DiscriminantMeans()(AffineInvariant(), X, y, 3, np.random.default_rng(0), (y < 2).astype(float))


# --- as a candidate of the default


def test_held_out_samples_take_it_where_it_is_better():
    X, y = stretched(per_class=15)
    fresh, labels = stretched(seed=1, per_class=200)
    model = RiemannianLVQ(random_state=0).fit(X, y)
    assert model.choice_.chosen == "discriminant"
    assert [one.name for one in model.choice_.tried] == ["auto", "discriminant", "untrained"]
    assert model.n_epochs_ == 0
    assert_array_equal(model.prototypes_, discriminant(X, y).prototypes_)
    assert model.score(fresh, labels) > RiemannianLVQ(max_epochs=0).fit(X, y).score(fresh, labels) + 0.1
    proba = model.predict_proba(fresh)
    right = np.log(proba[np.arange(len(labels)), labels]).mean()
    assert right > np.log(1 / 3)  # its sigma2 is that of held-out samples


def test_without_the_candidate_the_default_is_as_before():
    X, y = stretched()
    y = np.random.default_rng(0).permutation(y)  # nothing can be learned, so that no race ends early
    model = RiemannianLVQ(sigma2=HeldOut(["auto", "untrained"]), random_state=0).fit(X, y)
    whole = RiemannianLVQ(random_state=0).fit(X, y)
    alone = {one.name: one for one in model.choice_.tried}
    beside = {one.name: one for one in whole.choice_.tried}
    assert set(alone) == {"auto", "untrained"}
    same = [name for name in alone if alone[name].n_folds == beside[name].n_folds]
    assert same
    for name in same:
        assert alone[name].loss == pytest.approx(beside[name].loss, rel=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"prototypes_per_class": 2},
        {"init": "kmeans"},
        {"init": "discriminant"},
        {"metric": "whitened_tangent"},
        {"growth": []},
    ],
    ids=str,
)
def test_it_is_tried_only_beside_one_class_mean_per_class(settings):
    X, y = stretched()
    model = RiemannianLVQ(**settings, max_epochs=20, random_state=0).fit(X, y)
    is_tried = "discriminant" in [one.name for one in model.choice_.tried]
    assert is_tried == (settings == {"growth": []})


def test_a_stream_does_not_take_it():
    X, y = stretched()
    model = RiemannianLVQ(sigma2=HeldOut(), random_state=0).partial_fit(X, y)
    assert model.choice_.chosen == "auto"
    assert model.n_epochs_ == 1


@pytest.mark.parametrize("weighted", [False, True])
@DTYPES
def test_it_works_with_weights_early_stopping_groups_and_storage(tmp_path, weighted, dtype):
    X, y = stretched(per_class=40, n=5, dtype=dtype)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    groups = np.arange(len(y)) // 4
    model = RiemannianLVQ(early_stopping=EarlyStopping(fraction=0.2), max_epochs=30, random_state=0)
    model.fit(X, y, weights, groups=groups)
    assert len(model.choice_.tried) == 3
    assert all(np.isfinite(one.loss) for one in model.choice_.tried)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for rows in np.array_split(np.arange(len(y)), 3):
        again.partial_fit(X[rows], y[rows])
    assert again.n_epochs_ == model.n_epochs_ + 3


def test_soft_labels_count_for_their_largest_class():
    X, y = stretched()
    soft = 0.8 * np.eye(3)[y] + 0.2 / 3
    assert_allclose(
        RiemannianLVQ(cost="plvq", init="discriminant", max_epochs=0).fit(X, soft).prototypes_,
        discriminant(X, y).prototypes_,
        rtol=1e-9,
    )


def test_the_candidate_has_the_bits_of_the_initializer():
    X, y = stretched(per_class=15)
    direct = discriminant(X, y, "log_euclidean")
    chosen = RiemannianLVQ("log_euclidean", random_state=0).fit(X, y)
    assert chosen.choice_.chosen == "discriminant"
    assert_array_equal(chosen.prototypes_, direct.prototypes_)


def test_few_digits_are_classified_better_than_by_class_means():
    X, y = load_digits_covariances()
    gains = []
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(len(y))
        kept, held = rows[:100], rows[100:]
        means = RiemannianLVQ(max_epochs=0).fit(X[kept], y[kept])
        gains.append(discriminant(X[kept], y[kept]).score(X[held], y[held]) - means.score(X[held], y[held]))
    assert min(gains) > 0.02


@DTYPES
def test_the_discriminant_of_few_samples_is_that_of_the_dense_covariance(dtype, monkeypatch):
    X, y = stretched(per_class=5, n=6, dtype=dtype)
    wanted = discriminant(X[::2], y[::2]).prototypes_
    monkeypatch.setattr(_shrinkage, "MOST_DENSE", 2)
    assert_allclose(discriminant(X[::2], y[::2]).prototypes_, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("metric", ["affine_invariant", "log_euclidean", "tangent"])
def test_hundreds_of_channels_have_a_discriminant_if_the_samples_are_few(metric):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(24, 70, 140))
    X, y = A @ A.swapaxes(1, 2), np.arange(24) % 2
    found = discriminant(X, y, metric)
    manifold, codes = found.trainer_.manifold, found.trainer_.manifold.encode(X)
    means = np.stack([riemannian_mean(manifold, codes[y == k]).code for k in range(2)])
    beside = discriminant_beside(manifold, codes, y, None, means)
    assert_allclose(manifold.decode(beside.prototypes()), found.prototypes_, rtol=1e-5, atol=1e-7)
    many = discriminant_beside(manifold, np.repeat(codes[:1], 3000, axis=0), y, None, means)
    assert many is None
