"""The presets are compositions of public parts with the paper's settings, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from rplvq import RSLVQ, AffineInvariant, Annealed, ClassMeans, HeldOut, ProjectedEuclidean, RiemannianLVQ, StepSize
from rplvq.presets import plrsq_annealed, plrsq_const, rslvq_projected
from tests.problems import spd_classes

PRESETS = [plrsq_const, plrsq_annealed, rslvq_projected]
EVERY_PRESET = pytest.mark.parametrize("preset", PRESETS)
PAPER = {
    "cost": RSLVQ(),
    "step_size": StepSize("paper", max_weight=None),
    "init": ClassMeans(),
    "prototypes_per_class": 1,
    "max_epochs": 100,
    "batch_size": 1,
    "decision": "nearest",
}


@pytest.mark.parametrize(
    ("preset", "own"),
    [
        (plrsq_const, {"metric": AffineInvariant(), "sigma2": 0.5}),
        (plrsq_annealed, {"metric": AffineInvariant(), "sigma2": Annealed(0.5, beta=0.99, power=1.1, drop=0.4)}),
        (rslvq_projected, {"metric": ProjectedEuclidean(tau=1e-4, relative=False), "sigma2": 0.5}),
    ],
)
def test_a_preset_is_the_paper_s_composition(preset, own):
    model = preset(sigma2=0.5)
    assert type(model) is RiemannianLVQ
    assert model.get_params() == RiemannianLVQ(**PAPER, **own).get_params()
    assert repr(clone(model)) == repr(model)


def test_presets_default_to_a_scale_from_the_data():
    X, y = spd_classes()
    auto = RiemannianLVQ(sigma2=HeldOut(["auto"]), max_epochs=1).fit(X, y).state_.sigma2
    assert plrsq_const().sigma2 == rslvq_projected().sigma2 == "half_median"
    assert plrsq_annealed().sigma2 == plrsq_annealed(sigma2=None).sigma2 == Annealed()
    assert plrsq_const(sigma2=HeldOut(["auto"]), max_epochs=1).fit(X, y).sigma2_ == pytest.approx(auto)
    assert plrsq_annealed(max_epochs=1).fit(X, y).sigma2_ == pytest.approx(auto * 0.99**1.1)


def test_another_schedule_is_used_as_it_is():
    slow = Annealed(2.0, power=1)
    assert all(preset(sigma2=slow).sigma2 is slow for preset in PRESETS)


@EVERY_PRESET
def test_other_arguments_reach_the_classifier(preset):
    model = preset(0.5, 3, 20, random_state=7, n_jobs=2, step_size=StepSize(max_weight=0.5), cost="plvq")
    assert (model.prototypes_per_class, model.max_epochs, model.random_state, model.n_jobs) == (3, 20, 7, 2)
    assert (model.step_size, model.cost) == (StepSize(max_weight=0.5), "plvq")


@EVERY_PRESET
@pytest.mark.parametrize("typo", ["sigma", "max_epoch", "prototypes", "manifold", "randomstate"])
def test_a_typo_is_a_type_error(preset, typo):
    with pytest.raises(TypeError, match=typo):
        preset(**{typo: 1})


@EVERY_PRESET
def test_presets_train(preset):
    X, y = spd_classes(n_classes=3, per_class=10)
    model = preset(sigma2=2.0, prototypes_per_class=2, max_epochs=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert (np.linalg.eigvalsh(model.prototypes_) > 0).all()
    assert_array_equal(model.prototypes_, clone(model).fit(X, y).prototypes_)
