"""Handwritten digits as region covariances; scikit-learn brings the images."""

from typing import Any, Literal, overload

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from rplvq.features import grey5, region_covariances
from rplvq.protocols import Array

FEATURE_NAMES = ("x", "y", "intensity", "abs_dx", "abs_dy")
# The largest possible values: pixels 0..7, intensities 0..16, and Sobel masks whose positive weights sum to 4.
FULL_SCALE = np.array([7.0, 7.0, 16.0, 64.0, 64.0])


@overload
def load_digits_covariances(*, shrinkage: float = ..., return_X_y: Literal[True] = ...) -> tuple[Array, Array]: ...
@overload
def load_digits_covariances(*, shrinkage: float = ..., return_X_y: Literal[False]) -> Any: ...


def load_digits_covariances(*, shrinkage: float = 0.1, return_X_y: bool = True) -> Any:
    """Load scikit-learn's handwritten digits as 5x5 covariances of [x, y, I, abs Ix, abs Iy].

    The images are those of Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", 1998,
    doi:10.24432/C50P49, and the features those of :func:`rplvq.features.grey5`.

    Parameters
    ----------
    shrinkage : float in [0, 1], default=0.1
        Weight s of the scaled identity in ``(1 - s) C + s tr(C) / 5 I``. All matrices are positive definite without it.
        The default raises the accuracy of the class means in 5-fold cross-validation from 0.669 to 0.703
        (affine-invariant) and from 0.672 to 0.701 (Log-Euclidean); Euclidean stays at 0.676.
    return_X_y : bool, default=True
        Whether to return (X, y). Otherwise a :class:`sklearn.utils.Bunch` has them as ``data`` and ``target``, and
        ``images`` (1797, 8, 8) of intensities 0..16, ``feature_names``, ``target_names`` and ``DESCR``.

    Returns
    -------
    X : ndarray of shape (1797, 5, 5)
        Covariances, dimensionless: each feature is divided by the largest value it can take, because otherwise the
        Sobel features have 92 % of the variance. The divisors are constants, so nothing leaks from test data.
    y : ndarray of int of shape (1797,)
        Digits 0 to 9.

    Examples
    --------
    >>> from rplvq.datasets import load_digits_covariances
    >>> X, y = load_digits_covariances()
    >>> X.shape, y.shape
    ((1797, 5, 5), (1797,))
    """
    digits = load_digits()
    X = region_covariances(digits.images, lambda image: grey5(image) / FULL_SCALE, shrinkage=shrinkage)
    if return_X_y:
        return X, digits.target
    about = f"Region covariances (1797, 5, 5) of the features {', '.join(FEATURE_NAMES)}, each divided by its full "
    about += f"scale, with shrinkage {shrinkage}"
    return Bunch(
        data=X,
        target=digits.target,
        images=digits.images,
        feature_names=list(FEATURE_NAMES),
        target_names=digits.target_names,
        DESCR=f"{about}; of these images:\n\n{digits.DESCR}",
    )
