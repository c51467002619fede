"""The law of the step: it is a share of the sigma2 of its epoch. Also StepSize, its cap on weights, and bad values."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    GLVQ,
    PLVQ,
    RSLVQ,
    AdaptiveStep,
    Annealed,
    Constant,
    EuclideanVectors,
    GeometricDecay,
    Grow,
    HeldOut,
    Representability,
    RiemannianLVQ,
    Share,
    StepDecay,
    StepSize,
    Trainer,
)
from rplvq.arrays import Samples
from rplvq.costs import FlatGaussian, SpreadRSLVQ
from rplvq.schedules import as_step_rule
from tests.covering import covering
from tests.problems import refuse, spd_classes, vector_classes

X, Y = spd_classes(per_class=10)
V, W = vector_classes(per_class=20, n_classes=3, shift=1.0)
ERRORS_RISE = pytest.mark.filterwarnings("ignore:training raised:rplvq.exceptions.DivergenceWarning")


def cosine(epoch, n_epochs):
    """A schedule of the user's own, from 1.05 to 0.05."""
    return 0.55 + 0.5 * math.cos(math.pi * epoch / n_epochs)


def margins(sqdist, targets, labels, sigma2):
    """A cost of the user's own, whose slope grows with the distances and has no bound."""
    own = labels == targets[:, None]
    return ((2 * own - 1) * sqdist**2).sum(axis=1), (2 * own - 1) * 2.0 * sqdist


SCHEDULES = [
    0.7, Constant(0.3), GeometricDecay(1.0), GeometricDecay(), StepDecay(2.0, every=2), StepDecay(every=3),
    Annealed(1.2, power=1.5), cosine,
]  # fmt: skip
MIXTURES = [RSLVQ(), PLVQ(), RSLVQ(priors=(0.2, 0.3, 0.5)), RSLVQ() + 0.5 * Representability(), 3.0 * PLVQ()]
OTHERS = [GLVQ(), GLVQ(steepness=None), GLVQ(20.0), RSLVQ() + GLVQ(), SpreadRSLVQ([1.0, 0.5, 2.0], FlatGaussian(3))]


# --- the law


def epochs(n_epochs):
    """The epochs of a fit."""
    return range(1, n_epochs + 1)


def total(n_epochs):
    """The default's shares, added up over all epochs."""
    return sum(0.01 ** (epoch / n_epochs) for epoch in epochs(n_epochs)) / n_epochs


@attrs.frozen
class Scale(EuclideanVectors):
    """Vectors whose weights (B, K) are noted before they move prototypes."""

    noted: list[float] = attrs.field(factory=list, eq=False)

    def move(self, geodesics, weights):
        self.noted.append(float(np.abs(weights).max()))
        return super().move(geodesics, weights)


