"""The checks for users' own parts catch planted faults, and name them."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from pymanopt.manifolds import Grassmann, Sphere
from scipy.special import log_softmax

from rplvq import (
    PLVQ,
    RSLVQ,
    AffineInvariant,
    Annealed,
    EuclideanVectors,
    FromPymanopt,
    GeometricDecay,
    LogEuclidean,
    ProjectedEuclidean,
)
from rplvq.protocols import Evaluation
from rplvq.testing import check_cost, check_manifold, check_schedule

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


# --- faults of a manifold


def with_sqdist(good, function):
    """Put a function of (prototypes, samples) in the place of sqdist, in connect as well."""

    def connect(w, x):
        return good.connect(w, x)._replace(sqdist=function(w, x))

    return Faulty(good, sqdist=function, connect=connect)


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
    "encode gives a list": (
        Faulty(AI, encode=lambda x: list(AI.encode(x))),
        "must return an array",
    ),
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
    "divided by batch": (
        with_sqdist(AI, lambda w, x: AI.sqdist(w, x) / len(x)),
        "not depend on the other samples",
    ),
    "connect differs": (
        Faulty(AI, connect=lambda w, x: AI.connect(w, x)._replace(sqdist=0.5 * AI.sqdist(w, x))),
        "must equal sqdist",
    ),
    "decode one": (
        Faulty(AI, decode=lambda w: AI.decode(w)[0]),
        r"decode must return points of shape",
    ),
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
    "overshoots": (
        with_weights(AI, lambda weights: 1.5 * weights),
        "weight 1 must reach the sample",
    ),
    "runs away": (with_weights(AI, lambda weights: -weights), "weight 1 must reach the sample"),
    "no geodesic": (Faulty(AI, move=straight_move), "weight 0.3 must leave 0.49 of sqdist"),
    "clips negative": (
        with_weights(LE, lambda s: s.clip(0)),
        "weight -0.2 must leave 1.44 of sqdist",
    ),
    "not squared": (
        with_sqdist(AI, lambda w, x: np.sqrt(AI.sqdist(w, x))),
        "looks like the distance, not its square",
    ),
    "leaves": (
        Faulty(AI, move=skewed_move),
        r"stay on the manifold, but encode says: X\[0\] is not sym",
    ),
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


def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match="at least 4 points, got 3"):
        check_manifold(EV, np.eye(3))


def test_points_are_not_written_to():
    points = np.random.default_rng(0).normal(size=(6, 2))
    kept = points.copy()
    check_manifold(EV, points)
    assert np.array_equal(points, kept)


# --- faults of a cost


class Wrapped:
    """A cost whose evaluation is changed by a function of (evaluation, the four arguments)."""

    def __init__(self, change, good=None):
        self.change, self.good = change, good or PLVQ()

    def __call__(self, sqdist, targets, labels, sigma2):
        found = self.good(sqdist, targets, labels, sigma2)
        return self.change(found, sqdist, targets, labels, sigma2)


class Cost:
    """A cost from a function, with an optional log_proba."""

    def __init__(self, function, log_proba=None):
        self.function = function
        if log_proba is not None:
            self.log_proba = log_proba

    def __call__(self, *arguments):
        return self.function(*arguments)


def naive(sqdist, targets, labels, sigma2):
    """RSLVQ with exponentials that underflow."""
    p = np.exp(-sqdist / (2 * sigma2))
    own = labels == targets[:, None]
    inside, total = (p * own).sum(axis=1), p.sum(axis=1)
    slope = (p * own / inside[:, None] - p / total[:, None]) / (2 * sigma2)
    return Evaluation(-np.log(inside / total), slope)


def hard_only(function):
    def cost(sqdist, targets, labels, sigma2):
        if targets.ndim != 1:
            raise ValueError("no soft labels")
        return function(sqdist, targets, labels, sigma2)

    return cost


def log_distance(sqdist, targets, labels, sigma2):
    own = labels == targets[:, None]
    return Evaluation((own * np.log(sqdist)).sum(axis=1), own / sqdist)


def in_place(sqdist, targets, labels, sigma2):
    sqdist -= sqdist.min(axis=1, keepdims=True)
    return PLVQ()(sqdist, targets, labels, sigma2)


def sorts(sqdist, targets, labels, sigma2):
    return RSLVQ()(sqdist, targets, np.sort(labels), sigma2)


def generalized_lvq(sqdist, targets, labels, sigma2):
    """(a - b) / (a + b), a the nearest of the own class, b of the others: one's own cost."""
    own = labels == targets[:, None]
    rows = np.arange(len(sqdist))
    i = np.where(own, sqdist, np.inf).argmin(axis=1)
    j = np.where(own, np.inf, sqdist).argmin(axis=1)
    a, b = sqdist[rows, i], sqdist[rows, j]
    slope = np.zeros_like(sqdist)
    slope[rows, i] = 2 * (b / (a + b)) / (a + b)
    slope[rows, j] = -2 * (a / (a + b)) / (a + b)
    return Evaluation((a - b) / (a + b), slope)


