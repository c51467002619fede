"""A step rule of a user's own: what the trainer tells it, what it remembers, and where its memory is kept."""

from __future__ import annotations

import pickle

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    AffineInvariant,
    Checkpoint,
    EuclideanVectors,
    Grow,
    LogEuclidean,
    Prune,
    RiemannianLVQ,
    Trainer,
    load_model,
)
from rplvq.arrays import Samples
from rplvq.parts import register_part
from rplvq.protocols import StepRule
from rplvq.testing import check_schedule
from rplvq.training import with_prototypes, without_prototypes
from tests.cases import EVERY
from tests.problems import spd_classes, vector_classes


@attrs.frozen
class Counted:
    """Halves the step after every ``patience`` steps, and remembers where each prototype was last."""

    start: float = 0.5
    patience: int = 4

    def __call__(self, epoch, n_epochs):
        return self.start

    def init(self, prototypes):
        return {"n_steps": 0, "norms": 0.0, "seen": 0, "last": np.array(prototypes)}

    def update(self, memory, gradient_norm, epoch, n_epochs):
        n_steps = memory["n_steps"] + 1
        changed = memory | {"n_steps": n_steps, "norms": memory["norms"] + gradient_norm}
        return changed, self.start * 0.5 ** (memory["n_steps"] // self.patience)

    def observe(self, memory, manifold, prototypes):
        return memory | {"seen": memory["seen"] + 1, "last": np.array(prototypes)}

    def resize(self, memory, rebuild):
        return memory | {"last": rebuild(memory["last"])}


X, Y = vector_classes(per_class=6)
SAMPLES = Samples(X, Y)


def trained(rule, samples=SAMPLES, manifold=None, **settings):
    settings = {"sigma2": 1.0, "max_epochs": 2} | settings
    trainer, rng = Trainer(manifold or EuclideanVectors(), step_size=rule, **settings), np.random.default_rng(0)
    return trainer.run(trainer.init(samples, samples.classes.max() + 1, rng), samples, rng)


def test_it_is_a_schedule_that_meets_the_protocol():
    rule = Counted()
    check_schedule(rule)
    assert all(callable(getattr(rule, name)) for name in ("init", "update", "observe", "resize"))
    assert {name for name in vars(StepRule) if not name.startswith("_")} == {"init", "update", "observe", "resize"}


def test_the_trainer_asks_before_each_step_and_tells_after_it():
    state, history = trained(Counted(patience=5))
    assert (state.memory["n_steps"], state.memory["seen"]) == (24, 24)
    assert_array_equal(state.memory["last"], state.prototypes)
    assert_allclose(history["step_size"], [0.5 * 0.5**2, 0.5 * 0.5**4])  # that of the last step of each epoch
    assert state.step_size == 0.5 * 0.5**4


def test_steps_have_the_size_that_the_rule_returns():
    """One sample at a time, by hand: the gradient norms that the rule is told and the prototypes that it moves."""
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=Counted(patience=1), max_epochs=2)
    state = trainer.init(SAMPLES, 2, np.random.default_rng(0)).at_epoch(1, 2)
    w, norms = np.array(state.prototypes), 0.0
    for number in range(5):
        step = trainer.step(state, SAMPLES.at(slice(number, number + 1)))
        sqdist = ((X[number] - w) ** 2).sum(axis=1)
        share = np.exp(-sqdist / 2) / np.exp(-sqdist / 2).sum()
        gradient = (np.eye(2)[Y[number]] - share)[:, None] * (w - X[number])  # 2 * slope * (w - x)
        norms += np.linalg.norm(gradient)
        w = w - 0.5 * 0.5**number * gradient
        assert step.step_size == 0.5 * 0.5**number
        assert_allclose(step.prototypes, w, rtol=1e-9)
        assert step.memory["norms"] == pytest.approx(norms, rel=1e-9)
        state = state._replace(prototypes=step.prototypes, memory=step.memory)


def test_the_memory_of_a_state_is_not_changed_by_a_step():
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=Counted())
    state = trainer.init(SAMPLES, 2, np.random.default_rng(0)).at_epoch(1, 100)
    before = pickle.dumps(state.memory)
    trainer.step(state, SAMPLES.at(slice(0, 3)))
    trainer.sweep(state, SAMPLES, np.random.default_rng(0))
    assert pickle.dumps(state.memory) == before


@EVERY
@pytest.mark.parametrize("batch_size", [1, 4, None])
def test_it_works_on_every_geometry(case, batch_size):
    manifold = case.manifold(3)
    codes = manifold.encode(case.points(np.random.default_rng(0), 12, 3))
    samples = Samples(codes, np.arange(12) % 2)
    state, _ = trained(Counted(start=0.05), samples, manifold, batch_size=batch_size)
    assert state.memory["n_steps"] == state.memory["seen"] == 2 * -(-12 // (batch_size or 12))
    assert_array_equal(state.memory["last"], np.asarray(state.prototypes))
    assert np.isfinite(state.memory["norms"])


def test_a_large_batch_is_taken_at_once_because_the_rule_needs_its_gradient(monkeypatch):
    manifold = LogEuclidean()
    S, y = spd_classes(per_class=40, n=4)
    samples = Samples(manifold.encode(S), y)
    states = []
    for block in (1 << 25, 1 << 12):
        monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", block)
        states.append(trained(Counted(), samples, manifold, batch_size=None)[0])
    assert_allclose(states[1].prototypes, states[0].prototypes, rtol=1e-9, atol=1e-12)
    assert states[1].memory["n_steps"] == 2
    assert states[1].memory["norms"] == pytest.approx(states[0].memory["norms"], rel=1e-9)


def test_its_cap_on_weights_is_one_unless_it_has_another():
    @attrs.frozen
    class Uncapped(Counted):
        max_weight = None

    samples, sample = Samples(np.array([[0.0], [1.0]]), np.array([0, 1])), Samples(np.array([[4.0]]), np.array([0]))
    for rule, n_capped in ((Counted(5.0), 2), (Uncapped(5.0), 0)):
        trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=rule)
        assert trainer.step(trainer.init(samples, 2, np.random.default_rng(0)), sample).n_capped == n_capped


