"""Covariance matrices of trials in several bands of frequencies, and of trials together with their delayed copies."""

from collections.abc import Sequence

import numpy as np

from rplvq.features._trials import FeatureTransformer, Shrinkage, read_trials, trial_covariances
from rplvq.parts import library_estimator, require_count, require_number
from rplvq.protocols import Array, ArrayLike


def filter_bank_covariances(
    trials: ArrayLike,
    sfreq: float,
    bands: Sequence[tuple[float, float]],
    *,
    order: int = 4,
    zero_phase: bool = True,
    center: bool = False,
    shrinkage: Shrinkage = 0.0,
) -> Array:
    """Compute the covariance matrix of every trial in each of several bands of frequencies.

    The result is ready for a :class:`rplvq.Product` of F manifolds, which weights the bands. ValueError is raised if an
    argument is invalid, or if the trials are too short for the filters.

    Parameters
    ----------
    trials : array-like of shape (N, n_channels, n_samples)
        As for :func:`trial_covariances`. Filters need time to settle: cut trials with a margin, or filter before.
    sfreq : float
        Sampling frequency in Hz.
    bands : sequence of F (low, high)
        Edges of each band in Hz, where the power is halved, ``0 < low < high < sfreq / 2``.
    order : int, default=4
        Order of the Butterworth filters.
    zero_phase : bool, default=True
        Whether to filter forwards and backwards (:func:`scipy.signal.sosfiltfilt`), which doubles the attenuation and
        delays nothing. False filters forwards only, as a stream must.
    center, shrinkage
        As for :func:`trial_covariances`.

    Returns
    -------
    ndarray of shape (N, F, n_channels, n_channels)
        Covariances in the squared unit of the trials; float64, or complex128 for complex trials.

    Examples
    --------
    >>> from rplvq.features import filter_bank_covariances
    >>> time = np.arange(256) / 128
    >>> trials = np.array([[np.sin(2 * np.pi * 10 * time)], [np.sin(2 * np.pi * 20 * time)]])
    >>> X = filter_bank_covariances(trials, 128, bands=[(8, 12), (16, 24)])
    >>> (X[:, 0] > 10 * X[:, 1]).ravel()  # the power of the first trial is in the first band
    array([ True, False])
    """
    from scipy import signal  # slow to import, and needed here only

    signals = read_trials(trials).values
    require_count("order", order, 1)
    require_number("sfreq", sfreq, finite=True)
    if len(bands) == 0:
        raise ValueError("bands must hold at least one pair (low, high), got none")
    for index, band in enumerate(bands):
        if np.shape(band) != (2,) or not 0 < band[0] < band[1] < sfreq / 2:
            raise ValueError(f"bands[{index}] must be (low, high) with 0 < low < high < {sfreq / 2:g} Hz, got {band!r}")
    function = signal.sosfiltfilt if zero_phase else signal.sosfilt
    matrices = []
    for band in bands:
        # Second-order sections: the polynomials of narrow bands lose all digits.
        sections = signal.butter(order, band, btype="bandpass", output="sos", fs=sfreq)
        try:
            filtered = function(sections, signals, axis=-1)
        except ValueError as error:
            raise ValueError(f"trials of {signals.shape[2]} samples are too short for the filters: {error}") from error
        matrices.append(trial_covariances(filtered, center=center, shrinkage=shrinkage))
    return np.stack(matrices, axis=1)


