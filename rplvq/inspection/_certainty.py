"""How certain predictions are: accuracy by the share of labelled samples, calibration, and rejections in a stream."""

import copy
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import are_right, check_labels, index_labels, one_type, unmasked
from rplvq.costs import calibrated_loss
from rplvq.estimators import RiemannianLVQ
from rplvq.inspection._criteria import ORDINARY
from rplvq.inspection._rejection import RejectOption
from rplvq.parts import require_count
from rplvq.protocols import Array, ArrayLike


class Reliability(NamedTuple):
    """How often predictions with a certain probability are right.

    Parameters
    ----------
    probability, accuracy : ndarray of shape (M,)
        Mean of the largest probabilities, and share of right predictions, in each bin that holds samples.
    n_samples : ndarray of int of shape (M,)
        Number of samples in each bin.
    ece : float
        Expected calibration error: the mean of ``|accuracy - probability|``, weighted by ``n_samples``.
    log_loss : float
        Mean of minus the logarithm of the true class's probability, by :func:`sklearn.metrics.log_loss`.
    """

    probability: Array
    accuracy: Array
    n_samples: Array
    ece: float
    log_loss: float


def reliability(y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike, *, n_bins: int = 10) -> Reliability:
    """Compare the largest class probability with the share of right predictions, in bins of equal width.

    The expected calibration error over several classes is that of Guo, Pleiss, Sun and Weinberger 2017, "On calibration
    of modern neural networks". For two classes, scikit-learn's ``CalibrationDisplay`` draws the probability of one.
    ValueError is raised if shapes do not fit, or at the first value that is no probability.

    Parameters
    ----------
    y_true, proba : array-like of shape (N,), and (N, C)
        True labels, and class probabilities with columns in the order of ``classes``.
    classes : array-like of shape (C,)
        Labels, sorted.
    n_bins : int, default=10
        Number of bins between 0 and 1.

    Examples
    --------
    >>> result = reliability([0, 1, 1], [[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]], [0, 1])
    >>> result.accuracy.round(3), round(result.ece, 3)
    (array([0.667]), 0.233)
    """
    labels = np.asarray(classes)
    shares = np.asarray(unmasked(proba, "proba"), dtype=float)
    truth = index_labels(one_type(y_true, "y_true").ravel(), labels, "y_true")
    if shares.shape != (len(truth), len(labels)):
        raise ValueError(f"proba must have shape ({len(truth)}, {len(labels)}), got {shares.shape}")
    for row, column in np.argwhere(~((shares >= 0) & (shares <= 1 + 1e-6))):
        raise ValueError(f"proba[{row}, {column}] is {shares[row, column]}, which is no probability")
    require_count("n_bins", n_bins, 1)
    sure = shares.max(axis=1)
    right = shares.argmax(axis=1) == truth
    bins = np.minimum((sure * n_bins).astype(int), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    held = count > 0
    means = [np.bincount(bins, values, n_bins)[held] / count[held] for values in (sure, right.astype(float))]
    ece = float(np.average(np.abs(means[1] - means[0]), weights=count[held]))
    from sklearn.metrics import log_loss  # imported only where it is used, because it takes long

    return Reliability(means[0], means[1], count[held], ece, float(log_loss(truth, shares, labels=range(len(labels)))))


def calibrate_sigma2(model: RiemannianLVQ, X: ArrayLike, y: ArrayLike) -> RiemannianLVQ:
    """Return a copy of a classifier whose ``sigma2_`` is the likeliest for held-out samples.

    It minimises ``-sum log p(y | X)`` within a factor of 1e4 of the old one. Labels of nearest prototypes do not
    change. With one prototype per class this is temperature scaling of the logits ``-d / (2 sigma2)``, as
    scikit-learn's ``CalibratedClassifierCV`` does for any classifier.

    Parameters
    ----------
    model : RiemannianLVQ
        A fitted model; it is not changed.
    X, y : array-like of shape (N, n, n), and (N,)
        Samples that training has not seen, and their labels; ValueError is raised at the first that is unknown.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=40, random_state=0)
    >>> model = RiemannianLVQ(sigma2=20.0, step_size=0.1, max_epochs=5, random_state=0).fit(X[::2], y[::2])
    >>> again = calibrate_sigma2(model, X[1::2], y[1::2])
    >>> model.sigma2_, bool(again.sigma2_ < 2)
    (20.0, True)
    """
    check_is_fitted(model)
    model = copy.copy(model)
    if not hasattr(model, "trainer_"):
        raise ValueError(f"{type(model).__name__} has no sigma2_: pass the RiemannianLVQ in it, and the X that it sees")
    sqdist = np.asarray(model.transform(X))
    sqdist *= sqdist
    targets = check_labels(y, len(sqdist), np.unique(model.prototype_labels_))[1]
    model.sigma2_ = calibrated_loss(model.trainer_.cost, sqdist, targets, model.state_.labels, model.sigma2_)[1]
    return model


class AccuracyReject(NamedTuple):
    """The accuracy of the most certain predictions against their share of all samples.

    Parameters
    ----------
    coverage, accuracy : ndarray of shape (T,)
        Shares of samples, ascending to 1, one for each distinct certainty, and the accuracy of these predictions.
    area : float
        Area under the curve from 0 to 1, which is constant below the smallest share; 1 if every prediction is right.
    """

    coverage: Array
    accuracy: Array
    area: float

    def at(self, coverage: float) -> float:
        """Return the accuracy at a share of samples, or at the next larger share that occurs."""
        return float(self.accuracy[np.searchsorted(self.coverage, coverage - 1e-12)])  # shares are rounded quotients


def accuracy_reject_curve(y_true: ArrayLike, y_pred: ArrayLike, certainty: ArrayLike) -> AccuracyReject:
    """Compute the accuracy of the most certain predictions for every share (Nadeem, Zucker and Hanczar 2010).

    Samples of equal certainty are accepted together or not at all. ValueError is raised if lengths differ, there is no
    sample, or a certainty is not finite.

    Parameters
    ----------
    y_true, y_pred, certainty : array-like of shape (N,)
        True labels, predictions before rejection, and their certainty; a larger value means more certain.

    Examples
    --------
    >>> accuracy_reject_curve([0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.5, 0.8])
    AccuracyReject(coverage=array([0.25, 0.75, 1.  ]), accuracy=array([1.  , 1.  , 0.75]), area=0.96875)
    """
    predicted = one_type(y_pred, "y_pred")
    sure = np.asarray(unmasked(certainty, "certainty"), dtype=float)
    if predicted.ndim != 1 or not (len(predicted) == len(sure) == np.size(sure) == np.size(y_true) > 0):
        shapes = f"{np.shape(y_true)}, {np.shape(y_pred)} and {sure.shape}"
        raise ValueError(f"y_true, y_pred and certainty must have one shape (N,), got {shapes}")
    right = are_right(predicted, y_true, predicted, "y_true")
    for row in np.flatnonzero(~np.isfinite(sure)):
        raise ValueError(f"certainty[{row}] is {sure[row]}")
    order = np.argsort(-sure, kind="stable")
    last = np.append(np.flatnonzero(np.diff(sure[order])), len(sure) - 1)  # of each group of equal certainty
    coverage = (last + 1) / len(sure)
    accuracy = np.cumsum(right[order])[last] / (last + 1)
    from sklearn.metrics import auc

    area = auc(np.insert(coverage, 0, 0.0), np.insert(accuracy, 0, accuracy[0]))
    return AccuracyReject(coverage, accuracy, float(area))


class Watch(NamedTuple):
    """Shares of samples in W windows of a stream, and those that held-out samples promised.

    Parameters
    ----------
    ends, rejected, novel : ndarray of shape (W,)
        Number of samples up to the end of each window, and its shares without a label, and beyond their limit.
    promised_rejected, promised_novel : float
        The shares to expect: 1 - coverage, NaN if the option was given a threshold instead; and 0.05.
    """

    ends: Array
    rejected: Array
    novel: Array
    promised_rejected: float
    promised_novel: float


def watch(option: RejectOption, X: ArrayLike, window: int = 50, **params: object) -> Watch:
    """Compare the shares of rejected and of novel samples of a stream with what held-out samples promised.

    Both need no labels. If the data stay as they were in training, the share of a window differs from a promised share
    p by about ``sqrt(p (1 - p) / window)``. Larger shares, window after window, say that the data have drifted.

    Parameters
    ----------
    option : RejectOption
        Fitted, with limits of distances: its criterion is "combined" or "distance"; ValueError is raised otherwise.
    X : array-like of shape (N, ...)
        Samples in their order, at least ``window``. After a pipeline, pass ``pipeline[:-1].transform(X)``.
    window : int, default=50
        Number of samples per window; those after the last whole window are left out.
    **params
        Metadata, as for :meth:`rplvq.RejectOption.predict`.

    Examples
    --------
    >>> from rplvq import RejectOption, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.inspection import watch
    >>> X, y = make_syn1(n_per_class=30, random_state=0)
    >>> option = RejectOption(RiemannianLVQ(max_epochs=0), coverage=0.9).fit(X[::2], y[::2])
    >>> stream = X[1::2].copy()
    >>> stream[30:] *= 5.0  # an amplifier has changed
    >>> seen = watch(option, stream, window=30)
    >>> seen.promised_novel, seen.novel.round(2)
    (0.05, array([0.03, 1.  ]))
    """
    require_count("window", window, 1)
    novel = option.score_samples(X, **params).ravel() < -1
    rejected = option.certainty(X, **params).ravel() < option.threshold_
    n_windows = len(novel) // window
    if n_windows == 0:
        raise ValueError(f"X holds {len(novel)} samples, fewer than window={window}: lower window")
    ends = window * np.arange(1, n_windows + 1)
    lost, far = (part[: ends[-1]].reshape(-1, window).mean(axis=1) for part in (rejected, novel))
    promised = np.nan if option.coverage is None else 1 - option.coverage
    return Watch(ends, lost, far, promised, round(1 - ORDINARY, 12))  # 0.05, and not 0.05000000000000004
