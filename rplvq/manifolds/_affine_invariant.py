"""Positive definite matrices under the affine-invariant metric, the reference geometry of this library."""

from typing import Literal, NamedTuple

import attrs
import numpy as np
from numpy.typing import DTypeLike

from rplvq.arrays import adjoint, check_positive_definite, lower_inverse, row_slices, squared_roots
from rplvq.capabilities import Components, Spectrum
from rplvq.lanes import LaneKernels
from rplvq.manifolds._logarithms import ascending_eigenvalues, kernels_for, kernels_for_many, whitened_spectra
from rplvq.manifolds._lower_bound import common_frame, lower_bounds, nearest_by_bound
from rplvq.manifolds._shrinkage import as_vectors
from rplvq.parts import has_kernel, library_part, number_in, one_of
from rplvq.protocols import Array, ArrayLike, Prototypes

EPS = np.array(np.finfo(float).eps)
TINY = np.array(np.finfo(float).tiny)
ILL_CONDITIONED = 1e8
"""Rounding of a whitened spectrum, in units of eps, above which sqdist uses the singular values of roots instead."""
WIDE = float(np.log(ILL_CONDITIONED))
"""Range of the logarithms of a whitened spectrum above which connect uses the singular values of roots instead."""
FEW_PAIRS = 30
"""Smallest number of pairs for which compiled rotations are used; it is larger for small and for large matrices."""
SMALLEST_IN_LANES = 3
"""Smallest size n for which distances are computed in lanes; for 2 x 2 matrices this pays for hundreds of them only."""
FEWEST_BOUNDED = 3
"""With fewer prototypes than this, lower bounds cost as much time as the distances that they save."""
FEW_DISTANCES = 256
"""With fewer pairs of a sample and a prototype than this, preparing the bounds takes longer than all distances."""


