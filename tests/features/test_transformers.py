"""Transformers of trials and images: they are the functions with parameters, for arrays and for MNE's Epochs."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from rplvq import CommonSubspace, RiemannianLVQ, TrialCovariances, features
from rplvq.features import AugmentedCovariances, FilterBankCovariances, RegionCovariances, trial_covariances

RNG = np.random.default_rng(0)
TRIALS = RNG.normal(size=(20, 3, 80))
TRIALS[10:, 0] *= 3
IMAGES = RNG.integers(0, 256, size=(6, 12, 10)).astype(float)
Y = np.repeat(["left", "right"], 10)
PAIRS = [
    (TrialCovariances(shrinkage="oas"), features.trial_covariances, TRIALS),
    (TrialCovariances("correlation", center=True), features.trial_covariances, TRIALS),
    (FilterBankCovariances(100.0, [(8, 12), (12, 30)], order=2), features.filter_bank_covariances, TRIALS),
    (AugmentedCovariances(2, 3, shrinkage=0.1), features.augmented_covariances, TRIALS),
    (RegionCovariances(shrinkage=1e-3), features.region_covariances, IMAGES),
]
IDS = ["trials", "correlation", "bands", "augmented", "regions"]


@pytest.mark.parametrize(("step", "function", "X"), PAIRS, ids=IDS)
def test_a_transformer_is_its_function(step, function, X):
    expected = function(X, **step.get_params())
    step = clone(step)
    with pytest.raises(NotFittedError):
        step.transform(X)
    assert_array_equal(step.fit(X).transform(X), expected)
    assert_array_equal(clone(step).fit_transform(X), expected)
    assert_array_equal(pickle.loads(pickle.dumps(step)).transform(X[:2]), expected[:2])
    assert len(step.get_feature_names_out()) == expected.shape[-1] == step.n_features_out_


@pytest.mark.parametrize(("step", "function", "X"), PAIRS, ids=IDS)
def test_the_options_are_those_of_the_function(step, function, X):
    options = list(inspect.signature(function).parameters.values())[1:]
    given = list(inspect.signature(type(step)).parameters.values())
    assert [(o.name, o.default) for o in options if o.name != "masks"] == [(o.name, o.default) for o in given]


def test_correlations_are_those_of_numpy():
    expected = [np.corrcoef(trial) for trial in TRIALS]
    assert_allclose(trial_covariances(TRIALS * [[5], [1], [0.1]], estimator="correlation", center=True), expected)
    flat = TRIALS * [[0], [1], [1]]
    assert_array_equal(trial_covariances(flat, estimator="corr")[:, 0], 0.0)


@pytest.mark.parametrize(("name", "shrinkage"), [("lwf", "ledoit_wolf"), ("LWF", "ledoit_wolf"), ("oas", "oas")])
def test_estimators_that_are_shrinkages(name, shrinkage):
    expected = trial_covariances(TRIALS, shrinkage=shrinkage)
    assert_array_equal(trial_covariances(TRIALS, estimator=name), expected)
    assert_array_equal(trial_covariances(TRIALS, estimator=name, shrinkage=shrinkage), expected)


def test_an_estimator_of_the_user():
    expected = [0.9 * np.cov(trial) + 0.1 * np.trace(np.cov(trial)) / 3 * np.eye(3) for trial in TRIALS]
    assert_allclose(trial_covariances(TRIALS, estimator=np.cov, shrinkage=0.1), expected)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"estimator": "oas", "shrinkage": 0.1}, "estimator='oas' estimates the shrinkage"),
        ({"estimator": "osa"}, "estimator='osa' is not known; did you mean 'oas'"),
        ({"estimator": 3}, "estimator='3' is not known"),
        ({"estimator": np.cov, "shrinkage": "oas"}, "shrinkage must be a number in .* estimator of your own"),
        ({"estimator": lambda trial: trial}, "estimator returned no symmetric matrices"),
        ({"shrinkage": 2}, "shrinkage must be a number"),
    ],
)
def test_bad_options_are_refused_in_fit(params, message):
    step = TrialCovariances(**params)
    with pytest.raises(ValueError, match=message):
        step.fit(TRIALS)
    assert not hasattr(step, "n_features_in_")


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_offsets_are_told(unit):
    X = unit * (TRIALS + np.array([[0.0], [5.0], [0.3]]) * RNG.normal(size=(20, 1, 1)))
    message = (
        r"means over the trials carry most of the power in (1 of 3|2 of 6) channels \(9\d.* in channel 1\).*center=True"
    )
    for call in (trial_covariances, TrialCovariances().fit, AugmentedCovariances(2).fit):
        with pytest.warns(UserWarning, match=message):
            call(X)
    trial_covariances(X, center=True)
    FilterBankCovariances(100.0, [(8, 12)]).fit(X)
    trial_covariances(TRIALS[:, :, :3])  # the mean of three values is large by chance


def test_another_unit_is_told():
    step = TrialCovariances().fit(TRIALS)
    with pytest.warns(UserWarning, match=r"1e-12 times the power of X in fit, as in another unit"):
        step.transform(1e-6 * TRIALS)
    step.transform(30 * TRIALS[:1])
    step.transform(0 * TRIALS)
    with pytest.warns(UserWarning, match="as in another unit"):
        RegionCovariances().fit(IMAGES).transform(IMAGES / 255)


def test_channels_must_be_those_of_fit():
    with pytest.raises(ValueError, match="X has 2 features, but TrialCovariances is expecting 3"):
        TrialCovariances().fit(TRIALS).transform(TRIALS[:, :2])
    with pytest.raises(ValueError, match="X has 3 features, but RegionCovariances is expecting 1"):
        RegionCovariances().fit(IMAGES).transform(np.stack([IMAGES] * 3, axis=-1))


def test_options_are_plain_grid_parameters():
    model = make_pipeline(TrialCovariances(), CommonSubspace(), RiemannianLVQ(max_epochs=0))
    grid = {"trialcovariances__shrinkage": [0.0, "oas"], "trialcovariances__center": [True, False]}
    found = GridSearchCV(model, grid, cv=2).fit(TRIALS, Y)
    assert found.best_score_ == 1.0
    model.set_params(trialcovariances__estimator="correlation")
    assert clone(model)[0].estimator == "correlation"


def test_tables_elsewhere_leave_matrices_alone():
    model = make_pipeline(TrialCovariances(), RiemannianLVQ(max_epochs=0)).fit(TRIALS, Y)
    pytest.importorskip("pandas")
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(model[0].transform(TRIALS), np.ndarray)
    assert list(model.set_output(transform="pandas").transform(TRIALS)) == [
        "riemannianlvq_left_0",
        "riemannianlvq_right_0",
    ]


def test_names_of_pixel_features():
    assert RegionCovariances("rgb9").fit(np.stack([IMAGES] * 3, axis=-1)).get_feature_names_out()[2] == "R"
    own = RegionCovariances(lambda image: np.stack([image, image**2], axis=-1)).fit(IMAGES)
    assert own.get_feature_names_out().tolist() == ["regioncovariances0", "regioncovariances1"]


FIRST_MISTAKES = {
    "trials": (TRIALS, "X must hold square matrices, .*TrialCovariances"),
    "a list of trials": (list(TRIALS), "X must hold square matrices, .*TrialCovariances"),
    "vectors": (TRIALS[:, 0], r'3 axes.* got shape \(20, 80\): .*RiemannianLVQ\("euclidean_vectors"\)'),
    "bands": (np.ones((20, 2, 3, 3)), "3 axes.* metric is a Product"),
    "sign": (-trial_covariances(TRIALS), "X.0. is not positive definite: .*sign of X may be wrong: pass -X"),
    "average reference": (
        trial_covariances(TRIALS - TRIALS.mean(axis=1, keepdims=True)),
        r"Try in this order: Restore the rank: rplvq.CommonSubspace\(\)",
    ),
}


@pytest.mark.parametrize("name", FIRST_MISTAKES)
def test_first_mistakes_get_their_remedy(name):
    X, message = FIRST_MISTAKES[name]
    with pytest.raises(ValueError, match=message):
        RiemannianLVQ().fit(X, Y)


def test_bands_of_trials_are_refused():
    with pytest.raises(ValueError, match=r"3 axes.* got shape \(1, 20, 3, 80\): several bands have one step each"):
        TrialCovariances().fit(TRIALS[None])


def test_missing_samples_of_trials_are_no_missing_channels():
    gap = TRIALS.copy()
    gap[7, 1, 3] = np.nan
    with pytest.raises(ValueError, match=r"X\[7\] .* its entry \[1, 3\] is nan. Remove or impute the sample$"):
        TrialCovariances().fit(gap)


class TestEpochs:
    """MNE's Epochs in the place of an array."""

    @pytest.fixture
    def epochs(self):
        mne = pytest.importorskip("mne")
        info = mne.create_info(["C3", "Cz", "C4"], 100.0, "eeg")
        return mne.EpochsArray(TRIALS, info, verbose=False)

    def test_names_are_those_of_the_channels(self, epochs):
        step = TrialCovariances().fit(epochs)
        assert_array_equal(step.transform(epochs), trial_covariances(TRIALS))
        assert_array_equal(trial_covariances(epochs), trial_covariances(TRIALS))
        assert step.feature_names_in_.tolist() == step.get_feature_names_out().tolist() == ["C3", "Cz", "C4"]
        assert AugmentedCovariances(2).fit(epochs).get_feature_names_out()[3] == "C3_lag1"
        model = make_pipeline(TrialCovariances(), CommonSubspace()).fit(epochs)
        assert model.get_feature_names_out().tolist() == ["C3", "Cz", "C4"]
        assert not hasattr(step.fit(TRIALS), "feature_names_in_")

    def test_another_order_of_channels_is_refused(self, epochs):
        step = TrialCovariances().fit(epochs)
        with pytest.raises(
            ValueError, match=r"channels .*'Cz', 'C3'.* but fit was given .*'C3', 'Cz'.*reorder_channels"
        ):
            step.transform(epochs.copy().reorder_channels(["Cz", "C3", "C4"]))
        with pytest.raises(ValueError, match=r"X\[1\] has the channels .*'Cz', 'C3'.* but X\[0\] has .*'C3', 'Cz'"):
            step.fit([epochs, epochs.copy().reorder_channels(["Cz", "C3", "C4"])])

    def test_cross_validation_takes_them_apart(self, epochs):
        model = make_pipeline(TrialCovariances(), CommonSubspace(), RiemannianLVQ(max_epochs=0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # MNE's, for single epochs
            scores = cross_val_score(model, epochs, Y, cv=4)
        assert_array_equal(scores, cross_val_score(model, TRIALS, Y, cv=4))

    def test_the_classifier_says_what_to_do_with_them(self, epochs):
        for X in (epochs, list(epochs), [epochs[i] for i in range(20)]):
            with pytest.raises(ValueError, match="TrialCovariances"):
                RiemannianLVQ().fit(X, Y)

    def test_the_rank_of_mne(self, epochs):
        mne = pytest.importorskip("mne")
        referenced = epochs.set_eeg_reference("average", projection=True, verbose=False).apply_proj(verbose=False)
        rank = mne.compute_rank(referenced, rank="info", verbose=False)
        model = make_pipeline(TrialCovariances(), CommonSubspace(rank)).fit(referenced)
        assert model[1].n_components_ == 2
