"""What a fitted estimator answers to inputs of its own scale, by which loading finds a change of any array in it."""

import warnings
from typing import Any

import numpy as np

from rplvq.arrays import Samples
from rplvq.exceptions import PointError
from rplvq.parts import saved_estimator
from rplvq.protocols import Array

TOLERANCE = 1e-6
"""Relative change of answers that other machines and libraries may cause by rounding."""
ROUNDED = 1e-15
"""Relative size of a rounding of arrays."""
SAFETY = 100
"""How many times the change of the answers that such a rounding causes is accepted."""


def probe_like(points: Array) -> Array:
    """Return one input (1, ...) like points (K, ...): a matrix with the mean diagonal of theirs, or a vector.

    The matrix is positive definite, ``3 s_i s_j / 2^|i - j|`` with ``1 + i / n`` times the scale of channel i as s_i,
    so that no order of the channels looks like another one; in complex matrices, ``i^2`` is its phase.
    """
    places = np.arange(points.shape[-1])
    if points.ndim < 3:
        return np.asarray(np.abs(points).mean(axis=0) * np.cos(places))[None]
    scale = np.sqrt(np.abs(np.diagonal(points, axis1=-2, axis2=-1)).mean(axis=0)) * (1.0 + places / len(places))
    if np.iscomplexobj(points):
        scale = scale * np.exp(1j * places**2)
    pattern = 3.0 * 0.5 ** np.abs(places[:, None] - places)
    return np.asarray(scale[..., :, None] * pattern * scale[..., None, :].conj())[None]


def answers_of_prototypes(model: Any) -> list[Array]:
    """Return a probe, whole and with a missing channel, and squared distances to the prototypes in units of sigma2.

    What later calls of ``partial_fit`` use comes behind: the kept samples and the memory of the step size. Manifolds
    whose points are neither definite matrices nor vectors are probed by their first prototype.
    """
    manifold = model.trainer_.manifold
    prototypes = model.state_.prototypes
    probe = probe_like(model.prototypes_)
    try:
        manifold.encode(probe)
    except PointError:
        probe = model.prototypes_[:1]
    probes = [probe]
    if (filler := vars(model).get("missing_channels_")) is not None:
        lacking = probe.copy()
        lacking[:, -1] = np.nan
        lacking[:, :, -1] = np.nan
        probes.append(filler.fill(lacking))
    answers = [manifold.sqdist(prototypes, manifold.encode(np.concatenate(probes))) / model.sigma2_]
    for kept in vars(model).get("_stream", ()):
        samples = getattr(kept, "samples", kept)
        if isinstance(samples, Samples):
            answers += [manifold.sqdist(prototypes, samples.codes), samples.filled_weights]
    memory = model.state_.memory if isinstance(model.state_.memory, tuple) else ()
    return [*probes, *answers, *(part for part in memory if isinstance(part, np.ndarray))]


def answers_of(estimator: Any) -> list[Array]:
    """Return the answers of a fitted estimator; raise ValueError, or another error of bad arrays, if it has none."""
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        answers = [np.atleast_1d(array) for array in saved_estimator(type(estimator).__qualname__).answers(estimator)]
    if not all(np.isfinite(array).all() for array in answers):
        raise ValueError("its answers are not finite")
    return answers


def deviation(before: list[Array], after: list[Array]) -> float:
    """Return the largest change of answers, relative to the largest value in each row (first axis) of each array."""
    worst = 0.0
    for old, new in zip(before, after, strict=True):
        if old.shape != new.shape:
            return np.inf
        rest = tuple(range(1, old.ndim))
        change = np.abs(new - old).max(axis=rest, initial=0.0)
        size = np.abs(old).max(axis=rest, initial=np.finfo(float).tiny)
        worst = max(worst, float((change / size).max(initial=0.0)))
    return worst
