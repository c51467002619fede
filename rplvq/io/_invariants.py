"""What loading checks, because a seal proves nothing: what holds for every model and run, and what a model answers."""

import os
import warnings
from collections.abc import Iterable

import numpy as np
from sklearn.base import BaseEstimator

from rplvq.arrays import Samples, adjoint, hermitian_part
from rplvq.exceptions import ModelFileError, PointError
from rplvq.io._archive import UNREADABLE
from rplvq.parts import saved_estimator
from rplvq.protocols import AnyManifold, Array, Prototypes
from rplvq.selection import Choice
from rplvq.training import Progress, Score, State, Trainer, history_row, new_codes

TOLERANCE = 1e-6  # relative change of answers that other machines and libraries may cause by rounding
ROUNDED = 1e-15  # relative size of a rounding of arrays
SAFETY = 100  # how many times the change of the answers that such a rounding causes is accepted
ROUNDING = 1e-6  # relative error that the points of prototypes may have, and their edge outside of a cone


def require_fitted(model: BaseEstimator) -> None:
    """Raise ValueError or AttributeError unless a RiemannianLVQ has the attributes that a fit leaves behind."""
    state = model.state_
    trainer = model.trainer_
    classes = model.classes_
    labels = model.prototype_labels_
    _require(isinstance(trainer, Trainer), "trainer_ is no trainer")
    _require(isinstance(vars(model).get("_rng"), np.random.Generator), "_rng is no random generator")
    _require(classes.ndim == 1 and (classes[1:] > classes[:-1]).all(), f"classes_ are not sorted: {classes.tolist()}")
    met = np.unique(labels)
    points = require_state(trainer.manifold, state, len(met))
    _require_sigma2(state, trainer.max_epochs)
    right = np.isin(met, classes).all() and np.array_equal(met[state.labels], labels)
    _require(right, f"prototype_labels_ are not those of its prototypes and classes: {labels.tolist()}")
    same = model.prototypes_.shape == points.shape
    same = same and np.allclose(model.prototypes_, points, ROUNDING, ROUNDING * np.abs(points).max())
    _require(same and model.n_features_in_ == points.shape[1], "prototypes_ are not the points of its state")
    filler = vars(model).get("missing_channels_")
    _require(filler is None or filler.reference.shape == points.shape[1:], "missing_channels_ are of another size")
    _require(0 < model.sigma2_ < np.inf, f"sigma2_ is {model.sigma2_}")
    _require(0 <= model.step_size_ < np.inf, f"step_size_ is {model.step_size_}")
    _require_choice(getattr(model, "choice_", None))
    lengths = {values.shape for values in model.history_.values()}
    _require(model.n_epochs_ >= 0 and len(lengths) < 2, f"n_epochs_ is {model.n_epochs_}, history_ has {lengths}")
    _require_columns(state, model.history_)
    _require_stream(vars(model).get("_stream", ()), classes, points.shape[1:])


def _require_sigma2(state: State, n_epochs: int) -> State:
    """Return the state with the values of its schedules; raise ValueError unless its sigma2 is the same."""
    scheduled = state.at_epoch(state.epoch, n_epochs)
    _require(scheduled.sigma2 == state.sigma2, f"sigma2 is {state.sigma2}, that of its schedule {scheduled.sigma2}")
    return scheduled


def _require_choice(choice: Choice | None) -> None:
    """Raise ValueError unless a choice, if there is one, names one of its candidates and has a usual calibration."""
    if choice is not None:
        _require(1e-30 < choice.calibration < 1e30, f"its calibration is {choice.calibration}")
        _require(-1 <= choice.winner < len(choice.tried), f"its choice is candidate {choice.winner}")


def _require_columns(state: State, history: Iterable[str]) -> None:
    """Raise ValueError unless a history, or one of its rows, has what every row has."""
    missing = history_row(state, Score(0.0, 0.0), 0, 0.0).keys() - set(history)
    _require(not missing, f"its history lacks {sorted(missing)}")


