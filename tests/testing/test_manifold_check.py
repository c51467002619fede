"""check_manifold catches planted faults, and names them."""

from __future__ import annotations

import numpy as np
import pytest
from pymanopt.manifolds import ComplexGrassmann, Grassmann, SpecialOrthogonalGroup, Sphere

from rplvq import AffineInvariant, EuclideanVectors, FromPymanopt, LogEuclidean, ProjectedEuclidean, RiemannianLVQ
from rplvq.capabilities import Components
from rplvq.testing import check_manifold
from tests.problems import spd, spd_classes

AI, LE, EV = AffineInvariant(), LogEuclidean(), EuclideanVectors()


class Faulty:
    """A good part with some methods replaced."""

    def __init__(self, good, **replaced):
        self.good = good
        self.replaced = replaced

    def __getattr__(self, name):
        if name.startswith("__") or name in ("good", "replaced"):
            raise AttributeError(name)
        return self.replaced.get(name, getattr(self.good, name))


def with_sqdist(good, function):
    """Put a function of (prototypes, samples) in the place of sqdist, in connect as well."""

    def connect(w, x):
        return good.connect(w, x)._replace(sqdist=function(w, x))

    return Faulty(good, sqdist=function, connect=connect, components=None)


def with_weights(good, function):
    """Let move see a function of the weights (B, K)."""
    return Faulty(good, move=lambda geodesics, weights: good.move(geodesics, function(weights)))


def writing_encode(points):
    points *= 2
    return AI.encode(points)


def reshaped(w, x):
    """Squared distances of (prototype, sample) pairs, reshaped where they should be transposed."""
    return AI.sqdist(x, w).reshape(len(x), len(w))


def straight_move(geodesics, weights):
    """Interpolate matrices linearly: no geodesic of the affine-invariant metric."""
    g, x = np.linalg.inv(geodesics.factors), geodesics.log_eigenvalues
    white = (geodesics.eigenvectors * np.exp(x)[..., None, :]) @ geodesics.eigenvectors.swapaxes(-1, -2)
    pulled = np.einsum("bk,bkij->kij", weights, white - np.eye(white.shape[-1]))
    return g @ (np.eye(white.shape[-1]) + pulled) @ g.swapaxes(-1, -2)


def skewed_move(geodesics, weights):
    """Add an antisymmetric part, which Cholesky's algorithm does not see."""
    return np.asarray(AI.move(geodesics, weights)) + np.triu(np.full((3, 3), 0.1), 1)


class Stale:
    """Prototypes that know where they are, but hand out where they were."""

    def __init__(self, here, codes):
        self.here, self.codes = here, codes

    def __len__(self):
        return len(self.codes)

    def __array__(self, dtype=None, copy=None):
        return self.codes


def stale():
    def here(w):
        return w.here if isinstance(w, Stale) else w

    return Faulty(
        EV,
        sqdist=lambda w, x: EV.sqdist(here(w), x),
        connect=lambda w, x: EV.connect(here(w), x),
        move=lambda geodesics, weights: Stale(EV.move(geodesics, weights), geodesics.prototypes),
    )


def one_after_the_other(geodesics, weights):
    w = geodesics.prototypes
    for x, row in zip(geodesics.samples, weights, strict=True):
        w = w + row[:, None] * (x - w)
    return w


def move_in_place(geodesics, weights):
    geodesics.prototypes[:] = EV.move(geodesics, weights)
    return geodesics.prototypes


def manhattan(w, x):
    return np.abs(x[:, None] - w).sum(axis=2) ** 2


def halved_if_several(weights):
    return weights * (0.5 if np.count_nonzero(weights.any(axis=1)) > 1 else 1.0)


class Forgetful(EuclideanVectors):
    """Loses its scale when pickled."""

    scale = 1.0
    components = None

    def sqdist(self, prototypes, samples):
        return self.scale * super().sqdist(prototypes, samples)

    def connect(self, prototypes, samples):
        return super().connect(prototypes, samples)._replace(sqdist=self.sqdist(prototypes, samples))


def forgetful():
    part = Forgetful()
    object.__setattr__(part, "scale", 3.0)
    return part


