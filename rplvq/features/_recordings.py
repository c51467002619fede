"""Reads trials, from arrays and from MNE's Epochs, and makes transformers of functions of trials."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import MatrixTransformer, as_number_array, require_finite
from rplvq.protocols import Array

UNITS = 6.0
"""Orders of magnitude between the power of trials and of those in fit that suggest another unit."""
ADVICE = {2: "a single trial is passed as X[None]", 4: "bands and the like have one step each: pass X[:, k]"}


class Recording(Protocol):
    """What is used of MNE's Epochs."""

    ch_names: Sequence[str]

    def get_data(self) -> Array:
        """Return the trials (n_trials, n_channels, n_times)."""


class Trials(NamedTuple):
    """Trials as finite numbers (N, n_channels, n_samples), and the names of the channels, or None."""

    signals: Array
    names: Array | None


def read_trials(X: Any) -> Trials:
    """Return trials from an array-like, from Epochs, or from a list of Epochs, as cross-validation takes rows of them.

    Raises
    ------
    ValueError
        If X does not have three axes, has no trials or no channels, or has NaN or infinity.
    """
    recordings = _recordings_in(X)
    names = np.array(recordings[0].ch_names) if recordings else None
    points = np.concatenate([recording.get_data() for recording in recordings]) if recordings else X
    signals = as_number_array(points, 3, "(n_trials, n_channels, n_samples)", ADVICE)
    if signals.shape[1] == 0:
        raise ValueError(f"X must hold at least one channel, got shape {signals.shape}")
    require_finite(signals)
    return Trials(signals.astype(complex if np.iscomplexobj(signals) else float, copy=False), names)


def _recordings_in(X: Any) -> list[Recording]:
    """Return the objects with channels and data that X is or holds; an empty list for arrays."""
    items = X if isinstance(X, list) else [X]
    return items if items and all(hasattr(item, "get_data") and hasattr(item, "ch_names") for item in items) else []


class TrialTransformer(MatrixTransformer):
    """Base of transformers that call a function of trials with their own parameters."""

    _function: ClassVar[Callable[..., Array]]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check trials X (n_trials, n_channels, n_samples) and the parameters; remember channels and their power.

        Raises
        ------
        ValueError
            As for the function; nothing is changed then.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Do fit and transform with trials X; return the matrices (n_trials, ...)."""
        trials = read_trials(X)
        matrices = self._function(trials.signals, **self.get_params(deep=False))
        self.n_features_in_ = trials.signals.shape[1]
        self.power_ = _power(trials.signals)
        if trials.names is not None:
            self.feature_names_in_ = trials.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return matrices

    def transform(self, X: Any) -> Array:
        """Return the matrices (n_trials, ...) of trials X.

        Raises
        ------
        NotFittedError, ValueError
            Before fit, as for the function, or if the channels are not those of fit.

        Warns
        -----
        UserWarning
            If most channels have a million times more or less power than in fit, as in another unit.
        """
        check_is_fitted(self)
        trials = read_trials(X)
        self._check_channels(trials)
        _warn_of_units(_power(trials.signals), self.power_)
        return self._function(trials.signals, **self.get_params(deep=False))

    def _check_channels(self, trials: Trials) -> None:
        known = getattr(self, "feature_names_in_", None)
        if known is not None and trials.names is not None and trials.names.tolist() != known.tolist():
            raise ValueError(
                f"X has the channels {trials.names.tolist()}, but fit was given {known.tolist()}: "
                "pick them, in this order, by X.reorder_channels"
            )
        if trials.signals.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {trials.signals.shape[1]} channels, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )


def _power(signals: Array) -> Array:
    """Return the mean square (n,) of each channel of signals (N, n, l)."""
    return cast(Array, np.mean(np.abs(signals) ** 2, axis=(0, 2)))


def _warn_of_units(power: Array, known: Array) -> None:
    """Warn if the power of most channels (n,) differs from the known power (n,) as in another unit."""
    there = (power > 0) & (known > 0)
    if not there.any():
        return
    ratio = float(np.median(np.log10(power[there]) - np.log10(known[there])))
    if abs(ratio) > UNITS:
        warnings.warn(
            f"X has 1e{ratio:+.0f} times the power of the trials in fit, as in another unit: "
            "bring all recordings to one unit, such as volts",
            UserWarning,
            stacklevel=3,
        )
