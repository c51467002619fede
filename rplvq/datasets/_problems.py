"""The paper's synthetic problems SynI and SynII, and handwritten digits as region covariances."""

from typing import Literal, overload

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import Bunch, check_random_state

from rplvq.arrays import first_bad, from_spectrum
from rplvq.features import grey5, region_covariances
from rplvq.parts import require_count, require_number
from rplvq.protocols import Array, ArrayLike

FEATURE_NAMES = ("x", "y", "intensity", "abs_dx", "abs_dy")
# The largest possible values: pixels 0..7, intensities 0..16, and Sobel masks whose positive weights sum to 4.
FULL_SCALE = np.array([7.0, 7.0, 16.0, 64.0, 64.0])


def random_bases(n: int = 10, n_bases: int = 2, *, random_state: int | np.random.RandomState | None = None) -> Array:
    """Draw orthogonal bases (n_bases, n, n), uniform on O(n): Gaussian matrices with orthogonalised columns.

    Parameters
    ----------
    n, n_bases : int, default=10 and 2
        Dimension of the space, and number of bases.
    random_state : int, RandomState instance or None, default=None
        Seed, as in scikit-learn.

    Examples
    --------
    >>> from rplvq.datasets import random_bases
    >>> bases = random_bases(10, random_state=0)
    >>> bases.shape, bool(np.allclose(bases @ bases.swapaxes(1, 2), np.eye(10)))
    ((2, 10, 10), True)
    """
    require_count("n", n, 1)
    require_count("n_bases", n_bases, 1)
    rng = check_random_state(random_state)
    return _gram_schmidt(rng.standard_normal((n_bases, n, n)))


def make_syn1(
    n_per_class: int = 250,
    *,
    n: int = 10,
    noise: float = 0.3,
    spread: float = 0.1,
    bases: ArrayLike | None = None,
    shuffle: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Array, Array]:
    r"""Make SynI: four classes of SPD matrices, two spectra times two eigenbases.

    Parameters
    ----------
    n_per_class, n : int, default=250 and 10
        Number of matrices per class, and their size, at least 2; the paper's is 10.
    noise : float, default=0.3
        Standard deviation of the Gaussian noise on every entry of a basis.
    spread : float, default=0.1
        Half the width of the interval around each eigenvalue; ValueError is raised if one could be zero or less.
    bases : array-like of shape (2, n, n), default=None
        Orthogonal matrices V1 and V2. None draws them first, as ``random_bases(n, random_state=...)`` would from the
        same seed. Training and test data need the same bases, as in the example; or split one draw in two.
    shuffle : bool, default=True
        Whether to shuffle the samples; otherwise they come class after class.
    random_state : int, RandomState instance or None, default=None
        Seed, as in scikit-learn. Another seed alone is another problem, with other bases.

    Returns
    -------
    X : ndarray of shape (4 * n_per_class, n, n)
        Symmetric positive definite matrices, dimensionless.
    y : ndarray of int of shape (4 * n_per_class,)
        0: spectrum eta1 in basis V1; 1: eta1 in V2; 2: eta2 in V1; 3: eta2 in V2.

    Notes
    -----
    These are the synthetic data of Tang et al., "Probabilistic Learning Vector Quantization on Manifold of Symmetric
    Positive Definite Matrices". The spectra are ``eta1_j = 13 - j`` and ``eta2_j = 1 + 100 exp(-j / 2)`` for j = 1..n,
    each scaled to mean 1. A sample is ``X = sum_j lam_j u_j u_j^T``, where ``lam_j`` is uniform in
    ``[eta_j - spread, eta_j + spread]`` and the ``u_j`` are the columns of the Gram-Schmidt orthogonalisation of
    ``V + noise * N(0, 1)``.

    Examples
    --------
    >>> from rplvq.datasets import make_syn1, random_bases
    >>> bases = random_bases(10, random_state=0)
    >>> X_train, y_train = make_syn1(bases=bases, random_state=1)
    >>> X_test, y_test = make_syn1(100, bases=bases, random_state=2)
    """
    return _make([(0, 0), (0, 1), (1, 0), (1, 1)], n_per_class, n, noise, spread, bases, shuffle, random_state)


