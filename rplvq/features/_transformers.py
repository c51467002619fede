"""Reads trials, from arrays and from MNE's Epochs, and makes transformers of the functions for trials and images."""

import warnings
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import MatrixTransformer, as_number_array, require_finite
from rplvq.protocols import Array

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check X and the parameters, and remember the channels; ValueError as for the function."""
        self.fit_transform(X, y)  # only the function knows whether X and the parameters fit each other
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Do fit and transform; return the matrices (N, ...)."""
        signals = self._read(X)
        matrices: Array = self._function(signals.values, **self.get_params(deep=False))
        self.n_features_in_ = len(signals.power)
        self.n_features_out_ = matrices.shape[-1]
        self.power_ = signals.power
        self.__dict__.pop("feature_names_in_", None)  # those of an earlier fit to Epochs
        if signals.names is not None:
            self.feature_names_in_ = signals.names
        return matrices

    def transform(self, X: Any) -> Array:
        """Return the matrices (N, ...) of X; raise ValueError as the function does, or if the channels differ from fit.

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
