"""The search for the nearest prototype: the same indices as the smallest of all distances, always."""

from __future__ import annotations

import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from rplvq import AffineInvariant, RiemannianLVQ
from rplvq.arrays import _samples as samples_module
from rplvq.manifolds import _affine_invariant as affine_invariant
from rplvq.manifolds import _flat, _logarithms
from rplvq.manifolds import _lower_bound as lower_bound
from tests.cases import CASES, made, spd
from tests.problems import spd_classes

MANIFOLD = AffineInvariant()
FEW_DISTANCES = affine_invariant.FEW_DISTANCES


@pytest.fixture(autouse=True, scope="module")
def _few_samples_are_searched():
    with mock.patch.object(affine_invariant, "FEW_DISTANCES", 0), mock.patch.object(_flat, "FEW_DIFFERENCES", 0):
        yield


def brute(prototypes, samples):
    return MANIFOLD.sqdist(prototypes, samples).argmin(axis=1)


def ill_conditioned(rng, count, n, exponent, dtype):
    """Matrices whose eigenvalues spread over up to ``exponent`` decades, in random or common bases."""
    basis = np.linalg.qr(rng.normal(size=(count if rng.random() < 0.5 else 1, n, n)).astype(dtype))[0]
    if dtype is complex:
        basis = basis * np.exp(1j * rng.uniform(0, 7, (1, n, 1)))
    eigenvalues = 10 ** rng.uniform(-exponent / 2, exponent / 2, (count, 1, n))
    matrices = (basis * eigenvalues) @ basis.conj().swapaxes(1, 2)
    return 0.5 * (matrices + matrices.conj().swapaxes(1, 2))


problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n": st.integers(1, 7),
        "n_prototypes": st.integers(1, 9),
        "exponent": st.sampled_from([0.1, 1.0, 4.0, 8.0, 12.0]),
        "nearness": st.sampled_from([0.0, 1e-15, 1e-12, 1e-8, 1e-3, 1.0]),
        "scale": st.sampled_from([1e-12, 1.0, 1e12]),
        "dtype": st.sampled_from([float, complex]),
        "units": st.sampled_from([0.0, 6.0]),
    }
)


@settings(max_examples=max(300, settings().max_examples))
@given(problems)
def test_the_index_is_that_of_the_smallest_distance(problem):
    """Random, ill-conditioned, nearly equal, coincident, real and complex, in any unit."""
    rng = np.random.default_rng(problem["seed"])
    n, n_prototypes = problem["n"], problem["n_prototypes"]
    others = ill_conditioned(rng, n_prototypes, n, problem["exponent"], problem["dtype"])
    prototypes = (1 - problem["nearness"]) * others[:1] + problem["nearness"] * others
    samples = ill_conditioned(rng, 20, n, problem["exponent"], problem["dtype"])
    samples[:5] = prototypes[rng.integers(n_prototypes, size=5)]
    samples[5:10] = 0.5 * (prototypes[rng.integers(n_prototypes, size=5)] + prototypes[:1])
    units = 10 ** rng.uniform(0, problem["units"], n)
    samples, prototypes = (problem["scale"] * units[:, None] * units * points for points in (samples, prototypes))
    try:
        np.linalg.cholesky(prototypes)
    except np.linalg.LinAlgError:  # rounding of 1e12 left the cone: nothing that encode lets through
        return
    wanted, groups = brute(prototypes, samples), rng.integers(0, 3, n_prototypes)
    # Round by round, the last ones together, and all of them; by LAPACK, and from one matrix on in lanes.
    for few, many in ((0, 500), (8, 500), (256, 500), (0, 1)):
        with mock.patch.object(lower_bound, "FEW_OPEN", few), mock.patch.object(_logarithms, "MANY", many):
            assert_array_equal(MANIFOLD.nearest(prototypes, samples), wanted)
            found = MANIFOLD.nearest(prototypes, samples, groups)
            assert_array_equal(groups[found], groups[wanted])


@pytest.mark.parametrize("dtype", [float, complex])
def test_of_coincident_prototypes_the_first_is_taken(dtype):
    rng = np.random.default_rng(0)
    prototypes = spd(rng, 3, 4, dtype=dtype)[[2, 0, 0, 1, 2, 1]]
    samples = np.concatenate([spd(rng, 40, 4, dtype=dtype), prototypes])
    found = MANIFOLD.nearest(prototypes, samples)
    assert_array_equal(found, brute(prototypes, samples))
    assert set(found) == {0, 1, 3}


