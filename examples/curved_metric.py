"""A curved metric of your own

A metric that is not flat stores what `move` needs in the object that `connect` returns. In this example the points are
normal distributions, pairs (mean, standard deviation), and the metric is that of Fisher and Rao: a shift by 1 is small
between broad distributions and large between narrow ones. This is a hyperbolic plane, which has short formulas. The
stars in the figure are prototypes. Some that the Euclidean metric learned have a negative deviation and are not drawn.
"""

from typing import NamedTuple

import attrs
import matplotlib.pyplot as plt
import numpy as np

from rplvq import RiemannianLVQ
from rplvq.testing import check_manifold


# %% Codes are points p of the hyperboloid <p, p> = -1, with <p, q> = -p0 q0 + p1 q1 + p2 q2
class Pairs(NamedTuple):
    sqdist: np.ndarray  # (B, K)
    logarithms: np.ndarray  # (B, K, 3)
    prototypes: np.ndarray  # (K, 3)


@attrs.frozen
class FisherRao:
    """d = sqrt(2) t with cosh t = -<x, w>; Log_w(x) = (x - cosh(t) w) t / sinh t; Exp_w(v) below."""

    def encode(self, points):
        points = np.asarray(points, dtype=float)
        for i in np.flatnonzero(~(np.isfinite(points).all(axis=1) & (points[:, 1] > 0))):
            raise ValueError(f"X[{i}] is {points[i]}: pass a finite mean and a positive standard deviation")
        mean, sd = points[:, 0] / np.sqrt(2), points[:, 1]
        high, low = (mean**2 + sd**2) / (2 * sd), 1 / (2 * sd)
        return np.stack([high + low, mean / sd, high - low], axis=1)

    def decode(self, codes):
        sd = 1 / (codes[:, 0] - codes[:, 2])
        return np.stack([np.sqrt(2) * codes[:, 1] * sd, sd], axis=1)

    def sqdist(self, prototypes, samples):
        return self.connect(prototypes, samples).sqdist

    def connect(self, prototypes, samples):
        apart = samples[:, None] - prototypes
        t = 2 * np.arcsinh(np.sqrt(np.maximum(inner(apart, apart), 0)) / 2)[..., None]  # also exact for near points
        stretch = np.divide(t, np.sinh(t), where=t > 0, out=np.ones_like(t))
        return Pairs(2 * t[..., 0] ** 2, stretch * (samples[:, None] - np.cosh(t) * prototypes), prototypes)

    def move(self, geodesics, weights):
        tangents = np.einsum("bk,bki->ki", weights, geodesics.logarithms)
        length = np.sqrt(np.maximum(inner(tangents, tangents), 0))[:, None]
        stretch = np.divide(np.sinh(length), length, where=length > 0, out=np.ones_like(length))
        _, p1, p2 = (np.cosh(length) * geodesics.prototypes + stretch * tangents).T
        return np.stack([np.sqrt(1 + p1**2 + p2**2), p1, p2], axis=1)  # exactly on the hyperboloid


def inner(p, q):
    return (p * q) @ [-1, 1, 1]


# %% Recordings of 20 numbers at three scales, each shifted down or up; the spread varies within a class
rng, scale, sign = np.random.default_rng(0), np.repeat([0.2, 1.0, 5.0], 2), np.tile([-1, 1], 3)
y = np.repeat([f"{a} {'up' if b > 0 else 'down'}" for a, b in zip(scale, sign, strict=True)], 100)
sd = np.repeat(scale, 100) * np.exp(0.4 * rng.normal(size=600))
recordings = np.repeat(0.7 * sign * scale, 100)[:, None] + sd[:, None] * rng.normal(size=(600, 20))
X = np.stack([recordings.mean(axis=1), recordings.std(axis=1)], axis=1)
check_manifold(FisherRao(), X[::90])
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, metric) in zip(axes, [("Euclidean", "euclidean_vectors"), ("Fisher-Rao", FisherRao())], strict=True):
    means, model = (RiemannianLVQ(metric, max_epochs=n, random_state=0).fit(X[::2], y[::2]) for n in (0, 20))
    before, after = (fitted.score(X[1::2], y[1::2]) for fitted in (means, model))
    print(f"{name:11s} accuracy of class means {before:.3f}, trained {after:.3f}")
    ax.scatter(*X.T, s=6, c=np.unique(y, return_inverse=True)[1], cmap="tab10")
    ax.plot(*model.prototypes_.T, "k*", ms=10)
    ax.set(xscale="symlog", yscale="log", xlabel="mean", ylabel="standard deviation", title=f"{name}: {after:.3f}")
plt.show()
