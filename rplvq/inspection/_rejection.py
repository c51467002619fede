"""Classification with a reject option: samples whose label is too uncertain get none."""

import copy
import os
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Bunch, Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import accuracy, as_rows, check_labels, check_weights, hard_targets, number_groups, same_type
from rplvq.exceptions import interrupts_raised
from rplvq.inspection._criteria import CRITERIA, FAR, CriterionName, held_out_folds, learn_limits, prototype_labels, see
from rplvq.io import load_model, save_model
from rplvq.parts import library_estimator, require_count
from rplvq.protocols import Array, ArrayLike

DEFAULTS: dict[str, object] = {"i": -1, "u": -1, "f": -1, "U": "rejected", "S": b"rejected"}
"""Label of rejected samples, by the kind of dtype of the classes."""


def _require_limits(option: "RejectOption") -> None:
    """Raise ValueError unless a fitted option fits the classes of its estimator."""
    classes = option.classes_
    limits = option.limits_
    same = np.array_equal(classes, option.estimator_.classes_) and option.reject_label_ not in classes.tolist()
    if not same or option.criterion_ not in CRITERIA or np.isnan(option.threshold_):
        raise ValueError(f"its reject option does not fit the classes {option.estimator_.classes_}")
    if limits is not None:
        fits = limits.classes.shape == limits.sqdist.shape and np.isin(limits.classes, classes).all()
        sorts = (limits.classes[1:] > limits.classes[:-1]).all()
        if not (fits and sorts and (limits.sqdist > 0).all() and limits.other > 0):
            raise ValueError(f"the limits of its reject option are {limits}")


def _answers(option: BaseEstimator) -> list[Array]:
    """Return the threshold, and how far the distance 1 is from a prototype of each class, and of a later one."""
    limits = option.limits_
    threshold = np.array([option.threshold_])
    return [threshold] if limits is None else [threshold, limits.relative(1.0, limits.classes), 1.0 / limits.other]


