"""The choice of a fit: its trials against a computation by hand, what is fitted then, the record, and where none is."""

from __future__ import annotations

import ast
import pathlib
import pickle

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone

import rplvq.selection
from rplvq import (
    GLVQ,
    PLVQ,
    RSLVQ,
    AffineInvariant,
    Annealed,
    BuresWasserstein,
    Checkpoint,
    ClassMeans,
    Constant,
    EuclideanVectors,
    GeometricDecay,
    Grow,
    HeldOut,
    Representability,
    RiemannianLVQ,
    Share,
    StepSize,
    Trainer,
    load_model,
)
from rplvq.arrays import Samples
from rplvq.costs import FlatGaussian, SpreadRSLVQ
from rplvq.datasets import make_syn1, make_syn2
from rplvq.manifolds import riemannian_mean
from rplvq.schedules import blended_sigma2, half_median, initial_evidence, likeliest_sigma2
from rplvq.selection import Choice, Tried, _choice, choose, enough_epochs
from rplvq.selection._candidates import AMOUNT, FOLDS, deal_folds, make_folds
from rplvq.selection._choice import FEWEST_EPOCHS, MOST_VISITS, TRIAL_EPOCHS
from rplvq.selection._race import MIN_HELD_OUT
from tests.cases import EVERY
from tests.problems import refuse, spd_classes, vector_classes

X, Y = vector_classes(per_class=32, n_classes=3, shift=0.7)
VALUES = HeldOut([0.2, 0.5, 1.0, "untrained"])
ROOM = sorted(pathlib.Path(rplvq.selection.__file__).parent.glob("*.py"))


def plan_of(rule=None, targets=Y, weights=None, cost=None, must_train=False, samples=None, **settings):
    """The plan of a bare trainer for the vectors, and the evidence for it."""
    trainer = Trainer(EuclideanVectors(), cost or RSLVQ(), **({"max_epochs": 24} | settings))
    samples = samples or Samples(X, targets, weights)
    n_classes = int(samples.classes.max()) + 1
    first = trainer.first_prototypes(samples, n_classes, np.random.default_rng(0))
    evidence = initial_evidence(trainer.manifold, trainer.cost, *first, samples)
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    plan = choose(rule or HeldOut(), trainer, first[0], evidence, samples, rng, must_train=must_train)
    assert rng.bit_generator.state == before
    return plan, evidence


def dealt(samples, labels):
    """The folds that plan_of() makes, and the seed of its trials."""
    seed = int(np.random.default_rng(1).integers(2**31))
    return deal_folds(samples, labels, np.random.default_rng(seed)), seed


# --- the size of the room


def test_the_room_is_small_and_each_of_its_numbers_says_why():
    """At most eight numbers, each with a docstring that says what it is for, and 700 lines beside empty ones."""
    numbers, lines = [], 0
    for path in ROOM:
        text = path.read_text()
        body = ast.parse(text).body
        lines += sum(bool(line.strip()) for line in text.splitlines())
        for node, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.Assign) and not isinstance(node.value, (ast.List, ast.Tuple, ast.Name)):
                ast.literal_eval(node.value)  # a number, and no expression
                reason = after.value.value if isinstance(after, ast.Expr) else ""
                assert len(reason.split()) >= 8, f"{path.name}: {node.targets[0].id} does not say why"
                numbers.append(node.targets[0].id)
    assert len(numbers) <= 8, numbers
    assert lines <= 700


# --- the trials


def judged_by_hand(sqdist, targets, weights):
    """The mean loss, the error and the recalibrated sigma2 for one prototype per class, by SciPy alone."""
    total, own = len(targets) if weights is None else weights.sum(), np.eye(sqdist.shape[1])[targets]

    def best(soft):
        def mean(log_sigma2):
            losses = -(soft * log_softmax(-sqdist / 2 / np.exp(log_sigma2), axis=1)).sum(axis=1)
            return np.average(losses, weights=weights)

        return minimize_scalar(mean, bounds=(-7, 4), method="bounded", options={"xatol": 1e-10})

    unsure = best((total * own + 0.5 / sqdist.shape[1]) / (total + 0.5))  # half a sample of unknown class
    error = np.average(sqdist.argmin(axis=1) != targets, weights=weights)
    return best(own).fun, error, np.exp(unsure.x)