def test_moved_prototypes_are_searched_as_they_are_carried():
    rng = np.random.default_rng(1)
    codes = spd(rng, 60, 4)
    moved = MANIFOLD.move(MANIFOLD.connect(codes[:6], codes[6:9]), rng.uniform(0, 0.3, (3, 6)))
    assert_array_equal(MANIFOLD.nearest(moved, codes), brute(moved, codes))


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("spread", [0.2, 1.0, 3.0])
def test_bounds_lie_below_the_distances_and_near(dtype, spread):
    rng = np.random.default_rng(2)
    prototypes, samples = spd(rng, 5, 4, spread, dtype), spd(rng, 50, 4, spread, dtype)
    frame = lower_bound.common_frame(affine_invariant.inverse_factors(prototypes))
    bounds = lower_bound.lower_bounds(frame, samples)
    distances = np.sqrt(MANIFOLD.sqdist(prototypes, samples))
    assert (bounds <= distances).all()
    assert np.median(bounds / distances) > {0.2: 0.999, 1.0: 0.97, 3.0: 0.75}[spread]


def test_most_distances_are_not_evaluated(monkeypatch):
    rng = np.random.default_rng(3)
    prototypes = spd(rng, 20, 5, 1.0)
    samples = prototypes[rng.integers(20, size=200)] + 0.1 * spd(rng, 200, 5)
    wanted = brute(prototypes, samples)
    seen = []
    eigvalsh = np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda pairs: seen.append(len(pairs)) or eigvalsh(pairs))
    assert_array_equal(MANIFOLD.nearest(prototypes, samples), wanted)
    assert 200 <= sum(seen) < 1.2 * 200


