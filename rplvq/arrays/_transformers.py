"""What the transformers of matrices and signals share."""

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags

from rplvq.protocols import Array


class MatrixTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of transformers whose results are stacks of matrices; a feature is one row of a matrix."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Do nothing, whatever ``transform`` is: a stack of matrices fits into no table, so it stays an array."""
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def numbered_names(transformer: object, count: int) -> Array:
    """Return names of new features as scikit-learn makes them: the class in lower case, and a number from 0."""
    return np.array([f"{type(transformer).__name__.lower()}{i}" for i in range(count)], dtype=object)