@pytest.mark.parametrize(
    ("rule", "max_epochs", "step_size", "weighted"),
    [
        (HeldOut(), 24, "auto", False),
        (HeldOut(), 1, StepSize(max_weight=0.5), True),
        (VALUES, 60, "auto", True),
        (VALUES, 24, 0.05, False),
        (HeldOut(["half_median", Annealed(2.0), "untrained"]), 25, None, False),
        (HeldOut(["auto", 0.5]), 24, GeometricDecay(0.1), True),
    ],
    ids=repr,
)
def test_trials_are_fits_of_the_other_folds_judged_by_the_samples_held_out(rule, max_epochs, step_size, weighted):
    """Each by prototypes that are made from scratch, so that the means of folds are exact, too."""
    weights = np.random.default_rng(0).integers(1, 3, len(Y)).astype(float) if weighted else None
    plan, evidence = plan_of(rule, weights=weights, max_epochs=max_epochs, step_size=step_size)
    choice, samples = plan.choice, Samples(X, Y, weights)
    all_folds, seed = dealt(samples, np.arange(3))
    named = {"auto": blended_sigma2(evidence), "half_median": evidence.half_median}
    wanted = [value for value in rule.candidates if value != "discriminant"]  # these vectors have none
    assert [one.name for one in choice.tried] == [str(value) for value in wanted]
    is_ours = step_size in ("auto", None, StepSize(max_weight=0.5))
    n_epochs = min(max_epochs, TRIAL_EPOCHS) if is_ours else max(max_epochs // 2, 1)
    for number, (one, value) in enumerate(zip(choice.tried, wanted, strict=True)):
        sqdist, folds = [], all_folds[: one.n_folds]
        held_out = np.concatenate([held for _, held in folds])
        schedule = value if callable(value) else Constant(named.get(value, value) if value != "untrained" else 1.0)
        for kept, held in folds:
            part = Samples(X[kept], Y[kept], None if weights is None else weights[kept])
            if value == "untrained":
                means = [
                    np.average(part.codes[part.targets == k], 0, part.filled_weights[part.targets == k])
                    for k in range(3)
                ]
                sqdist.append(((X[held][:, None] - np.array(means)) ** 2).sum(axis=2))
                continue
            step = step_size
            if is_ours:  # AMOUNT / T of sigma2, which falls to a hundredth

                def step(t, T, schedule=schedule):
                    return min(AMOUNT / T, 1.0) * 0.01 ** (t / T) * schedule(t, T)

                step = StepSize(step, max_weight=None)
            fit = Trainer(EuclideanVectors(), sigma2=schedule, step_size=step, max_epochs=n_epochs)
            state = fit.init(part, 3, np.random.default_rng(seed))
            state, _ = fit.run(state, part, np.random.default_rng(seed))
            sqdist.append(((X[held][:, None] - np.asarray(state.prototypes)) ** 2).sum(axis=2))
        own = None if weights is None else weights[held_out]
        loss, error, recalibrated = judged_by_hand(np.concatenate(sqdist), Y[held_out], own)
        assert one.loss == pytest.approx(loss, rel=1e-7)
        assert one.error == pytest.approx(error, rel=1e-12)
        assert one.amount == (0 if value == "untrained" else AMOUNT) or (np.isnan(one.amount) and not is_ours)
        if value != "untrained":
            assert one.sigma2 == pytest.approx(schedule(0, max_epochs), rel=1e-9)
        if number == choice.winner:
            assert one.n_folds == max(other.n_folds for other in choice.tried)
            reached = schedule(n_epochs, n_epochs) if value != "untrained" else named.get(wanted[0], wanted[0])
            reached = reached(n_epochs, n_epochs) if callable(reached) else reached
            assert choice.calibration == pytest.approx(
                recalibrated / reached if isinstance(value, str) else 1, rel=1e-3
            )


@pytest.mark.parametrize(
    ("manifold", "spread"),
    [(AffineInvariant(), 0.3), (AffineInvariant(), 3.0), (BuresWasserstein(), 0.3), (BuresWasserstein(), 1.0)],
    ids=str,
)
def test_the_means_of_folds_do_not_know_the_held_out_samples(manifold, spread):
    """They are found from the means of all samples, and end where a search from scratch does."""
    S, y = spd_classes(per_class=12, n=4, n_classes=3, spread=spread)
    samples, trainer = Samples(manifold.encode(S), y), Trainer(manifold)
    first, labels = trainer.first_prototypes(samples, 3, np.random.default_rng(0))
    dealt_rows = deal_folds(samples, labels, np.random.default_rng(0))
    for fold in make_folds(trainer, samples, first, labels, dealt_rows, 0):
        found, kept = fold.first[0], fold.rows
        for label in range(3):
            own = samples.codes[kept][y[kept] == label]
            exact = riemannian_mean(manifold, own, np.ones(len(own))).code[None]
            moved, off = (manifold.sqdist(exact, all_[label : label + 1]).item() ** 0.5 for all_ in (first, found))
            assert off < 0.02 * moved  # about 1 %
            assert moved > 0.05 * manifold.sqdist(exact, own).mean() ** 0.5


def test_many_samples_are_tried_by_a_part_of_them(monkeypatch):
    """All folds together visit as many samples in their trials as MOST_VISITS says, if each takes its largest part."""
    monkeypatch.setattr(_choice, "MOST_VISITS", 6000)
    most_tried = 6000 // (TRIAL_EPOCHS * (FOLDS - 1))
    rng = np.random.default_rng(0)
    y = np.arange(2 * most_tried) % 2
    samples = Samples(rng.normal(size=(len(y), 2)) + 4 * y[:, None], y)
    seen = []

    def counting(sqdist, targets, labels, sigma2):
        seen.append(len(sqdist))
        return RSLVQ()(sqdist, targets, labels, sigma2)

    choice = plan_of(HeldOut([0.5, 1.0]), samples=samples, max_epochs=2, cost=counting)[0].choice
    n_folds = sum(one.n_folds for one in choice.tried)
    assert sum(size for size in seen if size == 1) == n_folds * most_tried * 3 // 4 * min(2, TRIAL_EPOCHS)


def test_prototypes_are_made_for_the_folds_that_are_tried_and_for_the_fit():
    for max_epochs in (0, 1, 24):
        seen = []

        def means(*given, **other):
            seen.append(len(given[1]))  # noqa: B023 - called in this turn only
            return ClassMeans()(*given, **other)

        model = RiemannianLVQ("euclidean_vectors", init=means, max_epochs=max_epochs, random_state=0).fit(X, Y)
        assert seen == [96, *[72] * max((one.n_folds for one in model.choice_.tried), default=0)]


# --- what is fitted then


@pytest.mark.parametrize("make", [make_syn1, make_syn2])
@pytest.mark.parametrize("rule", ["auto", HeldOut(["half_median", 0.1, "untrained"])], ids=repr)
def test_a_fit_is_the_one_that_its_trials_chose_to_the_bit(make, rule):
    S, y = make(150, random_state=0)
    model = RiemannianLVQ("log_euclidean", sigma2=rule, random_state=0).fit(S, y)
    choice = model.choice_
    chosen, settings = choice.tried[choice.winner], {"sigma2": model.state_.sigma2}
    assert (chosen.name, chosen.amount > 0) == (choice.chosen, choice.trains)
    if choice.trains:
        settings["step_size"] = Share(amount=chosen.amount)
        assert chosen.sigma2 == model.state_.sigma2
    else:
        settings |= {"max_epochs": 0, "init": {"untrained": "mean"}.get(choice.chosen, choice.chosen)}
    same = RiemannianLVQ("log_euclidean", random_state=0, **settings).fit(S, y)
    assert_array_equal(model.prototypes_, same.prototypes_)
    assert model.sigma2_ == model.state_.sigma2 * choice.calibration
    assert model.n_epochs_ == (10 if choice.trains else 0)


@pytest.mark.parametrize("step_size", [0.05, GeometricDecay(0.05), "paper", "adaptive", Share(0.1)], ids=repr)
def test_a_step_size_and_a_sigma2_that_are_given_stay(step_size):
    S, y = make_syn2(40, random_state=0)
    model = RiemannianLVQ("log_euclidean", step_size=step_size, max_epochs=10, random_state=0)
    model.set_params(sigma2=HeldOut([0.1, 0.5])).fit(S, y)
    assert model.sigma2_ == model.state_.sigma2 in (0.1, 0.5)
    same = clone(model).set_params(sigma2=model.sigma2_).fit(S, y)
    assert_array_equal(model.prototypes_, same.prototypes_)


def test_where_training_harms_the_class_means_stay():
    S, y = make_syn2(60, random_state=0)
    model = RiemannianLVQ(random_state=0).fit(S, y)
    means = RiemannianLVQ(max_epochs=0, sigma2="half_median").fit(S, y)
    assert (model.choice_.chosen, model.n_epochs_, model.history_["epoch"].tolist()) == ("untrained", 0, [0])
    assert_array_equal(model.prototypes_, means.prototypes_)
    assert RiemannianLVQ(sigma2=HeldOut(["auto"]), random_state=0).fit(S, y).n_epochs_ == 20
    assert len(model.partial_fit(S, y).history_["epoch"]) == 2


def test_labels_that_are_noise_are_not_trained_on():
    """Nothing can be learned, so that two standard errors let hardly any fit train."""
    trained = []
    for seed in range(12):
        S, y = spd_classes(seed=seed, per_class=40, n_classes=2)
        noise = np.random.default_rng(seed).permutation(y)
        trained.append(RiemannianLVQ("log_euclidean", random_state=seed).fit(S, noise).choice_.trains)
    assert sum(trained) <= 1


def test_where_it_must_train_the_initial_prototypes_are_no_candidate():
    free, bound = (plan_of(VALUES, step_size=1e-6, must_train=must)[0] for must in (False, True))
    assert (free.choice.chosen, free.choice.trains, bound.choice.trains) == ("untrained", False, True)
    assert [one.name for one in bound.choice.tried] == ["0.2", "0.5", "1.0"]
    assert bound.trainer.sigma2 == Constant(VALUES.candidates[bound.choice.winner])


def test_rules_of_growth_train_and_their_trials_do_not_grow():
    S, y = make_syn1(n_per_class=30, random_state=0)
    rule = HeldOut(["auto", "half_median"])
    model = RiemannianLVQ(sigma2=rule, max_epochs=8, growth=[Grow(every=1, gain=None)], random_state=0).fit(S, y)
    plain = clone(model).set_params(growth=()).fit(S, y)
    assert model.choice_ == plain.choice_
    assert model.n_epochs_ == 8
    assert len(model.prototypes_) > len(plain.prototypes_) == 4


def test_training_that_diverges_is_no_candidate():
    choice = plan_of(VALUES, step_size=StepSize(3e2, max_weight=None))[0].choice
    losses = [one.loss for one in choice.tried if one.name != "untrained"]
    assert np.isinf(losses).any()
    assert not np.isnan(losses).any()
    assert (choice.chosen, choice.trains, choice.winner) == ("untrained", False, 3)


def test_labels_as_soft_labels_choose_the_same():
    hard, soft = (plan_of(VALUES, targets, cost=PLVQ())[0].choice for targets in (Y, np.eye(3)[Y]))
    assert_allclose([t.loss for t in hard.tried], [t.loss for t in soft.tried], rtol=1e-9)
    assert [t.error for t in hard.tried] == pytest.approx([t.error for t in soft.tried])
    assert hard.chosen == soft.chosen


def test_partial_fit_trains_from_its_first_batch_on():
    S, y = make_syn2(60, random_state=0)
    means = RiemannianLVQ(sigma2=1.0, max_epochs=0).fit(S, y)
    for rule in ("auto", HeldOut()):
        model = RiemannianLVQ(sigma2=rule, random_state=0).partial_fit(S, y)
        assert model.n_epochs_ == 1
        assert np.abs(model.prototypes_ - means.prototypes_).max() > 0
        assert model.partial_fit(S, y).n_epochs_ == 2


def test_many_samples_need_fewer_epochs(monkeypatch):
    assert [enough_epochs(20, n) for n in (1, MOST_VISITS / 20, MOST_VISITS / 10, 1e9)] == [20, 20, 10, FEWEST_EPOCHS]
    assert enough_epochs(3, 1e9) == 3
    rng = np.random.default_rng(0)
    monkeypatch.setattr(_choice, "MOST_VISITS", MOST_VISITS // 10)  # and a tenth of the samples that it is for
    y = np.arange(2_000) % 2
    V = rng.normal(size=(len(y), 1)) + 4 * y[:, None]
    for settings, n_epochs in (
        ({"sigma2": HeldOut(["auto"])}, 5),
        ({"sigma2": 1.0}, 8),
        ({"sigma2": HeldOut(["auto"]), "batch_size": None}, 8),
        ({"sigma2": HeldOut(["auto"]), "step_size": 0.001}, 8),
        ({"sigma2": HeldOut([Annealed(1.0)])}, 8),
    ):
        model = RiemannianLVQ("euclidean_vectors", max_epochs=8, random_state=0, **settings).fit(V, y)
        assert model.n_epochs_ == n_epochs


# --- the record


def test_the_record_is_printed_with_losses_of_the_same_folds(capsys):
    S, y = make_syn2(60, random_state=0)
    model = RiemannianLVQ(random_state=0, verbose=1).fit(S, y)
    text = str(model.choice_)
    assert f"RiemannianLVQ: {text}\n" in capsys.readouterr().err
    first, *lines = text.splitlines()
    assert first.startswith("chose untrained by held-out loss")
    assert [line[:2] for line in lines] == ["  ", "  ", "->"]
    for line, one in zip(lines, model.choice_.tried, strict=True):
        assert line[3:].startswith(one.name)
        assert f" {one.loss:.4f}" in line
        assert (f"({one.loss_of_chosen:.4f} +- {one.standard_error:.4f})" in line) == (one.name != "untrained")
    assert "auto, amount 3:" in lines[0]
    assert str(Choice("auto")) == "auto: nothing was compared"
    RiemannianLVQ(random_state=0).fit(S, y)
    assert capsys.readouterr().err == ""


def test_the_loss_of_the_chosen_one_is_that_on_the_same_folds():
    """The candidate that fell out after one fold is compared with the winner on this fold alone."""
    S, y = make_syn1(60, random_state=0)
    tried = RiemannianLVQ("log_euclidean", sigma2=HeldOut([1e-2, 0.3, 100.0]), random_state=0).fit(S, y).choice_.tried
    assert len({one.n_folds for one in tried}) > 1
    (won,) = (one for one in tried if one.standard_error == 0)
    for one in tried:
        assert (one.loss_of_chosen == won.loss) == (one.n_folds == won.n_folds)


@pytest.mark.parametrize("rule", ["auto", HeldOut([0.3, "half_median", Annealed(power=1.0), "untrained"])], ids=repr)
def test_saved_and_pickled_models_have_the_choice(tmp_path, rule):
    S, y = spd_classes(per_class=30)
    model = RiemannianLVQ(sigma2=rule, max_epochs=6, random_state=0).fit(S, y)
    model.save(tmp_path / "model.npz")
    for again in (load_model(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert again.sigma2 == rule
        assert again.choice_ == model.choice_
        assert isinstance(again.choice_.tried[0], Tried)
        assert_array_equal(again.predict_proba(S), model.predict_proba(S))
        assert (again.sigma2_, again.step_size_, again.n_epochs_) == (model.sigma2_, model.step_size_, model.n_epochs_)


def test_a_resumed_fit_has_the_choice_of_the_one_that_ended(tmp_path):
    S, y = spd_classes(per_class=30, spread=0.6)

    def stop(report):
        if report.state.epoch == 3:
            raise RuntimeError("the machine is switched off")

    path = tmp_path / "fit.npz"
    rule = HeldOut(["auto", "half_median"])
    whole = RiemannianLVQ(sigma2=rule, max_epochs=6, callbacks=[Checkpoint(path)], random_state=0)
    whole.fit(S, y)
    broken = clone(whole).set_params(callbacks=[Checkpoint(path), stop])
    with pytest.raises(RuntimeError, match="switched off"):
        broken.fit(S, y)
    resumed = clone(whole).fit(S, y, resume=path)
    assert_array_equal(resumed.prototypes_, whole.prototypes_)
    assert (resumed.sigma2_, resumed.step_size_) == (whole.sigma2_, whole.step_size_)
    assert resumed.choice_ == whole.choice_


# --- the order of the samples, and weights


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("init", ["mean", "kmeans"])
def test_a_seed_gives_the_same_bits_in_any_order(weighted, init):
    S, y = spd_classes(per_class=30, spread=0.6)
    weights = np.random.default_rng(0).uniform(0, 2, len(y)) if weighted else None
    model = RiemannianLVQ(prototypes_per_class=2, init=init, max_epochs=12, random_state=3)
    order = np.random.default_rng(0).permutation(len(y))
    first = clone(model).fit(S, y, weights)
    again = clone(model).fit(S[order], y[order], None if weights is None else weights[order])
    assert_array_equal(first.prototypes_, again.prototypes_)
    assert first.sigma2_ == again.sigma2_
    assert first.choice_ == again.choice_


@pytest.mark.parametrize("rule", ["auto", HeldOut(["half_median", 0.3, "untrained"])], ids=repr)
def test_an_integer_weight_is_a_repetition(rule):
    S, y = spd_classes(per_class=30, spread=0.6)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    model = RiemannianLVQ("log_euclidean", sigma2=rule, max_epochs=20, random_state=0)
    weighted, repeated = clone(model).fit(S, y, weights), clone(model).fit(S.repeat(weights, 0), y.repeat(weights))
    first, other = weighted.choice_, repeated.choice_
    assert (first.chosen, first.trains, first.winner) == (other.chosen, other.trains, other.winner)
    for one, two in zip(first.tried, other.tried, strict=True):
        assert one.name == two.name
        assert_allclose(one[1:], two[1:], rtol=1e-9, atol=1e-12)
    assert weighted.sigma2_ == pytest.approx(repeated.sigma2_, rel=1e-12)
    assert_allclose(weighted.prototypes_, repeated.prototypes_, rtol=1e-9, atol=1e-12)


# --- the probabilities


def accuracy_confidence_and_loss(model, S, y):
    proba = model.predict_proba(S)
    own = proba[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return model.score(S, y), proba.max(axis=1).mean(), -np.log(own).mean()


@pytest.mark.parametrize("per_class", [8, 16])
@pytest.mark.parametrize("make", [make_syn1, make_syn2])
def test_few_samples_give_probabilities_that_are_neither_timid_nor_certain(make, per_class):
    found, timid = [], []
    for seed in range(4):
        S, y = make(per_class + 100, random_state=seed)
        few = np.concatenate([np.flatnonzero(y == label)[:per_class] for label in np.unique(y)])
        fresh, S, y = (np.delete(S, few, axis=0), np.delete(y, few)), S[few], y[few]
        found.append(accuracy_confidence_and_loss(RiemannianLVQ(random_state=0).fit(S, y), *fresh))
        wide = RiemannianLVQ(sigma2="half_median", max_epochs=0).fit(S, y)
        timid.append(accuracy_confidence_and_loss(wide, *fresh))
    (accuracy, confidence, loss), (_, low, high) = np.mean(found, axis=0), np.mean(timid, axis=0)
    assert abs(accuracy - confidence) < 0.25
    assert accuracy - low > 0.08
    assert loss < high


@pytest.mark.parametrize("shift", [6.0, 40.0])
def test_held_out_samples_that_are_all_right_do_not_make_probabilities_one(shift):
    for seed in range(3):
        S, y = vector_classes(seed=seed, per_class=8, n_classes=3, shift=shift)
        model = RiemannianLVQ("euclidean_vectors", random_state=0).fit(S, y)
        assert all(one.error == 0 for one in model.choice_.tried)
        first, second = model.prototypes_[:2]
        confidence = model.predict_proba([0.5 * (first + second) + 0.02 * (first - second)]).max()
        assert 0.5 < confidence < 0.95


# --- where nothing can be chosen


@pytest.mark.parametrize("per_class", [1, 2, 3])
def test_too_few_samples_keep_the_initial_prototypes_or_take_the_first_candidate(per_class):
    S, y = spd_classes(per_class=per_class, n_classes=3)
    folds = deal_folds(Samples(S, y), np.arange(3), np.random.default_rng(0))
    assert sum(len(held) for _, held in folds) < MIN_HELD_OUT
    settings = {"max_epochs": 8, "random_state": 0}
    default = RiemannianLVQ(**settings).fit(S, y)
    means = RiemannianLVQ(max_epochs=0).fit(S, y)
    assert default.choice_ == Choice("untrained", False)
    assert (default.n_epochs_, default.sigma2_) == (0, means.sigma2_)
    assert_array_equal(default.prototypes_, means.prototypes_)
    first = RiemannianLVQ(sigma2=HeldOut([0.7, 0.1]), **settings).fit(S, y)
    assert (first.sigma2_, first.n_epochs_, first.choice_) == (0.7, 8, Choice("0.7"))


def test_where_the_rule_cannot_tell_the_trials_cannot():
    S, y = np.repeat([[0.0], [1.0]], 30, axis=0), np.repeat([0, 1], 30)
    model = RiemannianLVQ("euclidean_vectors", init=(S[:1].repeat(2, 0), [0, 1]))
    refuse(model, "fit", S[:30] * 0, y[15:45], match="half the median .* Give sigma2 a number")


def test_a_class_of_one_sample_beside_large_ones():
    S, y = np.concatenate([X, [[30.0, 30.0, 30.0]]]), np.append(Y, 7)
    model = RiemannianLVQ("euclidean_vectors", random_state=0).fit(S, y)
    assert [one.name for one in model.choice_.tried] == ["auto", "untrained"]
    assert model.predict(S[-1:]) == 7
    one = np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:2]]  # only one class can be judged
    model = RiemannianLVQ("euclidean_vectors", random_state=0).fit(X[one], Y[one])
    assert (model.choice_, model.n_epochs_) == (Choice("untrained", False), 0)


def test_no_epochs_need_no_trials():
    plan, evidence = plan_of(max_epochs=0)
    assert plan.choice == Choice("untrained", False)
    assert plan.trainer.sigma2 == Constant(likeliest_sigma2(evidence))
    assert plan_of(HeldOut([0.3, "untrained"]), max_epochs=0)[0].trainer.sigma2 == Constant(0.3)


@pytest.mark.parametrize(
    ("candidate", "wanted"),
    [
        (0.5, lambda evidence: 0.5),
        ("half_median", lambda evidence: half_median(evidence.sqdist)),
        ("auto", blended_sigma2),
    ],
    ids=["number", "half_median", "auto"],
)
def test_a_single_value_is_used_without_trials(candidate, wanted):
    plan, evidence = plan_of(HeldOut([candidate]))
    assert plan.choice == Choice(str(candidate))
    assert plan.trainer.sigma2 == Constant(wanted(evidence))
    assert plan.trainer.step_size == StepSize()  # as nothing chooses the amount, it is that of Share()


def test_where_it_cannot_be_is_said():
    S, y = spd_classes(per_class=30)
    refuse(RiemannianLVQ(step_size=HeldOut()), "fit", S, y, match="step_size must be a positive number, a Schedule")
    trainer = Trainer(EuclideanVectors(), sigma2=HeldOut())
    for sigma2 in (HeldOut(), "heldout", "blended", "untrained"):
        with pytest.raises(ValueError, match="sigma2 must be a positive number, a Schedule"):
            attrs.evolve(trainer, sigma2=sigma2).init(Samples(X, Y), 3, np.random.default_rng(0))


# --- an initializer of the user's own on a part of the samples


def test_folds_whose_first_prototypes_have_other_labels_are_left_out():
    """This initializer gives the class of the first sample that it sees one prototype more."""

    def moody(manifold, codes, targets, n_classes, rng, **extra):
        counts = [1] * n_classes
        counts[int(targets[np.argmax(codes[:, 0])])] += 1
        return ClassMeans(tuple(counts))(manifold, codes, targets, n_classes, rng, **extra)

    n_folds = []
    for seed in range(6):
        model = RiemannianLVQ("euclidean_vectors", init=moody, random_state=seed).fit(X, Y)
        assert np.isfinite([one.loss for one in model.choice_.tried]).all()
        n_folds.append(max(one.n_folds for one in model.choice_.tried))
    assert min(n_folds) < 4


def test_an_initializer_that_needs_all_samples_leaves_nothing_to_compare():
    def greedy(manifold, codes, targets, n_classes, rng, **extra):
        if len(codes) < len(Y):
            raise ValueError("give me all samples")
        return ClassMeans()(manifold, codes, targets, n_classes, rng, **extra)

    model = RiemannianLVQ("euclidean_vectors", init=greedy, random_state=0).fit(X, Y)
    assert (model.choice_, model.n_epochs_) == (Choice("untrained", False), 0)
    model.set_params(sigma2=HeldOut([0.2, 1.0])).fit(X, Y)
    assert (model.sigma2_, model.n_epochs_) == (0.2, 20)


# --- as any other sigma2


@pytest.mark.filterwarnings("ignore:training raised:rplvq.exceptions.DivergenceWarning")  # the classes are alike
@EVERY
def test_every_manifold_chooses(case):
    S, y = case.points(np.random.default_rng(0), 24, 3), np.repeat([0, 1], 12)
    for rule in ("auto", HeldOut(["auto", "half_median", 1.0])):
        model = RiemannianLVQ(case.manifold(3), sigma2=rule, max_epochs=3, random_state=0).fit(S, y)
        assert 0 < model.sigma2_ < np.inf
        assert np.isfinite(model.predict_log_proba(S)).all()
        assert np.isfinite([one.loss for one in model.choice_.tried]).all()
        assert model.choice_.tried[model.choice_.winner].name == model.choice_.chosen


@pytest.mark.parametrize(
    "cost",
    [
        GLVQ(),
        PLVQ(),
        SpreadRSLVQ([1.0, 0.5, 2.0], FlatGaussian(3)),
        RSLVQ(priors=(0.2, 0.3, 0.5)),
        RSLVQ() + 0.1 * Representability(),
        2.0 * PLVQ(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("init", ["mean", "kmeans"])
def test_every_cost_and_several_prototypes_per_class(cost, init):
    model = RiemannianLVQ(
        "euclidean_vectors", cost, prototypes_per_class={0: 2, 1: 1, 2: 3}, init=init, random_state=0
    ).fit(X, Y)
    assert np.isfinite([one.loss for one in model.choice_.tried]).all()
    assert model.n_epochs_ == model.history_["epoch"][-1] == (10 if model.choice_.trains else 0)
    assert model.score(X, Y) > 0.5
