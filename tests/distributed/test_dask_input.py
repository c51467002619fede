"""DistributedLVQ takes what RiemannianLVQ takes, whatever the partitions, and names bad input by its global index."""

from __future__ import annotations

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason='needs dask: pip install ".[dask]" in the folder of rplvq')
import dask.array as da

from rplvq import RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.distributed import DistributedLVQ

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
METHODS = ("predict", "predict_proba", "transform")


def data():
    X, y = make_syn1(n_per_class=10, n=4, random_state=0)
    order = np.random.default_rng(1).permutation(len(X))
    return X[order], np.array(["a", "b", "c", "d"])[y[order]]


def cut(values, size=10):
    return da.from_array(values, chunks=(size, *values.shape[1:]))


def lvq(manifold="affine_invariant", **settings):
    return RiemannianLVQ(
        manifold, **({"sigma2": 1.0, "batch_size": None, "max_epochs": 2, "random_state": 0} | settings)
    )


def filtered(keep):
    """Samples and labels of which a filter keeps some, with the partitions that the filter leaves."""
    X, y = data()
    return cut(X)[cut(keep)].compute_chunk_sizes(), X[keep], y[keep]


EMPTY = {
    "first": np.arange(40) >= 10,
    "middle": (np.arange(40) < 10) | (np.arange(40) >= 20),
    "last two": np.arange(40) < 20,
}


MANIFOLDS = ["affine_invariant", "log_euclidean", "log_cholesky", "bures_wasserstein", "tangent"]


SETTINGS = [{}, {"batch_size": 7}, {"init": "kmeans", "prototypes_per_class": 2}]


@pytest.mark.parametrize("number", range(len(EMPTY)))
@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_a_filter_may_leave_empty_partitions(number, manifold):
    """Each manifold meets each filter and each setting, each filter each setting."""
    lazy, X, y = filtered([*EMPTY.values()][number])
    settings = SETTINGS[(number + MANIFOLDS.index(manifold)) % len(SETTINGS)]
    assert 0 in lazy.chunks[0]
    model = lvq(manifold, **settings)
    whole = DistributedLVQ(model).fit(cut(X, 10), y)
    found = DistributedLVQ(model).fit(lazy, y)
    np.testing.assert_array_equal(found.prototypes_, whole.prototypes_)
    for method in METHODS:
        answer = getattr(found, method)(lazy)
        assert answer.chunks[0] == lazy.chunks[0]
        np.testing.assert_array_equal(answer.compute(), getattr(found.estimator_, method)(X))
    assert found.score(lazy, y) == found.estimator_.score(X, y)


def test_samples_of_which_a_filter_keeps_none_are_refused_at_once():
    X, y = data()
    model = DistributedLVQ(lvq()).fit(cut(X), y)
    for method in METHODS:
        with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
            getattr(model, method)(X[:0])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        DistributedLVQ(lvq()).fit(X[:0], y[:0])


def pandas_labels(dtype):
    def make(y):
        return pytest.importorskip("pandas").Series(y, dtype=dtype, index=np.arange(len(y))[::-1])

    return make