MANIFOLD_FAULTS = {
    "encode writes": (Faulty(AI, encode=writing_encode), "encode must not write into its input"),
    "encode takes NaN": (Faulty(AI, encode=np.array), "must raise ValueError at NaN"),
    "encode gives a list": (Faulty(AI, encode=lambda x: list(AI.encode(x))), "must return an array"),
    "encode drops": (Faulty(AI, encode=lambda x: AI.encode(x)[1:]), "gave 6 codes of 7 points"),
    "encode makes NaN": (Faulty(AI, encode=lambda x: AI.encode(x) * np.nan), "finite codes"),
    "transposed": (with_sqdist(AI, lambda w, x: AI.sqdist(w, x).T), r"shape \(B, K\) = \(4, 3\)"),
    "NaN": (with_sqdist(AI, lambda w, x: AI.sqdist(w, x) * np.nan), "sqdist must be finite"),
    "negative": (with_sqdist(AI, lambda w, x: -AI.sqdist(w, x)), "must not be negative"),
    "all zero": (with_sqdist(AI, lambda w, x: 0 * AI.sqdist(w, x)), "must be positive between"),
    "offset": (with_sqdist(AI, lambda w, x: AI.sqdist(w, x) + 0.1), "to itself must be 0"),
    "lopsided": (
        with_sqdist(AI, lambda w, x: AI.sqdist(w, x) * np.asarray(w)[:, 0, 0]),
        r"sqdist must be symmetric: at index \(\d, \d\)",
    ),
    "reshaped": (with_sqdist(AI, reshaped), "follow the order of samples and prototypes"),
    "divided by batch": (with_sqdist(AI, lambda w, x: AI.sqdist(w, x) / len(x)), "not depend on the other samples"),
    "connect differs": (
        Faulty(AI, connect=lambda w, x: AI.connect(w, x)._replace(sqdist=0.5 * AI.sqdist(w, x))),
        "must equal sqdist",
    ),
    "decode one": (Faulty(AI, decode=lambda w: AI.decode(w)[0]), r"decode must return points of shape"),
    "decode doubles": (Faulty(AI, decode=lambda w: 2 * AI.decode(w)), "encode must undo decode"),
    "decode forgotten": (
        Faulty(LE, decode=lambda w: -np.eye(3) - np.asarray(w) ** 2),
        r"accept what decode returns: X\[0\]",
    ),
    "drift": (with_weights(AI, lambda weights: weights + 0.01), "weight 0 must stay"),
    "move returns one": (
        Faulty(AI, move=lambda g, weights: np.asarray(AI.move(g, weights))[:1]),
        "move must return prototypes of shape",
    ),
    "prototypes mixed": (
        with_weights(AI, lambda s: np.repeat(s.mean(axis=1, keepdims=True), s.shape[1], axis=1)),
        "leave the prototypes without weight",
    ),
    "overshoots": (with_weights(AI, lambda weights: 1.5 * weights), "weight 1 must reach the sample"),
    "runs away": (with_weights(AI, lambda weights: -weights), "weight 1 must reach the sample"),
    "no geodesic": (Faulty(AI, move=straight_move), "weight 0.3 must leave 0.49 of sqdist"),
    "clips negative": (with_weights(LE, lambda s: s.clip(0)), "weight -0.2 must leave 1.44 of sqdist"),
    "not squared": (with_sqdist(AI, lambda w, x: np.sqrt(AI.sqdist(w, x))), "looks like the distance, not its square"),
    "leaves": (Faulty(AI, move=skewed_move), r"stay on the manifold, but encode says: X\[0\] is not sym"),
    "stale": (stale(), "must have the distances of its codes"),
    "sequential": (Faulty(EV, move=one_after_the_other), "not depend on the order of the samples"),
    "averages": (with_weights(AI, lambda s: s / len(s)), "the move of that sample alone"),
    "ignores small": (
        with_weights(AI, lambda s: s * (np.abs(s) > 1e-3)),
        "by a small weight s must change sqdist by -2 s sqdist",
    ),
    "no inner product": (with_sqdist(EV, manhattan), "must follow the gradient of sqdist"),
    "not additive": (with_weights(EV, halved_if_several), "add up the logarithms"),
    "moves in place": (Faulty(EV, move=move_in_place), "must not write into codes"),
    "pull without exp": (Faulty(AI, exp=None), "offer both pull and exp, or neither"),
    "pull of all": (Faulty(AI, pull=lambda g, s: AI.pull(g, s)[:1]), "return one tangent per prototype"),
    "exp doubles": (Faulty(AI, exp=lambda w, v: AI.exp(w, 2 * v)), "move must be exp of pull"),
    "pull averages": (
        Faulty(AI, pull=lambda g, s: AI.pull(g, s) / len(s), exp=lambda w, v: AI.exp(w, 4 * v)),
        "pulls of batches must add up",
    ),
    "half is explained": (
        Faulty(AI, components=lambda w, x: Components(0.5 * AI.components(w, x).shares)),
        "shares of components must add up to sqdist",
    ),
    "one is explained": (
        Faulty(AI, components=lambda w, x: Components(AI.components(w[:1], x).shares)),
        r"components must have shares \(B, K, ...\)",
    ),
}
VECTORS = {"stale", "sequential", "no inner product", "not additive", "moves in place"}


