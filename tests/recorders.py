"""Classifiers that note what they are given, or fail on purpose, for the tests of compare."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Recorder(ClassifierMixin, BaseEstimator):
    """Notes the rows that it is trained and asked on, which are in the first column of X."""

    log: ClassVar[list[tuple[str, str, object, list[int]]]] = []

    def __init__(self, name="", random_state=None):
        self.name, self.random_state = name, random_state

    def note(self, what, X):
        self.log.append((self.name, what, self.random_state, X[:, 0].tolist()))

    def fit(self, X, y):
        self.note("fit", X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        self.note("predict", X)
        return np.full(len(X), self.classes_[0])


class Failing(Recorder):
    """Raises an error when it meets a row that is negative in the second column."""

    def __init__(self, error=ValueError, during="fit", name="", random_state=None):
        super().__init__(name, random_state)
        self.error, self.during = error, during

    def note(self, what, X):
        if what == self.during and (X[:, 1] < 0).any():
            raise self.error("something is wrong")


def numbered(n=24, n_classes=3):
    """X whose first column is the row, and balanced labels."""
    return np.column_stack([np.arange(n), np.ones(n)]), np.arange(n) % n_classes