@ERRORS_RISE
@pytest.mark.parametrize("sigma2", SCHEDULES, ids=[*map(str, SCHEDULES[:-1]), "own"])
@pytest.mark.parametrize(
    ("step_size", "share"),
    [
        ("auto", lambda t, T: min(1 / T, 1) * 0.01 ** (t / T)),
        (None, lambda t, T: 0.01 ** (t / T) / T),
        (Share(amount=3.0), lambda t, T: min(3 / T, 1) * 0.01 ** (t / T)),
        (Share(0.1, ratio=1.0), lambda t, T: 0.1),
        (StepSize(Share(0.2)), lambda t, T: 0.2 * 0.01 ** (t / T)),
        (Share(lambda t, T: 0.3 / (1 + t)), lambda t, T: 0.3 / (1 + t)),
        # Schedules without a start are schedules of shares with the default's sum over all epochs.
        (Constant(), lambda t, T: total(T) / T),
        (GeometricDecay(ratio=0.5), lambda t, T: total(T) * 0.5 ** (t / T) / sum(0.5 ** (e / T) for e in epochs(T))),
        (
            StepSize(StepDecay(every=2)),
            lambda t, T: total(T) * 0.5 ** (t // 2) / sum(0.5 ** (e // 2) for e in epochs(T)),
        ),
    ],
    ids=["auto", "None", "amount", "constant", "StepSize", "own", "Constant()", "GeometricDecay()", "StepDecay()"],
)
def test_the_step_is_a_share_of_the_sigma2_of_the_same_epoch(sigma2, step_size, share):
    for max_epochs in (1, 7):
        model = RiemannianLVQ("euclidean_vectors", sigma2=sigma2, step_size=step_size, max_epochs=max_epochs)
        history = model.fit(V, W).history_
        shares = [share(t, max_epochs) for t in history["epoch"]]
        assert_allclose(history["step_size"], shares * history["sigma2"], rtol=1e-12)
        assert len(set(history["sigma2"])) == 1 or not isinstance(sigma2, (float, Constant))
        assert (history["n_capped"] == 0).all()


@ERRORS_RISE
@pytest.mark.filterwarnings("ignore:.*steps of epoch:rplvq.exceptions.DivergenceWarning")  # cuts keep the law
@pytest.mark.parametrize("cost", [*MIXTURES, *OTHERS, margins], ids=[*map(str, MIXTURES), *map(str, OTHERS), "own"])
@pytest.mark.parametrize("batch_size", [1, 7, None])
@pytest.mark.parametrize("sigma2", [GeometricDecay(2.0), StepDecay(5.0, every=2)], ids=str)
def test_no_weight_is_larger_than_the_share(cost, batch_size, sigma2):
    """A sample moves no prototype further, and a batch of B samples none beyond their mean: K / B at most."""
    manifold, n = Scale(), len(V)
    size = n if batch_size is None else batch_size
    seen: list[int] = []
    model = RiemannianLVQ(
        manifold, cost, sigma2=sigma2, step_size=Share(0.2), batch_size=batch_size, max_epochs=5, random_state=0,
        callbacks=[lambda report: seen.append(len(manifold.noted))],
    ).fit(V, W)  # fmt: skip
    first = len(manifold.noted) - 5 * math.ceil(n / size)  # the class means move, too
    steps = np.split(manifold.noted[first:], np.array(seen[:-1]) - first)
    for epoch, weights in enumerate(steps, start=1):
        share = 0.2 * 0.01 ** (epoch / 5)
        # A step follows the mean over its batch, so that in a shorter last batch each sample weighs more.
        last = size / (n - size * (len(weights) - 1))
        assert weights[:-1].max(initial=0) <= min(share, 3 / size) * (1 + 1e-8)
        assert weights[-1] <= min(share, 3 / size) * last * (1 + 1e-8)
        assert weights.max() > (0 if batch_size is None else 1e-4) * share  # something moves
    if cost in MIXTURES:  # their largest slope is known, so that nothing needs to be cut
        assert (model.history_["n_capped"] == 0).all()


def test_steps_become_shorter_where_sigma2_is_above_the_median():
    means = RiemannianLVQ("euclidean_vectors", max_epochs=0).fit(V, W)
    median = float(np.median(means.transform(V) ** 2))
    for sigma2 in (0.9 * median, 50 * median, GeometricDecay(50 * median)):
        model = RiemannianLVQ("euclidean_vectors", sigma2=sigma2, step_size=Share(0.2), max_epochs=5, random_state=0)
        history = model.fit(V, W).history_
        shares = 0.2 * 0.01 ** (history["epoch"] / 5)
        counted = np.minimum(history["sigma2"], median**2 / history["sigma2"])
        assert_allclose(history["step_size"], shares * counted, rtol=1e-9)


def test_a_schedule_that_does_not_fall_ends_at_half_of_the_samples_of_a_prototype():
    for max_epochs in (2, 3):
        model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=Constant(), max_epochs=max_epochs)
        assert_allclose(model.fit(V, W).history_["step_size"], 0.5 * 3 / len(V))


def test_a_sample_of_no_doubt_moves_a_prototype_by_the_share():
    """A sample on the far side of the other class's prototype has the slope 1 / (2 sigma2) for both."""
    samples = Samples(np.array([[0.0], [1.0]]), np.array([0, 1]))
    for cost in (RSLVQ(), PLVQ(), 2.5 * RSLVQ()):
        for sigma2 in (0.01, 0.02):
            trainer = Trainer(EuclideanVectors(), cost, sigma2=sigma2, step_size=Share(0.3, ratio=1.0))
            state = trainer.init(samples, 2, np.random.default_rng(0))
            step = trainer.step(state, Samples(np.array([[9.0]]), np.array([0])))
            moved = np.asarray(step.prototypes).ravel()
            assert_allclose(moved, [0.3 * 9.0, 1.0 - 0.3 * 8.0], rtol=1e-9)


