"""What a fitted set of labelled prototypes answers: labels, probabilities, scores, distances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rplvq.costs.mixture import class_groups, class_log_proba
from rplvq.protocols import Array, Manifold, Prototypes
from rplvq.steps import State

__all__ = ["PrototypePredictor"]


def nearest(manifold: Manifold[Any], prototypes: Prototypes, codes: Array) -> Array:
    """Index (N,) of the nearest prototype: the manifold's own search where it has one, or all distances."""
    search = getattr(manifold, "nearest", None)
    if search is None:
        return np.asarray(manifold.sqdist(prototypes, codes).argmin(axis=1))
    return np.asarray(search(prototypes, codes))


class PrototypePredictor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin):
    """The predicting half of :class:`rplvq.RiemannianLVQ`; everything in it follows from the distances.

    All methods raise NotFittedError before fit, and ValueError at samples that are not on the manifold
    or have another size than the prototypes.
    """

    decision: str
    n_jobs: int | None
    classes_: Array
    prototype_labels_: Array
    sigma2_: float
    _state: State
    _fitted_trainer: Any

    def predict(self, X: Any) -> Array:
        """Predict labels (N,) of samples (N, n, n): the nearest prototype's, or the most probable."""
        if self._by_posterior():
            return np.asarray(self.classes_[self._log_proba(self._sqdist(X)).argmax(axis=1)])
        check_is_fitted(self)
        manifold = self._fitted_trainer.manifold
        return np.asarray(self.prototype_labels_[self._over(X, partial(nearest, manifold))])

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (N, C) of samples (N, n, n), columns in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities, exact where the probabilities underflow."""
        return self._log_proba(self._sqdist(X))

    def decision_function(self, X: Any) -> Array:
        """Scores whose largest is the predicted class.

        Returns
        -------
        ndarray of shape (N, C), or (N,) for two classes
            Minus the squared distance to the nearest prototype of each class, or the class log-posterior
            if ``decision="posterior"``; for two classes the second score minus the first.
        """
        sqdist = self._sqdist(X)
        if self._by_posterior():
            scores = self._log_proba(sqdist)
        else:
            scores = -np.minimum.reduceat(sqdist, class_groups(self._state.labels).starts, axis=1)
        return np.asarray(scores[:, 1] - scores[:, 0]) if len(self.classes_) == 2 else scores

    def transform(self, X: Any) -> Array:
        """Distances (N, K), not squared, of samples (N, n, n) to the prototypes."""
        return np.sqrt(self._sqdist(X))

    def _by_posterior(self) -> bool:
        if self.decision not in ("nearest", "posterior"):
            raise ValueError(f"decision must be 'nearest' or 'posterior', got {self.decision!r}")
        return self.decision == "posterior"

    @property
    def _n_features_out(self) -> int:
        return len(self.prototype_labels_)

    def _require_same_shape(self, codes: Array) -> None:
        shape = np.shape(self._state.prototypes)[1:]
        if codes.shape[1:] != shape:
            raise ValueError(f"X holds points of shape {codes.shape[1:]}, the prototypes have {shape}")

    def _sqdist(self, X: Any) -> Array:
        """Squared distances (N, K) of samples to the prototypes."""
        check_is_fitted(self)
        return self._over(X, self._fitted_trainer.manifold.sqdist)

    def _over(self, X: Any, answer: Callable[[Prototypes, Array], Array]) -> Array:
        """Answer (N, ...) of ``answer(prototypes, codes)`` for all samples, over ``n_jobs`` threads."""
        codes = self._fitted_trainer.manifold.encode(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        self._require_same_shape(codes)
        n_jobs = min(effective_n_jobs(self.n_jobs), len(codes))
        if n_jobs == 1:
            return np.asarray(answer(self._state.prototypes, codes))
        parts = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(answer)(self._state.prototypes, part) for part in np.array_split(codes, n_jobs)
        )
        return np.concatenate(parts)

    def _log_proba(self, sqdist: Array) -> Array:
        log_proba = getattr(self._fitted_trainer.cost, "log_proba", class_log_proba)
        return np.asarray(log_proba(sqdist, self._state.labels, self.sigma2_))