def augmented_covariances(
    trials: ArrayLike, order: int = 4, lag: int = 1, *, center: bool = False, shrinkage: Shrinkage = 0.0
) -> Array:
    """Compute the augmented covariance matrix of every trial: that of its channels and their delayed copies.

    The delays embed the dynamics of the signals (Carrara and Papadopoulo 2024, doi:10.1088/1741-2552/ad3b6b).
    ``order`` and ``lag`` are those of MOABB's ``AugmentedDataset``, which cuts ``lag`` samples more. ValueError is
    raised if an argument is invalid, or if the trials are too short for the delays.

    Parameters
    ----------
    trials, center, shrinkage
        As for :func:`trial_covariances`. Copies of smooth signals are nearly equal, so that some shrinkage is usual.
    order : int, default=4
        Number of copies, of which the first has no delay; 1 gives :func:`trial_covariances`.
    lag : int, default=1
        Delay from one copy to the next, in samples.

    Returns
    -------
    ndarray of shape (N, order n_channels, order n_channels)
        Covariances as those of :func:`trial_covariances`. The rows of copy p begin at ``p n_channels``.

    Examples
    --------
    >>> from rplvq.features import augmented_covariances
    >>> augmented_covariances([[[1.0, -1.0, 1.0, 1.0]]], order=2)
    array([[[ 1.5, -0.5],
            [-0.5,  1.5]]])
    """
    signals = read_trials(trials).values
    require_count("order", order, 1)
    require_count("lag", lag, 1)
    length = signals.shape[2] - (order - 1) * lag
    if length < 2:
        raise ValueError(f"trials of {signals.shape[2]} samples are too short for order={order} and lag={lag}")
    copies = [signals[..., p * lag : p * lag + length] for p in range(order)]
    return trial_covariances(np.concatenate(copies, axis=1), center=center, shrinkage=shrinkage)


@library_estimator()
class FilterBankCovariances(FeatureTransformer):
    """Transformer of trials to matrices per band: :func:`filter_bank_covariances` with its options as parameters.

    Parameters
    ----------
    sfreq, bands, order, zero_phase, center, shrinkage
        As for :func:`filter_bank_covariances`. The attributes are those of :class:`TrialCovariances`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from rplvq import LogEuclidean, Product, RiemannianLVQ
    >>> from rplvq.features import FilterBankCovariances
    >>> bank = FilterBankCovariances(sfreq=128, bands=[(8, 12), (16, 24)])
    >>> model = make_pipeline(bank, RiemannianLVQ(Product([LogEuclidean(), LogEuclidean()])))
    >>> trials = np.sin(2 * np.pi * np.array([[[10.0]], [[20.0]]]) * np.arange(256) / 128)
    >>> model.fit(trials, ["alpha", "beta"]).predict(2 * trials).tolist()
    ['alpha', 'beta']
    """

    _function = staticmethod(filter_bank_covariances)

    def __init__(
        self,
        sfreq: float,
        bands: Sequence[tuple[float, float]],
        *,
        order: int = 4,
        zero_phase: bool = True,
        center: bool = False,
        shrinkage: Shrinkage = 0.0,
    ) -> None:
        self.sfreq = sfreq
        self.bands = bands
        self.order = order
        self.zero_phase = zero_phase
        self.center = center
        self.shrinkage = shrinkage


@library_estimator()
class AugmentedCovariances(FeatureTransformer):
    """Transformer of trials to augmented matrices: :func:`augmented_covariances` with its options as parameters.

    Parameters
    ----------
    order, lag, center, shrinkage
        As for :func:`augmented_covariances`. The attributes are those of :class:`TrialCovariances`.

    Examples
    --------
    >>> from rplvq.features import AugmentedCovariances
    >>> step = AugmentedCovariances(order=2).fit([[[1.0, -1.0, 1.0, 1.0], [0.0, 2.0, -1.0, 0.0]]])
    >>> step.get_feature_names_out(["C3", "C4"]).tolist()
    ['C3_lag0', 'C4_lag0', 'C3_lag1', 'C4_lag1']
    """

    _function = staticmethod(augmented_covariances)

    def __init__(self, order: int = 4, lag: int = 1, *, center: bool = False, shrinkage: Shrinkage = 0.0) -> None:
        self.order = order
        self.lag = lag
        self.center = center
        self.shrinkage = shrinkage

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the rows of a matrix: the channel and its delay in samples."""
        names = super().get_feature_names_out(input_features)
        return np.array([f"{name}_lag{copy * self.lag}" for copy in range(self.order) for name in names], dtype=object)
