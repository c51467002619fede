"""Rotate turns sources so that their class means come near to those of the target."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group, unitary_group
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from rplvq import AffineInvariant, Recenter, Rotate
from rplvq.arrays import sqrtm
from rplvq.manifolds import riemannian_mean
from rplvq.preprocessing._procrustes import nearest_rotation
from tests.problems import spd_classes, wrapped_normal

KINDS = [pytest.param(dtype, id=dtype.__name__) for dtype in (float, complex)]


def turned(dtype=float, n=4, n_classes=3, n_sources=2, unit=1.0):
    """A target "t" and sources that are turned copies of it: X, y, groups, and the matrices that turn them back."""
    X, y = spd_classes(0, 6, n, n_classes, dtype=dtype)
    X = Recenter().fit_transform(X)
    law = unitary_group if dtype is complex else ortho_group
    back = [law.rvs(n, random_state=seed) for seed in range(n_sources)]
    parts = [X, *(Q.conj().T @ X @ Q for Q in back)]
    groups = np.repeat(["t", *(f"s{k}" for k in range(n_sources))], len(X))
    return unit * np.concatenate(parts), np.tile(y, len(parts)), groups, back


@pytest.mark.parametrize("n", [2, 4, 9])
@pytest.mark.parametrize("dtype", KINDS)
def test_planted_rotations_are_recovered(dtype, n):
    X, y, groups, _ = turned(dtype, n)
    rotate = Rotate("t", prior_weight=0).fit(X, y, groups=groups)
    found = rotate.transform(X, groups=groups)
    assert_array_equal(found, found.conj().swapaxes(1, 2))
    assert_array_equal(found[groups == "t"], X[groups == "t"])
    for name, Q in zip(rotate.groups_, rotate.rotations_, strict=True):
        assert_allclose(Q @ Q.conj().T, np.eye(n), atol=1e-12)
        assert_allclose(found[groups == name], X[groups == "t"], atol=1e-6)


@pytest.mark.parametrize("unit", [1e-12, 1e6])
def test_units_of_the_samples_do_not_matter_after_recentring(unit):
    X, y, groups, _ = turned()
    scaled = Recenter().fit_transform(unit * X, groups=groups)
    one, other = (Rotate("t").fit(Z, y, groups=groups).rotations_ for Z in (X, scaled))
    assert_allclose(one, other, atol=1e-5)


def test_turning_the_target_turns_the_sources_as_well():
    X, y, groups, _ = turned()
    rng = np.random.default_rng(0)
    source = groups != "t"
    X[source] = spd_classes(3, 6, 4, 3)[0][rng.integers(18, size=source.sum())]  # no turned copies any more
    V = ortho_group.rvs(4, random_state=9)
    moved = np.where(source[:, None, None], X, V @ X @ V.T)
    one, other = (Rotate("t", prior_weight=0, tol=1e-9).fit(Z, y, groups=groups) for Z in (X, moved))
    loss = [_loss(rotate, Z, y, groups) for rotate, Z in ((one, X), (other, moved))]
    assert_allclose(loss[0], loss[1], rtol=1e-6)


def _means(X, y):
    return np.stack([riemannian_mean(AffineInvariant(), X[y == c], tol=1e-6).code for c in np.unique(y)])


def _loss(rotate, X, y, groups):
    goal, total = _means(X[groups == "t"], y[groups == "t"]), 0.0
    for name, Q in zip(rotate.groups_, rotate.rotations_, strict=True):
        total += np.sum(np.abs(goal - Q @ _means(X[groups == name], y[groups == name]) @ Q.conj().T) ** 2)
    return total


@pytest.mark.filterwarnings("ignore:Convergence not reached")
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("n", [2, 4])
def test_it_fits_as_well_as_pyriemann(n, noise):
    """Where Q fits exactly the results agree; else pyRiemann's line search lowers the sum of distances, not of squares.

    For n = 4, pyRiemann's first Q has arbitrary signs, which can end in a local minimum.
    """
    transfer = pytest.importorskip("pyriemann.transfer", reason="needs pyriemann")
    own, y = spd_classes(3, 6, n, 3)
    Q, roots = ortho_group.rvs(n, random_state=0), sqrtm(wrapped_normal(np.random.default_rng(0), 18, n, noise))
    X = Recenter().fit_transform(own)
    X = np.concatenate([X, roots @ Q @ X @ Q.T @ roots])
    y, groups = np.tile(y, 2), np.repeat(["s", "t"], len(own))
    encoded = transfer.encode_domains(X, y, groups)[1]
    theirs = transfer.TLRotate("t").fit(X, encoded)
    ours = Rotate("t", prior_weight=0, tol=1e-8).fit(X, y, groups=groups)
    goal, own = (_means(X[groups == name], y[groups == name]) for name in "ts")
    loss = [np.sum((goal - Q @ own @ Q.T) ** 2) for Q in (theirs.rotations_["s"], ours.rotations_[0])]
    assert loss[1] <= loss[0] * (1 + 1e-6) + 1e-9
    if n == 2 and noise == 0:
        assert_allclose(ours.transform(X, groups=groups), theirs.fit_transform(X, encoded), atol=1e-6)


def test_the_prior_pulls_to_the_identity():
    X, y, groups, _ = turned()
    away = [
        np.linalg.norm(Rotate("t", prior_weight=weight).fit(X, y, groups=groups).rotations_ - np.eye(4))
        for weight in (0, 6, 60, 6e6)
    ]
    assert away == sorted(away, reverse=True)
    assert away[0] > 1 > 1e-3 > away[-1]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_no_small_rotation_lowers_the_loss(dtype, penalty):
    from scipy.linalg import expm

    goal, own = (_means(*spd_classes(seed, 6, 4, 3, dtype=dtype)) for seed in (0, 1))
    Q, converged = nearest_rotation(goal, own, penalty, tol=1e-10)
    pull = penalty / 4 * np.sum(np.abs(own - np.eye(4)) ** 2)

    def loss(Q):
        fit = np.sum(np.abs(goal - Q @ own @ Q.conj().T) ** 2)
        return fit + pull * np.sum(np.abs(Q - np.eye(4)) ** 2)

    assert converged
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1):
        for _ in range(20):
            noise = rng.normal(size=(4, 4)) + (1j * rng.normal(size=(4, 4)) if dtype is complex else 0)
            assert loss(expm(size * (noise - noise.conj().T)) @ Q) > loss(Q)


def test_labels_may_name_the_groups_as_in_pyriemann():
    X, y, groups, _ = turned()
    encoded = [f"{group}/{label}" for group, label in zip(groups, y, strict=True)]
    one, other = Rotate("t").fit(X, encoded), Rotate("t").fit(X, y, groups=groups)
    assert_array_equal(one.rotations_, other.rotations_)
    assert_array_equal(one.groups_, other.groups_)


def test_only_common_classes_count():
    X, y, groups, _ = turned()
    kept = ((groups != "t") | (y > 0)) & ((groups != "s0") | (y < 2))  # "t" has 1 and 2, "s0" has 0 and 1
    common = kept & np.where(groups == "s0", y == 1, y > 0)
    one, other = (Rotate("t").fit(X[rows], y[rows], groups=groups[rows]) for rows in (kept, common))
    assert_array_equal(one.rotations_[[1, 2]], other.rotations_[[1, 2]])
    few = nearest_rotation(
        _means(X[common & (groups == "t")], y[common & (groups == "t")])[:1],
        _means(X[common & (groups == "s0")], y[common & (groups == "s0")]),
        10 / 6,
    )[0]
    assert_allclose(one.rotations_[0], few, atol=1e-9)


def test_new_groups_are_sessions_of_the_target_and_stay():
    X, y, groups, _ = turned(complex)
    rotate = Rotate("t").fit(X, y, groups=groups)
    mixed = np.where(groups == "s1", "t, day 2", groups)
    found, known = rotate.transform(X, groups=mixed), rotate.transform(X, groups=groups)
    new = groups == "s1"
    assert_allclose(found[new], X[new], atol=1e-12)
    assert_array_equal(found[~new], known[~new])
    assert np.abs(known[new] - X[new]).max() > 0.1


def test_wrong_uses_are_named():
    X, y, groups, _ = turned()
    rotate = Rotate("t")

    def refused(message, Z=X, labels=y, names=groups, error=ValueError, **parameters):
        with pytest.raises(error, match=message):
            Rotate(**{"target": "t"} | parameters).fit(Z, labels, groups=names)

    refused("y is None, but Rotate compares", labels=None)
    refused("groups is None", names=None)
    refused("target 'x' is not among the groups", target="x")
    refused("target 't' is the only group", names=["t"] * len(X))
    refused(
        "group 's0' has the classes .1., and the target 't' has .0, 2.", labels=np.where(groups == "s0", 1, 2 * (y > 0))
    )
    refused("one label per sample", labels=np.eye(3)[y])
    refused(r"X\[0\]", Z=-X)
    refused("prior_weight must be a finite number of at least 0", prior_weight=-1)
    refused("tol must be a finite number above 0", tol=0)
    refused("max_iter must be a positive integer", max_iter=0)
    two = groups != "s1"
    with pytest.warns(ConvergenceWarning, match="rotation of group 's0' did not converge in 1 iterations"):
        Rotate("t", max_iter=1).fit(X[two], y[two], groups=groups[two])
    with pytest.raises(NotFittedError):
        rotate.transform(X, groups=groups)
    rotate.fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="groups is None"):
        rotate.transform(X)
