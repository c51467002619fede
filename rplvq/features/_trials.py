"""Covariance matrices of trials of multichannel time series, and the base of all transformers of features."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import MatrixTransformer, as_number_array, check_hermitian, require_finite, single_blas_thread
from rplvq.features._covariances import STRENGTHS, effective_size, second_moments, shrunk, strength_of
from rplvq.parts import by_plain_name, library_estimator
from rplvq.protocols import Array, ArrayLike

Shrinkage: TypeAlias = float | Literal["ledoit_wolf", "oas"]  # weight of the scaled identity, or its estimator
Estimator: TypeAlias = Literal["scm", "correlation", "lwf", "oas"] | Callable[[Array], ArrayLike]
"""Name of an estimator, or a function of one trial (n_channels, n_samples) that returns its matrix."""
PLAIN = ("scm", "correlation", "corr")
ESTIMATORS = dict.fromkeys(PLAIN, 0.0) | {"lwf": "ledoit_wolf", "ledoit_wolf": "ledoit_wolf", "oas": "oas"}
"""Names of estimators, which are also those of pyRiemann, and the shrinkage that they stand for."""
UNITS = 4.5  # orders of magnitude between the power of signals and of those in fit that suggest another unit
REORDER = "bring them into this order by epochs.reorder_channels"
ADVICE = {4: "several bands have one step each: pass X[:, k]"}


class Signals(NamedTuple):
    """Trials (N, n, l) or images, the mean square (n,) of each channel, and the names of the channels, or None."""

    values: Array
    power: Array
    names: Array | None = None


def read_trials(X: Any) -> Signals:
    """Return finite trials from an array-like, from Epochs, or from a list of Epochs, into which folds divide them."""
    items = X if isinstance(X, list) else [X]
    are_epochs = items and all(hasattr(item, "get_data") and hasattr(item, "ch_names") for item in items)
    recordings = items if are_epochs else []  # of which the names of the channels and the trials are used
    for k, recording in enumerate(recordings):
        if list(recording.ch_names) != list(recordings[0].ch_names):
            both = f"{list(recording.ch_names)}, but X[0] has {list(recordings[0].ch_names)}"
            raise ValueError(f"X[{k}] has the channels {both}: {REORDER}")
    points = np.concatenate([recording.get_data() for recording in recordings]) if recordings else X
    values = as_number_array(points, 3, "(n_trials, n_channels, n_samples)", ADVICE)
    if values.shape[1] == 0:
        raise ValueError(f"X must hold at least one channel, got shape {values.shape}")
    require_finite(values)
    values = values.astype(complex if np.iscomplexobj(values) else float, copy=False)
    names = np.array(recordings[0].ch_names) if recordings else None
    with np.errstate(under="ignore"):
        return Signals(values, np.mean(np.abs(values) ** 2, axis=(0, 2)), names)


class FeatureTransformer(MatrixTransformer):
    """Base of transformers that call a function of features with their own parameters."""

    _function: ClassVar[Any]  # static, which the type of a callable cannot say
    _read: ClassVar[Any] = staticmethod(read_trials)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Check X and the parameters, remember the channels, and return self; ValueError as for the function."""
        self.fit_transform(X, y)  # only the function knows whether X and the parameters fit each other
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> Array:
        """Fit to trials or images X, and return their matrices (N, ..., n, n); errors as in :meth:`fit`."""
        signals = self._read(X)
        matrices: Array = self._function(signals.values, **self.get_params(deep=False))
        self.n_features_in_ = len(signals.power)
        self.n_features_out_ = matrices.shape[-1]
        self.power_ = signals.power
        self.__dict__.pop("feature_names_in_", None)  # those of an earlier fit to Epochs
        if signals.names is not None:
            self.feature_names_in_ = signals.names
        return matrices

    def transform(self, X: ArrayLike) -> Array:
        """Return the matrices (N, ..., n, n) of X; raise ValueError as fit does, or if the channels differ from fit.

        A UserWarning is given if most channels have far more or less power than in fit, as in another unit.
        """
        check_is_fitted(self)
        signals = self._read(X)
        if len(signals.power) != self.n_features_in_:
            names = f"{len(signals.power)} features, but {type(self).__name__} is expecting {self.n_features_in_}"
            raise ValueError(f"X has {names} features as input: pass the channels of fit")
        known = getattr(self, "feature_names_in_", None)
        if known is not None and signals.names is not None and signals.names.tolist() != known.tolist():
            names = f"channels {signals.names.tolist()}, but fit was given {known.tolist()}"
            raise ValueError(f"X has the {names}: {REORDER}")
        there = (signals.power > 0) & (self.power_ > 0)  # flat channels have no order of magnitude
        orders = np.log10(signals.power[there]) - np.log10(self.power_[there])
        if there.any() and abs(typical := float(np.median(orders))) > UNITS:
            advice = f"X has 1e{typical:+.0f} times the power of X in fit, as in another unit: bring both to one unit"
            warnings.warn(advice, UserWarning, stacklevel=2)
        matrices: Array = self._function(signals.values, **self.get_params(deep=False))
        return matrices