@pytest.mark.parametrize("name", MANIFOLD_FAULTS)
def test_a_faulty_manifold_is_named(name):
    manifold, sentence = MANIFOLD_FAULTS[name]
    points = np.random.default_rng(0).normal(size=(7, 3)) if name in VECTORS else None
    with pytest.raises(AssertionError, match=sentence):
        check_manifold(manifold, points, pickling=False)


@pytest.mark.parametrize("good", [AI, LE, EV, ProjectedEuclidean(), ProjectedEuclidean(relative=True)])
def test_a_good_manifold_passes_also_behind_the_wrapper_of_the_faults(good):
    assert check_manifold(good) is None
    assert check_manifold(Faulty(good), random_state=1) is None


@pytest.mark.parametrize(
    "good",
    [
        with_sqdist(AI, AI.sqdist),
        with_weights(LE, lambda s: s),
        with_sqdist(EV, lambda w, x: 2 * EV.sqdist(w, x)),  # the metric, twice: as good as any
    ],
)
def test_the_ways_of_planting_faults_are_no_faults(good):
    check_manifold(good, pickling=False)


def test_an_unpicklable_manifold_is_named():
    with pytest.raises(AssertionError, match=r"manifold must be picklable.*without lambdas"):
        check_manifold(with_weights(AI, lambda weights: weights))


def test_a_manifold_that_pickling_changes_is_named():
    check_manifold(forgetful(), np.random.default_rng(0).normal(size=(5, 2)), pickling=False)
    with pytest.raises(AssertionError, match="same sqdist after pickling"):
        check_manifold(forgetful(), np.random.default_rng(0).normal(size=(5, 2)))


@pytest.mark.parametrize("manifold", [Sphere(3), Grassmann(4, 2)], ids=str)
def test_points_are_asked_for_where_the_defaults_do_not_fit(manifold):
    with pytest.raises(ValueError, match=r"pass points of the manifold.*X\[0\] is not a point of"):
        check_manifold(FromPymanopt(manifold))


@pytest.mark.parametrize("manifold", [Grassmann(5, 2), ComplexGrassmann(4, 2), SpecialOrthogonalGroup(3)], ids=str)
def test_points_on_both_sides_of_a_cut_locus_are_drawn_nearer(manifold):
    """Random points of a compact manifold are so far apart that longer geodesics are not the shortest ones."""
    np.random.seed(0)  # noqa: NPY002 - pymanopt draws from the global generator
    points = np.array([manifold.random_point() for _ in range(8)])
    check_manifold(FromPymanopt(manifold), points)
    good = FromPymanopt(manifold)
    with pytest.raises(AssertionError, match=r"move with weight (1\.0|0\.3|-0\.2|1) must"):
        check_manifold(with_weights(good, lambda weights: 0.9 * weights), points, pickling=False)


class Partial:
    """A beginning of a manifold."""

    def encode(self, points):
        return np.asarray(points)

    def sqdist(self, prototypes, samples):
        return EV.sqdist(prototypes, samples)