@library_part
@attrs.define(eq=False, repr=False)
class InverseFactors:
    """Prototypes W_k stored as G_k (K, n, n) with ``G_k W_k G_k^H = I``, which is all that training needs.

    The factors need not be triangular, and must not be written to.
    """

    factors: Array

    def __len__(self) -> int:
        return len(self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (K, n, n) of the matrices; without it, NumPy would compute them."""
        return self.factors.shape

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return the matrices W = G^-1 G^-H, shape (K, n, n)."""
        return np.asarray(squared_roots(np.linalg.inv(self.factors)), dtype=dtype)


class AffineInvariantGeodesics(NamedTuple):
    """Spectra of the whitened samples, ``G_k X_b G_k^H = U diag(exp(log_eigenvalues)) U^H``."""

    sqdist: Array  # (B, K)
    log_eigenvalues: Array  # (B, K, n)
    eigenvectors: Array  # (B, K, n, n)
    factors: Array  # (K, n, n)


def inverse_factors(prototypes: Prototypes) -> Array:
    """Return G (K, n, n) with ``G W G^H = I``: the stored factors, or the inverse Cholesky factors of matrices W."""
    if isinstance(prototypes, InverseFactors):
        return prototypes.factors
    try:
        return lower_inverse(np.linalg.cholesky(prototypes))
    except np.linalg.LinAlgError as error:
        smallest = np.linalg.eigvalsh(prototypes).min(axis=-1)
        place = int(np.argmax(~(smallest > 0)))
        rule = f"prototypes[{place}] is not positive definite: its smallest eigenvalue is {smallest[place]:.3g}"
        raise np.linalg.LinAlgError(rule) from error


def whiten(factors: Array, samples: Array) -> Array:
    """Return ``G_k X_b G_k^H`` (B, K, n, n) for factors (K, n, n), or (B, K, n, n), and samples (B, n, n)."""
    if factors.ndim == 4:
        return np.asarray(factors @ samples[:, None] @ adjoint(factors))
    n_prototypes, n = factors.shape[:2]
    left: Array = factors.reshape(n_prototypes * n, n) @ samples
    whitened: Array = left.reshape(len(samples), n_prototypes, n, n) @ adjoint(factors)
    return whitened


def log_spectrum(eigenvalues: Array) -> Array:
    """Return the logarithms of ascending whitened eigenvalues (..., n)."""
    # Eigenvalues below eps times the largest are rounding. They are raised to it, so that no distance is NaN.
    logs = np.maximum(eigenvalues, eigenvalues[..., -1:] * EPS)
    return np.asarray(np.log(logs, out=logs))


def follow(factors: Array, halves: Array, basis: Array) -> InverseFactors:
    """Return the factors ``diag(exp(halves)) U^H G`` for factors G and bases U (K, n, n) and halves (K, n)."""
    moved = adjoint(basis) @ factors
    moved *= np.exp(halves)[..., None]
    return InverseFactors(moved)


def decompose(factors: Array, samples: Array, kernels: LaneKernels | None) -> tuple[Array, Array]:
    """Return l (B, K, n), unsorted, and U (B, K, n, n) with ``G X G^H = U diag(exp(l)) U^H`` for all pairs.

    The factors G are (K, n, n), or (B, K, n, n) with those of each sample X (B, n, n). LAPACK serves without kernels.
    """
    spectra = None if kernels is None else whitened_spectra(kernels, factors, samples)
    if spectra is not None:
        return spectra
    eigenvalues, eigenvectors = np.linalg.eigh(whiten(factors, samples))
    logs = np.log(np.maximum(eigenvalues, TINY))
    # The squared range of a spectrum is at most twice its sum of squares, which is computed faster and mostly small.
    if 2 * np.vdot(logs, logs) > WIDE * WIDE:
        logs = log_spectrum(eigenvalues)
        sharpen(np.nonzero(logs[..., -1] - logs[..., 0] > WIDE), logs, factors, samples, eigenvectors)
    return logs, eigenvectors


def imprecise(logs: Array, factors: Array, samples: Array) -> tuple[Array, ...]:
    """Return the indices, rows and columns, of the pairs whose spectra (B, K, n) the rounding of ``G X G^H`` spoils."""
    # The eigenvalues of G X G^H are known only to eps |G|^2 |X|, where |X| is at most the trace.
    with np.errstate(over="ignore"):
        flat = as_vectors(factors)
        traces = np.trace(samples, axis1=1, axis2=2).real
        size = np.vecdot(flat, flat) / ILL_CONDITIONED * traces[:, None]
        return np.nonzero(np.log(size) > logs[..., 0])


def sharpen(
    pairs: tuple[Array, ...], logs: Array, factors: Array, samples: Array, eigenvectors: Array | None = None
) -> None:
    """Recompute, in place, log-spectra (B, K, n) at ``pairs``, rows and columns, and eigenvectors if they are given."""
    # With X = L L^H, the eigenvalues and eigenvectors of G X G^H are the squared singular values and the left singular
    # vectors of G L, whose errors depend on the square roots of the condition numbers.
    rows, columns = pairs
    if not len(rows):
        return
    own = factors[columns] if factors.ndim == 3 else factors[rows, columns]  # samples may have their own
    try:
        roots = np.linalg.cholesky(samples[rows])
    except np.linalg.LinAlgError:  # codes that encode would refuse
        return
    if eigenvectors is None:
        singular = np.linalg.svd(own @ roots, compute_uv=False)
    else:
        vectors, singular, _ = np.linalg.svd(own @ roots)
        eigenvectors[rows, columns] = vectors[..., ::-1]
    logs[rows, columns] = 2 * log_spectrum(singular[:, ::-1])


@library_part
@attrs.frozen
class AffineInvariant:
    """Symmetric or Hermitian positive definite matrices under the affine-invariant metric.

    ``d^2(X, W) = sum_i log^2 lam_i``, where lam are the eigenvalues of ``W^-1 X``. With ``G W G^H = I`` and
    ``G X G^H = U diag(lam) U^H``, one decomposition gives the distance, the logarithm
    ``Log_W(X) = G^-1 U diag(log lam) U^H G^-H`` and the step: after ``Exp_W(s Log_W X)`` the inverse factor is
    ``diag(lam^(-s/2)) U^H G`` (Tang et al., "Probabilistic Learning Vector Quantization on Manifold of
    Symmetric Positive Definite Matrices"; Pennec, Fillard and Ayache 2006, doi:10.1007/s11263-005-3222-z).

    Parameters
    ----------
    max_step_length : float, default=10
        Longest step of a prototype. A step of length r changes eigenvalues by factors of up to ``exp(r)``; with r above
        about 30 the result may not be positive definite, because of rounding.
    compiled : {"auto", True, False}, default="auto"
        Whether training runs compiled steps under this metric (extra ``fast``, numba). "auto" does so if numba is
        installed, the cost is one of the library, steps take one sample each, rotations are faster than LAPACK (n below
        about 55), and compiling pays: the kernel is stored since an earlier fit, or the fits of this process are long.
        Until then fits run plain, and may differ from later ones in rounding. True compiles at once, and raises an
        error if there is no kernel; False never compiles. Unless this is False, distances of matrices from 3 x 3 to
        96 x 96 are computed from compiled eigenvalues, too. The other metrics of the library behave as with "auto".

    Notes
    -----
    Steps are right to a relative error of about 1e-16 times the condition number of the matrices: a full step ends at
    the sample up to 1e-8 of the distance for condition numbers of 1e8, and up to 1e-4 of it for 1e12.

    Examples
    --------
    >>> from rplvq import AffineInvariant
    >>> manifold = AffineInvariant()
    >>> codes = manifold.encode([np.eye(2), np.diag([np.e, 1.0])])
    >>> geodesics = manifold.connect(codes[:1], codes)
    >>> geodesics.sqdist
    array([[0.],
           [1.]])
    >>> manifold.decode(manifold.move(geodesics, np.array([[0.0], [1.0]])))[0].round(6)
    array([[2.718282, 0.      ],
           [0.      , 1.      ]])
    """

    max_step_length: float = attrs.field(default=10.0, validator=number_in())
    compiled: bool | Literal["auto"] = attrs.field(default="auto", validator=one_of("auto", True, False))

    def encode(self, points: ArrayLike) -> Array:
        """Return matrices (N, n, n) as they are; raise ValueError at the first that is not positive definite."""
        return check_positive_definite(points)

    def decode(self, codes: Prototypes) -> Array:
        """Return the matrices, shape (K, n, n)."""
        return np.array(codes)

    def sqdist(self, prototypes: Prototypes, samples: Array) -> Array:
        """Return the squared distances (B, K), computed from eigenvalues alone, in chunks of bounded memory.

        Ill-conditioned pairs are computed again from Cholesky factors. Therefore the distance of two matrices with
        condition numbers up to 1e8 is the same to a relative error of 1e-8 whichever of them is the prototype.
        """
        factors = inverse_factors(prototypes)
        kernels = None
        # The choice does not depend on the number of samples, so that the bits of a distance do not depend on the
        # samples beside it. From single prototypes mostly one or two distances are asked, in the search for a mean.
        if self.compiled is not False and samples.shape[-1] >= SMALLEST_IN_LANES and len(factors) > 1:
            kernels = kernels_for("batch_eigenvalues", samples, len(samples), at_once=self.compiled is True)
        result = np.empty((len(samples), len(factors)))
        for rows in row_slices(len(samples), 2 * factors.nbytes):
            whitened = whiten(factors, samples[rows])
            if kernels is None:
                spectra = np.linalg.eigvalsh(whitened)
            else:
                spectra = ascending_eigenvalues(whitened.reshape(-1, *whitened.shape[2:]), kernels)
            logs = log_spectrum(spectra.reshape(whitened.shape[:3]))
            sharpen(imprecise(logs, factors, samples[rows]), logs, factors, samples[rows])
            result[rows] = np.vecdot(logs, logs)
        return result

    def nearest(self, prototypes: Prototypes, samples: Array, groups: Array | None = None) -> Array:
        """Return the index (B,) of the nearest prototype, or of one of the same group, with few of the K distances.

        Lower bounds that need no eigenvalues rule out nearly all of them (Bhatia 2007, Positive Definite Matrices,
        Theorem 6.1.4). Where two distances differ by rounding only, :meth:`sqdist` decides, so that the index is that
        of ``sqdist(prototypes, samples).argmin(axis=1)``, or its group, if ``groups`` (K,) are given.
        """
        factors = inverse_factors(prototypes)
        if len(factors) < FEWEST_BOUNDED or len(factors) * len(samples) < FEW_DISTANCES:
            return np.asarray(self.sqdist(InverseFactors(factors), samples).argmin(axis=1))
        frame = common_frame(factors.astype(np.result_type(factors, samples), copy=False))
        groups = np.arange(len(factors)) if groups is None else groups  # each is a group of its own
        result = np.empty(len(samples), dtype=np.intp)
        names = ("batch_eigenvalues", "batch_inverses")
        kernels, inverses = (None if self.compiled is False else kernels_for_many(name, samples) for name in names)

        def spectra(factors: Array, samples: Array) -> Array:
            return log_spectrum(ascending_eigenvalues(factors @ samples @ adjoint(factors), kernels))

        for rows in row_slices(len(samples), 4 * samples[0].nbytes + 32 * len(factors)):
            part = samples[rows]
            bounds = lower_bounds(frame, part, inverses)
            winner, tied = nearest_by_bound(frame, bounds, factors, part, groups, spectra)
            if tied.any():
                winner[tied] = self.sqdist(InverseFactors(factors), part[tied]).argmin(axis=1)
            result[rows] = winner
        return result

    @has_kernel("affine_invariant")
    def connect(self, prototypes: Prototypes, samples: Array) -> AffineInvariantGeodesics:
        """Decompose each of the B K whitened pairs (b, k) once, and those with a wide spectrum again from roots."""
        factors = inverse_factors(prototypes)
        logs, eigenvectors = decompose(factors, samples, self.rotations(factors, samples))
        return AffineInvariantGeodesics(np.vecdot(logs, logs), logs, eigenvectors, factors)

    def rotations(self, factors: Array, samples: Array) -> LaneKernels | None:
        """Return compiled kernels if they decompose all pairs of factors and samples, both (..., n, n), faster."""
        count = len(factors) * len(samples)
        n = samples.shape[-1]
        if count < FEW_PAIRS or count < max(2 * n, 10 * FEW_PAIRS // n) or self.compiled is False:
            return None
        return kernels_for("batch_spectra", samples, count, at_once=self.compiled is True)

    @has_kernel("affine_invariant")
    def move(self, geodesics: AffineInvariantGeodesics, weights: Array) -> InverseFactors:
        """Move K prototypes along the logarithms, with weights (B, K).

        A step on one sample follows its geodesic and reuses its spectrum. For several samples the sums of the whitened
        logarithms are decomposed, one per prototype.
        """
        _, logs, eigenvectors, factors = geodesics
        if len(weights) > 1:
            return self.exp(InverseFactors(factors), self.pull(geodesics, weights))
        return follow(factors, weights.T * -0.5 * logs[0], eigenvectors[0])

    def pull(self, geodesics: AffineInvariantGeodesics, weights: Array) -> Array:
        """Return the weighted sums of the whitened logarithms ``G_k Log_k(x_b) G_k^H``, shape (K, n, n).

        In these coordinates, which depend on the factors G, the affine-invariant inner product is ``Re tr(A B)``.
        """
        _, logs, eigenvectors, _ = geodesics
        scaled = (eigenvectors * (weights[..., None] * logs)[..., None, :]) @ adjoint(eigenvectors)
        return np.asarray(scaled.sum(axis=0))

    def exp(self, prototypes: Prototypes, tangents: Array) -> InverseFactors:
        """Follow whitened tangents (K, n, n) of :meth:`pull`, with one eigendecomposition per prototype."""
        lengths, basis = np.linalg.eigh(tangents)
        return follow(inverse_factors(prototypes), -0.5 * lengths, basis)

    def logarithms(self, prototypes: Prototypes, samples: Array, owners: Array) -> tuple[Array, Array]:
        """Return the squared distance (B,) of each sample to one prototype, and its whitened logarithm (B, n, n).

        ``owners`` (B,) are the indices of these prototypes, and the coordinates are those of :meth:`pull`.
        """
        factors = inverse_factors(prototypes)[owners, None]
        pairs = decompose(factors, samples, self.rotations(factors[0], samples))
        logs, vectors = (each[:, 0] for each in pairs)
        return np.vecdot(logs, logs), (vectors * logs[:, None]) @ adjoint(vectors)

    def components(self, prototypes: Prototypes, samples: Array) -> Components:
        """Split each squared distance into the n squared logarithms of its generalised eigenvalues, shape (B, K, n).

        With ``G W G^H = I`` and ``G X G^H = U diag(lam) U^H``, the filters are the columns of ``G^H U`` and the
        patterns those of ``G^-1 U``, both of shape (B, K, n, n).
        """
        _, logs, eigenvectors, factors = self.connect(prototypes, samples)
        filters = adjoint(factors) @ eigenvectors
        patterns = np.linalg.inv(factors) @ eigenvectors
        return Components(logs**2, Spectrum(np.exp(logs), filters, patterns))
