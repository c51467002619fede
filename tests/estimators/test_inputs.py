"""Every row of the table of inputs, under every manifold where it applies: refused by name, or learned from."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from joblib import dump, load

from rplvq import RSLVQ, AffineInvariant, RiemannianLVQ
from rplvq.exceptions import DivergenceWarning
from rplvq.manifolds import InverseFactors
from tests import input_table
from tests.input_table import EVERY, INDEX, MATRICES, ROWS, SIZED, good, manifold
from tests.problems import changed, refuse, snapshot

SLOW = {"n = 256": pytest.mark.slow}  # "n = 128" stands for it: the same steps on smaller matrices
CASES = [
    pytest.param(row, name, id=f"{key}-{name}", marks=SLOW.get(key, ()))
    for key, row in ROWS.items()
    for name in row.manifolds
]
SETTINGS = {"sigma2": 1.0, "max_epochs": 3, "random_state": 0}


def classifier(name, row=None, **settings):
    return RiemannianLVQ(manifold(name), **SETTINGS | (row.settings if row else {}) | settings)


def warned(row, name):
    kind = row.warns.get(name, row.warns.get("every"))
    if row.may_warn:
        return warnings.catch_warnings(action="ignore", category=row.may_warn)
    return pytest.warns(kind) if kind else contextlib.nullcontext()


def distances_are_sound(model, X):
    """Everything that a model answers is finite, sums to one and is not negative."""
    distance = model.transform(X)
    log_proba = model.predict_log_proba(X)
    assert np.isfinite(distance).all()
    assert not np.signbit(distance).any()  # not even -0
    assert np.isfinite(log_proba).all()
    assert np.abs(model.predict_proba(X).sum(axis=1) - 1).max() < 1e-12
    assert np.isin(model.predict(X), model.classes_).all()
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(("row", "name"), CASES)
def test_a_row(row, name):
    X, y, weights = row.make(name)
    model = classifier(name, row)
    if row.refused is not None:
        refuse(model, "fit", X, y, sample_weight=weights, match=row.refused)
        return
    with warned(row, name):
        model.fit(X, y, sample_weight=weights)
    distances_are_sound(model, X)
    model.trainer_.manifold.encode(model.prototypes_)  # no prototype has left the manifold
    before = snapshot(model)
    with warned(row, "partial_fit"):
        model.partial_fit(X, y, sample_weight=weights)
    assert snapshot(model) != before
    distances_are_sound(model, X)


def test_the_table_names_its_sources_and_covers_every_manifold():
    assert all(row.source for row in ROWS.values())
    assert {name for row in ROWS.values() for name in row.manifolds} == set(EVERY)
    assert all(set(SIZED) <= set(row.manifolds) for row in ROWS.values() if len(row.manifolds) > 1)


# --- what fit alone does not show


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_bad_sample_of_a_thousand_is_refused_by_every_method(name, value):
    model = classifier(name).fit(*good(name))
    X, y, _ = input_table.in_thousand(value)(name)
    message = rf"X\[{INDEX}\] contains NaN or infinity"
    refuse(model, "partial_fit", X, y, match=message)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform"):
        refuse(model, method, X, match=message)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("row", [key for key, row in ROWS.items() if row.refused == input_table.SINGULAR])
def test_singular_samples_are_not_predicted_either(name, row):
    X, _, _ = ROWS[row].make(name)
    clean, y = input_table.well_conditioned(X.shape[1], 3)
    refuse(classifier(name, max_epochs=0).fit(clean, y), "predict", X, match=input_table.SINGULAR)


@pytest.mark.parametrize("name", MATRICES)
def test_shrinkage_is_the_cure_that_the_message_names(name):
    X, y, _ = ROWS["average reference"].make(name)
    n = X.shape[1]
    shrunk = 0.9 * X + 0.1 * np.trace(X, axis1=1, axis2=2)[:, None, None] / n * np.eye(n)
    distances_are_sound(classifier(name).fit(shrunk, y), shrunk)


@pytest.mark.parametrize("name", MATRICES)
def test_rounding_asymmetry_is_symmetrised(name):
    X, y, _ = ROWS["asymmetric by 1e-12"].make(name)
    symmetric = 0.5 * (X + X.swapaxes(1, 2))
    models = [classifier(name).fit(points, y) for points in (X, symmetric)]
    assert np.array_equal(models[0].prototypes_, models[1].prototypes_)


SAME = ["objects", "lists", "np.matrix", "Fortran order", "negative strides", "read-only"]


@pytest.mark.parametrize("row", [*SAME, "complex without imaginary part"])
def test_the_kind_of_array_does_not_matter(row):
    X, y, _ = ROWS[row].make("affine_invariant")
    wanted = classifier("affine_invariant").fit(*good("affine_invariant"))
    assert np.array_equal(classifier("affine_invariant").fit(X, y).prototypes_, wanted.prototypes_)


@pytest.mark.parametrize("name", EVERY)
def test_read_only_memory_maps_are_taken(name, tmp_path):
    """As joblib hands large arrays to its workers."""
    X, y = good(name)
    dump(X, tmp_path / "X.joblib")
    mapped = load(tmp_path / "X.joblib", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert not mapped.flags.writeable
    wanted = classifier(name).fit(X, y)
    model = classifier(name, n_jobs=2).fit(mapped, y)
    assert np.array_equal(model.prototypes_, wanted.prototypes_)
    assert np.array_equal(model.transform(mapped), wanted.transform(X))


@pytest.mark.parametrize("name", EVERY)
def test_a_sample_that_is_a_prototype_has_distance_zero_and_a_finite_gradient(name):
    X, y = good(name)
    classes = np.unique(y)
    first = [int(np.argmax(y == label)) for label in classes]
    model = classifier(name, init=(X[first], classes), max_epochs=0).fit(X, y)
    distance = model.transform(X[first])
    assert np.diag(distance).max() <= 1e-7
    assert not np.signbit(distance).any()
    evaluation = RSLVQ()(distance**2, classes, classes, 1.0)
    assert np.isfinite(evaluation.slope).all()
    trained = classifier(name, init=(X[first], classes), max_epochs=2).fit(X[first], y[first])
    distances_are_sound(trained, X)


def test_heavy_tails_are_capped_and_reported():
    X, y, _ = ROWS["heavy tails"].make("affine_invariant")
    init = (np.array([np.eye(4), 2 * np.eye(4)]), [0, 1])
    settings = SETTINGS | ROWS["heavy tails"].settings | {"step_size": 4.9, "init": init}
    with pytest.warns(DivergenceWarning, match=r"steps of epoch \d+ were cut"):
        model = RiemannianLVQ(AffineInvariant(max_step_length=1.0), **settings).fit(X, y)
    assert model.history_["n_capped"].sum() > 0
    assert np.linalg.eigvalsh(model.prototypes_).min() > 0
    assert isinstance(model.state_.prototypes, InverseFactors)


def test_far_samples_have_exact_log_probabilities():
    X, y, _ = ROWS["distances beyond 1e6"].make("euclidean_vectors")
    model = classifier("euclidean_vectors").fit(X, y)
    assert model.transform(X).max() > 1e6
    assert (model.predict_log_proba(X).min(axis=1) < -1e6).all()
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("name", MATRICES)
def test_condition_1e12_gives_distances_that_agree_with_the_prototypes_themselves(name):
    X, y, _ = ROWS["condition 1e12"].make(name)
    model = classifier(name, init=(X[:2], [0, 1]), max_epochs=0).fit(X, y)
    assert np.diag(model.transform(X[:2])).max() <= 1e-7


def test_grey_images_of_real_data_are_refused_at_the_first(real_data):
    """259 of the training matrices and 121 of the test matrices are singular: R = G = B."""
    with np.load(real_data("cifar10_cov9.npz")) as file:
        parts = [(file[f"{part}_cov"], count) for part, count in (("train", 259), ("test", 121))]
    rows, columns = np.triu_indices(9)
    for flat, count in parts:
        X = np.empty((len(flat), 9, 9))
        X[:, rows, columns] = X[:, columns, rows] = flat
        refused = []
        for start in range(0, len(X), 100):  # all of them, a hundred at a time
            chunk, index = X[start : start + 100], np.arange(start, start + 100)
            while len(chunk):
                try:
                    AffineInvariant().encode(chunk)
                    break
                except ValueError as error:
                    refused.append(index[error.index])
                    chunk, index = (np.delete(values, error.index, axis=0) for values in (chunk, index))
        assert len(refused) == count
    changed_labels = changed(np.zeros(len(X), int), 0, 1)
    refuse(RiemannianLVQ(), "fit", X, changed_labels, match=rf"X\[{refused[0]}\] is (singular|not positive)")
