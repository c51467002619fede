"""Small classification problems that several test modules share."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from rplvq.arrays import Samples, expm, sqrtm
from rplvq.training import measure

FEW = settings(max_examples=20) if settings().max_examples < 2000 else settings()
"""For properties that train a model in each example: 20 in the tests, all of them at night."""


def spd(rng, count, n, spread=0.7, dtype=float):
    """Positive definite matrices (count, n, n) whose log-eigenvalues are uniform in +-spread."""
    noise = rng.normal(size=(count, n, n))
    if dtype is complex:
        noise = noise + 1j * rng.normal(size=(count, n, n))
    basis = np.linalg.qr(noise)[0]
    eigenvalues = np.exp(rng.uniform(-spread, spread, (count, 1, n)))
    matrices = (basis * eigenvalues) @ basis.conj().swapaxes(1, 2)
    return 0.5 * (matrices + matrices.conj().swapaxes(1, 2))


def wrapped_normal(rng, count, n, spread, dtype=float):
    """Positive definite matrices (count, n, n) around the identity: exponentials of normal Hermitian matrices."""
    noise = rng.normal(size=(count, n, n)).astype(dtype)
    if dtype is complex:
        noise += 1j * rng.normal(size=(count, n, n))
    return expm(0.5 * spread * (noise + noise.conj().swapaxes(1, 2)))


def spd_classes(seed=0, per_class=8, n=3, n_classes=2, spread=0.3, shift=0.6, dtype=float):
    """Matrices (N, n, n) around one random center per class, and class indices (N,), in random order."""
    rng = np.random.default_rng(seed)
    roots = sqrtm(wrapped_normal(rng, n_classes, n, shift, dtype))
    y = rng.permutation(np.repeat(np.arange(n_classes), per_class))
    X = roots[y] @ wrapped_normal(rng, len(y), n, spread, dtype) @ roots[y]
    return 0.5 * (X + X.conj().swapaxes(1, 2)), y


def vector_classes(seed=0, per_class=8, d=3, n_classes=2, shift=2.0):
    """Gaussian vectors (N, d) around one random center per class, and class indices (N,)."""
    rng = np.random.default_rng(seed)
    centers = shift * rng.normal(size=(n_classes, d))
    y = rng.permutation(np.repeat(np.arange(n_classes), per_class))
    return centers[y] + rng.normal(size=(len(y), d)), y


def sphere_classes(seed=0, per_class=8, n_classes=3, spread=0.5):
    """Unit vectors (N, 3) around orthogonal axes, and class indices (N,)."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_classes), per_class))
    X = np.eye(3)[y] + spread * rng.normal(size=(len(y), 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def grassmann_classes(seed=0, per_class=8, spread=0.3):
    """Orthonormal bases (N, 4, 2) of planes around two orthogonal planes, and class indices (N,)."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], per_class))
    planes = np.stack([np.eye(4)[:, :2] + 0.5 * np.eye(4)[:, 2:], np.eye(4)[:, 2:]])
    return np.linalg.qr(planes[y] + spread * rng.normal(size=(len(y), 4, 2)))[0], y


def distances(X, prototypes):
    """Affine-invariant distances (N, K), each by SciPy's generalized eigenvalues."""
    from scipy.linalg import eigvalsh

    return np.array([[np.linalg.norm(np.log(eigvalsh(x, w))) for w in prototypes] for x in X])


@contextmanager
def counted_decompositions() -> Iterator[dict[str, int]]:
    """Count the matrices that numpy.linalg.eigh and eigvalsh decompose."""
    counts = {"eigh": 0, "eigvalsh": 0}

    def counter(name, function):
        def counting(matrices, *args, **kwargs):
            counts[name] += int(np.prod(np.shape(matrices)[:-2]))
            return function(matrices, *args, **kwargs)

        return counting

    with pytest.MonkeyPatch.context() as patch:
        for name in counts:
            patch.setattr(np.linalg, name, counter(name, getattr(np.linalg, name)))
        yield counts


def cost_before_training(model, X, y):
    """Summed cost (N samples) of the prototypes with which a fitted model started; its classes are 0..C-1."""
    samples, rng = Samples(model.trainer_.manifold.encode(X), np.asarray(y)), np.random.default_rng(0)
    start = model.trainer_.init(samples, len(model.classes_), rng)
    return measure(model.trainer_.manifold, model.trainer_.cost, start, samples).cost


def changed(array, index, value):
    """A copy of an array with one entry changed."""
    array = np.array(array)
    array[index] = value
    return array


def snapshot(model) -> bytes:
    """Everything that a model holds."""
    return pickle.dumps(vars(model))


def refuse(model, method, *arguments, match, error: Any = ValueError, **keywords):
    """The call raises, and the model is what it was."""
    before = snapshot(model)
    with pytest.raises(error, match=match):
        getattr(model, method)(*arguments, **keywords)
    assert snapshot(model) == before