@pytest.mark.parametrize("count", [1, FEW_DISTANCES // 6])
def test_few_distances_are_all_evaluated(monkeypatch, count):
    rng = np.random.default_rng(3)
    prototypes, samples = spd(rng, 6, 5, 1.0), spd(rng, count, 5)
    wanted = brute(prototypes, samples)
    monkeypatch.setattr(affine_invariant, "FEW_DISTANCES", FEW_DISTANCES)
    monkeypatch.setattr(affine_invariant, "common_frame", None)
    assert_array_equal(MANIFOLD.nearest(prototypes, samples), wanted)


def test_prototypes_of_one_group_are_not_told_apart(monkeypatch):
    """Two near prototypes a group: one distance a sample says which group, and any other one is saved."""
    rng = np.random.default_rng(3)
    centers = spd(rng, 10, 5, 1.5)
    prototypes = np.concatenate([centers, centers + 1e-4 * spd(rng, 10, 5)])
    samples = centers[rng.integers(10, size=200)] + 0.05 * spd(rng, 200, 5)
    groups = np.tile(np.arange(10), 2)
    wanted = groups[brute(prototypes, samples)]
    seen = []
    eigvalsh = np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda pairs: seen.append(len(pairs)) or eigvalsh(pairs))
    assert_array_equal(groups[MANIFOLD.nearest(prototypes, samples, groups)], wanted)
    in_groups = sum(seen)
    MANIFOLD.nearest(prototypes, samples)
    assert 200 <= in_groups < 1.1 * 200
    assert sum(seen) - in_groups > 1.5 * 200


def test_samples_whose_bounds_are_rounding_are_decided_by_all_distances():
    """Channels of one signal at 1e-13 of the others' power: bounds cannot be trusted, labels can."""
    rng = np.random.default_rng(4)
    samples = spd(rng, 30, 3)
    samples[::2] = ill_conditioned(rng, 15, 3, 14.0, float)
    prototypes = spd(rng, 6, 3)
    assert_array_equal(MANIFOLD.nearest(prototypes, samples), brute(prototypes, samples))


def test_predict_gives_the_label_of_the_nearest():
    X, y = spd_classes(n_classes=3, per_class=30, n=4, spread=0.9)
    model = RiemannianLVQ(prototypes_per_class=3, max_epochs=2, random_state=0).fit(X, y)
    wanted = model.prototype_labels_[model.transform(X).argmin(axis=1)]
    assert_array_equal(model.predict(X), wanted)
    assert_array_equal(model.set_params(n_jobs=2).predict(X), wanted)


SEARCHING = [name for name, case in CASES.items() if hasattr(case.manifold(3), "nearest")]


def test_the_flat_and_the_affine_invariant_geometries_have_a_search():
    without = {type(case.manifold(3)).__name__ for name, case in CASES.items() if name not in SEARCHING}
    assert without == {"BuresWasserstein", "LearnedLogEuclidean", "FromPymanopt", "Product"}


@pytest.mark.parametrize("name", SEARCHING)
def test_every_geometry_with_a_search_finds_what_all_distances_say(name):
    """Among prototypes that coincide or differ by rounding, too."""
    manifold, codes = made(CASES[name], 60)
    prototypes = codes[[0, 1, 2, 2, 0, 3]]
    for shift in (0.0, 1e-15, 1e-9):
        near = prototypes + shift * (codes[10:16] - prototypes)
        wanted, groups = manifold.sqdist(near, codes).argmin(axis=1), np.array([1, 0, 1, 2, 0, 1])
        assert_array_equal(manifold.nearest(near, codes), wanted)
        assert_array_equal(groups[manifold.nearest(near, codes, groups)], groups[wanted])


@pytest.mark.parametrize("name", SEARCHING)
@pytest.mark.parametrize("n_prototypes", [1, 2, 9])
def test_every_geometry_with_a_search_finds_the_group_of_the_nearest(name, n_prototypes):
    """Groups may be few or many, and need be neither contiguous nor counted from 0."""
    manifold, codes = made(CASES[name], 80)
    prototypes, samples = codes[:n_prototypes], codes[n_prototypes:]
    wanted = manifold.sqdist(prototypes, samples).argmin(axis=1)
    assert_array_equal(manifold.nearest(prototypes, samples), wanted)
    every = np.arange(n_prototypes)
    for groups in (every, every % 2, 7 - every % 3, np.full(n_prototypes, 4)):
        found = manifold.nearest(prototypes, samples, groups)
        assert found.shape == wanted.shape
        assert ((found >= 0) & (found < n_prototypes)).all()
        assert_array_equal(groups[found], groups[wanted])


@pytest.mark.parametrize("dtype", [float, complex])
def test_few_and_many_flat_samples_take_the_same_prototype(monkeypatch, dtype):
    """Also where prototypes coincide, and where squares overflow."""
    rng = np.random.default_rng(6)
    prototypes = spd(rng, 5, 3, dtype=dtype)[[0, 1, 0, 2, 3, 4]]
    samples = np.concatenate([spd(rng, 40, 3, dtype=dtype), prototypes, 1e200 * prototypes])
    found = []
    for few in (0, 10**6):
        monkeypatch.setattr(_flat, "FEW_DIFFERENCES", few)
        with np.errstate(over="ignore", invalid="ignore"):
            found.append(_flat.flat_nearest(prototypes, samples))
    assert_array_equal(found[0], found[1])
    assert 2 not in found[0]  # it coincides with the first


# --- one sample


@pytest.mark.parametrize("count", [1, 50])
def test_a_prediction_does_not_compute_the_prototypes(monkeypatch, count):
    X, y = spd_classes(per_class=30, n=4)
    model = RiemannianLVQ(sigma2=1.0, max_epochs=1, random_state=0).fit(X, y)
    wanted = model.predict(X[:count])
    monkeypatch.setattr(np.linalg, "inv", None)
    assert_array_equal(model.predict(X[:count]), wanted)


# --- chunks


METHODS = ["predict", "predict_log_proba", "decision_function", "transform"]


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("method", METHODS)
def test_neither_chunks_nor_threads_show(monkeypatch, manifold, method):
    X, y = spd_classes(n_classes=3, per_class=30, n=4, spread=0.9)
    model = RiemannianLVQ(manifold, prototypes_per_class=2, max_epochs=1, random_state=0).fit(X, y)
    wanted = getattr(model, method)(X)
    monkeypatch.setattr("rplvq.arrays._samples.BUDGET_BYTES", 7 * 6 * X[0].nbytes)
    assert_array_equal(getattr(model, method)(X), wanted)
    assert_array_equal(getattr(model, method)(X.tolist()), wanted)
    assert_array_equal(getattr(model.set_params(n_jobs=2), method)(X), wanted)


@pytest.mark.parametrize(("bad", "sentence"), [(-np.eye(4), "is not positive"), (np.full((4, 4), np.nan), "its entry")])
def test_a_bad_sample_in_a_later_chunk_is_named_by_its_index(monkeypatch, bad, sentence):
    X, y = spd_classes(per_class=30, n=4)
    model = RiemannianLVQ(max_epochs=1, random_state=0).fit(X, y)
    monkeypatch.setattr("rplvq.arrays._samples.BUDGET_BYTES", 7 * 6 * X[0].nbytes)
    broken = X.copy()
    broken[50] = bad
    with pytest.raises(ValueError, match=rf"X\[50\] .*{sentence}"):
        model.predict(broken)


def test_a_memory_map_is_never_copied_whole(tmp_path):
    """A million small matrices would take 300 MB; here 200 000 take 14 MB and a chunk a few."""
    X, y = spd_classes(n_classes=3, per_class=30, n=3)
    model = RiemannianLVQ(prototypes_per_class=4, max_epochs=1, random_state=0).fit(X, y)
    many = np.lib.format.open_memmap(tmp_path / "many.npy", "w+", float, (200_000, 3, 3))
    many[:] = np.resize(X, many.shape)
    wanted = np.resize(model.predict(X), len(many))
    tracemalloc.start()
    found = model.predict(many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_array_equal(found, wanted)
    assert peak < 2 * samples_module.BUDGET_BYTES