LABELS = {
    "strings": lambda y: y,
    "list": lambda y: y.tolist(),
    "column": lambda y: y[:, None],
    "objects": lambda y: y.astype(object),
    "numbers": lambda y: np.unique(y, return_inverse=True)[1],
    "floats": lambda y: np.unique(y, return_inverse=True)[1] * 1.0,
    "bytes": lambda y: y.astype("S"),
    "StringDType": lambda y: y.astype(np.dtypes.StringDType()),
    "dates": lambda y: np.datetime64("2020-01-01") + np.unique(y, return_inverse=True)[1],
    "two": lambda y: y == "a",
    "pandas": pandas_labels(None),
    "pandas strings": pandas_labels("string"),
    "pandas objects": pandas_labels(object),
    "pandas categories": pandas_labels("category"),
    "Dask strings": lambda y: cut(y, 7),
    "Dask bytes": lambda y: cut(y.astype("S"), 7),
    "Dask objects": lambda y: cut(y.astype(object), 7),
    "Dask column": lambda y: cut(y[:, None], 7),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("make", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("is_sorted", [False, True], ids=["mixed", "one class per partition"])
def test_labels_are_taken_as_by_the_estimator(make, is_sorted):
    X, y = data()
    order = np.argsort(y, kind="stable") if is_sorted else np.arange(len(y))
    X, labels = X[order], make(y[order])
    whole = dask.compute(labels, traverse=False)[0]
    found, wanted = DistributedLVQ(lvq()).fit(cut(X), labels), lvq().fit(X, whole)
    np.testing.assert_array_equal(found.classes_, wanted.classes_)
    assert found.classes_.dtype == wanted.classes_.dtype
    np.testing.assert_allclose(found.prototypes_, wanted.prototypes_, rtol=1e-10, atol=1e-12)
    assert found.score(cut(X), labels) == wanted.score(X, whole)


def broken(kind):
    """Labels of which that at index 23 is broken."""
    _, y = data()
    index, bad = np.unique(y, return_inverse=True)[1], np.arange(len(y)) == 23
    soft = np.eye(4)[index]
    return {
        "None": lambda: np.where(bad, None, y.astype(object)),
        "NaN object": lambda: np.where(bad, np.nan, y.astype(object)),
        "NaN": lambda: np.where(bad, np.nan, index),
        "NaT": lambda: np.where(bad, np.datetime64("NaT"), np.datetime64("2020-01-01") + index),
        "mixed": lambda: np.where(bad, 1, y.astype(object)),
        "negative": lambda: np.where(bad[:, None], -1.0, soft),
        "no probabilities": lambda: np.where(bad[:, None], 0.5, soft),
        "short": lambda: y[:-1],
        "long": lambda: np.append(y, "a"),
        "one class": lambda: np.repeat("a", len(y)),
        "continuous": lambda: np.linspace(0, 1, len(y)),
        "absent": lambda: None,
        "one label": lambda: np.array("a"),
        "three axes": lambda: np.zeros((len(y), 2, 2)),
    }[kind]()


BROKEN = {
    "None": r"y\[23\] is None",
    "NaN object": r"y\[23\] is nan",
    "NaN": "y.* (NaN|nan)",
    "NaT": r"y\[23\] is NaT",
    "mixed": r"y\[2?\d\] is '.', y\[23\] is 1",
    "negative": r"y\[23, 0\] is -1",
    "no probabilities": r"y\[23\] sums to 2",
    "short": "y has 39 labels for 40 samples",
    "long": "y has 41 labels for 40 samples",
    "one class": "y holds only one class",
    "continuous": "continuous",
    "absent": "y to be passed",
    "one label": "y has 1 labels for 40 samples",
    "three axes": "y",
}


@pytest.mark.parametrize(("kind", "message"), BROKEN.items(), ids=BROKEN)
@pytest.mark.parametrize("size", [None, 10, 7], ids=["array", "ten", "seven"])
def test_broken_labels_are_refused_as_by_the_estimator(kind, message, size):
    X, labels = data()[0], broken(kind)
    with pytest.raises(ValueError, match=message) as wanted:
        lvq(cost="plvq").fit(X, labels)
    model = DistributedLVQ(lvq(cost="plvq"))
    if size is not None:
        labels = da.from_array(np.asarray(labels), chunks=size) if np.ndim(labels) else labels
    with pytest.raises(ValueError, match=message) as found:
        model.fit(cut(X), labels)
    told = str(found.value).partition(" (in partition ")[0]
    assert told == str(wanted.value) or kind == "mixed"  # which names the first label of a partition
    assert not hasattr(model, "estimator_")


def test_labels_of_other_types_in_another_partition_are_refused():
    X, y = data()
    parts = [da.from_array(values, chunks=-1) for values in (y[:20].astype(object), np.arange(20).astype(object) % 2)]
    with pytest.raises(ValueError, match=r"mixed types: y\[:10\] holds '.', y\[20:30\] holds 0"):
        DistributedLVQ(lvq()).fit(cut(X), da.concatenate(parts))


@pytest.mark.parametrize("bad", ["None", "NaN object", "NaN", "NaT", "mixed", "short", "long", "one label"])
def test_score_refuses_labels_that_it_cannot_compare(bad):
    X, y = data()
    model = DistributedLVQ(lvq()).fit(cut(X), y)
    with pytest.raises(ValueError, match=BROKEN[bad]) as wanted:
        model.estimator_.score(X, broken(bad))
    with pytest.raises(ValueError, match=BROKEN[bad]) as found:
        model.score(cut(X), broken(bad))
    assert str(found.value) == str(wanted.value)


def spoiled(value):
    X, _ = data()
    X[33] = value
    return X


SPOILED = {"NaN": (np.nan, "contains NaN"), "negative": (-np.eye(4), "is not positive definite")}
CUTS = {"rows": (10, 4, 4), "columns": (10, 4, 1), "both axes": (7, 3, 2), "one row": (1, 4, 4)}


@pytest.mark.parametrize(("value", "message"), SPOILED.values(), ids=SPOILED)
@pytest.mark.parametrize("chunks", CUTS.values(), ids=CUTS)
def test_spoiled_samples_are_named_by_their_index_in_the_whole_array(value, message, chunks):
    (X, y), model = data(), DistributedLVQ(lvq())
    lazy = da.from_array(spoiled(value), chunks=chunks)
    with pytest.raises(ValueError, match=rf"X\[33\] {message}"):
        model.fit(lazy, y)
    model.fit(da.from_array(X, chunks=chunks), y)
    for method in METHODS:
        with pytest.raises(ValueError, match=rf"X\[33\] {message}"):
            getattr(model, method)(lazy).compute()
        with pytest.raises(ValueError, match=rf"X\[33\] {message}"):
            getattr(model, method)(lazy)[30:36].compute()
    np.testing.assert_array_equal(model.predict(da.from_array(X, chunks=chunks)), model.estimator_.predict(X))


@pytest.mark.parametrize(
    "as_points", [np.array, lambda X: X.astype(object), lambda X: X.tolist()], ids=["array", "objects", "list"]
)
def test_arrays_of_objects_and_lists_are_converted(as_points):
    X, y = data()
    model = DistributedLVQ(lvq()).fit(as_points(X), y)
    np.testing.assert_array_equal(model.prototypes_, DistributedLVQ(lvq()).fit(X, y).prototypes_)
    np.testing.assert_array_equal(model.predict(as_points(X)), model.estimator_.predict(X))


@pytest.mark.parametrize(
    "points", [3.0, "word", np.zeros(40), np.zeros((40, 3, 4))], ids=["number", "word", "vector", "flat"]
)
def test_what_holds_no_samples_is_refused(points):
    X, y = data()
    with pytest.raises(ValueError, match="X"):
        DistributedLVQ(lvq()).fit(points, y)
    model = DistributedLVQ(lvq()).fit(X, y)
    with pytest.raises(ValueError, match="X"):
        model.predict(points).compute()


def test_an_image_of_matrices_is_refused_at_once():
    X, y = data()
    model = DistributedLVQ(lvq()).fit(cut(X), y)
    for method in METHODS:
        with pytest.raises(ValueError, match=r"X must have 3 axes, got shape \(5, 8, 4, 4\): .*X\.reshape\(-1, 4, 4\)"):
            getattr(model, method)(da.from_array(X.reshape(5, 8, 4, 4)))