def make_syn2(
    n_per_class: int = 250,
    *,
    n: int = 10,
    noise: float = 0.3,
    spread: float = 0.1,
    bases: ArrayLike | None = None,
    shuffle: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Array, Array]:
    r"""Make SynII: four classes of SPD matrices, four spectra in one eigenbasis.

    Parameters
    ----------
    n_per_class : int, default=250
        Number of matrices per class. This, n, noise, spread, shuffle and random_state are as for :func:`make_syn1`.
    bases : array-like of shape (m, n, n), m >= 1, default=None
        Orthogonal matrices, of which the first, V1, is used: those of SynI will do. None draws them as there.

    Returns
    -------
    X, y : ndarray of shape (4 * n_per_class, n, n), and of int of shape (4 * n_per_class,)
        As for :func:`make_syn1`, whose errors are raised, too. Class k has the spectrum eta(k+1), in the basis V1.

    Notes
    -----
    Samples are drawn as by :func:`make_syn1`, with two more spectra, ``eta3_j = 13 - j / 2`` and ``eta4_j = 1 / j``,
    scaled to mean 1. The smallest eigenvalue of class 1 is uniform in about 0.003 to 0.2, so this class has a long tail
    in the affine-invariant metric.

    Examples
    --------
    >>> from rplvq.datasets import make_syn2
    >>> X, y = make_syn2(5, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((20, 10, 10), [0, 1, 2, 3])
    """
    return _make([(0, 0), (1, 0), (2, 0), (3, 0)], n_per_class, n, noise, spread, bases, shuffle, random_state)


def _make(
    kinds: list[tuple[int, int]], n_per_class: int, n: int, noise: float, spread: float, bases: ArrayLike | None,
    shuffle: bool, seed: int | np.random.RandomState | None,
) -> tuple[Array, Array]:  # fmt: skip
    """Draw n_per_class matrices of each class; ``kinds`` has the indices (spectrum, basis) of each class."""
    require_count("n_per_class", n_per_class, 1)
    require_count("n", n, 2)
    for name, value in (("noise", noise), ("spread", spread)):
        require_number(name, value, closed=True, finite=True)
    spectrum_of, basis_of = np.repeat(np.array(kinds), n_per_class, axis=0).T
    j = np.arange(1, n + 1)
    spectra = np.stack([13.0 - j, 1.0 + 100.0 * np.exp(-0.5 * j), 13.0 - 0.5 * j, 1.0 / j])  # eta1 to eta4
    centers = (spectra / spectra.mean(axis=1, keepdims=True))[spectrum_of]
    smallest = centers.min()
    if smallest - spread <= 0.0:
        what = f"lies around {smallest:.4g} and could become {smallest - spread:.4g}, but must stay positive"
        remedy = "Choose a smaller spread or a smaller n"
        raise ValueError(f"spread={spread} is too large for n={n}: the smallest eigenvalue {what}. {remedy}")
    rng = check_random_state(seed)
    fixed = random_bases(n, random_state=rng) if bases is None else _check_bases(bases, n, int(basis_of.max()) + 1)
    eigenvalues = rng.uniform(centers - spread, centers + spread)
    rotated = fixed[basis_of] + noise * rng.standard_normal((len(centers), n, n))
    X = from_spectrum(eigenvalues, _gram_schmidt(rotated))
    y = np.repeat(np.arange(len(kinds)), n_per_class)
    order = rng.permutation(len(y)) if shuffle else slice(None)  # drawn last, so that both have the same samples
    return X[order], y[order]


def _gram_schmidt(matrices: Array) -> Array:
    """Orthonormalise columns in order, shape (..., n, n), by the QR decomposition with a positive diagonal of R."""
    q, r = np.linalg.qr(matrices)  # whose signs LAPACK leaves open, unlike Gram-Schmidt
    negative = np.diagonal(r, axis1=-2, axis2=-1) < 0
    return np.where(negative[..., None, :], -q, q)


def _check_bases(bases: ArrayLike, n: int, at_least: int) -> Array:
    array = np.asarray(bases, dtype=float)
    remedy = f"draw them with random_bases({n})"
    if array.ndim != 3 or array.shape[1:] != (n, n) or len(array) < at_least:
        wanted = f"at least {at_least} matrices of shape ({n}, {n})"
        raise ValueError(f"bases must be {wanted}, got shape {array.shape}: {remedy}")
    gap = np.abs(array.swapaxes(1, 2) @ array - np.eye(n)).max(axis=(1, 2))
    if (index := first_bad(~(gap <= 1e-6))) is not None:
        what = f"V^T V differs from the identity by {gap[index]:.3g}"
        raise ValueError(f"bases[{index}] is not orthogonal: {what}. {remedy.capitalize()}")
    return array


@overload
def load_digits_covariances(*, shrinkage: float = ..., return_X_y: Literal[True] = ...) -> tuple[Array, Array]: ...
@overload
def load_digits_covariances(*, shrinkage: float = ..., return_X_y: Literal[False]) -> Bunch: ...


def load_digits_covariances(*, shrinkage: float = 0.1, return_X_y: bool = True) -> tuple[Array, Array] | Bunch:
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
