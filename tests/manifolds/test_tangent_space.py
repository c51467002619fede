"""The metric at the mean: its distances by other libraries, its reference, its covariance, and what it refuses."""

from __future__ import annotations

import re
import warnings

import attrs
import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.covariance import shrunk_covariance

from rplvq import AffineInvariant, LogEuclidean, RiemannianLVQ, TangentSpace, load_model
from rplvq.arrays import subset
from rplvq.manifolds import MANIFOLDS, LowRankCovariance, _shrinkage, _tangent_space, riemannian_mean
from rplvq.testing import check_manifold
from tests.cases import hpd, real_coordinates, relative_gap, spd
from tests.problems import spd_classes

BOTH = pytest.mark.parametrize("whiten", [False, True], ids=["plain", "whitened"])
MAKE = pytest.mark.parametrize("make", [spd, hpd], ids=["real", "complex"])


def table(manifold, codes):
    return np.sqrt(manifold.sqdist(codes, codes))


def congruent(points, transform):
    moved = transform @ points @ transform.conj().T
    return 0.5 * (moved + moved.conj().swapaxes(-1, -2))


@BOTH
@MAKE
@pytest.mark.parametrize("unit", [1.0, 1e-12], ids=["1", "volts"])
def test_it_keeps_the_promises_of_a_manifold_before_and_after_it_has_a_reference(whiten, make, unit):
    points = unit * make(np.random.default_rng(0), 9, 3)
    manifold = TangentSpace(whiten=whiten)
    check_manifold(manifold, points)
    check_manifold(manifold.referenced(points)[0], points)


def test_names():
    assert MANIFOLDS["tangent"]() == TangentSpace()
    assert MANIFOLDS["whitened_tangent"]() == TangentSpace(whiten=True)


def test_codes_are_the_tangent_vectors_of_pyriemann():
    tangentspace = pytest.importorskip("pyriemann.tangentspace")
    X = spd(np.random.default_rng(1), 12, 4)
    manifold, codes = TangentSpace().referenced(X)
    wanted = tangentspace.TangentSpace(tsupdate=False).fit(X).transform(X)
    d = np.linalg.norm(wanted[:, None] - wanted, axis=-1)
    assert_allclose(table(manifold, codes), d, atol=1e-6)  # pyRiemann's mean stops at a gradient of 1e-8
    upper = np.array([real_coordinates(code, False) for code in codes])
    assert_allclose(np.linalg.norm(upper, axis=1), np.linalg.norm(wanted, axis=1), atol=1e-6)


@MAKE
def test_the_reference_is_the_affine_invariant_mean_and_codes_are_logarithms_there(make):
    X = make(np.random.default_rng(2), 10, 3)
    manifold, codes = TangentSpace().referenced(X)
    mean = riemannian_mean(AffineInvariant(), X).code
    assert_allclose(manifold.reference, mean, atol=1e-8)
    inverse = np.linalg.inv(scipy.linalg.sqrtm(manifold.reference))
    assert_allclose(codes, [scipy.linalg.logm(inverse @ x @ inverse) for x in X], atol=1e-9)
    assert_allclose(codes.mean(axis=0), 0, atol=1e-8)
    # Distances from the reference are those of the affine-invariant metric.
    assert_allclose(
        np.linalg.norm(codes, axis=(1, 2)) ** 2, AffineInvariant().sqdist(manifold.reference[None], X)[:, 0], rtol=1e-9
    )


def test_the_identity_as_reference_is_the_log_euclidean_metric():
    X = spd(np.random.default_rng(3), 5, 4)
    assert_allclose(TangentSpace(np.eye(4)).encode(X), LogEuclidean().encode(X), atol=1e-12)


@BOTH
@MAKE
def test_weights_count_points(whiten, make):
    X, groups = make(np.random.default_rng(4), 8, 3), np.arange(8) % 2
    weights = np.array([0, 2, 1, 1, 3, 1, 1, 1])
    weighted, _ = TangentSpace(whiten=whiten).referenced(X, groups, weights)
    copied, _ = TangentSpace(whiten=whiten).referenced(X.repeat(weights, axis=0), groups.repeat(weights))
    assert_allclose(table(weighted, weighted.encode(X)), table(copied, copied.encode(X)), rtol=1e-7, atol=1e-7)


