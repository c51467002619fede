"""Classification with a reject option: answer where it is sure, and leave the rest to somebody else."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import auc
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import by_block
from rplvq.protocols import Array

__all__ = ["AccuracyReject", "RejectOption", "accuracy_reject_curve"]

CRITERIA = ("posterior", "relative_distance")
DEFAULTS: dict[str, Any] = {"number": -1, "text": "rejected", "bytes": b"rejected"}
"""Label of rejected samples, by the kind of the classes."""


class RejectOption(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier that refuses to answer where its certainty is below a threshold.

    Certainty by ``criterion``:

    - "posterior": the largest class probability (Chow 1970, "On optimum recognition error and reject tradeoff"); for
      any classifier with ``predict_proba``.
    - "relative_distance": ``(d- - d+) / (d- + d+)``, with d+ the squared distance to the nearest prototype and d- that
      to the nearest prototype of another class: 0 on the border, 1 at a prototype (Fischer, Hammer and Wersing 2015,
      "Efficient rejection strategies for prototype-based classification"); for :class:`rplvq.RiemannianLVQ`.

    Parameters
    ----------
    estimator : classifier
        Not changed; a clone is fitted.
    threshold : float, optional
        Certainty below which a sample is rejected. Give this or ``coverage``.
    coverage : float in (0, 1], optional
        Share of samples to answer. The threshold is then the quantile of the certainties that ``cv`` folds of the
        training data have when they are held out, so that it holds for new data; then the estimator is fitted
        on all. For data that drift between training and use the share drifts with them.
    criterion : {"posterior", "relative_distance"}, default="posterior"
        How certainty is measured.
    reject_label : optional
        Label of a rejected sample: by default -1 for numbers and "rejected" for strings; of the kind of the classes,
        and none of them.
    cv : int, default=5
        Folds for ``coverage``; stratified, in the order of the samples.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    threshold_ : float
        Certainty below which samples are rejected.
    reject_label_ : object
        Label of rejected samples.
    classes_ : ndarray of shape (C,)
        Labels of the classes, without that of rejection.

    Examples
    --------
    >>> from rplvq import RejectOption, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=30, random_state=0)
    >>> model = RejectOption(RiemannianLVQ(max_epochs=5, random_state=0), coverage=0.8).fit(X[::2], y[::2])
    >>> labels = model.predict(X[1::2])
    >>> kept = labels != -1
    >>> bool(kept.mean() < 1), bool((labels == y[1::2])[kept].mean() >= model.estimator_.score(X[1::2], y[1::2]))
    (True, True)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        threshold: float | None = None,
        coverage: float | None = None,
        criterion: str = "posterior",
        reject_label: Any = None,
        cv: int = 5,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.coverage = coverage
        self.criterion = criterion
        self.reject_label = reject_label
        self.cv = cv

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator, and find the threshold for a coverage.

        Parameters
        ----------
        X : array-like of shape (N, ...)
            Samples, as the estimator takes them.
        y : array-like of shape (N,)
            Labels.

        Returns
        -------
        self : RejectOption

        Raises
        ------
        ValueError
            If a parameter is invalid, the reject label is a class or of another kind than they are, or a class has
            fewer samples than ``cv``.
        """
        self._check_parameters()
        labels = np.asarray(y)
        reject_label = _reject_label(self.reject_label, np.unique(labels))
        threshold = self.threshold
        if threshold is None:
            threshold = self._threshold(X, labels)
        estimator = clone(self.estimator).fit(X, y)
        self.estimator_, self.threshold_, self.reject_label_ = estimator, float(threshold), reject_label
        self.classes_ = estimator.classes_
        return self

    def certainty(self, X: Any) -> Array:
        """Certainty of the prediction, by the criterion.

        Parameters
        ----------
        X : array-like of shape (N, ...)
            Samples.

        Returns
        -------
        ndarray of shape (N,)
            Larger is surer.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            At samples that the estimator refuses.
        """
        check_is_fitted(self)
        return _certainty(self.estimator_, X, self.criterion)

    def predict(self, X: Any) -> Array:
        """Predict labels; the reject label where certainty is below the threshold.

        Parameters
        ----------
        X : array-like of shape (N, ...)
            Samples.

        Returns
        -------
        ndarray of shape (N,)

        Raises
        ------
        NotFittedError, ValueError
            As certainty.
        """
        certainty = self.certainty(X)
        labels = np.asarray(self.estimator_.predict(X))
        rejected = np.asarray([self.reject_label_])
        result = labels.astype(np.result_type(labels, rejected) if labels.dtype != object else object)
        result[certainty < self.threshold_] = self.reject_label_
        return result

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of the estimator, shape (N, C), for rejected samples as well.

        Parameters
        ----------
        X : array-like of shape (N, ...)
            Samples.

        Returns
        -------
        ndarray of shape (N, C)

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            At a sample that the estimator refuses.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _check_parameters(self) -> None:
        if (self.threshold is None) == (self.coverage is None):
            raise ValueError(
                f"give threshold or coverage, not both or none: threshold={self.threshold}, coverage={self.coverage}"
            )
        if self.coverage is not None and (isinstance(self.coverage, bool) or not 0 < self.coverage <= 1):
            raise ValueError(f"coverage must be above 0 and at most 1, got {self.coverage!r}")
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold!r}")
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {CRITERIA}, got {self.criterion!r}")
        needed = "predict_proba" if self.criterion == "posterior" else "transform"
        if not hasattr(self.estimator, needed):
            raise ValueError(f"criterion={self.criterion!r} needs {needed}, which {self.estimator!r} has not")

    def _threshold(self, X: Any, labels: Array) -> float:
        """Quantile of the certainties of held-out folds."""
        (samples,) = indexable(X)
        if not issparse(samples):
            samples = np.asarray(samples)
        folds = StratifiedKFold(self.cv).split(np.zeros(len(labels)), labels)
        found = [
            _certainty(clone(self.estimator).fit(samples[train], labels[train]), samples[test], self.criterion)
            for train, test in folds
        ]
        # The value itself is kept, because certainty below the threshold, not at it, is rejected.
        return float(np.quantile(np.concatenate(found), 1 - float(self.coverage or 1.0), method="lower"))