@ERRORS_RISE
@pytest.mark.parametrize(
    ("dtype", "weighted", "step_size"),
    covering([float, complex], [False, True], ["auto", Share(0.2), StepDecay(every=2)]),
)
def test_the_law_holds_with_weights_groups_complex_matrices_growth_and_costs_together(dtype, weighted, step_size):
    """A weight counts visits, and the number of prototypes changes; the step stays the share of sigma2."""
    S, y = spd_classes(per_class=20, n_classes=3, dtype=dtype)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0, 3, len(y)) if weighted else None
    for cost in (RSLVQ() + 0.1 * Representability(), GLVQ(steepness=None)):
        model = RiemannianLVQ(
            "log_euclidean", cost, sigma2=HeldOut([GeometricDecay(0.5, 0.1), Annealed(0.4)]), step_size=step_size,
            growth=[Grow(every=1, gain=None)], max_epochs=4, random_state=0,
        )  # fmt: skip
        model.fit(S, y, weights, groups=rng.integers(8, size=len(y)))
        history, t = model.history_, np.arange(1, 5)
        halves = 0.5 ** (t // 2)
        first = {"auto": 3 / 4, Share(0.2): 0.2}.get(step_size, total(4) / halves.sum())  # the choice takes amount 3
        share = first * (halves if isinstance(step_size, StepDecay) else 0.01 ** (t / 4))
        schedule = model.trainer_.sigma2
        assert_allclose(history["sigma2"], [schedule(epoch, 4) for epoch in t])
        assert len(set(history["n_prototypes"])) > 1
        if isinstance(cost, type(RSLVQ() + RSLVQ())):
            assert_allclose(history["step_size"], share * history["sigma2"] / 1.1)
        assert np.isfinite(model.predict_log_proba(S)).all()


# --- what may stand for a step size


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, StepSize(None)),
        ("auto", StepSize()),
        ("paper", StepSize("paper")),
        (0.1, StepSize(0.1)),
        (Share(0.1), StepSize(Share(0.1))),
        (GeometricDecay(0.1), StepSize(GeometricDecay(0.1))),
        (StepSize(0.1, max_weight=None), StepSize(0.1, max_weight=None)),
        (AdaptiveStep(0.1), AdaptiveStep(0.1)),
    ],
    ids=repr,
)
def test_anything_but_a_step_rule_is_the_schedule_of_a_step_size(value, wanted):
    assert as_step_rule(value) == wanted
    assert Trainer(EuclideanVectors(), step_size=value).step_size == wanted


@pytest.mark.parametrize(
    ("step_size", "start"),
    [
        (AdaptiveStep(), 0.5 / 20),  # begins as the default does in 20 epochs
        ("paper", 0.3),  # n xi / 100
        (GeometricDecay(0.7), 0.7),
        (Constant(0.2), 0.2),
        (StepSize(np.float32(0.25)), 0.25),
        (2, 2.0),
    ],
    ids=repr,
)
def test_other_values_are_squared_distances_whatever_sigma2_is(step_size, start):
    class Plain(EuclideanVectors):
        unit = None

    samples = Samples(np.random.default_rng(0).normal(size=(80, 30)), np.arange(80) % 4)
    state = Trainer(Plain(), sigma2=0.5, step_size=step_size).init(samples, 4, np.random.default_rng(0))
    assert state.step_size == pytest.approx(start, rel=1e-12)


def test_a_given_schedule_decays_as_it_does_whatever_sigma2_does():
    for sigma2 in (1.0, GeometricDecay(1.0)):
        settings = {"sigma2": sigma2, "max_epochs": 4, "random_state": 0}
        paper = RiemannianLVQ(step_size="paper", **settings).fit(X, Y).history_["step_size"]
        assert_allclose(paper, 0.03 * 0.01 ** (np.arange(1, 5) / 4))
        given = RiemannianLVQ(step_size=StepSize(StepDecay(0.1, every=2)), **settings).fit(X, Y).history_["step_size"]
        assert_allclose(given, [0.1, 0.05, 0.05, 0.025])


# --- the cap on weights of a step size in squared distances


