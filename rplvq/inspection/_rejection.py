"""Classification with a reject option: samples whose label is too uncertain get none."""

from typing import Any, Literal, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import accuracy, as_rows, by_block, check_labels, hard_targets, same_type, take_rows
from rplvq.exceptions import interrupts_raised
from rplvq.parts import require_count
from rplvq.protocols import Array

CriterionName = Literal["posterior", "relative_distance"]
"""The keys of :data:`CRITERIA` as a type, so that editors complete them."""
CRITERIA = {"posterior": "predict_proba", "relative_distance": "transform"}
"""Method of the estimator that each criterion needs."""
DEFAULTS: dict[str, Any] = {"i": -1, "u": -1, "f": -1, "U": "rejected", "S": b"rejected"}
"""Label of rejected samples, by the kind of dtype of the classes."""


class RejectOption(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier that gives no label to samples whose certainty is below a threshold.

    The certainty depends on ``criterion``:

    - "posterior" is the largest class probability (Chow 1970, "On optimum recognition error and reject tradeoff"), for
      any classifier with ``predict_proba``.
    - "relative_distance" is ``(d- - d+) / (d- + d+)`` for :class:`rplvq.RiemannianLVQ`, with d+ the squared distance to
      the nearest prototype and d- that to the nearest prototype of another class. It is 0 on the border and 1 at a
      prototype (Fischer, Hammer and Wersing 2015, "Efficient rejection strategies for prototype-based classification").

    Parameters
    ----------
    estimator : classifier
        It is not changed; a clone is fitted.
    threshold : float, optional
        A sample is rejected if its certainty is below this. Give this or ``coverage``.
    coverage : float in (0, 1], optional
        Share of samples that get a label. The threshold is then a quantile of the certainties of the training samples,
        each held out in one of ``cv`` folds, so that it holds for new data. The estimator is fitted on all samples
        afterwards. If the data drift between training and use, the share drifts with them.
    criterion : {"posterior", "relative_distance"}, default="posterior"
        The measure of certainty.
    reject_label : optional
        Label of a rejected sample, by default -1 for numbers and "rejected" for strings. It must have the type of the
        classes and be none of them.
    cv : int, default=5
        Number of folds for ``coverage``, of which each holds every class. The samples are not shuffled, and groups are
        not kept together.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    threshold_ : float
        Samples whose certainty is below this are rejected.
    reject_label_ : object
        Label of rejected samples.
    classes_ : ndarray of shape (C,)
        Labels of the classes, without the reject label.

    Notes
    -----
    The methods after fit raise NotFittedError before fit, and ValueError at samples that the estimator refuses. They
    take

    X : array-like of shape (N, ...)
        Samples, as the estimator takes them. For an image (rows, columns, n, n) that :class:`rplvq.RiemannianLVQ`
        takes, the results have the shape (rows, columns, ...).
    **params
        Metadata, such as ``groups``, for the methods of the estimator that request them in scikit-learn's metadata
        routing. Without routing, fit passes all of them to the estimator's fit, such as ``sample_weight``.

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
        criterion: CriterionName = "posterior",
        reject_label: Any = None,
        cv: int = 5,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.coverage = coverage
        self.criterion = criterion
        self.reject_label = reject_label
        self.cv = cv

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the estimator, and find the threshold if ``coverage`` is given.

        Parameters
        ----------
        X : array-like of shape (N, ...)
            Samples, as the estimator takes them.
        y : array-like of shape (N,) or (N, C)
            Labels, or soft labels if the estimator takes them.
        **params
            Metadata for the estimator; arrays with one entry per sample are split into folds, too.

        Returns
        -------
        self : RejectOption

        Raises
        ------
        ValueError
            If a parameter is invalid, if the reject label is one of the classes or has another type, or if a class has
            fewer samples than ``cv``.
        """
        self._check_parameters()
        samples = as_rows(X)
        classes, targets = check_labels(y, samples.shape[0])
        hard = hard_targets(targets)
        reject_label = _reject_label(self.reject_label, classes)
        sizes = np.bincount(hard, minlength=len(classes))
        if self.threshold is None and sizes.min() < self.cv:
            raise ValueError(
                f"class {classes.tolist()[sizes.argmin()]!r} has {sizes.min()} sample(s), fewer than cv={self.cv}: "
                "lower cv, give threshold instead of coverage, or drop the class"
            )
        labels, routed = classes[targets] if targets.ndim == 1 else targets, self._routed("fit", params)
        with interrupts_raised():
            # Before the folds, so that errors name the index of an invalid sample among all.
            estimator = clone(self.estimator).fit(samples, labels, **routed["fit"])
            threshold = self._threshold(samples, labels, hard, routed) if self.threshold is None else self.threshold
        self.estimator_, self.threshold_, self.reject_label_ = estimator, float(threshold), reject_label
        self.classes_ = estimator.classes_
        return self

    def certainty(self, X: Any, **params: Any) -> Array:
        """Compute the certainty of the predictions.

        Returns
        -------
        ndarray of shape (N,)
            A larger value means more certain.
        """
        check_is_fitted(self)
        return _certainty(self.estimator_, X, self.criterion, self._routed("predict", params))

    def predict(self, X: Any, **params: Any) -> Array:
        """Predict labels, and the reject label where the certainty is below the threshold.

        Returns
        -------
        ndarray of shape (N,)
        """
        certainty = self.certainty(X, **params)
        labels = np.asarray(self.estimator_.predict(X, **self._routed("predict", params)["predict"]))
        rejected = np.asarray([self.reject_label_])
        result = labels.astype(np.result_type(labels, rejected) if labels.dtype != object else object)
        result[certainty < self.threshold_] = self.reject_label_
        return result

    def predict_proba(self, X: Any, **params: Any) -> Array:
        """Compute the class probabilities of the estimator, for rejected samples as well.

        Returns
        -------
        ndarray of shape (N, C)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X, **self._routed("predict_proba", params)["predict_proba"]))

    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """Return the accuracy, on labels ``y`` as in :meth:`fit`; a rejected sample is an error.

        Parameters
        ----------
        sample_weight : array-like of shape (N,), optional
            Weights of the samples.
        """
        return accuracy(self.predict(X, **params), y, self.classes_, sample_weight)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the router of scikit-learn's metadata routing: which methods call which ones of the estimator."""
        mapping = MethodMapping().add(caller="predict_proba", callee="predict_proba")
        for caller, callee in (("fit", "fit"), ("predict", "predict"), ("score", "predict")):
            mapping.add(caller=caller, callee=callee)
            mapping.add(caller=caller, callee=CRITERIA.get(self.criterion, "predict_proba"))
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def _routed(self, method: str, params: dict[str, Any]) -> Any:
        """Return the metadata for each method of the estimator that ``method`` calls."""
        if method == "fit" and not get_config()["enable_metadata_routing"]:
            return {"fit": params, "predict_proba": {}, "transform": {}}
        return process_routing(self, method, **params).estimator

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _check_parameters(self) -> None:
        if (self.threshold is None) == (self.coverage is None):
            given = f"threshold={self.threshold}, coverage={self.coverage}"
            raise ValueError(f"give threshold or coverage, not both or none: {given}")
        if self.coverage is not None and (isinstance(self.coverage, bool) or not 0 < self.coverage <= 1):
            raise ValueError(f"coverage must be above 0 and at most 1, got {self.coverage!r}")
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold!r}")
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {tuple(CRITERIA)}, got {self.criterion!r}")
        require_count("cv", self.cv, 2)
        needed = CRITERIA[self.criterion]
        if not hasattr(self.estimator, needed):
            raise ValueError(f"criterion={self.criterion!r} needs {needed}, which {self.estimator!r} has not")

    def _threshold(self, X: Any, labels: Array, hard: Array, routed: Any) -> float:
        """Return the quantile of the certainties of held-out folds that gives the wanted coverage."""
        from sklearn.model_selection import StratifiedKFold  # imported only where it is used, because it takes long

        found, n = [], len(hard)
        for train, test in StratifiedKFold(self.cv).split(hard, hard):
            model = clone(self.estimator).fit(take_rows(X, train), labels[train], **_of_rows(routed, train, n)["fit"])
            found.append(_certainty(model, take_rows(X, test), self.criterion, _of_rows(routed, test, n)))
        # A certainty equal to the threshold is not rejected, so the quantile is one of the values.
        return float(np.quantile(np.concatenate(found), 1 - float(self.coverage or 1.0), method="lower"))