def _reject_label(wanted: Any, classes: Array) -> Any:
    """Return the label of rejected samples, of the kind of the classes."""
    kind = _kind(classes)
    if wanted is None:
        if kind not in DEFAULTS:
            raise ValueError(f"give reject_label a value: labels of type {classes.dtype} have no default for it")
        wanted = DEFAULTS[kind]
    if wanted in classes.tolist():
        raise ValueError(f"reject_label={wanted!r} is one of the classes {classes.tolist()}: give it another value")
    # Numbers beside strings would turn every predicted label into a string, equal to no class any more.
    if kind in DEFAULTS and _kind(np.asarray([wanted])) != kind:
        raise ValueError(
            f"reject_label={wanted!r} is of another kind than the classes {classes.tolist()}: "
            f"give one like {DEFAULTS[kind]!r}"
        )
    return wanted


def _kind(labels: Array) -> str:
    """Kind of labels (C,): "number", "text" (also objects that are all strings), "bytes" or the name of their type."""
    if labels.dtype == object and all(isinstance(label, str) for label in labels.tolist()):
        return "text"
    kinds = {"i": "number", "u": "number", "f": "number", "U": "text", "S": "bytes"}
    return kinds.get(labels.dtype.kind, str(labels.dtype))


def _certainty(model: Any, X: Any, criterion: str) -> Array:
    if criterion == "posterior":
        return np.asarray(np.max(model.predict_proba(X), axis=1))
    labels = getattr(model, "prototype_labels_", None)
    if labels is None:
        raise ValueError(f"criterion='relative_distance' needs prototypes with labels, which {model!r} has not")
    return by_block(lambda part: _relative_distance(part, np.asarray(labels)), np.asarray(model.transform(X)))


def _relative_distance(distances: Array, labels: Array) -> Array:
    """Share of the border distance (M,) that samples are away from it, by distances (M, K) and labels (K,)."""
    sqdist = distances**2
    nearest = sqdist.argmin(axis=1)
    same = labels[None, :] == labels[nearest][:, None]
    first = sqdist[np.arange(len(sqdist)), nearest]
    other = np.where(same, np.inf, sqdist).min(axis=1)
    total = first + other
    return np.asarray(np.where(total > 0, (other - first) / np.where(total > 0, total, 1.0), 0.0))


class AccuracyReject(NamedTuple):
    """Accuracy of the answers against the share of samples that are answered.

    Parameters
    ----------
    coverage : ndarray of shape (T,)
        Shares answered, ascending to 1; one for each distinct certainty.
    accuracy : ndarray of shape (T,)
        Accuracy of those answers.
    area : float
        Area under the curve from 0 to 1: 1 if every answer is right; the curve starts level.
    """

    coverage: Array
    accuracy: Array
    area: float

    def at(self, coverage: float) -> float:
        """Accuracy at a share of answers, from the next larger one that can be reached."""
        return float(self.accuracy[np.searchsorted(self.coverage, coverage - 1e-12)])


def accuracy_reject_curve(y_true: Any, y_pred: Any, certainty: Any) -> AccuracyReject:
    """Accuracy of the most certain answers, for every share of answers (Nadeem, Zucker and Hanczar 2010).

    Samples of equal certainty are answered together or not at all.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (N,)
        True labels and predictions, before rejection.
    certainty : array-like of shape (N,)
        Larger is surer; finite.

    Returns
    -------
    AccuracyReject
        Coverage, accuracy, area under the curve.

    Raises
    ------
    ValueError
        If lengths differ, there is no sample, or a certainty is not finite.

    Examples
    --------
    >>> accuracy_reject_curve([0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.5, 0.8])
    AccuracyReject(coverage=array([0.25, 0.75, 1.  ]), accuracy=array([1.  , 1.  , 0.75]), area=0.96875)
    """
    right, sure = np.asarray(y_true) == np.asarray(y_pred), np.asarray(certainty, dtype=float)
    if right.ndim != 1 or right.shape != sure.shape or not len(sure):
        raise ValueError(
            f"y_true, y_pred and certainty must have one shape (N,), got {np.shape(y_true)}, {np.shape(y_pred)} and "
            f"{sure.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(sure))
    if len(bad):
        raise ValueError(f"certainty[{bad[0]}] is {sure[bad[0]]}")
    order = np.argsort(-sure, kind="stable")
    last = np.append(np.flatnonzero(np.diff(sure[order])), len(sure) - 1)  # of each group of equal certainty
    answered = last + 1
    coverage, accuracy = answered / len(sure), np.cumsum(right[order])[last] / answered
    area = float(auc(np.insert(coverage, 0, 0.0), np.insert(accuracy, 0, accuracy[0])))
    return AccuracyReject(coverage, accuracy, area)