def trial_covariances(
    X: ArrayLike, *, estimator: Estimator = "scm", center: bool = False, shrinkage: Shrinkage = 0.0
) -> Array:
    r"""Compute the covariance matrix of every trial of a multichannel time series.

    Parameters
    ----------
    X : array-like of shape (N, n_channels, n_samples)
        N trials, real or complex, in any unit u (EEG: volts or microvolts), or MNE's Epochs.
    estimator : {"scm", "correlation", "lwf", "oas"} or callable, default="scm"
        "scm" is the sample covariance below, and "correlation" that of channels which are divided by their standard
        deviation in the trial. "lwf" and "oas" are pyRiemann's names of a shrinkage. A callable gets one trial
        (n_channels, n_samples) and returns its matrix.
    center : bool, default=False
        Whether to subtract each channel's mean over the trial, which is negligible for band-passed signals. Other
        recordings have offsets, which can be larger than the signals.
    shrinkage : float in [0, 1], "ledoit_wolf" or "oas", default=0.0
        Weight s of the scaled identity in ``(1 - s) C + s tr(C) / n I``. The names estimate s for each trial, as
        scikit-learn does, for complex signals too: "ledoit_wolf" (Ledoit and Wolf 2004,
        doi:10.1016/S0047-259X(03)00096-4), and "oas" (Chen et al. 2010, doi:10.1109/TSP.2010.2053029), which assumes
        that signals are Gaussian, and complex ones circular.

    Returns
    -------
    ndarray of shape (N, n_channels, n_channels)
        ``C = E E^H / (n_samples - 1)`` of each trial E, in u^2, with the paper's divisor, whether ``center`` or not;
        float64, or complex128 if X is complex.

    Raises
    ------
    ValueError
        If X does not have three axes, is empty or holds a value that is NaN or infinite, if shrinkage is outside
        [0, 1], if trials have fewer than two samples, or if a callable returns no Hermitian matrices. A UserWarning
        says that the means of a channel carry more than half of its power and ``center`` is False, or that shrinkage
        mixes units, as for :func:`shrink`.

    Notes
    -----
    C is singular if a trial has fewer samples than channels, or as many with ``center=True``. It is also singular if a
    channel is flat or if the channels have an average reference: :class:`CommonSubspace` drops the lost directions, and
    a small shrinkage always repairs C.

    Examples
    --------
    >>> from rplvq.features import trial_covariances
    >>> trial_covariances([[[1.0, -1.0, 1.0], [1.0, 1.0, 0.0]]])
    array([[[1.5, 0. ],
            [0. , 1. ]]])
    """
    signals = read_trials(X).values
    own, strength = _check_options(estimator, shrinkage)
    n_channels, n_samples = signals.shape[1:]
    if n_samples < 2:
        raise ValueError(f"X must hold at least 2 samples a trial for a covariance, got shape {signals.shape}")
    with single_blas_thread(effective_size(n_channels, n_samples)):
        if center:
            signals = signals - signals.mean(axis=2, keepdims=True)
        else:
            _warn_of_means(signals)
        if callable(own):
            try:
                matrices = check_hermitian([own(trial) for trial in signals])
            except ValueError as error:
                raise ValueError(f"estimator returned no symmetric matrices of one size: {error}") from error
        else:
            if own:
                deviations = np.sqrt(np.sum(np.abs(signals) ** 2, axis=2, keepdims=True) / (n_samples - 1))
                signals = signals / np.where(deviations > 0, deviations, 1.0)
            matrices = second_moments(signals, n_samples - 1)
        shares = np.full(len(matrices), strength) if isinstance(strength, float) else strength(signals)
    return shrunk(matrices, shares)