def reversed_rows(found, *_):
    return Evaluation(found.loss[::-1], found.slope[::-1])


def mean_over_batch(found, *_):
    return Evaluation(found.loss / len(found.loss), found.slope / len(found.loss))


def own_class_only(found, sqdist, targets, labels, sigma2):
    attracted = found.slope > 0
    return found._replace(slope=found.slope * attracted)


def wrong_for_soft(found, sqdist, targets, labels, sigma2):
    return found if targets.ndim == 1 else found._replace(slope=0.9 * found.slope)


COST_FAULTS = {
    "wrong sign": (Wrapped(lambda e, *_: e._replace(slope=-e.slope)), "everywhere it is -1 times"),
    "factor 2": (Wrapped(lambda e, *_: e._replace(slope=2 * e.slope)), "everywhere it is 2 times"),
    "no sigma2": (Wrapped(lambda e, d, t, c, s: e._replace(slope=s * e.slope)), "it is 0.7 times"),
    "only attracts": (
        Wrapped(own_class_only),
        r"derivative of loss by sqdist: at index \(\d, \d\)",
    ),
    "wrong for soft": (Wrapped(wrong_for_soft), "everywhere it is 0.9 times"),
    "a tuple": (Wrapped(lambda e, *_: tuple(e)), "must return an Evaluation, got <class 'tuple'>"),
    "summed": (
        Wrapped(lambda e, *_: e._replace(loss=e.loss.sum())),
        r"loss must have shape \(6,\)",
    ),
    "slope of (K, B)": (
        Wrapped(lambda e, *_: e._replace(slope=e.slope.T)),
        r"slope must have shape \(6, 3\)",
    ),
    "NaN": (
        Wrapped(lambda e, *_: e._replace(slope=np.where(e.slope > 0, np.nan, e.slope))),
        "slope must be finite at ordinary distances: at index .* it is nan",
    ),
    "underflow": (Cost(hard_only(naive)), "finite at distances of 1e8"),
    "log of 0": (Cost(hard_only(log_distance)), "loss must be finite at a distance of 0.* is -inf"),
    "writes": (Cost(in_place), "must not write into sqdist, targets or labels"),
    "mixes up samples": (Wrapped(reversed_rows), "as its samples one by one"),
    "mean over batch": (Wrapped(mean_over_batch), "as its samples one by one"),
    "needs sorted labels": (Cost(hard_only(sorts)), "not depend on the order of the prototypes"),
    "unnormalised": (
        Cost(hard_only(RSLVQ()), lambda d, labels, s: RSLVQ().log_proba(d, labels, s) + 0.1),
        r"exp\(log_proba\) must sum to one: at index \(0,\) it is 1.1",
    ),
    "one a prototype": (
        Cost(hard_only(RSLVQ()), lambda d, labels, s: log_softmax(-d / (2 * s), axis=1)),
        r"log_proba must have shape \(6, 3\), got \(6, 6\)",
    ),
}


@pytest.mark.parametrize("name", COST_FAULTS)
def test_a_faulty_cost_is_named(name):
    cost, sentence = COST_FAULTS[name]
    with pytest.raises(AssertionError, match=sentence):
        check_cost(cost, pickling=False)


