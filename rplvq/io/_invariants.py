"""What holds for every fitted model and for every run: the seal of a file does not prove it, so it is checked."""

from typing import Any

import numpy as np

from rplvq.arrays import adjoint, hermitian_part
from rplvq.exceptions import PointError
from rplvq.protocols import Array, Manifold
from rplvq.training import Progress, State, Trainer

ROUNDING = 1e-6
"""Relative error that the points of prototypes may have, and how far outside the cone the edge of a cone may be."""


def require_fitted(model: Any) -> None:
    """Raise ValueError or AttributeError unless a RiemannianLVQ has the attributes that a fit leaves behind."""
    state, trainer, classes, labels = model.state_, model.trainer_, model.classes_, model.prototype_labels_
    _require(isinstance(trainer, Trainer), "trainer_ is no trainer")
    _require(isinstance(vars(model).get("_rng"), np.random.Generator), "_rng is no random generator")
    _require(classes.ndim == 1 and (classes[1:] > classes[:-1]).all(), f"classes_ are not sorted: {classes.tolist()}")
    met = np.unique(labels)
    points = require_state(trainer.manifold, state, len(met))
    right = np.isin(met, classes).all() and np.array_equal(met[state.labels], labels)
    _require(right, f"prototype_labels_ are not those of its prototypes and classes: {labels.tolist()}")
    same = model.prototypes_.shape == points.shape
    same = same and np.allclose(model.prototypes_, points, ROUNDING, ROUNDING * np.abs(points).max())
    _require(same and model.n_features_in_ == points.shape[1], "prototypes_ are not the points of its state")
    _require(0 < model.sigma2_ < np.inf, f"sigma2_ is {model.sigma2_}")
    _require(0 <= model.step_size_ < np.inf, f"step_size_ is {model.step_size_}")
    lengths = {values.shape for values in model.history_.values()}
    _require(model.n_epochs_ >= 0 and len(lengths) < 2, f"n_epochs_ is {model.n_epochs_}, history_ has {lengths}")


def require_progress(progress: Progress, manifold: Manifold[Any], n_classes: int) -> None:
    """Raise ValueError unless a fit of ``n_classes`` classes can continue from this progress."""
    for state in (progress.state, progress.best):
        require_state(manifold, state, n_classes)
    last = progress.rows[-1]["epoch"] if progress.rows else 0
    now = progress.state.epoch
    _require(progress.best.epoch <= now == last, f"its epochs disagree, {now}, {last}")
    _require(not np.isnan(progress.best_cost), f"best_cost is {progress.best_cost}")
    np.random.default_rng(0).bit_generator.state = progress.rng


def require_state(manifold: Manifold[Any], state: State, n_classes: int) -> Array:
    """Return the points (K, ...) of a state of training; raise ValueError unless it is valid for these classes."""
    _require(isinstance(state, State), "it holds no state of a trainer")
    labels, prototypes = state.labels, np.asarray(state.prototypes)
    in_order = labels.shape == prototypes.shape[:1] and (np.diff(labels) >= 0).all()
    _require(in_order and np.array_equal(np.unique(labels), np.arange(n_classes)), f"labels are {labels.tolist()}")
    _require(0 < state.sigma2 < np.inf, f"sigma2 is {state.sigma2}")
    _require(0 <= state.step_size < np.inf, f"step_size is {state.step_size}")
    _require(callable(state.sigma2_schedule) and callable(state.step_schedule), "its schedules cannot be called")
    _require(np.isfinite(prototypes).all(), "its prototypes are not finite")
    points = np.asarray(manifold.decode(state.prototypes))
    try:
        manifold.encode(points)
    except PointError as error:
        _require(_is_edge(points), f"prototype {error.index} is not on the manifold: it {error.reason}")
    return points


def _is_edge(points: Array) -> bool:
    """Whether points are matrices that are positive definite to rounding, as a fit that warned has them."""
    if points.ndim < 3 or points.shape[-2] != points.shape[-1]:
        return False
    points = points.reshape(-1, *points.shape[-2:])
    spectra = np.linalg.eigvalsh(hermitian_part(points))
    asymmetry = np.abs(points - adjoint(points)).max(axis=(1, 2))
    return bool((asymmetry <= ROUNDING * spectra[:, -1]).all() and (spectra[:, 0] >= -ROUNDING * spectra[:, -1]).all())


def _require(condition: Any, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