def _reject_label(wanted: Any, classes: Array) -> Any:
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


def _of_rows(routed: Any, rows: Array, n_samples: int) -> Any:
    """Return metadata for some of all samples: the rows of what has one entry per sample, and all of anything else."""

    def part(value: Any) -> Any:
        return take_rows(as_rows(value), rows) if np.shape(value)[:1] == (n_samples,) else value

    return {method: {key: part(value) for key, value in given.items()} for method, given in routed.items()}


def _certainty(model: Any, X: Any, criterion: CriterionName, routed: Any) -> Array:
    if criterion == "posterior":
        return np.asarray(np.max(model.predict_proba(X, **routed["predict_proba"]), axis=-1))
    labels = getattr(model, "prototype_labels_", None)
    if labels is None:
        raise ValueError(f"criterion='relative_distance' needs prototypes with labels, which {model!r} has not")
    distances = np.asarray(model.transform(X, **routed["transform"]))
    found = by_block(
        lambda part: _relative_distance(part, np.asarray(labels)), distances.reshape(-1, distances.shape[-1])
    )
    return found.reshape(distances.shape[:-1])


def _relative_distance(distances: Array, labels: Array) -> Array:
    """Compute ``(d- - d+) / (d- + d+)`` (M,) from distances (M, K) to prototypes with labels (K,)."""
    sqdist = distances**2
    nearest = sqdist.argmin(axis=1)
    first, other = sqdist.min(axis=1), np.where(labels == labels[nearest][:, None], np.inf, sqdist).min(axis=1)
    total = first + other
    return np.asarray(np.where(total > 0, (other - first) / np.where(total > 0, total, 1.0), 0.0))
