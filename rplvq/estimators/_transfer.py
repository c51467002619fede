"""TransferClassifier: learns from labelled samples of other domains, such as subjects, and from a few of the target."""

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from rplvq.arrays import accuracy, as_rows, check_labels, check_weights, same_type, split_domains
from rplvq.estimators._sources import (
    SMALLEST_PROBABILITY,
    Rows,
    balanced,
    combined,
    qualities_of,
    trial_columns,
    with_mean_one,
)
from rplvq.exceptions import PointError, interrupts_raised
from rplvq.parts import library_estimator, require_count, require_number
from rplvq.protocols import Array, ArrayLike

ROUNDS = 3  # number of fits in which samples without labels take part
UNLABELED_SHARE = 0.25  # weight of all samples without labels, relative to the labelled ones
SMALLEST_QUALITY = 0.01
"""Quality of a source that is not left out: a tenth of the way from guessing to perfect answers, squared."""


def takes_weights(estimator: BaseEstimator) -> bool:
    """Whether fit takes ``sample_weight``, or passes its keywords on to the fit of an inner ``estimator``."""
    passes = any(each.kind is each.VAR_KEYWORD for each in signature(estimator.fit).parameters.values())
    inner = getattr(estimator, "estimator", None) if passes else None
    return has_fit_parameter(estimator, "sample_weight") or (inner is not None and takes_weights(inner))


def _require_classes(model: BaseEstimator) -> None:
    """Raise ValueError unless a fitted classifier has the classes of the estimator in it."""
    if not np.array_equal(model.classes_, model.estimator_.classes_):
        raise ValueError(f"classes_ are {model.classes_}, those of its estimator {model.estimator_.classes_}")


