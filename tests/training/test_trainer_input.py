"""What the trainer refuses, and how it says that training diverged."""

from __future__ import annotations

import numpy as np
import pytest
from problems import spd_classes, vector_classes

from rplvq import AffineInvariant, EuclideanVectors, RiemannianLVQ, Trainer
from rplvq.protocols import Evaluation


def train(X, y, **settings):
    trainer = Trainer(EuclideanVectors(), **({"max_epochs": 3, "sigma2": 1.0, "step_size": 0.05} | settings))
    rng = np.random.default_rng(0)
    return trainer.run(trainer.init(X, y, y.max() + 1, rng), X, y, rng)


class Exploding:
    """A cost that is infinite from its 20th sample on."""

    def __init__(self):
        self.calls = 0

    def __call__(self, sqdist, targets, labels, sigma2):
        self.calls += 1
        return Evaluation(np.full(len(sqdist), np.inf if self.calls > 20 else 1.0), np.zeros_like(sqdist))


def test_an_infinite_cost_is_reported_as_divergence():
    X, y = vector_classes()
    with pytest.raises(FloatingPointError, match=r"diverged in epoch 2 \(step_size 0.05, sigma2 1\): lower step_size"):
        train(X, y, cost=Exploding())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("manifold", ["euclidean_vectors", "log_euclidean", "euclidean", "affine_invariant"])
@pytest.mark.parametrize("settings", [{}, {"batch_size": None, "max_epochs": 1}], ids=["steps", "last step"])
def test_steps_beyond_all_numbers_end_in_floating_point_error_or_finite_prototypes(manifold, settings):
    X, y = vector_classes(shift=0.5) if manifold == "euclidean_vectors" else spd_classes(shift=0.2, spread=1.0)
    wild = {"step_size": 1e308, "sigma2": 1e-3, "max_weight": None, "max_epochs": 3} | settings
    model = RiemannianLVQ(manifold, random_state=0, **wild)
    try:
        prototypes = model.fit(X, y).prototypes_
    except FloatingPointError as error:
        refusal = str(error)
        assert refusal.startswith("training diverged in epoch")
    else:
        assert np.isfinite(prototypes).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_epochs": -1}, "max_epochs must be an integer .*-1"),
        ({"max_epochs": 2.5}, "max_epochs must be an integer .*2.5"),
        ({"max_epochs": True}, "max_epochs must be an integer .*True"),
        ({"max_epochs": None}, "max_epochs must be an integer .*None"),
        ({"batch_size": 0}, "batch_size must be an integer .*0"),
        ({"batch_size": "all"}, "batch_size must be an integer .*'all'"),
        ({"max_weight": 0}, "max_weight must be .*positive.*0"),
        ({"max_weight": np.nan}, "max_weight must be .*positive.*nan"),
        ({"max_weight": "1"}, "max_weight must be .*positive.*'1'"),
        ({"max_step_length": -2.0}, "max_step_length must be .*positive.*-2.0"),
        ({"monitor": "x"}, "monitor.*sweep.*epoch.*'x'"),
        ({"patience": 0}, "patience must be an integer .*0"),
        ({"tol": -0.1}, "tol.*-0.1"),
        ({"tol": np.nan}, "tol.*nan"),
        ({"tol": "x"}, "tol.*'x'"),
    ],
)
def test_bad_settings_are_refused_by_name_and_value(settings, message):
    with pytest.raises(ValueError, match=message):
        Trainer(AffineInvariant(), **settings)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "x", True, [1.0], {}])
@pytest.mark.parametrize("name", ["sigma2", "step_size"])
def test_schedules_are_refused_by_name_and_value(name, value):
    X, y = vector_classes()
    with pytest.raises(ValueError, match=rf"{name} must be .*positive.*got"):
        train(X, y, **{name: value})


def test_an_initializer_that_forgets_a_class_is_refused():
    def forgetful(manifold, codes, targets, n_classes, rng):
        return codes[:2], np.array([0, 1])

    X, y = vector_classes(n_classes=3)
    with pytest.raises(ValueError, match="initializer gave no prototype for class index 2"):
        train(X, y, initializer=forgetful)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["sigma2", "step_size"])
def test_a_schedule_that_leaves_the_positive_numbers_is_refused(name, value):
    X, y = vector_classes()
    with pytest.raises(ValueError, match=rf"{name} must be positive and finite, got {value} in epoch 2"):
        train(X, y, **{name: lambda epoch, n_epochs: value if epoch == 2 else 1.0})
