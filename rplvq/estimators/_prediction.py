"""Predictions from fitted prototypes: labels, probabilities, scores and distances."""

import threading
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rplvq.arrays import accuracy, matrix_size, row_slices, single_blas_thread, stacked, unmasked
from rplvq.capabilities import NearestSearch, provides
from rplvq.costs import class_groups, log_proba_of
from rplvq.estimators._names import by_posterior
from rplvq.estimators._online import met_classes
from rplvq.exceptions import PointError
from rplvq.manifolds import filler_of
from rplvq.parts import plain, require_jobs
from rplvq.protocols import Array, ArrayLike, Prototypes
from rplvq.training import State, Trainer

FEW_BYTES = 1 << 16
"""Up to this size of the samples no context of joblib is looked up, in which ``n_jobs=None`` means several threads."""


class PrototypePredictor(TransformerMixin, ClassifierMixin):
    """The methods of :class:`rplvq.RiemannianLVQ` that predict; its Notes say what they take and raise.

    All follow from the squared distances to the prototypes. Where they return an array of shape (N, ...), an image of
    matrices gives one of shape (rows, columns, ...). :meth:`predict` has an example of each.
    """

    decision: str
    n_jobs: int | None
    classes_: Array
    prototypes_: Array
    prototype_labels_: Array
    sigma2_: float
    state_: State
    trainer_: Trainer

    def predict(self, X: ArrayLike) -> Array:
        """Predict the label of the nearest prototype of each sample, or the most probable one if ``decision`` says so.

        The labels (N,) have the type of ``classes_``.

        Examples
        --------
        >>> from rplvq import RiemannianLVQ
        >>> X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), ["low", "low", "high", "high"]
        >>> model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=0).fit(X, y)
        >>> model.predict([[0.2], [3.0]])
        array(['low', 'high'], dtype='<U4')

        The other methods of this model, whose ``classes_`` are "high" and "low":

        >>> model.predict_proba([[2.5], [3.0]]).round(3)
        array([[0.5  , 0.5  ],
               [0.881, 0.119]])
        >>> model.predict_log_proba([[1000.0]])  # the probability of "low" is 0 in double precision
        array([[    0., -3990.]])
        >>> model.decision_function([[0.5], [3.0]])  # above 0 is classes_[1], "low"
        array([16., -4.])
        >>> model.transform([[1.0], [5.0]])
        array([[3.5, 0.5],
               [0.5, 4.5]])
        >>> model.score_samples([[1.0], [5.5]])
        array([-0.25, -1.  ])
        """
        model = self._snapshot()
        if by_posterior(model.decision):
            likeliest = model._over(X, lambda *ends: model._log_proba(*ends).argmax(axis=1))
            return np.asarray(model.classes_[likeliest])
        return np.asarray(model.prototype_labels_[model._over(X, model._nearest)])

    def predict_proba(self, X: ArrayLike) -> Array:
        """Compute class probabilities (N, C), the softmax of ``-sqdist / (2 sigma2_)`` by class or those of the cost.

        Columns are in the order of ``classes_``, and rows sum to one. A class that was announced to partial_fit but has
        had no sample yet has probability 0.
        """
        model = self._snapshot()
        return model._over(X, lambda *ends: np.exp(model._log_proba(*ends)))

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Compute the logarithms (N, C) of :meth:`predict_proba`, which are exact where the probabilities underflow.

        A class that has had no sample yet has minus infinity.
        """
        model = self._snapshot()
        return model._over(X, model._log_proba)

    def decision_function(self, X: ArrayLike) -> Array:
        """Compute one score per class, shape (N, C); the class with the largest score is predicted.

        It is minus the squared distance to the nearest prototype of the class, or the class log-posterior if
        ``decision="posterior"``. For two classes it is the second score minus the first, shape (N,).
        """
        model = self._snapshot()
        scores = model._over(X, model._log_proba if by_posterior(model.decision) else model._nearness)
        return np.asarray(scores[..., 1] - scores[..., 0]) if len(model.classes_) == 2 else scores

    def transform(self, X: ArrayLike) -> Array:
        """Compute the distances (N, K), not squared, to the prototypes, in the order of ``prototype_labels_``."""
        model = self._snapshot()
        return model._over(X, lambda *ends: np.sqrt(model._sqdist(*ends)))

    def score_samples(self, X: ArrayLike) -> Array:
        """Compute minus the squared distance (N,) to the nearest prototype, so that unusual samples have small values.

        It carries the unit of the metric, and depends on how far training has moved the prototypes from the data.
        :meth:`rplvq.RejectOption.score_samples` gives it in units of what is usual among held-out samples.
        """
        model = self._snapshot()
        return model._over(X, lambda *ends: -model._sqdist(*ends).min(axis=1))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the columns of :meth:`transform`, shape (K,): class, label and number, joined by "_".

        The class is that of the estimator in lower case, and the number counts the prototypes of a label. A distance
        depends on all features, so ``input_features`` is ignored.

        Examples
        --------
        >>> from rplvq import RiemannianLVQ
        >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"]
        >>> model = RiemannianLVQ("euclidean_vectors", prototypes_per_class={"low": 2, "high": 1}, max_epochs=0)
        >>> model.fit(X, y).get_feature_names_out().tolist()
        ['riemannianlvq_high_0', 'riemannianlvq_low_0', 'riemannianlvq_low_1']
        """
        labels = self._snapshot().prototype_labels_.tolist()
        numbered = [(label, labels[:k].count(label)) for k, label in enumerate(labels)]
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}_{label}_{number}" for label, number in numbered], dtype=object)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on labels ``y`` as in fit; soft labels stand for their likeliest class.

        For an image, ``y`` and ``sample_weight`` have the shape (rows, columns).
        """
        model = self._snapshot()
        return accuracy(model.predict(X), y, model.classes_, sample_weight)

    def _snapshot(self) -> Self:
        """Return a shallow copy of the fitted model, which calls of fit in other threads do not change.

        These replace all fitted attributes in one assignment (:func:`rplvq.estimators.store`), so a copy is whole.
        """
        if "state_" not in vars(self):
            check_is_fitted(self)
        snapshot = object.__new__(type(self))  # copy.copy asks scikit-learn for the state, which takes longer
        snapshot.__dict__ = vars(self).copy()
        return snapshot

    def _require_same_shape(self, codes: Array) -> None:
        shape = np.shape(self.state_.prototypes)[1:]
        if codes.shape[1:] != shape:
            raise ValueError(f"X holds points of shape {codes.shape[1:]}, the prototypes have {shape}")

    def _over(self, X: ArrayLike, answer: Callable[[Prototypes, Array], Array]) -> Array:
        """Return ``answer(prototypes, codes)`` (N, ...) for N samples, or (rows, columns, ...) for an image of them.

        An image has at least two axes in front of those of a point. Vectors have none, because an array of vectors with
        three axes is more likely a mistake.
        """
        points = stacked(X)
        n_axes = np.ndim(self.prototypes_) - 1
        image = getattr(points, "shape", ())[:-n_axes]
        if n_axes == 1 or len(image) < 2:
            with single_blas_thread(matrix_size(points)):
                return self._over_batch(points, answer)
        try:
            flat = self._over(points.reshape(-1, *points.shape[-n_axes:]), answer)
        except PointError as error:
            raise error.at(np.unravel_index(error.index, image)) from None
        return flat.reshape(*image, *flat.shape[1:])

    def _over_batch(self, X: Any, answer: Callable[[Prototypes, Array], Array]) -> Array:
        """Return ``answer(prototypes, codes)`` (N, ...) by threads, in chunks, so that X is never copied as a whole."""
        require_jobs("n_jobs", self.n_jobs)
        unmasked(X)
        fits = isinstance(X, np.ndarray) and X.shape[1:] == np.shape(self.state_.prototypes)[1:] and len(X)
        whole = None if fits and X.dtype.kind in "biufc" else self._encode(X, slice(None))
        if not fits or X.ndim < 3:  # an array of matrices of the right size has no names of features to check
            validate_data(self, X, skip_check_array=True, reset=False)
        source = X if whole is None else whole
        few = self.n_jobs is None and source.nbytes <= FEW_BYTES
        n_jobs = 1 if few else min(effective_n_jobs(plain(self.n_jobs)), len(source))
        # A chunk exists about six times: as passed, as codes, and as temporary arrays of the search.
        needed = 6 * source[0].size * np.result_type(source, float).itemsize + 32 * len(self.state_.labels)

        def part(rows: slice) -> Array:
            codes = self._encode(X, rows) if whole is None else whole[rows]
            self._require_same_shape(codes)
            return np.asarray(answer(self.state_.prototypes, codes))

        def in_thread(rows: slice) -> Array:
            with single_blas_thread(matrix_size(X)):  # some libraries count threads for each calling thread
                return part(rows)

        chunks = list(row_slices(len(source), needed, at_most=-(-len(source) // n_jobs)))
        if len(chunks) == 1:
            return part(chunks[0])
        return _gathered(in_thread, chunks, len(source), n_jobs)

    def _encode(self, X: Any, rows: slice) -> Array:
        """Encode some rows of X, with missing channels filled; an error names the index of the invalid row in X."""
        part = X if rows.start is None else X[rows]
        try:
            try:
                return np.asarray(self.trainer_.manifold.encode(part))
            except PointError:  # looked for here, so that samples without gaps are not read twice
                if (whole := self._filled(part)) is None:
                    raise
                return np.asarray(self.trainer_.manifold.encode(whole))
        except PointError as error:
            raise error.shifted(rows.start or 0) from None

    def _filled(self, part: ArrayLike) -> Array | None:
        """Return samples whose missing channels are filled; None if none are missing or could be."""
        points = np.asarray(part)
        is_alike = points.dtype.kind in "fc" and points.shape[1:] == self.prototypes_.shape[1:]
        if not is_alike or not np.isnan(points).any():
            return None
        filler = vars(self).get("missing_channels_") or filler_of(self.prototypes_)  # none in streams
        return None if filler is None else filler.fill(points)

    def _nearest(self, prototypes: Prototypes, codes: Array) -> Array:
        """Return indices (N,) of prototypes that have the label of the nearest one, by the manifold's search if any."""
        manifold = self.trainer_.manifold
        if provides(manifold, NearestSearch):
            return np.asarray(manifold.nearest(prototypes, codes, self.state_.labels))
        return np.asarray(self._sqdist(prototypes, codes).argmin(axis=1))

    def _nearness(self, prototypes: Prototypes, codes: Array) -> Array:
        starts = class_groups(self.state_.labels).starts
        return self._by_class(-np.minimum.reduceat(self._sqdist(prototypes, codes), starts, axis=1))

    def _by_class(self, scores: Array) -> Array:
        """Extend scores (N, M) of the classes with prototypes to all classes (N, C), by minus infinity."""
        if scores.shape[1] == len(self.classes_):
            return scores
        result = np.full((len(scores), len(self.classes_)), -np.inf)
        result[:, met_classes(self.classes_, self.prototype_labels_)] = scores
        return result

    def _sqdist(self, prototypes: Prototypes, codes: Array) -> Array:
        return np.asarray(self.trainer_.manifold.sqdist(prototypes, codes))

    def _log_proba(self, prototypes: Prototypes, codes: Array) -> Array:
        sqdist = self._sqdist(prototypes, codes)
        return self._by_class(log_proba_of(self.trainer_.cost, sqdist, self.state_.labels, self.sigma2_))


def _gathered(part: Callable[[slice], Array], chunks: list[slice], n_samples: int, n_jobs: int) -> Array:
    """Return the results of all chunks in one array (N, ...), the only thing here that grows with N."""
    result: list[Array] = []
    lock = threading.Lock()

    def fill(rows: slice) -> None:
        answers = part(rows)
        with lock:
            if not result:
                result.append(np.empty((n_samples, *answers.shape[1:]), dtype=answers.dtype))
        result[0][rows] = answers

    Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(fill)(rows) for rows in chunks)
    return result[0]