@MAKE
def test_whitened_distances_are_those_of_mahalanobis(make):
    X, groups = make(np.random.default_rng(5), 30, 3), np.arange(30) % 3
    plain, codes = TangentSpace().referenced(X)
    vectors = np.array([real_coordinates(code, make is hpd) for code in codes])
    manifold, _ = TangentSpace(whiten=True, shrinkage=0.2).referenced(X, groups)
    rests = vectors - np.array([vectors[groups == g].mean(axis=0) for g in range(3)])[groups]
    assert_allclose(manifold.covariance, shrunk_covariance(rests.T @ rests / 30, 0.2), atol=1e-10)
    assert manifold.shrinkage == 0.2
    assert_allclose(manifold.reference, plain.reference, atol=1e-12)
    d = cdist(vectors, vectors, "mahalanobis", VI=np.linalg.inv(manifold.covariance))
    assert_allclose(table(manifold, manifold.encode(X)), d, atol=1e-9)


@BOTH
@MAKE
def test_decode_undoes_encode_to_rounding(whiten, make):
    X = make(np.random.default_rng(6), 20, 5, spread=3.0)
    for unit in (1.0, 1e-12):
        manifold, codes = TangentSpace(whiten=whiten).referenced(unit * X, np.arange(20) % 4)
        assert relative_gap(manifold.decode(codes), unit * X) < 1e-12


@BOTH
def test_distances_survive_every_congruence_to_rounding(whiten):
    rng = np.random.default_rng(7)
    X, groups = spd(rng, 20, 4), np.arange(20) % 2
    transform = rng.normal(size=(4, 4)) * np.array([1e-3, 1.0, 30.0, 1e2])[:, None]
    found = [TangentSpace(whiten=whiten).referenced(P, groups) for P in (X, congruent(X, transform))]
    one, other = (table(*pair) for pair in found)
    assert relative_gap(other, one) < 1e-7


def test_the_code_of_a_sample_does_not_depend_on_the_samples_beside_it():
    X = spd(np.random.default_rng(8), 50, 6)
    manifold, codes = TangentSpace(whiten=True).referenced(X)
    for rows in (slice(0, 1), slice(3, 10), slice(1, None, 7)):
        assert_array_equal(manifold.encode(X[rows]), codes[rows])


def test_each_code_takes_one_eigendecomposition_and_points_are_not_encoded_again(monkeypatch):
    X, y = spd_classes(per_class=20, n=4)
    counts, plain = [], np.linalg.eigh

    def counted(matrices):
        counts.append(int(np.prod(np.shape(matrices)[:-2])))
        return plain(matrices)

    start = X.mean(axis=0)
    monkeypatch.setattr(np.linalg, "eigh", counted)
    monkeypatch.setattr("rplvq.manifolds._logarithms.lane_kernels", lambda: None)
    n_passes = riemannian_mean(AffineInvariant(), X, start=start).n_iter
    counts.clear()
    manifold, _ = TangentSpace(whiten=True).referenced(X, y)
    assert [count for count in counts if count == len(X)] == [len(X)] * (n_passes + 1)
    assert sum(counts) < (n_passes + 2) * len(X)
    counts.clear()
    manifold.encode(X)
    assert counts == [len(X)]


def test_rows_that_are_read_lazily_give_the_same_reference():
    X = spd(np.random.default_rng(9), 12, 3)
    rows = np.array([5, 1, 7, 2])
    lazy, codes = TangentSpace(whiten=True).referenced(subset(X, rows))
    plain, wanted = TangentSpace(whiten=True).referenced(X[rows])
    assert lazy == plain
    assert_array_equal(codes, wanted)


def test_what_is_given_stays():
    X = spd(np.random.default_rng(10), 8, 3)
    given, _ = TangentSpace(X[0]).referenced(X)
    assert given == TangentSpace(X[0])
    whitened, _ = TangentSpace(X[0], whiten=True).referenced(X)
    assert_array_equal(whitened.reference, X[0])
    again, _ = whitened.referenced(X[:4])
    assert again == whitened
    X[0] = 0
    assert np.linalg.eigvalsh(given.reference)[0] > 0
    with pytest.raises(ValueError, match="read-only"):
        given.reference[0] = 0


