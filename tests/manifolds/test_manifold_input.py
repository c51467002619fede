"""What encode takes, and the sentences with which it refuses the rest."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from rplvq import (
    AffineInvariant,
    BuresWasserstein,
    EuclideanVectors,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    TangentSpace,
)
from rplvq.exceptions import PointError

MATRIX_MANIFOLDS = pytest.mark.parametrize(
    "manifold",
    [
        AffineInvariant(),
        LogEuclidean(),
        ProjectedEuclidean(relative=True),
        LogCholesky(),
        BuresWasserstein(),
        TangentSpace(np.eye(2)),
        LearnedLogEuclidean(),
    ],
    ids=repr,
)
GOOD = np.array([np.eye(2), [[2.0, 1.0], [1.0, 2.0]], np.diag([1.0, 3.0])])


def with_entry(position, value):
    """GOOD with one entry changed."""
    points = GOOD.astype(np.result_type(GOOD, type(value)))
    points[position] = value
    return points


def with_matrix(index, matrix):
    """GOOD with one matrix changed."""
    return np.array([matrix if i == index else good for i, good in enumerate(GOOD)])


REFUSED = {
    "not square": (np.ones((3, 2, 3)), r"square matrices, got shape \(3, 2, 3\)"),
    "asymmetric": (
        with_entry((1, 0, 1), 1.5),
        r"X\[1\] is not symmetric: .* by 0.5 \(0.25 of its .*, allowed 1e-10\).*0\.5 \* \(X",
    ),
    "slightly asymmetric": (
        with_entry((2, 0, 1), 3e-9),
        r"X\[2\] is not symmetric: .* by 3e-09 \(1e-09 of its largest entry",
    ),
    "not Hermitian": (with_entry((1, 0, 1), 1 + 1j), r"X\[1\] is not Hermitian"),
    "NaN": (
        with_entry((1, 1, 0), np.nan),
        r"X\[1\] contains NaN or infinity: its entry \[1, 0\] is nan. Remove or impute",
    ),
    "infinite": (with_entry((2, 0, 0), np.inf), r"X\[2\] .* its entry \[0, 0\] is inf"),
    "minus infinite": (with_entry((0, 1, 1), -np.inf), r"X\[0\] .* its entry \[1, 1\] is -inf"),
    "complex NaN": (with_entry((1, 0, 1), complex(0, np.nan)), r"X\[1\] contains NaN"),
    "singular": (
        with_matrix(1, np.ones((2, 2))),
        r"X\[1\] is singular to rounding: .* 2 \(needed: more than 4.44e-15 .*shrinkage=1e-6",
    ),
    "singular up to rounding": (
        with_matrix(2, np.diag([4.0, 1e-15])),
        r"X\[2\] is singular .* smallest eigenvalue is 1e-15, 2.5e-16 of its largest 4",
    ),
    "indefinite": (
        with_matrix(1, np.diag([2.0, -0.5])),
        r"X\[1\] is not positive definite: its smallest eigenvalue is -0.5, -0.25 of its largest 2",
    ),
    "negative definite": (
        with_matrix(2, np.diag([-1.0, -2.0])),
        r"X\[2\] is not positive definite: its smallest eigenvalue is -2 ",
    ),
    "zero": (with_matrix(0, np.zeros((2, 2))), r"X\[0\] is not positive definite"),
    "first of several": (np.array([np.eye(2), -np.eye(2), -2 * np.eye(2)]), r"X\[1\] .* is -1 "),
    "a single matrix": (np.eye(2), r"3 axes.*got shape \(2, 2\): Reshape your data.*X\[None\]"),
    "four axes": (GOOD[None], r"3 axes, \(n_matrices, n, n\), got shape \(1, 3, 2, 2\)"),
    "a number": (3.0, r"3 axes.*got shape \(\)"),
    "empty": (np.empty((0, 2, 2)), r"0 sample\(s\) \(shape=\(0, 2, 2\)\) while a minimum of 1"),
    "0 x 0": (np.empty((3, 0, 0)), r"0 feature\(s\) \(shape=\(3, 0, 0\)\)"),
    "strings": ([[["a", "b"], ["c", "d"]]], "must hold numbers, got dtype <U1"),
    "objects": (np.array([[[1.0, None], [None, 1.0]]], dtype=object), "must hold numbers"),
    "nothing": (None, "must hold numbers"),
    "ragged": ([np.eye(2), np.eye(3)], "X must be a rectangular array of numbers"),
    "dates": (np.array([[["2020-01-01"]]], dtype="M8[D]"), "must hold numbers, got dtype datetime"),
}


@MATRIX_MANIFOLDS
@pytest.mark.parametrize("name", REFUSED)
def test_encode_refuses_and_says_why(manifold, name):
    points, sentence = REFUSED[name]
    with pytest.raises(ValueError, match=sentence):
        manifold.encode(points)


@MATRIX_MANIFOLDS
def test_a_failed_encode_changes_nothing(manifold):
    points = with_matrix(2, -np.eye(2))
    kept = points.copy()
    with pytest.raises(PointError) as caught:
        manifold.encode(points)
    assert caught.value.index == 2
    assert np.array_equal(points, kept)


@MATRIX_MANIFOLDS
def test_sparse_data_is_refused_with_the_way_out(manifold):
    with pytest.raises(TypeError, match=r"use X.toarray\(\)"):
        manifold.encode(sparse.eye(3).tocsr())


@MATRIX_MANIFOLDS
@pytest.mark.parametrize("scale", [1e-28, 1e-12, 1.0, 1e12])
def test_tolerances_are_relative(manifold, scale):
    """Small units are no reason to refuse, nor to accept."""
    assert np.isfinite(manifold.encode(scale * GOOD)).all()
    for name, sentence in (
        ("asymmetric", r"X\[1\] is not symmetric"),
        ("singular", r"X\[1\] is singular"),
        ("indefinite", r"X\[1\] is not positive definite"),
    ):
        with pytest.raises(ValueError, match=sentence):
            manifold.encode(scale * REFUSED[name][0])


@MATRIX_MANIFOLDS
def test_rounding_is_symmetrised(manifold):
    points = with_entry((2, 0, 1), 1e-14)
    matrices = manifold.decode(manifold.encode(points))
    assert np.array_equal(matrices, matrices.swapaxes(1, 2))
    np.testing.assert_allclose(matrices, points, rtol=1e-14, atol=1e-14)
    assert points[2, 0, 1] == 1e-14


def read_only(points):
    points = points.copy()
    points.flags.writeable = False
    return points


def negative_strides(points):
    return np.ascontiguousarray(points[::-1, ::-1, ::-1])[::-1, ::-1, ::-1]


def between_others(points):
    padded = np.zeros((2 * len(points), 4, 4))
    padded[::2, :2, 2:] = points
    return padded[::2, :2, 2:]


WAYS = {
    "nested lists": lambda points: points.tolist(),
    "list of arrays": list,
    "tuple of lists": lambda points: tuple(point.tolist() for point in points),
    "float32": lambda points: points.astype(np.float32),
    "float16": lambda points: points.astype(np.float16),
    "long double": lambda points: points.astype(np.longdouble),
    "integers": lambda points: points.astype(int),
    "unsigned": lambda points: points.astype(np.uint8),
    "big-endian": lambda points: points.astype(">f8"),
    "objects": lambda points: points.astype(object),
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "negative strides": negative_strides,
    "a view": between_others,
    "complex without imaginary part": lambda points: points.astype(complex),
    "complex64 without imaginary part": lambda points: points.astype(np.complex64),
}


@MATRIX_MANIFOLDS
def test_numbers_come_in_many_ways(manifold):
    for way in WAYS:
        given = WAYS[way](GOOD)
        kept = np.array(given, copy=True)
        codes = manifold.encode(given)
        assert codes.dtype == np.float64
        np.testing.assert_allclose(codes, manifold.encode(GOOD), rtol=1e-14)
        assert np.array_equal(np.array(given), kept)
        moved = manifold.move(manifold.connect(codes[:1], codes[1:]), np.full((2, 1), 0.1))
        assert np.isfinite(manifold.decode(moved)).all()


@MATRIX_MANIFOLDS
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_low_precision_may_be_asymmetric_by_its_own_rounding(manifold, dtype):
    spacing = np.finfo(dtype).eps
    points = GOOD.astype(dtype)
    points[1, 0, 1] = 1 + 4 * spacing
    assert manifold.encode(points).dtype == np.float64
    points[1, 0, 1] = 1 + 200 * spacing
    with pytest.raises(ValueError, match=r"X\[1\] is not symmetric"):
        manifold.encode(points)


@MATRIX_MANIFOLDS
def test_low_precision_needs_a_larger_smallest_eigenvalue(manifold):
    points = np.array([np.diag([1.0, 1e-7])])
    assert manifold.encode(points).shape == (1, 2, 2)
    with pytest.raises(ValueError, match=r"X\[0\] is singular to rounding"):
        manifold.encode(points.astype(np.float32))


def message_of(manifold, points):
    with pytest.raises(PointError) as caught:
        manifold.encode(points)
    return str(caught.value)


@MATRIX_MANIFOLDS
def test_the_remedies_for_a_singular_matrix_come_in_the_order_in_which_they_help(manifold):
    message = message_of(manifold, with_matrix(1, np.ones((2, 2))).astype(np.float32))
    remedies = ["float64", "drop a reference channel", "shrinkage=1e-6", "more samples"]
    places = [message.index(remedy) for remedy in remedies]
    assert places == sorted(places)
    assert "float64" not in message_of(manifold, with_matrix(1, np.ones((2, 2))))


@MATRIX_MANIFOLDS
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_all_singular_matrices_are_counted_and_the_mask_drops_them(manifold, dtype):
    points = np.tile(GOOD, (5, 1, 1)).astype(dtype)
    points[[3, 7, 14]] = [np.ones((2, 2)), np.zeros((2, 2)), np.diag([1.0, -1.0])]
    if np.iscomplexobj(points):
        points[0] = [[2, 1j], [-1j, 2]]
    message = message_of(manifold, points)
    assert "X[3]" in message
    assert "3 of the 15 matrices" in message
    names = {"np": np, "X": points}
    exec(message[message.index("v = ") :], names)
    assert np.flatnonzero(~names["keep"]).tolist() == [3, 7, 14]
    manifold.encode(points[names["keep"]])


@MATRIX_MANIFOLDS
def test_matrices_of_condition_1e6_in_single_precision_are_told_to_be_computed_in_double(manifold):
    points = np.array([np.diag([1.0, 0.5e-6])])
    assert manifold.encode(points).shape == (1, 2, 2)
    assert "single or half precision (float32, float16)" in message_of(manifold, points.astype(np.float32))


@MATRIX_MANIFOLDS
@pytest.mark.parametrize("is_complex", [False, True])
def test_channels_in_different_units_are_named_before_shrinkage(manifold, is_complex):
    """Magnetometers of 1e-13 T beside electrodes of 1e-5 V; the scaling that the message names mends them."""
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(6, 3, 50)) + 1j * is_complex * rng.normal(size=(6, 3, 50))
    signals = (signals if is_complex else signals.real) * np.array([1e-5, 3e-5, 1e-13])[:, None]
    X = signals @ signals.conj().swapaxes(1, 2)
    X = 0.5 * (X + X.conj().swapaxes(1, 2))
    message = message_of(manifold, X)
    assert "Channels 1 and 2 differ by 8 orders of magnitude" in message or "Channels 1 and 2 differ by 9" in message
    assert message.index("different units") < message.index("shrink")
    names = {"np": np, "X": X}
    f = eval(message[message.index("f = ") + 4 : message.index(" of the training data")], names)
    AffineInvariant().encode(X * np.outer(f, f))


@MATRIX_MANIFOLDS
def test_a_flat_channel_and_channels_of_one_unit_are_no_matter_of_units(manifold):
    for matrix in (np.diag([1.0, 0.0]), np.ones((2, 2)), np.zeros((2, 2)), np.array([[1.0, 0.1], [0.1, 0.01]])):
        assert "units" not in message_of(manifold, with_matrix(1, matrix))


@MATRIX_MANIFOLDS
def test_complex_matrices_stay_complex(manifold):
    points = np.array([[[2, 1j], [-1j, 2]]], dtype=np.complex64)
    codes = manifold.encode(points)
    assert codes.dtype == np.complex128
    np.testing.assert_allclose(manifold.decode(codes), points, rtol=1e-6)


# --- vectors


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ([1.0, 2.0], "Reshape your data"),
        ([[1.0, 2.0], [np.nan, 1.0]], r"X\[1\] contains NaN or infinity: its entry \[0\]"),
        ([[np.inf]], r"X\[0\] .* is inf"),
        ([["a"]], "could not convert"),
        (np.array([[1j]]), "Complex data not supported"),
        (np.empty((0, 2)), r"0 sample\(s\)"),
        (np.empty((2, 0)), r"0 feature\(s\)"),
        (GOOD, "dim 3"),
    ],
)
def test_vectors_are_refused_by_name(points, sentence):
    with pytest.raises(ValueError, match=sentence):
        EuclideanVectors().encode(points)


@pytest.mark.parametrize("way", ["nested lists", "float32", "integers", "objects", "read-only"])
def test_vectors_come_in_many_ways(way):
    codes = EuclideanVectors().encode(WAYS[way](GOOD[1]))
    assert codes.dtype == np.float64
    assert np.array_equal(codes, GOOD[1])


# --- the error itself


def test_a_point_error_is_a_value_error_that_pickles_and_can_be_renamed():
    error = PointError(3, "is not square")
    again = pickle.loads(pickle.dumps(error.renamed("init prototypes")))
    assert isinstance(again, ValueError)
    assert (again.index, str(again)) == (3, "init prototypes[3] is not square")