def test_compiled_steps_do_not_know_it():
    S, y = spd_classes(per_class=6)
    models = [
        RiemannianLVQ(AffineInvariant(compiled=way), sigma2=1.0, step_size=Counted(), max_epochs=2, random_state=0)
        for way in ("auto", False, True)
    ]
    assert_array_equal(models[0].fit(S, y).prototypes_, models[1].fit(S, y).prototypes_)
    with pytest.raises(ValueError, match=r"compiled=True, but no kernel knows these parts .*Counted\(start=0.5"):
        models[2].fit(S, y)


def test_a_rule_is_no_schedule_of_sigma2():
    with pytest.raises(ValueError, match=r"sigma2=Counted\(.*\) adapts a step size; give sigma2 a number"):
        Trainer(EuclideanVectors(), sigma2=Counted()).init(SAMPLES, 2, np.random.default_rng(0))


# --- prototypes that come and go


def test_its_memory_grows_and_shrinks_with_the_prototypes():
    state, _ = trained(Counted())
    more = with_prototypes(state, np.array([[7.0, 7.0, 7.0], [9.0, 9.0, 9.0]]), np.array([0, 1]))
    assert more.labels.tolist() == [0, 0, 1, 1]
    assert_array_equal(more.memory["last"], more.prototypes)
    assert_array_equal(more.memory["last"][[1, 3]], [[7.0] * 3, [9.0] * 3])
    assert more.memory["n_steps"] == state.memory["n_steps"]
    fewer = without_prototypes(more, np.array([1, 2]))
    assert_array_equal(fewer.memory["last"], more.prototypes[[0, 3]])
    assert_array_equal(state.memory["last"], state.prototypes)  # which is as it was


def clusters():
    """Two classes on a line, each in two clusters, which take turns."""
    V = np.concatenate([center + np.linspace(-0.5, 0.5, 12) for center in (0.0, 4.0, 8.0, 12.0)])[:, None]
    return V, np.repeat([0, 1, 0, 1], 12)


def test_a_fit_that_grows_keeps_the_memory_in_step():
    V, y = clusters()
    rules = [Grow(every=1, at_most=2, min_samples=3, gain=None)]
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=Counted(0.1), growth=rules, max_epochs=5)
    model.fit(V, y)
    assert model.history_["n_prototypes"].tolist() == [2, 3, 4, 4, 4]
    assert_array_equal(model.state_.memory["last"], model.prototypes_)
    assert model.state_.memory["n_steps"] == 5 * len(y)
    model.set_params(growth=[Prune(every=1, rise=1e9, min_samples=3)]).partial_fit(V, y)
    assert len(model.prototypes_) == len(model.state_.memory["last"]) == 2


# --- across calls, files and checkpoints


def test_a_stream_continues_with_the_memory():
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=Counted(), max_epochs=2, random_state=0)
    for _ in range(3):
        model.partial_fit(X, Y)
    assert model.state_.memory["n_steps"] == 3 * len(Y)
    assert_allclose(model.history_["step_size"], [0.5 * 0.5 ** ((12 * call - 1) // 4) for call in (1, 2, 3)])


@attrs.frozen
class Saved(Counted):
    """The same, registered so that files can name it."""


register_part(Saved)


def test_files_and_checkpoints_keep_the_memory(tmp_path):
    settings = {"sigma2": 1.0, "step_size": Saved(), "max_epochs": 4, "random_state": 0}
    whole = RiemannianLVQ("euclidean_vectors", **settings).fit(X, Y)
    whole.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.step_size == Saved()
    assert_array_equal(again.partial_fit(X, Y).prototypes_, whole.partial_fit(X, Y).prototypes_)
    assert again.state_.memory["n_steps"] == whole.state_.memory["n_steps"] == 5 * len(Y)

    def stop(report):
        if report.state.epoch == 2:
            raise RuntimeError

    path = tmp_path / "fit.npz"
    with pytest.raises(RuntimeError):
        RiemannianLVQ("euclidean_vectors", callbacks=[Checkpoint(path), stop], **settings).fit(X, Y)
    resumed = RiemannianLVQ("euclidean_vectors", **settings).fit(X, Y, resume=path)
    assert_array_equal(resumed.prototypes_, RiemannianLVQ("euclidean_vectors", **settings).fit(X, Y).prototypes_)
    assert resumed.state_.memory["n_steps"] == 4 * len(Y)