@pytest.mark.parametrize(
    ("step_size", "wanted", "n_capped"),
    [
        (5.0, [[4.0], [-2.0]], 2),  # onto the sample, and as far away from it
        (StepSize(5.0), [[4.0], [-2.0]], 2),
        (StepSize(5.0, max_weight=0.5), [[2.0], [-0.5]], 2),
        (StepSize(5.0, max_weight=None), None, 0),
        (AdaptiveStep(5.0, max_weight=0.25), [[1.0], [0.25]], 2),
        (AdaptiveStep(5.0, max_weight=None), None, 0),
    ],
    ids=repr,
)
def test_weights_are_cut_to_max_weight(step_size, wanted, n_capped):
    samples = Samples(np.array([[0.0], [1.0]]), np.array([0, 1]))
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=step_size)
    state = trainer.init(samples, 2, np.random.default_rng(0))
    step = trainer.step(state, Samples(np.array([[4.0]]), np.array([0])))  # nearer to the other class's prototype
    pull = state.step_size / (1 + np.exp((9 - 16) / 2))
    assert step.n_capped == n_capped
    assert_allclose(step.prototypes, [[4 * pull], [1 - 3 * pull]] if wanted is None else wanted)


def test_the_parameters_of_a_step_size_are_parameters_of_the_estimator():
    model = RiemannianLVQ(step_size=StepSize(Share(0.1)))
    model.set_params(step_size__max_weight=None, step_size__schedule__ratio=0.5)
    assert model.step_size == StepSize(Share(0.1, ratio=0.5), max_weight=None)


# --- what is refused


def rising(epoch, n_epochs):
    """A schedule that leaves [0, 1] in epoch 3."""
    return 0.5 * epoch


def nothing(epoch, n_epochs):
    """A schedule that gives no number."""
    return np.nan


def of_one(epoch):
    return 0.1


def to_zero(epoch, n_epochs):
    """A sigma2 that reaches 0 in the last epoch."""
    return 1 - epoch / n_epochs


def from_zero(epoch, n_epochs):
    """A sigma2 that begins at 0."""
    return epoch / n_epochs


@pytest.mark.parametrize("start", [0, -0.1, 1.5, np.nan, np.inf, True, "x", [0.1], Share, AdaptiveStep(0.1)], ids=repr)
def test_a_share_outside_of_0_to_1_or_a_step_rule_is_refused(start):
    with pytest.raises(ValueError, match=r"start of Share must be in \(0, 1\], a Schedule or None, got"):
        Share(start)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Share(ratio=0), "ratio must be a positive finite number, got 0"),
        (lambda: Share(GeometricDecay()), r"give GeometricDecay\(start=None, ratio=0.01\) a first share, such as 0.3"),
        (lambda: Share(amount=np.inf), "amount must be a positive finite number, got inf"),
        (lambda: AdaptiveStep(Share()), "start must be a positive finite number or None, got Share"),
        *[
            (lambda value=value: StepSize(max_weight=value), f"max_weight must be .*{value!r}")
            for value in (0, -1.0, np.nan, "1", True)
        ],
    ],
)
def test_bad_fields_are_refused_by_name_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step_size": Share(rising)}, r"step_size: the share must be in \[0, 1\], got 1.5 in epoch 3"),
        ({"step_size": Share(of_one)}, r"step_size=.* a schedule takes \(epoch, n_epochs\)"),
        ({"sigma2": Share()}, "sigma2 must be a positive number or a Schedule of it, got Share.* is a step_size"),
        ({"step_size": Share(Constant(2.0))}, r"step_size: the share must be in \[0, 1\], got 2.0 in epoch 0"),
        ({"step_size": Share(nothing)}, r"step_size: the share must be in \[0, 1\], got nan in epoch 0"),
        ({"sigma2": to_zero}, "sigma2 must be positive and finite, got 0.0 in epoch 4 from"),
        ({"sigma2": from_zero}, "sigma2 must be positive and finite, got 0.0 in epoch 0 from"),
        ({"sigma2": to_zero, "step_size": 0.1}, "sigma2 must be positive .* got 0.0 in epoch 4 from"),
        *[
            ({"step_size": StepSize(schedule)}, r"step_size must be .*positive.*got")
            for schedule in ("slow", 0, -1.0, np.nan, True, [0.1], Constant, HeldOut(["auto"]), Share, StepSize(0.1))
        ],
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_schedules_are_refused_by_argument_and_epoch(settings, message):
    model = RiemannianLVQ("euclidean_vectors", max_epochs=4, **({"sigma2": 1.0} | settings))
    refuse(model, "fit", V, W, match=message)


def test_a_share_of_0_rests():
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=Share(lambda t, T: 0.0), max_epochs=2).fit(V, W)
    means = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=0).fit(V, W)
    assert_array_equal(model.prototypes_, means.prototypes_)