def _check_options(
    estimator: Estimator, shrinkage: float | str
) -> tuple[bool | Callable[[Array], Any], float | Callable[[Array], Array]]:
    """Return a callable, or whether to standardise signals, and the shrinkage as a number or a function of signals."""
    if callable(estimator):
        return estimator, strength_of(shrinkage, " with an estimator of your own")
    implied = by_plain_name(str(estimator), ESTIMATORS, "estimator")
    if implied != 0.0:
        if shrinkage not in (0.0, implied):
            raise ValueError(f"estimator={estimator!r} estimates the shrinkage: leave out shrinkage={shrinkage!r}")
        shrinkage = implied
    strength = STRENGTHS.get(shrinkage) if isinstance(shrinkage, str) else None
    return estimator.lower().startswith("corr"), strength or strength_of(shrinkage, " or 'ledoit_wolf' or 'oas'")


def _warn_of_means(signals: Array) -> None:
    """Warn if in signals (N, n, l) of some channel the means over the trials have more than half of the power."""
    scale = np.abs(signals).max(axis=(0, 2), keepdims=True)
    relative = signals / np.where(scale > 0, scale, 1.0)  # because squares of small units underflow
    power = np.mean(np.abs(relative) ** 2, axis=(0, 2))
    shares = np.mean(np.abs(relative.mean(axis=2)) ** 2, axis=0) / np.where(power > 0, power, 1.0)
    many = shares > max(0.5, 5 / signals.shape[2])  # by chance the mean of l values has 1 / l of their power
    if many.any():
        worst = int(shares.argmax())
        what = f"in {np.sum(many)} of {len(shares)} channels ({100 * shares[worst]:.3g} % in channel {worst})"
        why = "so the matrices tell offsets and not signals apart: pass center=True, or filter the recording"
        warnings.warn(f"the means over the trials carry most of the power {what}, {why}", UserWarning, stacklevel=3)


@library_estimator()
class TrialCovariances(FeatureTransformer):
    """Transformer of trials to covariance matrices: :func:`trial_covariances` with its options as parameters.

    Parameters
    ----------
    estimator, center, shrinkage
        As for :func:`trial_covariances`.

    Attributes
    ----------
    feature_names_in_ : ndarray of str of shape (n_channels,)
        Names of the channels, if fit was given MNE's Epochs.
    power_ : ndarray of shape (n_channels,)
        Mean square of each channel in fit, by which trials in another unit are recognised.
    n_features_in_, n_features_out_ : int
        Number of channels, and size of the matrices.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from rplvq import RiemannianLVQ, TrialCovariances
    >>> trials = np.random.default_rng(0).standard_normal((40, 3, 60))
    >>> trials[::2, 0] *= 3
    >>> y = np.tile(["left", "right"], 20)
    >>> float(make_pipeline(TrialCovariances(shrinkage="oas"), RiemannianLVQ()).fit(trials, y).score(trials, y))
    1.0
    """

    _function = staticmethod(trial_covariances)

    def __init__(self, estimator: Estimator = "scm", *, center: bool = False, shrinkage: Shrinkage = 0.0) -> None:
        self.estimator = estimator
        self.center = center
        self.shrinkage = shrinkage
