"""Make rplvq/costs/normaliser.npz: the Riemannian Gaussian's normaliser on real SPD matrices, n = 2..32.

Run ``python tools/normaliser_table.py`` with mpmath installed (some minutes); the library itself does not need it.

With Z(sigma) the integral of exp(-d^2 / (2 sigma^2)) over the manifold, de Bruijn's Pfaffian formula gives::

    log Z = const + n log sigma + sigma^2 n (n^2 - 1) / 24 + log|det B| / 2,  B_jk = erf(sigma (k - j) / 2)

with j, k = 1..n, bordered by a row of 1 and a column of -1 when n is odd. B is so ill-conditioned for small sigma that
more than 12 n digits are lost. The constant is the one for which log Z - (n (n + 1) / 4) log(2 pi sigma^2) vanishes as
sigma goes to 0, by Mehta's integral.

The table holds, for each n, Chebyshev coefficients of ``lag / x`` with ``lag = sigma^2 n (n^2 - 1) / 24 - excess``,
where excess is log Z less its flat limit, in the variable ``x = log(1 + n sigma^2)`` from 0 to sigma = 12, where B is
the matrix of signs to 1e-16 and log|det B| = 0.
"""

from __future__ import annotations

import math
from pathlib import Path

import mpmath as mp
import numpy as np
from numpy.polynomial import chebyshev

LARGEST_N = 32
LARGEST_SIGMA = 12
DEGREE = 64
TARGET = Path(__file__).resolve().parents[1] / "rplvq" / "costs" / "normaliser.npz"


def mehta(n: int) -> mp.mpf:
    """Logarithm of Mehta's integral over n! (2 pi)^(n / 2), for unit variance."""
    factors = [mp.gamma(1 + mp.mpf(j) / 2) / mp.gamma(mp.mpf(3) / 2) for j in range(1, n + 1)]
    return mp.log(mp.fprod(factors) / mp.factorial(n))


def lag(n: int, x: float, spare: int = 0) -> mp.mpf:
    """``sigma^2 n (n^2 - 1) / 24 - excess`` at x = log(1 + n sigma^2); ``spare`` digits more than are needed."""
    sigma = mp.sqrt(mp.expm1(mp.mpf(x)) / n)
    mp.mp.dps = 60 + spare + (20 * n if sigma < 0.5 else 8 * n)
    sigma = mp.sqrt(mp.expm1(mp.mpf(x)) / n)
    size = n + n % 2
    error = [mp.erf(sigma * gap / 2) for gap in range(n)]
    rows = mp.zeros(size)
    for j in range(size):
        for k in range(j + 1, size):
            rows[j, k] = error[k - j] if k < n else mp.mpf(1)
            rows[k, j] = -rows[j, k]
    return mehta(n) + mp.mpf(n * (n - 1)) / 2 * mp.log(sigma) - mp.log(abs(mp.det(rows))) / 2


def coefficients(n: int) -> np.ndarray:
    """Chebyshev coefficients (DEGREE + 1,) of lag / x."""
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    x = math.log1p(n * LARGEST_SIGMA**2) * (nodes + 1) / 2
    return chebyshev.chebfit(nodes, [float(lag(n, float(at)) / mp.mpf(float(at))) for at in x], DEGREE)


def error(n: int, row: np.ndarray, n_points: int = 10) -> float:
    """Largest absolute error of log Z at random places, against twice as many digits."""
    largest = math.log1p(n * LARGEST_SIGMA**2)
    x = np.random.default_rng(n).uniform(0, largest, n_points)
    found = x * chebyshev.chebval(2 * x / largest - 1, row)
    return max(abs(float(lag(n, float(at), 20 * n) - mp.mpf(float(value)))) for at, value in zip(x, found, strict=True))


def main() -> None:
    """Write the table, and say how far off it is."""
    table = np.array([coefficients(n) for n in range(2, LARGEST_N + 1)])
    np.savez_compressed(TARGET, table=table, largest_sigma=LARGEST_SIGMA)
    print({n: f"{error(n, table[n - 2]):.1e}" for n in (2, 3, 5, 8, 16, 22, 31, 32)})


if __name__ == "__main__":
    main()