@library_estimator(_require_classes)
class TransferClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier for one target domain that also learns from labelled samples of other domains.

    A domain is a subject, a session or a device. The estimator is fitted on the target's own samples and on those of
    the other domains, the sources. All sources together count as much as a few own samples, and those that classify the
    own samples well count most. Bring the domains to a common place first, by :class:`rplvq.Recenter`.

    Parameters
    ----------
    estimator : classifier
        It is not changed; clones of it are fitted. It must accept ``sample_weight``.
    target : object, optional
        Name of the target domain, among ``groups``. None means that all domains are sources.
    weights : sequence of float, default=(15, 0)
        Candidates for the number of own samples per class that all sources together count as; 0 leaves them out.
    unlabeled : object, optional
        Label that marks samples of the target without a label, such as -1. By default all samples have labels.
    cv : int, default=5
        Largest number of folds of the own samples. The samples are not shuffled.

    Attributes
    ----------
    estimator_ : classifier
        Fitted. The methods that predict call it.
    weight_ : float
        The weight among ``weights`` that was chosen; infinite if there is no own labelled sample.
    source_weights_ : dict of object to float
        Weight of each source, with mean 1; 0 for one that is left out. They are used if ``weight_`` is not 0.
    trials_ : dict of str to ndarray
        The candidates that were tried on held-out own samples, as columns: weight, loss (mean of ``-log p`` of the true
        class, or of the errors if the estimator has no ``predict_proba``), margin (standard error of the difference to
        the loss of the first candidate), error and chosen. The columns are empty if there was nothing to choose.
    classes_ : ndarray of shape (C,)
        Labels, sorted.

    Notes
    -----
    **Sources.** The estimator is fitted on each source alone. Its balanced accuracy a on the own labelled samples gives
    the source the weight ``max(0, (a - 1/C) / (1 - 1/C))^2``; a source that is too small for the estimator takes the
    mean of the others. These weights are then scaled to mean 1. If all are 0, own samples alone are used.

    **Choice.** Each fold is held out in turn, and all candidates are fitted without it; the weights of the sources come
    from the other folds, too. A candidate replaces the first one if its mean loss is lower by more than two standard
    errors of the difference; among several, the one with the lowest loss wins. The first one is taken without trials if
    a class has fewer than two own samples. If these lack a class, candidate 0 is dropped, and no source left out.

    **Samples without labels.** A first fit ignores them. Then they take part in three more fits, with their likeliest
    class as label and its probability as weight. Before that, the class probabilities are scaled until the classes are
    as frequent as among the labelled samples. Samples without labels together weigh a quarter of the labelled ones, and
    none more than a labelled own sample.

    **pyRiemann.** ``weights`` is what ``domain_tradeoff`` of ``MDWM`` is, with sources weighed one by one. Without
    groups, ``y`` has labels "domain/label" of its ``encode_domains``, and the strings behind the last "/" are learned.

    **Metadata.** In metadata routing, fit requests ``groups``, and passes them to an estimator that predicts with them.

    Examples
    --------
    Two subjects with many labelled samples help a third one, who has two per class:

    >>> from rplvq import Recenter, RiemannianLVQ, TransferClassifier
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=30, random_state=0)
    >>> subject = np.tile(["anna", "ben", "carla"], len(X) // 3)
    >>> X[subject == "ben"] *= 4.0  # another gain
    >>> seen = (subject != "carla") | (np.arange(len(X)) % 30 < 6)
    >>> X = Recenter().fit_transform(X, groups=subject)
    >>> model = TransferClassifier(RiemannianLVQ(max_epochs=2, random_state=0), target="carla")
    >>> model = model.fit(X[seen], y[seen], groups=subject[seen])
    >>> model.weight_, sorted(model.source_weights_)
    (15.0, ['anna', 'ben'])
    >>> bool(model.score(X[~seen], y[~seen]) > 0.9)
    True
    """

    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    def __init__(
        self, estimator: BaseEstimator, *, target: object = None, weights: float | Sequence[float] = (15.0, 0.0),
        unlabeled: object = None, cv: int = 5,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.target = target
        self.weights = weights
        self.unlabeled = unlabeled
        self.cv = cv

    def fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Choose the weight of the sources, fit the estimator on sources and own samples together, and return self.

        Parameters
        ----------
        X : array-like of shape (N, ...)
            Samples of all domains, as the estimator takes them.
        y : array-like of shape (N,)
            Labels; ``unlabeled`` for samples of the target without a label. Without groups, strings "domain/label".
        groups, sample_weight : array-like of shape (N,), optional
            Domains of the samples, and their weights within these; samples of weight 0 are left out.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, if the target is not among the domains, if a sample without a
            label is of another domain, or if the estimator does not accept weights that are needed.
        """
        candidates = self._check_parameters()
        data, hidden, classes = self._check_data(X, y, groups, sample_weight)
        is_own = data.domains == self.target if self.target is not None else np.zeros(len(data.y), dtype=bool)
        own = data.take(is_own)
        sources = data.take(~is_own)
        chance = 1 / len(classes)
        complete = len(np.unique(own.y)) == len(classes)
        with interrupts_raised():
            weight = np.inf
            trials = trial_columns()
            qualities = dict.fromkeys(np.unique(sources.domains).tolist(), 1.0)
            if len(own.y):
                right = self._source_answers(sources, own) if any(candidates) else {}
                qualities = qualities_of(right, own, chance)
                if not complete:  # a source that is left out may be the only one with the missing class
                    qualities = {name: max(quality, SMALLEST_QUALITY) for name, quality in qualities.items()}
                helps = any(qualities.values())
                possible = [w for w in candidates if (helps if w > 0 else complete)] or [0.0]
                if complete:
                    trials = self._try(possible, own, sources, right, chance)
                weight = float(trials["weight"][trials["chosen"]][0]) if len(trials["loss"]) else possible[0]
            labelled = combined(own, sources, qualities, weight * len(classes))
            estimator = self._fitted(labelled, weighted=sample_weight is not None or 0 < weight < np.inf)
            if len(hidden.y):
                # Without own labels, the sources count as the first candidate says.
                count = (candidates[0] or 1.0) * len(classes)
                unit = own.weights.mean() if len(own.y) else labelled.weights.sum() / count
                estimator = self._with_hidden(estimator, labelled, hidden, unit)
        self.estimator_ = estimator
        self.weight_ = weight
        self.trials_ = trials
        self.source_weights_ = with_mean_one(qualities)
        self.classes_ = estimator.classes_
        self._encoded = groups is None
        return self

    def predict(self, X: ArrayLike, **params: object) -> Array:
        """Predict labels (N,) of samples of the target.

        ``params`` is metadata that the estimator requests in scikit-learn's metadata routing, such as ``groups``.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X, **process_routing(self, "predict", **params).estimator.predict))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike, **params: object) -> Array:
        """Compute the class probabilities (N, C) of the estimator; arguments as for :meth:`predict`."""
        check_is_fitted(self)
        given = process_routing(self, "predict_proba", **params).estimator.predict_proba
        return np.asarray(self.estimator_.predict_proba(X, **given))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: object) -> float:
        """Return the accuracy, weighted by ``sample_weight`` (N,); other arguments as for :meth:`predict`.

        After a fit on labels "domain/label", ``y`` may have them, too.
        """
        predicted = self.predict(X, **params)
        if self._encoded and not np.isin(np.unique(y), self.classes_).all():
            y = split_domains(y)[0]
        return accuracy(predicted, y, self.classes_, sample_weight)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the router of scikit-learn's metadata routing: which methods call which ones of the estimator."""
        mapping = MethodMapping().add(caller="predict_proba", callee="predict_proba")
        mapping.add(caller="predict", callee="predict").add(caller="score", callee="predict")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _check_parameters(self) -> list[float]:
        """Return the candidates for the weight of the sources; raise ValueError if a parameter is invalid."""
        require_count("cv", self.cv, 2)
        given = np.atleast_1d(np.asarray(self.weights, dtype=object)).tolist()
        for index, weight in enumerate(given):
            require_number(f"weights[{index}]", weight, closed=True, finite=True)
        if not given:
            raise ValueError("weights is empty: give at least one number, such as 15.0")
        return [float(weight) for weight in given]

    def _check_data(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Rows, Rows, Array]:
        """Return the labelled rows, the rows without labels, and the classes (C,)."""
        samples = as_rows(X)
        labels, domains = split_domains(y, groups)
        if labels.ndim != 1:
            raise ValueError(f"y must have one label per sample, shape (N,), got shape {labels.shape}")
        if samples.shape[0] != len(labels):
            raise ValueError(f"y has {len(labels)} labels for {samples.shape[0]} samples of X")
        weights = check_weights(sample_weight, len(labels))
        weights = np.ones(len(labels)) if weights is None else weights
        hidden = np.zeros(len(labels), dtype=bool)
        if self.target is not None and not (domains == self.target).any():
            known = np.unique(domains).tolist()
            raise ValueError(f"target={self.target!r} is not among the domains {known}: name one of them, or None")
        if self.unlabeled is not None:
            if not same_type(np.asarray([self.unlabeled]), labels):
                raise ValueError(f"unlabeled={self.unlabeled!r} is of another type than the labels, as {labels[0]!r}")
            hidden = labels == self.unlabeled
            if (outside := np.flatnonzero(hidden & (domains != self.target))).size:
                where = f"y[{outside[0]}] has no label, and is of the domain {domains.tolist()[outside[0]]!r}"
                raise ValueError(f"{where}: only samples of the target, {self.target!r}, may have none")
        if hidden.all():
            raise ValueError("y has no label: pass labelled samples of the target or of other domains")
        classes, _ = check_labels(labels[~hidden], int(np.count_nonzero(~hidden)))
        data = Rows(samples, np.arange(len(labels)), labels, domains, weights)
        used = weights > 0
        return data.take(~hidden & used), data.take(hidden & used), classes

    def _fitted(self, data: Rows, *, weighted: bool = True) -> BaseEstimator:
        """Return a clone of the estimator, fitted on some rows, with their weights if ``weighted``."""
        given = self._groups("fit", data)
        if weighted:
            if not get_config()["enable_metadata_routing"] and not takes_weights(self.estimator):
                raise ValueError(
                    f"estimator {self.estimator!r} takes no sample_weight in fit, which tells it how much each source "
                    "counts. A pipeline takes it with metadata routing enabled, if its last step requests sample_weight"
                )
            given["sample_weight"] = data.weights
        try:
            return clone(self.estimator).fit(data.X, data.y, **given)
        except PointError as error:
            raise PointError(int(data.rows[error.index]), error.reason, error.name) from error

    def _fitted_if_enough(self, data: Rows, *, weighted: bool = True) -> BaseEstimator | None:
        """Return what ``_fitted`` does, or None if the estimator refuses so few samples; all together may suffice."""
        try:
            return self._fitted(data, weighted=weighted)
        except PointError:
            raise
        except ValueError:
            return None

    def _groups(self, method: str, data: Rows) -> dict[str, object]:
        """Return the domains as ``groups``, if the estimator requests these in metadata routing to predict.

        A classifier that requests groups only in fit would hold out whole domains, and a source is a single one.
        """
        if not get_config()["enable_metadata_routing"]:
            return {}
        routing = get_routing_for_object(self.estimator)
        wanted = routing.consumes("predict", ["groups"]) & routing.consumes(method, ["groups"])
        return dict.fromkeys(wanted, data.domains)

    def _source_answers(self, sources: Rows, own: Rows) -> dict[object, Array | None]:
        """Return which own samples (M,) a fit on each source classifies correctly; None if the source is too small."""
        answers: dict[object, Array | None] = {}
        for name in np.unique(sources.domains).tolist():
            source = sources.take(sources.domains == name)
            if len(np.unique(source.y)) < 2:
                raise ValueError(
                    f"domain {name!r} has the class {source.y.tolist()[0]!r} only: leave it out, or join it to another"
                )
            model = self._fitted_if_enough(source, weighted=bool(np.ptp(source.weights)))
            given = self._groups("predict", own)
            answers[name] = None if model is None else np.asarray(model.predict(own.X, **given)) == own.y
        return answers

    def _try(
        self, candidates: list[float], own: Rows, sources: Rows, right: Mapping[object, Array | None], chance: float
    ) -> dict[str, Array]:
        """Return the trials of all candidates on folds of the own samples, as columns."""
        names, y = np.unique(own.y, return_inverse=True)
        n_folds = min(self.cv, int(np.bincount(y).min()))
        if n_folds < 2 or len(candidates) < 2:
            return trial_columns()
        from sklearn.model_selection import StratifiedKFold  # imported only where it is used, because it takes long

        losses, errors = np.empty((2, len(candidates), len(y)))
        for kept, held in StratifiedKFold(n_folds).split(y, y):
            train = own.take(kept)
            test = own.take(held)
            answered = {name: None if each is None else each[kept] for name, each in right.items()}
            qualities = qualities_of(answered, train, chance)
            for row, weight in enumerate(candidates):
                model = self._fitted_if_enough(combined(train, sources, qualities, weight * len(names)))
                if model is None:
                    errors[row, held] = 1.0
                    losses[row, held] = -np.log(SMALLEST_PROBABILITY)
                    continue
                wrong = np.asarray(model.predict(test.X, **self._groups("predict", test))) != test.y
                errors[row, held] = losses[row, held] = wrong
                if hasattr(model, "predict_proba"):
                    shares = np.asarray(model.predict_proba(test.X, **self._groups("predict_proba", test)))
                    losses[row, held] = -np.log(shares[np.arange(len(held)), y[held]].clip(SMALLEST_PROBABILITY))
        return trial_columns(candidates, losses, errors, own.weights / own.weights.mean())

    def _with_hidden(self, model: BaseEstimator, labelled: Rows, hidden: Rows, unit: float) -> BaseEstimator:
        """Return the estimator after rounds in which it predicts the labels of hidden rows, each up to ``unit``."""
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"unlabeled={self.unlabeled!r} needs predict_proba, which {self.estimator!r} has not")
        names, y = np.unique(labelled.y, return_inverse=True)
        shares = np.bincount(y, labelled.weights)
        total = labelled.weights.sum()
        for _ in range(ROUNDS):
            probabilities = model.predict_proba(hidden.X, **self._groups("predict_proba", hidden))
            probabilities = balanced(np.asarray(probabilities), shares / shares.sum())
            sure = probabilities.max(axis=1) * hidden.weights
            weights = sure * min(UNLABELED_SHARE * total / sure.sum(), unit)
            guessed = hidden._replace(y=names[probabilities.argmax(axis=1)], weights=weights)
            model = self._fitted(labelled.joined(guessed))
        return model
