"""Pictures of prototypes, data and sigma2: what is drawn is what the model and the data hold."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from rplvq import RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.plotting import plot_distances, plot_ellipses, plot_prototypes

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_syn1(n_per_class=12, n=4, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return RiemannianLVQ(prototypes_per_class={0: 2, 1: 1, 2: 1, 3: 1}, max_epochs=3, random_state=0).fit(*data)


def test_tiles_are_the_prototypes_by_class(fitted):
    _, ax = plt.subplots()
    assert plot_prototypes(fitted, ax, channels=list("abcd"), unit="V^2") is ax
    tiles = np.ma.filled(ax.images[0].get_array().astype(float), np.nan)
    assert tiles.shape == (2 * 5 - 1, 4 * 5 - 1)
    assert_array_equal(tiles[:4, :4], fitted.prototypes_[0])
    assert_array_equal(tiles[5:, :4], fitted.prototypes_[1])
    assert_array_equal(tiles[:4, 15:], fitted.prototypes_[4])
    assert np.isnan(tiles[5:, 5:]).all()
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2", "3"]
    assert [label.get_text() for label in ax.get_yticklabels()] == list("abcd")
    low, high = ax.images[0].get_clim()
    assert low == -high == -np.abs(fitted.prototypes_).max()
    assert any("V^2" in other.get_ylabel() for other in ax.figure.axes)


def test_complex_tiles_are_absolute_values():
    matrix = np.array([[2, 1j], [-1j, 1]])
    ax = plot_prototypes((matrix[None], ["a"]))
    assert_allclose(ax.images[0].get_array(), [[2, 1], [1, 1]])
    assert ax.images[0].get_clim() == (0, 2)


def test_ellipses_have_unit_length_under_the_block(data, fitted):
    X, y = data
    ax = plot_ellipses(fitted, X=X[:6], y=y[:6], channels=(1, 3), names=("left", "right"), unit="V")
    thin, thick = ax.lines[:6], ax.lines[6:]
    assert len(thick) == 5
    for line, matrix in zip([*thin, *thick], [*X[:6], *fitted.prototypes_], strict=True):
        points = np.array(line.get_data())
        block = matrix[np.ix_([1, 3], [1, 3])]
        assert_allclose(np.sum(points * np.linalg.solve(block, points), axis=0), 1.0, rtol=1e-8)
    assert thin[0].get_color() == thick[list(fitted.prototype_labels_).index(y[0])].get_color()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("left (V)", "right (V)")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2", "3"]


def test_distances_keep_the_plane_of_most_variance(data, fitted):
    X, y = data
    ax = plot_distances(fitted, X, y)
    dots = [collection.get_offsets() for collection in ax.collections]
    right, wrong, diamonds = (np.concatenate(dots[i::3]) for i in range(3))
    assert len(right) == np.sum(fitted.predict(X) == y)
    assert len(right) + len(wrong) == len(X)
    assert len(diamonds) == len(fitted.prototypes_)
    distances = fitted.transform(X)
    variances = np.sort(np.linalg.eigvalsh(np.cov(distances.T)))[::-1]
    drawn = np.concatenate([right, wrong])
    assert_allclose(np.var(drawn, axis=0, ddof=1), variances[:2])
    assert f"({100 * variances[0] / variances.sum():.0f} %)" in ax.get_xlabel()


def test_wrong_arguments_are_named(data, fitted):
    X, y = data
    with pytest.raises(NotFittedError):
        plot_prototypes(RiemannianLVQ())
    with pytest.raises(ValueError, match="channels has 3 names for 4 rows"):
        plot_prototypes(fitted, channels=list("abc"))
    with pytest.raises(ValueError, match="matrices"):
        plot_prototypes((np.zeros((2, 3)), [0, 1]))
    with pytest.raises(ValueError, match=r"channels=\(0, 4\)"):
        plot_ellipses(fitted, channels=(0, 4))
    for wrong in (y[:-1], [*y, y[0]]):  # a longer list would colour the samples by the wrong labels
        with pytest.raises(ValueError, match="48 labels"):
            plot_ellipses(fitted, X=X, y=wrong)
    with pytest.raises(ValueError, match="48 labels"):
        plot_distances(fitted, X, y[:-1])


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch, data, fitted):
    X, y = data
    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    draws = (lambda: plot_prototypes(fitted), lambda: plot_ellipses(fitted), lambda: plot_distances(fitted, X, y))
    for draw in draws:
        with pytest.raises(ImportError, match=r'pip install "\.\[plot\]"'):
            draw()