def test_covariances_of_few_samples_can_be_inverted():
    X = spd(np.random.default_rng(11), 2, 3)
    manifold, codes = TangentSpace(whiten=True).referenced(X)
    assert np.linalg.eigvalsh(manifold.covariance)[0] > 0
    assert relative_gap(manifold.decode(codes), X) < 1e-9


REFUSED = {
    "two matrices": ({"reference": np.ones((2, 2, 2))}, r"reference must be one square matrix or None, got shape \(2,"),
    "not square": ({"reference": np.ones((2, 3))}, "reference must be one square matrix"),
    "not symmetric": ({"reference": [[1.0, 0.5], [0.2, 1.0]]}, "reference is not symmetric"),
    "singular": ({"reference": np.ones((2, 2))}, "reference is singular to rounding"),
    "NaN": ({"reference": np.full((2, 2), np.nan)}, "reference contains NaN"),
    "words": ({"reference": "identity"}, "reference must be one square matrix"),
    "whiten": ({"whiten": "yes"}, "whiten must be True or False, got 'yes'"),
    "covariance alone": ({"covariance": np.eye(3), "whiten": True}, "covariance is given with reference=None"),
    "covariance unused": ({"covariance": np.eye(3), "reference": np.eye(2)}, "covariance is given with whiten=False"),
    "shrinkage unused": ({"shrinkage": 0.5}, "shrinkage is given with whiten=False"),
    "shrinkage of 0": ({"shrinkage": 0, "whiten": True}, "shrinkage must be a number above 0 and at most 1, .* got 0"),
    "shrinkage in words": ({"shrinkage": "auto", "whiten": True}, "shrinkage must be a number .* got 'auto'"),
    "covariance of another size": (
        {"covariance": np.eye(5), "reference": np.eye(2), "whiten": True},
        "must be real and have 3 rows .* or 4 .* got 5",
    ),
    "covariance indefinite": (
        {"covariance": np.diag([1.0, 1, -1]), "reference": np.eye(2), "whiten": True},
        "covariance is not positive definite",
    ),
}


@pytest.mark.parametrize(("fields", "match"), REFUSED.values(), ids=REFUSED)
def test_fields_are_refused_by_name(fields, match):
    with pytest.raises(ValueError, match=match):
        TangentSpace(**fields)


def test_without_a_reference_it_says_what_to_do():
    X = spd(np.random.default_rng(12), 4, 2)
    for manifold, lacking in ((TangentSpace(), "reference"), (TangentSpace(X[0], whiten=True), "covariance")):
        for method, values in ((manifold.encode, X), (manifold.decode, X)):
            with pytest.raises(ValueError, match=f"has no {lacking} yet: fit a RiemannianLVQ"):
                method(values)


def test_points_are_refused_by_index():
    X = spd(np.random.default_rng(13), 4, 2)
    manifold = TangentSpace(X[0])
    with pytest.raises(ValueError, match="matrices of size 3, but the reference has size 2"):
        manifold.encode(spd(np.random.default_rng(13), 4, 3))
    X[2] = -X[2]
    for method in (manifold.encode, manifold.referenced, TangentSpace().referenced):
        with pytest.raises(ValueError, match=r"X\[2\] is not positive definite"):
            method(X)


def test_whitening_is_refused_where_nothing_varies_or_the_covariance_is_too_large(monkeypatch):
    X = spd(np.random.default_rng(14), 2, 3)
    with pytest.raises(ValueError, match="needs a class with at least two different samples, but the 2 samples"):
        TangentSpace(whiten=True).referenced(X, np.arange(2))
    monkeypatch.setattr(_tangent_space, "LARGEST", 8 * 7260 * 2)
    X = np.array([np.eye(120), np.diag(np.linspace(1, 2, 120)), np.diag(np.linspace(1, 3, 120))])
    with pytest.raises(ValueError, match=r"3 matrices of size 120, whose covariance on 7260 .* takes 0\.00016"):
        TangentSpace(whiten=True).referenced(X)
    TangentSpace(whiten=True).referenced(X[:2])
    TangentSpace().referenced(X)


