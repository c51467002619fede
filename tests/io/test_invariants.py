"""What holds for every fitted model, and files with a matching seal for which it does not hold."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pymanopt.manifolds import Sphere
from sklearn.base import clone

from rplvq import (
    AdaptiveStep,
    Checkpoint,
    Constant,
    EarlyStopping,
    Grow,
    HeldOut,
    Prune,
    RiemannianLVQ,
    StepSize,
    TangentSpace,
    load_model,
)
from rplvq.arrays import Samples
from rplvq.estimators._following import PendingClasses, Stream
from rplvq.exceptions import ModelFileError
from rplvq.io import require_fitted, save_model
from rplvq.manifolds import MissingChannels
from rplvq.selection import Choice
from rplvq.training._resize import new_codes
from tests.problems import refuse, spd_classes, sphere_classes, vector_classes

X, Y = spd_classes(per_class=12)
Z, _ = spd_classes(per_class=12, dtype=complex)
WORDS = np.array(["no", "yes"])[Y]
SETTINGS = {"sigma2": HeldOut(["auto"]), "max_epochs": 2, "random_state": 0}
METRICS = [
    "affine_invariant",
    "log_euclidean",
    "log_cholesky",
    "bures_wasserstein",
    "learned_log_euclidean",
    "tangent",
    TangentSpace(whiten=True),
    "euclidean",
]
OPTIONS = {
    "defaults": {"sigma2": "auto", "max_epochs": 12},
    "no training": {"max_epochs": 0},
    "k-means": {"prototypes_per_class": 3, "init": "kmeans"},
    "batches": {"batch_size": 5},
    "all at once": {"batch_size": None},
    "adaptive": {"step_size": AdaptiveStep()},
    "early stopping": {"early_stopping": EarlyStopping(0.3, patience=1)},
    "growth": {"growth": [Grow(every=1, at_most=3), Prune(every=1)]},
    "given": {"init": (X[:4], Y[:4])},
    "GLVQ": {"cost": "glvq"},
    "held out": {"sigma2": HeldOut(["auto", 0.5])},
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("metric", METRICS)
def test_fitted_models_have_all_invariants(metric, option):
    y = WORDS if option != "given" else Y
    model = RiemannianLVQ(metric, **SETTINGS | OPTIONS[option])
    require_fitted(model.fit(X, y))
    require_fitted(model.partial_fit(X[::2], y[::2]))
    if option != "given":
        require_fitted(model.fit(Z, y))


@pytest.mark.parametrize("announced", [None, ["a", "no", "yes", "z"]], ids=["unannounced", "announced"])
def test_streams_have_all_invariants_after_every_call(announced):
    model = RiemannianLVQ(**SETTINGS, growth=[Prune(), Grow()])
    for call, names in enumerate([["no", "yes"], ["no", "yes"], ["a", "yes"], ["yes", "z"]]):
        model.partial_fit(X, np.array(names)[Y], classes=announced if call == 0 else None)
        require_fitted(model)


@pytest.mark.parametrize(
    ("manifold", "data"),
    [("euclidean_vectors", vector_classes()), (Sphere(3), sphere_classes())],
    ids=["vectors", "sphere"],
)
def test_other_points_have_all_invariants(manifold, data):
    require_fitted(RiemannianLVQ(manifold, **SETTINGS).fit(*data))


@pytest.mark.filterwarnings("ignore::rplvq.exceptions.DivergenceWarning")
@pytest.mark.parametrize("step_size", [300.0, 1000.0])
@pytest.mark.parametrize("metric", ["affine_invariant", "log_euclidean"])
def test_a_model_at_the_edge_of_the_cone_is_loaded(metric, step_size, tmp_path):
    far = StepSize(Constant(step_size), max_weight=None)
    model = RiemannianLVQ(metric, "glvq", sigma2=1.0, step_size=far, max_epochs=3, random_state=0).fit(X, Y)
    assert np.linalg.cond(model.prototypes_).max() > 1e12
    model.save(tmp_path / "model.npz")
    assert_array_equal(load_model(tmp_path / "model.npz").prototypes_, model.prototypes_)


# --- files with a matching seal

MODEL = RiemannianLVQ(**SETTINGS, prototypes_per_class=2, init="kmeans").fit(X, WORDS)


def of_state(**changes):
    return lambda model: {"state_": model.state_._replace(**changes)}


def moved(change):
    """Other points, both in the state and in the attribute."""

    def forge(model):
        points = change(model.prototypes_)
        return {"state_": model.state_._replace(prototypes=points), "prototypes_": points}

    return forge


FORGED = {
    "reversed labels": lambda model: {"prototype_labels_": model.prototype_labels_[::-1]},
    "reversed labels of the state": of_state(labels=np.array([1, 1, 0, 0])),
    "labels that are not sorted": of_state(labels=np.array([0, 1, 0, 1])),
    "labels of other classes": lambda model: {"prototype_labels_": np.array(["a", "a", "b", "b"])},
    "a class without prototypes": of_state(labels=np.zeros(4, dtype=int)),
    "a label too many": of_state(labels=np.array([0, 0, 1, 1, 1])),
    "negative labels": of_state(labels=np.array([-1, -1, 0, 0])),
    "reversed classes": lambda model: {"classes_": model.classes_[::-1]},
    "missing classes": lambda model: {"classes_": model.classes_[:1]},
    "a class twice": lambda model: {"classes_": model.classes_[[0, 0, 1]]},
    "classes with two axes": lambda model: {"classes_": model.classes_[None]},
    "no classes": lambda model: {"classes_": None},
    "sigma2 NaN": lambda model: {"sigma2_": np.nan},
    "sigma2 negative": lambda model: {"sigma2_": -1.0},
    "sigma2 of the state NaN": of_state(sigma2=np.nan),
    "sigma2 of the state negative": of_state(sigma2=-1.0),
    "sigma2 of the state zero": of_state(sigma2=0.0),
    "step size infinite": of_state(step_size=np.inf),
    "no schedule": of_state(sigma2_schedule=1.0),
    "first step size NaN": lambda model: {"step_size_": np.nan},
    "a choice of no candidate": lambda model: {"choice_": Choice("auto", winner=3)},
    "epochs negative": lambda model: {"n_epochs_": -1},
    "columns of different lengths": lambda model: {"history_": model.history_ | {"cost": np.zeros(1)}},
    "features": lambda model: {"n_features_in_": 7},
    "other points": lambda model: {"prototypes_": 2 * model.prototypes_},
    "points of another shape": lambda model: {"prototypes_": model.prototypes_[:, :2, :2]},
    "fewer points": lambda model: {"prototypes_": model.prototypes_[:1]},
    "points that are negative": moved(np.negative),
    "points that are not symmetric": moved(lambda points: points + np.triu(np.ones((3, 3)), 1)),
    "points that are NaN": moved(lambda points: points * np.nan),
    "points that are vectors": moved(lambda points: points[:, 0]),
    "a history without a column": lambda model: {"history_": {"epoch": np.ones(1)}},
    "a calibration of 1e308": lambda model: {"choice_": Choice("auto", calibration=1e308)},
    "sigma2 of another schedule": of_state(sigma2=7.0, sigma2_schedule=Constant(8.0)),
    "samples of another shape": lambda model: {"_stream": Stream(recent=Samples(np.ones((2, 2, 2)), WORDS[:2]))},
    "samples of other classes": lambda model: {"_stream": Stream(recent=Samples(X[:2], np.array(["a", "no"])))},
    "samples that are NaN": lambda model: {"_stream": Stream(alone=Samples(X[:2] * np.nan, WORDS[:2]))},
    "late classes that are none": lambda model: {
        "_stream": Stream(pending=PendingClasses(np.array(["a"]), Samples(X[:2], WORDS[:2])))
    },
    "channels of another size": lambda model: {"missing_channels_": MissingChannels(np.eye(2), np.zeros(3))},
    "no trainer": lambda model: {"trainer_": None},
    "no state": lambda model: {"state_": None},
    "no generator": lambda model: {"_rng": None},
}


@pytest.mark.parametrize("fault", FORGED)
def test_a_model_that_no_fit_leaves_behind_is_refused(fault, tmp_path):
    model = copy.deepcopy(MODEL)
    vars(model).update(FORGED[fault](MODEL))
    with pytest.raises((ValueError, AttributeError)):
        require_fitted(model)
    save_model(model, tmp_path / "forged.npz")
    with pytest.raises(ModelFileError, match=r"forged\.npz: "):
        load_model(tmp_path / "forged.npz")


@pytest.mark.parametrize(
    ("part", "change"),
    [("reference", 50.0), ("reference", 0.0), ("center", np.nan), ("basis", 50.0), ("basis", np.nan)],
)
def test_a_change_of_what_is_known_of_missing_channels_is_refused(part, change, tmp_path):
    model = copy.deepcopy(MODEL)
    filler = model.missing_channels_
    array = filler.covariance.basis if part == "basis" else getattr(filler, part)
    array[(0,) * (array.ndim - 1) + (1,)] = change
    save_model(model, tmp_path / "forged.npz")
    with pytest.raises(ModelFileError, match=r"forged\.npz: "):
        load_model(tmp_path / "forged.npz")


@pytest.mark.parametrize("place", [(0, 0, 2), (0, 2, 0), (1, 0, 1)])
@pytest.mark.parametrize("metric", METRICS)
def test_a_change_of_a_single_entry_of_the_internal_prototypes_is_refused(metric, place, tmp_path):
    model = RiemannianLVQ(metric, **SETTINGS).fit(X, WORDS)
    codes = np.array(model.state_.prototypes)
    codes[place] += 50 * np.abs(codes).max()
    model.state_ = model.state_._replace(prototypes=new_codes(model.state_.prototypes, codes))
    save_model(model, tmp_path / "forged.npz")
    with pytest.raises(ModelFileError, match=r"forged\.npz: "):
        load_model(tmp_path / "forged.npz")


@pytest.mark.parametrize(
    "name", sorted(vars(MODEL).keys() - MODEL.get_params().keys() - {"_stream", "choice_", "missing_channels_"})
)  # older files have no choice_, and they and streams no missing_channels_
def test_a_model_without_an_attribute_is_refused(name, tmp_path):
    model = copy.deepcopy(MODEL)
    del vars(model)[name]
    with pytest.raises((ValueError, AttributeError)):
        require_fitted(model)


def of_progress(**changes):
    return lambda progress: progress._replace(**changes)


def of_both(**changes):
    def forge(progress):
        return progress._replace(state=progress.state._replace(**changes), best=progress.best._replace(**changes))

    return forge


FORGED_RUNS = {
    "labels": of_both(labels=np.array([1, 0])),
    "a class without prototypes": of_both(labels=np.array([0, 0])),
    "a class too many": of_both(labels=np.array([0, 1, 2]), prototypes=X[:3]),
    "points that are negative": of_both(prototypes=-X[:2]),
    "points that are NaN": of_both(prototypes=np.nan * X[:2]),
    "points of another shape": of_both(prototypes=X[:2, :1]),
    "sigma2": of_both(sigma2=-1.0),
    "step size": of_both(step_size=np.nan),
    "the best state alone": lambda progress: progress._replace(best=progress.best._replace(sigma2=np.nan)),
    "epoch": of_both(epoch=0),
    "no history": of_progress(rows=()),
    "cost": of_progress(best_cost=np.nan),
    "no random state": of_progress(rng=None),
    "another random state": of_progress(rng={"bit_generator": "MT19937"}),
    "the random state of another seed": of_progress(rng=np.random.default_rng(1).bit_generator.state),
    "another sigma2": of_both(sigma2=2.0),
    "another schedule": of_both(sigma2_schedule=Constant(2.0)),
    "another step size": of_both(step_size=2.0),
    "another schedule of the step size": of_both(step_schedule=Constant(2.0)),
    "a row without a column": lambda progress: progress._replace(rows=({"epoch": 1}, {"epoch": 2, "sigma2": 1.0})),
    "a calibration of 1e308": of_progress(choice=Choice("auto", calibration=1e308)),
}


@pytest.mark.parametrize("fault", FORGED_RUNS)
def test_a_checkpoint_that_no_fit_writes_is_refused(fault, tmp_path):
    path = tmp_path / "fit.npz"

    def forging(report):
        if report.state.epoch == 2:
            Checkpoint(path)(report._replace(progress=FORGED_RUNS[fault](report.progress)))
            return True
        return None

    model = RiemannianLVQ(sigma2=1.0, max_epochs=3, random_state=0)
    clone(model).set_params(callbacks=[forging]).fit(X, Y)
    refuse(model, "fit", X, Y, resume=path, match="fit.npz", error=ModelFileError)