def test_methods_that_lack_are_named_with_what_they_are_for():
    wanted = r"is not a Manifold: it lacks decode \(changes codes back to points\), connect \(.*\), move \(moves proto"
    with pytest.raises(AssertionError, match=wanted):
        check_manifold(Partial())
    with pytest.raises(AssertionError, match="it is a class, pass an instance"):
        check_manifold(EuclideanVectors)
    with pytest.raises(ValueError, match=wanted):
        RiemannianLVQ(Partial()).fit([[0.0], [1.0]], [0, 1])


class KullbackLeibler:
    """d(x, w) = sum_i x_i log(x_i / w_i) - x_i + w_i for positive vectors, whose gradient by w is 1 - x / w.

    The steps are those of the metric 1 / w: ``V = -w (1 - x / w) / 2``, and straight lines.
    """

    def encode(self, points):
        if not (np.asarray(points) > 0).all():
            raise ValueError("X must be positive")
        return np.array(points, dtype=float)

    def decode(self, codes):
        return np.array(codes)

    def sqdist(self, prototypes, samples):
        x, w = samples[:, None], np.asarray(prototypes)
        return (x * np.log(x / w) - x + w).sum(axis=2)

    def connect(self, prototypes, samples):
        return EV.connect(prototypes, samples)._replace(sqdist=self.sqdist(prototypes, samples))

    def move(self, geodesics, weights):
        return EV.move(geodesics, 0.5 * weights)


POSITIVE = np.random.default_rng(0).uniform(2.0, 3.0, (7, 3))


class Wishart:
    """d = 2 (tr A - log det A - n) with A = W^-1 X, and straight steps along V = X - W."""

    encode, decode = AI.encode, AI.decode

    def sqdist(self, prototypes, samples):
        ratio = np.linalg.solve(np.asarray(prototypes), samples[:, None])
        return 2 * (np.trace(ratio, axis1=2, axis2=3).real - np.linalg.slogdet(ratio)[1] - ratio.shape[-1])

    def connect(self, prototypes, samples):
        return EV.connect(np.asarray(prototypes), samples)._replace(sqdist=self.sqdist(prototypes, samples))

    def move(self, geodesics, weights):
        pulled = np.einsum("bk,bkij->kij", weights, geodesics.samples[:, None] - geodesics.prototypes)
        return geodesics.prototypes + pulled


@pytest.mark.parametrize("dtype", [float, complex])
def test_the_wishart_divergence_passes_with_straight_steps(dtype):
    points = spd(np.random.default_rng(0), 8, 3, dtype=dtype)
    check_manifold(Wishart(), points, divergence=True)
    X, y = spd_classes(dtype=dtype)
    assert (
        RiemannianLVQ(Wishart(), sigma2=1.0, step_size=0.02, max_epochs=5, random_state=0).fit(X, y).score(X, y) > 0.9
    )


def test_a_divergence_that_is_not_symmetric_passes_as_one_only():
    check_manifold(KullbackLeibler(), POSITIVE, divergence=True)
    check_manifold(EV, divergence=True)
    with pytest.raises(AssertionError, match="sqdist must be symmetric"):
        check_manifold(KullbackLeibler(), POSITIVE)


@pytest.mark.parametrize("factor", [-1.0, 4.5], ids=["runs away", "overshoots"])
def test_a_faulty_divergence_is_named(factor):
    faulty = with_weights(KullbackLeibler(), lambda s: factor * s)
    with pytest.raises(AssertionError, match=r"weight 1\.0 must lower the divergence"):
        check_manifold(faulty, POSITIVE, divergence=True, pickling=False)


def test_a_divergence_whose_steps_are_no_gradient_is_named():
    def crooked_move(geodesics, weights):
        moved = EV.move(geodesics, 0.5 * weights)
        return moved + 0.2 * np.roll(moved - geodesics.prototypes, 1, axis=1)

    crooked = Faulty(KullbackLeibler(), move=crooked_move)
    with pytest.raises(AssertionError, match="must follow the gradient of sqdist"):
        check_manifold(crooked, POSITIVE, divergence=True, pickling=False)


def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match="at least 4 points, got 3"):
        check_manifold(EV, np.eye(3))


def test_points_are_not_written_to():
    points = np.random.default_rng(0).normal(size=(6, 2))
    kept = points.copy()
    check_manifold(EV, points)
    assert np.array_equal(points, kept)