def test_the_text_of_a_metric_is_short_and_differs_between_references():
    X = spd(np.random.default_rng(15), 9, 12)
    one, other = (TangentSpace(whiten=True).referenced(part)[0] for part in (X[:5], X[5:]))
    assert len(repr(one)) < 200
    assert repr(one) != repr(other)
    assert re.match(r"TangentSpace\(reference=<12 x 12, trace [\d.]+>, whiten=True, covariance=<78 x 78", repr(one))
    assert one != other
    assert attrs.evolve(one) == one


def test_relearning_is_a_linear_change_of_codes():
    X, groups = spd(np.random.default_rng(16), 24, 3), np.arange(24) % 2
    manifold, codes = TangentSpace(whiten=True).referenced(X, groups)
    fold, kept, held = manifold.relearned(codes[:16], codes[16:], groups[:16])
    assert fold.shrinkage == manifold.shrinkage
    whitened = TangentSpace(manifold.reference, whiten=True, shrinkage=manifold.shrinkage)
    wanted, _ = whitened.referenced(X[:16], groups[:16])
    assert_allclose(fold.covariance, wanted.covariance, atol=1e-10)
    assert_allclose(np.concatenate([kept, held]), wanted.encode(X), atol=1e-9)
    plain, codes = TangentSpace().referenced(X)
    assert plain.relearned(codes[:16], codes[16:], groups[:16])[0] is plain


def test_mixed_units_cost_no_digits():
    """Channels in volts and in microvolts: the condition number of the matrices is 1e12."""
    rng = np.random.default_rng(17)
    X = spd(rng, 30, 4)
    scale = np.array([1.0, 1.0, 1e-6, 1e-6])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = [
            RiemannianLVQ("tangent", max_epochs=0, sigma2=1.0).fit(P, np.arange(30) % 2)
            for P in (X, X * np.outer(scale, scale))
        ]
    assert_allclose(models[1].transform(X * np.outer(scale, scale)), models[0].transform(X), rtol=1e-6)


@MAKE
def test_few_large_matrices_are_whitened_as_by_the_dense_covariance(make, monkeypatch, tmp_path):
    X, y = make(np.random.default_rng(18), 12, 5), np.arange(12) % 2
    dense, _ = TangentSpace(whiten=True).referenced(X, y)
    monkeypatch.setattr(_shrinkage, "MOST_DENSE", 2)
    X, y = X[:7], y[:7]
    manifold, codes = TangentSpace(whiten=True).referenced(X, y)
    plain = TangentSpace(manifold.reference, whiten=True, covariance=np.asarray(manifold.covariance))
    assert isinstance(dense.covariance, np.ndarray)
    assert_allclose(manifold.sqdist(codes[:3], codes), plain.sqdist(plain.encode(X[:3]), plain.encode(X)), rtol=1e-8)
    assert relative_gap(manifold.decode(codes), X) < 1e-8
    fold, kept, held = manifold.relearned(codes[:5].copy(), codes[5:], y[:5])
    again = TangentSpace(fold.reference, whiten=True, covariance=np.asarray(fold.covariance))
    assert_allclose(fold.sqdist(kept, held), again.sqdist(again.encode(X[:5]), again.encode(X[5:])), rtol=1e-7)
    assert attrs.evolve(manifold) == manifold
    assert manifold not in (fold, plain)
    assert len(repr(manifold)) < 200
    model = RiemannianLVQ(manifold, max_epochs=0).fit(X, y)
    model.save(tmp_path / "model.npz")
    assert_array_equal(load_model(tmp_path / "model.npz").transform(X), model.transform(X))


def test_a_basis_that_is_not_orthonormal_is_refused():
    covariance = LowRankCovariance(np.array([[1.0, 1.0, 0.0]]), np.ones(1), 1.0)
    with pytest.raises(ValueError, match="whose rows are not orthonormal"):
        TangentSpace(np.eye(2), whiten=True, covariance=covariance)


def test_hundreds_of_channels_need_no_matrix_on_all_coordinates():
    rng = np.random.default_rng(19)
    X, y = spd(rng, 10, 110), np.arange(10) % 2
    manifold, codes = TangentSpace(whiten=True).referenced(X, y)
    assert manifold.covariance.basis.shape == (10, 6105)
    assert relative_gap(manifold.decode(codes[:2]), X[:2]) < 1e-8
