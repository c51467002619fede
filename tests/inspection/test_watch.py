"""Shares of rejected and novel samples per window."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import Recenter, RejectOption, RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.inspection import watch
from rplvq.preprocessing import StreamingPipeline


@pytest.fixture
def data():
    return make_syn1(n_per_class=40, n=4, random_state=0)


@pytest.fixture
def option(data):
    X, y = data
    return RejectOption(RiemannianLVQ(max_epochs=0), coverage=0.8).fit(X[::2], y[::2])


def test_windows_count_rejections_and_distances_beyond_the_limit(option, data):
    stream = data[0][1::2].copy()
    stream[40:] *= 3.0
    seen = watch(option, stream, window=20)
    assert_array_equal(seen.ends, [20, 40, 60, 80])
    for k in range(4):
        part = stream[20 * k : 20 * k + 20]
        assert seen.rejected[k] == np.mean(option.predict(part) == -1)
        distances = option.estimator_.transform(part)
        limits = option.limits_.sqdist[distances.argmin(axis=1)]
        assert seen.novel[k] == np.mean(distances.min(axis=1) ** 2 > limits)
    assert_allclose([seen.promised_rejected, seen.promised_novel], [0.2, 0.05])
    assert seen.novel[:2].max() < 0.3 < seen.novel[2:].min()


def test_promises_hold_for_samples_like_those_of_training(option):
    X, _ = make_syn1(n_per_class=500, n=4, random_state=0)  # other samples of the same classes
    seen = watch(option, np.random.default_rng(0).permutation(X), window=2000)
    assert_allclose(seen.rejected, seen.promised_rejected, atol=0.1)
    assert_allclose(seen.novel, seen.promised_novel, atol=0.05)


def test_samples_after_the_last_whole_window_are_left_out(option, data):
    X = data[0]
    assert_array_equal(watch(option, X[:50], window=20).novel, watch(option, X[:40], window=20).novel)
    assert_array_equal(
        watch(option, X[:40].reshape(8, 5, 4, 4), window=20).novel, watch(option, X[:40], window=20).novel
    )


def test_a_threshold_promises_no_share(data):
    X, y = data
    option = RejectOption(RiemannianLVQ(max_epochs=0), threshold=0.7, criterion="combined").fit(X, y)
    assert np.isnan(watch(option, X).promised_rejected)


def test_the_last_step_of_a_pipeline_is_watched_behind_the_others(option, data):
    X, y = data
    pipeline = StreamingPipeline([("recenter", Recenter(online=True)), ("lvq", option)]).fit(X[::2], y[::2])
    seen = watch(pipeline[-1], pipeline[:-1].transform(X[1::2]), window=40)
    assert_array_equal(seen.rejected, (pipeline.predict(X[1::2]) == -1).reshape(2, 40).mean(axis=1))


def test_invalid_windows_and_options_without_limits_are_named(option, data):
    X, y = data
    with pytest.raises(ValueError, match="window must be an integer of at least 1, got 0"):
        watch(option, X, window=0)
    with pytest.raises(ValueError, match="X holds 10 samples, fewer than window=50: lower window"):
        watch(option, X[:10])
    posterior = RejectOption(RiemannianLVQ(max_epochs=0), threshold=0.7).fit(X, y)
    with pytest.raises(ValueError, match="set criterion='combined'"):
        watch(posterior, X)
