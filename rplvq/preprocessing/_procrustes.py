"""The unitary matrix that brings several positive definite matrices near to others."""

from typing import NamedTuple

import numpy as np

from rplvq.arrays import adjoint, congruence
from rplvq.protocols import Array


class Look(NamedTuple):
    """A unitary matrix (n, n) with the value of f there, and its gradient (n, n)."""

    turn: Array
    value: float
    gradient: Array


def nearest_rotation(
    goal: Array, own: Array, penalty: float = 0.0, *, tol: float = 1e-6, max_iter: int = 2000
) -> tuple[Array, bool]:
    """Return the unitary Q (n, n) that brings matrices S (C, n, n) near to M (C, n, n), and whether it converged.

    ``own`` are S and ``goal`` M. The loss, with ``penalty`` in the place of w / m, f and the iteration are those in the
    notes of :class:`rplvq.Rotate`.

    Examples
    --------
    >>> own, goal = np.diag([1.0, 2.0]), np.diag([2.0, 1.0])
    >>> turn, _ = nearest_rotation(goal[None], own[None])
    >>> (turn @ own @ turn.T).round(6)
    array([[2., 0.],
           [0., 1.]])
    """
    identity = np.eye(own.shape[-1])
    pull = penalty * float(np.sum(np.abs(own - identity) ** 2)) / len(identity)
    # Multiples of the identity change the loss by a constant. Without them f is convex still, and much less flat.
    goal, own = (means - np.linalg.eigvalsh(means)[:, :1, None] * identity for means in (goal, own))

    def look(turn: Array) -> Look:
        image = np.sum(goal @ turn @ own, axis=0)
        value = np.sum(image * turn.conj()).real + pull * np.trace(turn).real
        return Look(turn, float(value), 2 * image + pull * identity)

    starts = [identity, *(_by_eigenvectors(goal, own, pull, c) for c in range(len(own)))]
    last = point = max(map(look, starts), key=lambda point: point.value)
    steps = 0
    for _ in range(max_iter):
        left, _, right = np.linalg.svd(point.gradient + steps / (steps + 3) * (point.gradient - last.gradient))
        reached = look(left @ right)
        if steps and reached.value < point.value:
            steps = 0
            continue
        last, point, steps = point, reached, steps + 1
        if np.abs(point.turn - last.turn).max() <= tol:
            return point.turn, True
    return point.turn, False


def _by_eigenvectors(goal: Array, own: Array, pull: float, c: int) -> Array:
    """Return a unitary matrix that turns the eigenvectors of S_c (n, n) to those of M_c."""
    to, back, n = np.linalg.eigh(goal[c])[1], np.linalg.eigh(own[c])[1], own.shape[-1]
    # The phase of an eigenvector is arbitrary. As a function of the phases p of all of them, f is the quadratic form
    # (p, 1)^H A (p, 1), up to a constant, and the phases of its leading eigenvector are those of an exact fit.
    form = np.zeros((n + 1, n + 1), dtype=np.result_type(to, back))
    form[:n, :n] = np.sum(congruence(goal, to) * congruence(own, back).conj(), axis=0)
    np.fill_diagonal(form, 0)
    form[:n, n] = 0.5 * pull * np.sum(back * to.conj(), axis=0)
    phases = _phases(np.linalg.eigh(form, UPLO="U")[1][:, -1])
    return np.asarray(to * (phases[:n] * phases[n].conj()) @ adjoint(back))


def _phases(values: Array) -> Array:
    """Return ``z / |z|`` of numbers, and 1 for 0."""
    sizes = np.abs(values)
    return np.where(sizes > 0, values, 1.0) / np.where(sizes > 0, sizes, 1.0)