@library_estimator(_require_limits, answers=_answers)
class RejectOption(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier that gives no label to samples whose certainty is below a threshold.

    A sample may lie between classes, or far from all that the classifier knows, as artefacts and new classes do, where
    class probabilities are near 1 and say nothing. The certainty depends on ``criterion``:

    - "combined" is the smaller of the largest class probability and the familiarity, which is 1 up to the limit of the
      distance d to the nearest prototype, and beyond ``(limit / d)^log2(C)`` for C classes. Within the limit of its
      class are 95 % of held-out samples.
    - "distance" is minus the squared distance to the nearest prototype in units of the limit, see
      :meth:`score_samples`.
    - "posterior" is the largest class probability (Chow 1970, "On optimum recognition error and reject tradeoff"), for
      any classifier with ``predict_proba``.
    - "relative_distance" is ``(d- - d+) / (d- + d+)`` for :class:`rplvq.RiemannianLVQ`, with d+ the squared distance to
      the nearest prototype and d- that to the nearest prototype of another class (Fischer, Hammer and Wersing 2015,
      "Efficient rejection strategies for prototype-based classification"). Its coverage is off where only some folds
      choose to train: give sigma2 a number then.
    - "auto" is "combined" if ``coverage`` is given and the estimator is a :class:`rplvq.RiemannianLVQ`, or a pipeline
      or a search that ends in one. Otherwise it is "posterior".

    Parameters
    ----------
    estimator : classifier
        It is not changed; a clone is fitted.
    threshold : float, optional
        A sample is rejected if its certainty is below this. Give this or ``coverage``.
    coverage : float in (0, 1], optional
        Share of samples that get a label. The threshold is then a quantile of the certainties of the training samples,
        each held out in one of ``cv`` folds, by their ``sample_weight``. It holds for new data that do not drift.
    criterion : {"auto", "combined", "posterior", "relative_distance", "distance"}, default="auto"
        The measure of certainty.
    reject_label : optional
        Label of a rejected sample, of the type of the classes and none of them; by default -1, or "rejected".
    cv : int, default=5
        Number of folds for ``coverage`` and for limits, stratified by class and not shuffled. If ``groups`` are passed
        to fit, whole groups are held out. If the estimator has one of them as its ``target``
        (:class:`rplvq.TransferClassifier`), samples of the target alone are held out and judged.

    Attributes
    ----------
    estimator_, classes_ : classifier and ndarray of shape (C,)
        The estimator, fitted to all samples, and its labels, without the reject label.
    criterion_, threshold_, reject_label_
        The criterion that "auto" stands for, the threshold, and the label of rejected samples.
    limits_ : Limits or None
        The limits of the squared distances, ``limits_.sqdist`` (C,), for "combined" and "distance".

    Notes
    -----
    The certainties z of a fold (log-odds above those of a guess, or the relative distance) are put on the scale of the
    final model by the factor ``(z_final / z_fold)^0.7``, where both z are 0.2 quantiles over the samples to which the
    models were fitted. Distances are compared by class as ratios to the median of these samples.

    The methods raise ValueError at samples that the estimator refuses. They take

    X : array-like of shape (N, ...)
        Samples, as the estimator takes them. For an image (rows, columns, n, n) that :class:`rplvq.RiemannianLVQ`
        takes, the results have the shape (rows, columns, ...).
    **params
        Metadata, such as ``groups``, for the methods of the estimator that request them in scikit-learn's metadata
        routing. Without routing, fit passes all of them to the estimator's fit, such as ``sample_weight``.

    Examples
    --------
    Samples in another unit are far from all classes, although the probabilities are certain of them:

    >>> from rplvq import RejectOption, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=30, random_state=0)
    >>> model = RejectOption(RiemannianLVQ(max_epochs=5, random_state=0), coverage=0.8).fit(X[::2], y[::2])
    >>> model.predict(X[1:3]), model.predict(100 * X[1:3]), model.reasons(100 * X[1:3]).tolist()
    (array([2, 0]), array([-1, -1]), ['far from all', 'far from all'])
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        threshold: float | None = None,
        coverage: float | None = None,
        criterion: CriterionName = "auto",
        reject_label: object = None,
        cv: int = 5,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.coverage = coverage
        self.criterion = criterion
        self.reject_label = reject_label
        self.cv = cv

    def fit(self, X: ArrayLike, y: ArrayLike, **params: Any) -> Self:
        """Fit the estimator, find limits of distances, and the threshold if ``coverage`` is given; return self.

        ``X`` and ``y`` are samples and labels, or soft labels, as the estimator takes them. Arrays in ``params`` with
        one entry per sample are split into folds, too. ValueError is raised if a parameter is invalid, if the reject
        label is one of the classes or has another type, or if a class has fewer samples of positive weight than ``cv``.
        A UserWarning says that a fold without whole groups would lack a class, so that random samples are held out.
        """
        self._check_parameters()
        samples = as_rows(X)
        classes, targets = check_labels(y, samples.shape[0])
        hard = hard_targets(targets)
        reject_label = _reject_label(self.reject_label, classes)
        weights = check_weights(params.get("sample_weight"), len(hard))
        weights = np.ones(len(hard)) if weights is None else weights
        groups = number_groups(params.get("groups"), len(hard))
        judged = self._judged_weights(weights, params.get("groups"))
        sizes = np.bincount(hard[judged > 0], minlength=len(classes))
        if (self.threshold is None or self.criterion in FAR) and sizes.min() < self.cv:
            few = f"class {classes.tolist()[sizes.argmin()]!r} has {sizes.min()} sample(s), fewer than cv={self.cv}"
            raise ValueError(f"{few}: lower cv, give threshold instead of coverage, or drop the class")
        labels = classes[targets] if targets.ndim == 1 else targets
        routed = self._routed("fit", params)
        with interrupts_raised():
            # Before the folds, so that errors name the index of an invalid sample among all.
            estimator = clone(self.estimator).fit(samples, labels, **routed["fit"])
            criterion = self.criterion
            if criterion == "auto":
                has_distances = hasattr(estimator, "transform") and prototype_labels(estimator) is not None
                criterion = "combined" if self.coverage is not None and has_distances else "posterior"
            limits = None
            threshold = self.threshold
            if threshold is None or criterion in FAR:
                folds = held_out_folds(hard, judged, groups if judged is weights else None, self.cv)
                rest = np.flatnonzero((weights > 0) & (judged == 0))  # they take part in the fit of all folds
                limits, learned = learn_limits(self, estimator, criterion, samples, labels, judged, routed, folds, rest)
                threshold = learned if threshold is None else threshold
        self.estimator_ = estimator
        self.threshold_ = float(threshold)
        self.reject_label_ = reject_label
        self.classes_ = estimator.classes_
        self.criterion_ = criterion
        self.limits_ = limits
        return self

    @available_if(  # type: ignore[untyped-decorator]
        lambda self: hasattr(getattr(self, "estimator_", self.estimator), "partial_fit")
    )
    def partial_fit(self, X: ArrayLike, y: ArrayLike, **params: object) -> Self:
        """Continue the training of the estimator by its ``partial_fit``; the threshold and limits stay. Return self.

        A late class has the limit of all others together. ValueError is raised if ``y`` holds the reject label.
        """
        check_is_fitted(self)
        if np.ndim(y) < 2 and self.reject_label_ in np.asarray(y).tolist():
            raise ValueError(f"y holds {self.reject_label_!r}, which is the label of rejected samples")
        self.estimator_.partial_fit(X, y, **self._routed("partial_fit", params)["partial_fit"])
        self.classes_ = self.estimator_.classes_
        return self

    def certainty(self, X: ArrayLike, **params: object) -> Array:
        """Compute the certainty (N,) of the predictions; a larger value means more certain."""
        return self._judged(X, params)[0]

    def score_samples(self, X: ArrayLike, **params: object) -> Array:
        """Compute minus the squared distance (N,) to the nearest prototype, in units of the limit of its class.

        Of samples like the training samples, 95 % have a value above -1. Anomalies have the smallest values, as in
        scikit-learn's detectors of outliers. ValueError is raised if the criterion needs no limits.
        """
        check_is_fitted(self)
        if self.limits_ is None:
            raise ValueError(f"criterion={self.criterion_!r} has no limits of distances: set criterion='combined'")
        seen = see(self.estimator_, X, "distance", self._routed("predict", params))
        return -self.limits_.relative(seen.sqdist, seen.labels)

    def reasons(self, X: ArrayLike, **params: object) -> Array:
        """Say why samples are rejected (N,): "between classes", "far from all", or "" for those with a label."""
        certainty, is_far = self._judged(X, params)
        why = np.where(is_far, "far from all", "between classes")
        why[~(certainty < self.threshold_)] = ""
        return why

    def predict(self, X: ArrayLike, **params: object) -> Array:
        """Predict labels (N,), and the reject label where the certainty is below the threshold."""
        certainty = self.certainty(X, **params)
        labels = np.asarray(self.estimator_.predict(X, **self._routed("predict", params)["predict"]))
        rejected = np.asarray([self.reject_label_])
        result = labels.astype(np.result_type(labels, rejected) if labels.dtype != object else object)
        result[certainty < self.threshold_] = self.reject_label_
        return result

    def without_rejection(self) -> Self:
        """Return a copy that gives every sample a label; its certainties and limits are those of this option."""
        check_is_fitted(self)
        option = copy.copy(self)
        option.threshold_ = -np.inf
        return option

    def predict_proba(self, X: ArrayLike, **params: object) -> Array:
        """Compute the class probabilities (N, C) of the estimator, for rejected samples as well."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X, **self._routed("predict_proba", params)["predict_proba"]))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: object) -> float:
        """Return the weighted accuracy on labels ``y`` as in :meth:`fit`; a rejected sample is an error."""
        return accuracy(self.predict(X, **params), y, self.classes_, sample_weight)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted option to a file ``path``; the errors are those of :func:`rplvq.save_model`."""
        save_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], manifold: object = None) -> Self:
        """Read an option as :func:`rplvq.load_model` does; raise ValueError, too, if the file holds anything else."""
        option = load_model(path, manifold)
        if not isinstance(option, cls):
            held = type(option).__name__
            raise ValueError(f"{os.fspath(path)} holds no reject option, but a {held} only: save a RejectOption")
        return option

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the router of scikit-learn's metadata routing: which methods call which ones of the estimator."""
        mapping = MethodMapping().add(caller="predict_proba", callee="predict_proba")
        mapping.add(caller="partial_fit", callee="partial_fit")
        needed = CRITERIA.get(self.criterion, ("predict_proba",))
        if self.criterion == "auto" and hasattr(self.estimator, "transform"):
            needed = CRITERIA["combined"]
        for caller, callee in (("fit", "fit"), ("predict", "predict"), ("score", "predict")):
            for method in (callee, *needed):
                mapping.add(caller=caller, callee=method)
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def _routed(self, method: str, params: dict[str, object]) -> Bunch | dict[str, dict[str, object]]:
        """Return the metadata for each method of the estimator that ``method`` calls."""
        if method in ("fit", "partial_fit") and not get_config()["enable_metadata_routing"]:
            return {method: params, "predict_proba": {}, "transform": {}}
        return process_routing(self, method, **params).estimator

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _check_parameters(self) -> None:
        if (self.threshold is None) == (self.coverage is None):
            both = f"threshold={self.threshold}, coverage={self.coverage}"
            raise ValueError(f"give threshold or coverage, not both or none: {both}")
        if self.coverage is not None and (isinstance(self.coverage, bool) or not 0 < self.coverage <= 1):
            raise ValueError(f"coverage must be above 0 and at most 1, got {self.coverage!r}")
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold!r}")
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {tuple(CRITERIA)}, got {self.criterion!r}")
        require_count("cv", self.cv, 2)
        for needed in CRITERIA[self.criterion]:
            if not hasattr(self.estimator, needed):
                raise ValueError(f"criterion={self.criterion!r} needs {needed}, which {self.estimator!r} has not")

    def _judged_weights(self, weights: Array, groups: Any) -> Array:
        """Return the weights (N,), which are 0 beside the target domain if the estimator has one among the groups."""
        target = self.estimator.get_params(deep=False).get("target")
        if target is None or groups is None:
            return weights
        is_own = np.ravel(groups) == target
        return np.where(is_own, weights, 0.0) if is_own.any() else weights

    def _judged(self, X: ArrayLike, params: dict[str, object]) -> tuple[Array, Array]:
        """Return the certainty (N,) of samples, and whether (N,) it is their distance that limits it."""
        check_is_fitted(self)
        sure, sqdist, labels, _ = see(self.estimator_, X, self.criterion_, self._routed("predict", params))
        if self.limits_ is None:
            return sure, np.zeros(sure.shape, dtype=bool)
        relative = self.limits_.relative(sqdist, labels)
        if self.criterion_ == "distance":
            return -relative, np.ones(sure.shape, dtype=bool)
        known = self.limits_.familiarity(relative)
        return np.minimum(sure, known), known < sure


def _reject_label(wanted: object, classes: Array) -> object:
    """Return the label of rejected samples, which has the type of the classes (C,)."""
    kind = classes.dtype.kind
    if wanted is None:
        if kind not in DEFAULTS:
            raise ValueError(f"labels of type {classes.dtype} have no default reject label: set reject_label")
        wanted = DEFAULTS[kind]
    if wanted in classes.tolist():
        raise ValueError(f"reject_label={wanted!r} is one of the classes {classes.tolist()}: give it another value")
    # An array of numbers and strings would turn every number into a string, which equals no class.
    if kind in DEFAULTS and not same_type(np.asarray([wanted]), classes):
        what = f"is of another kind than the classes {classes.tolist()}: give one like {DEFAULTS[kind]!r}"
        raise ValueError(f"reject_label={wanted!r} {what}")
    return wanted