@pytest.mark.parametrize(
    "cost",
    [
        Cost(hard_only(generalized_lvq)),
        Cost(hard_only(RSLVQ()), RSLVQ().log_proba),
        Wrapped(lambda e, *_: e),
        Wrapped(lambda e, *_: Evaluation(3 * e.loss + 5, 3 * e.slope)),
    ],
    ids=["generalized LVQ", "RSLVQ wrapped", "PLVQ wrapped", "affine"],
)
def test_good_costs_of_ones_own_pass(cost):
    assert check_cost(cost, pickling=False) is None
    check_cost(cost, n_classes=2, sigma2=3.0, pickling=False, random_state=1)


def test_an_unpicklable_cost_is_named():
    with pytest.raises(AssertionError, match="a cost must be picklable"):
        check_cost(Wrapped(lambda e, *_: e))


def test_a_cost_that_refuses_class_indices_is_not_skipped():
    def soft_only(sqdist, targets, labels, sigma2):
        raise ValueError("soft labels, please")

    with pytest.raises(ValueError, match="soft labels, please"):
        check_cost(Cost(soft_only), pickling=False)


def test_a_cost_needs_two_classes():
    with pytest.raises(ValueError, match="n_classes must be at least 2, got 1"):
        check_cost(RSLVQ(), n_classes=1)


def test_priors_need_their_number_of_classes():
    check_cost(RSLVQ(priors=[0.4, 0.6]), n_classes=2)


# --- faults of a schedule


class Counting:
    """Impure: halves itself whenever it is asked."""

    def __init__(self):
        self.value = 1.0

    def __call__(self, epoch, n_epochs):
        self.value /= 2
        return self.value


class Incomparable:
    def __call__(self, epoch, n_epochs):
        return 1.0


class Aging(Incomparable):
    """Equal to everything, but a copy is another schedule."""

    age = 1.0

    def __deepcopy__(self, memo):
        young = Aging()
        young.age = 0.5
        return young

    def __call__(self, epoch, n_epochs):
        return self.age


@attrs.define
class Unhashable:
    value: float = 1.0

    def __call__(self, epoch, n_epochs):
        return self.value


@attrs.frozen(eq=True)
class HashedById(Unhashable):
    __hash__ = object.__hash__


@attrs.frozen
class Given:
    """Good: the i-th of some values."""

    values: tuple = (1.0,)

    def __call__(self, epoch, n_epochs):
        return self.values[min(epoch, len(self.values) - 1)]


def module_level(epoch, n_epochs):
    return 2.0 ** -(epoch / max(n_epochs, 1))


SCHEDULE_FAULTS = {
    "impure": (Counting(), "must be pure, the same value whenever"),
    "zero": (Given((1.0, 0.0)), "positive and finite, but in epoch 1 of 1 it is 0.0"),
    "negative": (Given((-1.0,)), "in epoch 0 of 0 it is -1.0"),
    "NaN": (Given((1.0, 1.0, float("nan"))), "in epoch 2 of 2 it is nan"),
    "infinite": (Given((float("inf"),)), "it is inf"),
    "None": (Given((None,)), "must return a float, but in epoch 0 of 0 it is None"),
    "bool": (Given((True,)), "must return a float"),
    "array": (Given((np.ones(1),)), "must return a float"),
    "lambda": (lambda epoch, n_epochs: 1.0, "a schedule must be picklable"),
    "incomparable": (Incomparable(), "must equal its copy by copy.deepcopy: a frozen attrs class"),
    "aging": (Aging(), "same values after deepcopy"),
    "unhashable": (Unhashable(), "must be hashable by value"),
    "hashed by id": (HashedById(), "must have the hash of its copy by copy.deepcopy"),
}


@pytest.mark.parametrize("name", SCHEDULE_FAULTS)
def test_a_faulty_schedule_is_named(name):
    schedule, sentence = SCHEDULE_FAULTS[name]
    with pytest.raises(AssertionError, match=sentence):
        check_schedule(schedule)


@pytest.mark.parametrize("schedule", [Given((3, 2, 1)), module_level, Annealed(), GeometricDecay()])
def test_good_schedules_pass(schedule):
    assert check_schedule(schedule) is None


def test_a_schedule_is_checked_for_the_lengths_given():
    late = Given((1.0,) * 5 + (-1.0,))
    check_schedule(late, n_epochs=[4])
    with pytest.raises(AssertionError, match="in epoch 5 of 5"):
        check_schedule(late, n_epochs=[5])