def _require_stream(stream: Iterable[object], classes: Array, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the samples that a stream keeps are finite, of this shape, and of these classes."""
    for kept in stream:
        labels = getattr(kept, "labels", classes)
        samples = getattr(kept, "samples", kept)
        _require(np.isin(labels, classes).all(), f"its stream waits for the classes {labels}")
        if isinstance(samples, Samples):
            codes = np.asarray(samples.codes)
            targets = np.asarray(samples.targets)
            weights = samples.filled_weights
            fits = len(codes) == len(targets) == len(weights) and np.isfinite(codes).all() and (weights >= 0).all()
            known = targets.ndim == 2 or np.isin(targets, classes).all()
            _require(fits and known and codes.shape[1:] == shape, "its stream keeps samples of another kind")


def require_valid(
    path: str | os.PathLike[str], progress: Progress, manifold: AnyManifold, n_classes: int, n_epochs: int
) -> None:
    """Raise ModelFileError unless a fit of so many classes and epochs can continue from the progress in a file."""
    try:
        for state in (progress.state, progress.best):
            require_state(manifold, state, n_classes)
            scheduled = _require_sigma2(state, n_epochs)
            same = state.memory is not None or scheduled.step_size == state.step_size
            _require(same, f"step_size is {state.step_size}, that of its schedule {scheduled.step_size}")
        last = progress.rows[-1]["epoch"] if progress.rows else 0
        now = progress.state.epoch
        _require(progress.best.epoch <= now == last, f"its epochs disagree, {now}, {last}")
        for row in progress.rows:
            _require_columns(progress.state, row)
        _require_choice(progress.choice)
        _require(not np.isnan(progress.best_cost), f"best_cost is {progress.best_cost}")
        np.random.default_rng(0).bit_generator.state = progress.rng
    except UNREADABLE as error:
        raise ModelFileError(f"{os.fspath(path)}: {error or type(error).__name__}") from error


def require_state(manifold: AnyManifold, state: State, n_classes: int) -> Array:
    """Return the points (K, ...) of a state of training; raise ValueError unless it is valid for these classes."""
    _require(isinstance(state, State), "it holds no state of a trainer")
    labels = state.labels
    prototypes = np.asarray(state.prototypes)
    in_order = labels.shape == prototypes.shape[:1] and (np.diff(labels) >= 0).all()
    _require(in_order and np.array_equal(np.unique(labels), np.arange(n_classes)), f"labels are {labels.tolist()}")
    _require(0 < state.sigma2 < np.inf, f"sigma2 is {state.sigma2}")
    _require(0 <= state.step_size < np.inf, f"step_size is {state.step_size}")
    _require(callable(state.sigma2_schedule) and callable(state.step_schedule), "its schedules cannot be called")
    _require(np.isfinite(prototypes).all(), "its prototypes are not finite")
    points = np.asarray(manifold.decode(state.prototypes))
    _require(_is_read(manifold, state.prototypes), "entries of its prototypes disagree with others")
    try:
        manifold.encode(points)
    except PointError as error:
        _require(_is_edge(points), f"prototype {error.index} is not on the manifold: it {error.reason}")
    return points


def _is_read(manifold: AnyManifold, prototypes: Prototypes) -> bool:
    """Whether every triangle of square codes is read by ``decode``, zero, or the adjoint of the other one."""
    codes = np.asarray(prototypes)
    if codes.ndim < 3 or codes.shape[-2] != codes.shape[-1]:
        return True
    size = ROUNDING * np.abs(codes).max(axis=(-2, -1), keepdims=True)
    odd = (np.abs(codes - adjoint(codes)) > size).any(axis=(-2, -1))
    points = np.asarray(manifold.decode(prototypes)) if odd.any() else codes[..., 0]
    for half in (np.tril, np.triu) if points.shape == codes.shape else ():
        kept = new_codes(prototypes, half(codes))
        same = (points == np.asarray(manifold.decode(kept))).all(axis=(-2, -1))  # what is not read changes no bit
        if (same & odd & (np.abs(codes - half(codes)) > size).any(axis=(-2, -1))).any():
            return False
    return True


def _is_edge(points: Array) -> bool:
    """Whether points are matrices that are positive definite to rounding, as a fit that warned has them."""
    if points.ndim < 3 or points.shape[-2] != points.shape[-1]:
        return False
    points = points.reshape(-1, *points.shape[-2:])
    spectra = np.linalg.eigvalsh(hermitian_part(points))
    asymmetry = np.abs(points - adjoint(points)).max(axis=(1, 2))
    return bool((asymmetry <= ROUNDING * spectra[:, -1]).all() and (spectra[:, 0] >= -ROUNDING * spectra[:, -1]).all())


def _require(condition: object, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def probe_like(points: Array) -> Array:
    """Return one made-up input (1, ...) of the scale of points (K, ...): a positive definite matrix, or a vector.

    Entries of the matrix are ``3 s_i conj(s_j) / 2^|i - j|``. s_i is ``1 + i / n`` times the root of the mean of the
    points' i-th diagonal entry, so that the order of channels matters; if complex, it has the phase ``i^2``.
    """
    places = np.arange(points.shape[-1])
    if points.ndim < 3:
        return np.asarray(np.abs(points).mean(axis=0) * np.cos(places))[None]
    scale = np.sqrt(np.abs(np.diagonal(points, axis1=-2, axis2=-1)).mean(axis=0)) * (1.0 + places / len(places))
    if np.iscomplexobj(points):
        scale = scale * np.exp(1j * places**2)
    pattern = 3.0 * 0.5 ** np.abs(places[:, None] - places)
    return np.asarray(scale[..., :, None] * pattern * scale[..., None, :].conj())[None]


def answers_of_prototypes(model: BaseEstimator) -> list[Array]:
    """Return a probe, its squared distances to the prototypes in units of sigma2, and what ``partial_fit`` keeps.

    If the model fills missing channels, the probe without its last channel is a second one. What ``partial_fit`` keeps
    are samples and the memory of the step size. Where :func:`probe_like` makes no point, a prototype is the probe.
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


def answers_of(estimator: BaseEstimator) -> list[Array]:
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
