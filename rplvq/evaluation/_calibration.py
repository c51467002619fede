"""Probabilities that mean what they say: how far they are off, and sigma2 fitted to held-out data."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import log_loss
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import index_labels
from rplvq.costs import calibrated_loss
from rplvq.protocols import Array

__all__ = ["Reliability", "calibrate_sigma2", "reliability"]


class Reliability(NamedTuple):
    """How often predictions of a certain probability are right.

    Parameters
    ----------
    probability, accuracy : ndarray of shape (M,)
        Mean largest probability, and share of right predictions, of each bin that holds samples.
    n_samples : ndarray of int of shape (M,)
        Samples of each bin.
    ece : float
        Expected calibration error: mean of ``|accuracy - probability|``, weighted by ``n_samples``.
    log_loss : float
        Mean of minus the logarithm of the true class's probability, by :func:`sklearn.metrics.log_loss`.
    """

    probability: Array
    accuracy: Array
    n_samples: Array
    ece: float
    log_loss: float


def reliability(y_true: Any, proba: Any, classes: Any, *, n_bins: int = 10) -> Reliability:
    """Compare the largest class probability with the share of right predictions, in bins of equal width.

    (Guo, Pleiss, Sun and Weinberger 2017, "On calibration of modern neural networks", for the expected calibration
    error over several classes. For two classes scikit-learn's ``CalibrationDisplay`` draws one class's probability.)

    Parameters
    ----------
    y_true : array-like of shape (N,)
        True labels.
    proba : array-like of shape (N, C)
        Class probabilities, columns in the order of ``classes``.
    classes : array-like of shape (C,)
        Labels, sorted.
    n_bins : int, default=10
        Bins between 0 and 1.

    Returns
    -------
    Reliability

    Raises
    ------
    ValueError
        If shapes do not fit, or ``n_bins`` is not positive.

    Examples
    --------
    >>> found = reliability([0, 1, 1], [[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]], [0, 1])
    >>> found.accuracy.round(3), round(found.ece, 3)
    (array([0.667]), 0.233)
    """
    truth, shares, labels = np.asarray(y_true), np.asarray(proba, dtype=float), np.asarray(classes)
    if shares.shape != (len(truth), len(labels)):
        raise ValueError(f"proba must have shape ({len(truth)}, {len(labels)}), got {shares.shape}")
    if isinstance(n_bins, bool) or n_bins < 1:
        raise ValueError(f"n_bins must be a positive integer, got {n_bins!r}")
    sure, right = shares.max(axis=1), labels[shares.argmax(axis=1)] == truth
    bins = np.minimum((sure * n_bins).astype(int), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    held = count > 0
    means = [np.bincount(bins, values, n_bins)[held] / count[held] for values in (sure, right.astype(float))]
    ece = float(np.average(np.abs(means[1] - means[0]), weights=count[held]))
    return Reliability(means[0], means[1], count[held], ece, float(log_loss(truth, shares, labels=labels)))


def calibrate_sigma2(model: Any, X: Any, y: Any) -> Any:
    """Set the sigma2 of a fitted classifier's probabilities by the likelihood of held-out data.

    Prototypes and labels predicted by the nearest prototype stay as they are. With one prototype a class this is
    temperature scaling: the logits are ``-d / (2 sigma2)``, and scikit-learn's (from 1.8)
    ``CalibratedClassifierCV(FrozenEstimator(model), method="temperature", ensemble=False)`` gives the same
    probabilities. With several a class it differs, since sigma2 then also weighs the prototypes of a class. Other
    classifiers, and cross-validation, are for scikit-learn's.

    Parameters
    ----------
    model : RiemannianLVQ
        Fitted; not changed.
    X : array-like of shape (N, n, n)
        Samples that training has not seen.
    y : array-like of shape (N,)
        Their labels.

    Returns
    -------
    RiemannianLVQ
        A copy whose ``sigma2_`` minimises ``-sum log p(y | X)`` within a factor of 1e4 of the old one.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    ValueError
        At invalid samples, or the first label that is not one of ``classes_``.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=40, random_state=0)
    >>> model = RiemannianLVQ(sigma2=20.0, max_epochs=5, random_state=0).fit(X[::2], y[::2])
    >>> again = calibrate_sigma2(model, X[1::2], y[1::2])
    >>> model.sigma2_, bool(again.sigma2_ < 2)
    (20.0, True)
    """
    check_is_fitted(model)
    targets = index_labels(y, np.unique(model.prototype_labels_), "y")
    sqdist = np.asarray(model.transform(X))
    sqdist *= sqdist
    if len(targets) != len(sqdist):
        raise ValueError(f"y has {len(targets)} labels for {len(sqdist)} samples of X")
    _, sigma2 = calibrated_loss(model.trainer_.cost, sqdist, targets, model.state_.labels, model.sigma2_)
    found = copy.copy(model)
    found.sigma2_ = sigma2
    return found
