"""Pictures of explanations: bars are the shares, and panels the components or the map to which they belong."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rplvq import RiemannianLVQ, explain
from rplvq.plotting import plot_explanation
from tests.problems import spd, spd_classes, vector_classes

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
NAMES = ["C3", "Cz", "C4", "Pz"]
PLACES = np.array([[-1.0, 0.0], [0.0, 0.1], [1.0, 0.0], [0.0, -1.0]])


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def explained(manifold="affine_invariant", n=4, dtype=float):
    matrices = spd(np.random.default_rng(0), 3, n, dtype=dtype)
    prototypes, labels = matrices[:2], ["left", "right"]
    model = RiemannianLVQ(manifold, init=(prototypes, labels), max_epochs=0).fit(prototypes, labels)
    return explain(model, matrices[2:])[0]


def bars(ax):
    """Lengths of the bars by label, from top to bottom."""
    return {label.get_text(): bar.get_width() for label, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)}


def test_bars_are_the_shares_by_size():
    found = explained()
    axes = plot_explanation(found, n_components=2)
    assert len(axes) == 3
    drawn = bars(axes[0])
    assert list(drawn) == [f"component {index}" for index in found.order]
    assert_allclose(list(drawn.values()), found.shares[found.order])
    assert axes[0].get_title() == f"{found.label}, not {found.other_label}\nmargin {found.margin:+.2f}"
    assert len({bar.get_facecolor() for bar in axes[0].patches}) == len(set(found.shares > 0))


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "log_cholesky"])
def test_all_bars_add_up_to_the_margin(manifold):
    found = explained(manifold, n=10)
    drawn = bars(plot_explanation(found)[0])
    assert len(drawn) == 9
    assert list(drawn)[-1].endswith(" others")
    assert_allclose(sum(drawn.values()), found.margin)


def test_components_without_positions_are_bars_by_channel_in_one_direction():
    found = explained()
    panel = plot_explanation(found, names=NAMES)[1]
    drawn = np.array(list(bars(panel).values()))
    assert list(bars(panel)) == NAMES
    assert_allclose(np.abs(drawn), np.abs(found.patterns[:, found.order[0]]))
    assert drawn[np.abs(drawn).argmax()] > 0
    assert panel.get_title().startswith(f"pattern of component {found.order[0]}: ")
    assert f"other {found.ratios[found.order[0]]:.3g})" in panel.get_title()


def test_complex_patterns_are_rotated_so_that_the_largest_entry_is_real():
    found = explained(dtype=complex)
    drawn = np.array(list(bars(plot_explanation(found, names=NAMES)[1]).values()))
    column = found.patterns[:, found.order[0]]
    assert_allclose(drawn.max(), np.abs(column).max())
    assert_allclose(drawn, (column * np.exp(-1j * np.angle(column[np.abs(column).argmax()]))).real)


def test_components_are_drawn_at_plain_positions():
    found = explained()
    panel = plot_explanation(found, positions=PLACES, n_components=1)[1]
    assert_allclose(np.array(panel.lines[0].get_data()).T, PLACES)
    low, high = panel.collections[0].get_clim()
    assert_allclose([low, high], np.array([-1, 1]) * np.abs(found.patterns[:, found.order[0]]).max())
    named = plot_explanation(found, positions=PLACES, names=NAMES, n_components=1)[1]
    assert [text.get_text() for text in named.texts] == NAMES
    assert_allclose([text.get_position() for text in named.texts], PLACES)


def test_components_are_drawn_on_a_head():
    mne = pytest.importorskip("mne")
    found = explained()
    info = mne.create_info(NAMES, 100.0, "eeg").set_montage("easycap-M1")
    panel = plot_explanation(found, positions=info, n_components=1)[1]
    assert panel.images
    largest = np.abs(found.patterns[:, found.order[0]]).max()
    assert_allclose(panel.images[0].get_clim(), [-largest, largest])
    with pytest.raises(ValueError, match="positions has 3 channels for 4 rows"):
        plot_explanation(found, positions=mne.pick_info(info, [0, 1, 2]), names=NAMES)


def test_without_mne_the_message_says_what_to_install(monkeypatch):
    class Info:
        ch_names = NAMES

    monkeypatch.setitem(sys.modules, "mne.viz", None)
    with pytest.raises(ImportError, match=r"\.\[eeg\]"):
        plot_explanation(explained(), positions=Info())


def test_entries_are_drawn_as_a_map():
    found = explained("log_euclidean")
    axes = plot_explanation(found, names=NAMES)
    assert len(axes) == 2
    assert_allclose(axes[1].images[0].get_array(), found.shares)
    assert [label.get_text() for label in axes[1].get_xticklabels()] == NAMES
    drawn = bars(axes[0])
    pair = next(name for name in drawn if ", " in name)
    row, column = (NAMES.index(name) for name in pair.split(", "))
    assert_allclose(drawn[pair], 2 * found.shares[row, column])


def test_features_are_bars():
    X, y = vector_classes()
    found = explain(RiemannianLVQ("euclidean_vectors", max_epochs=0).fit(X, y), X)[0]
    (ax,) = plot_explanation(found, names=["x", "y", "z"])
    assert_allclose([bars(ax)[name] for name in "xyz"], found.shares)


def test_given_axes_are_drawn_on():
    figure, panels = plt.subplots(1, 3)
    axes = plot_explanation(explained(), panels)
    assert list(axes) == list(panels)
    assert all(panel.has_data() for panel in panels)
    _, ax = plt.subplots()
    assert plot_explanation(explained(), ax)[0] is ax
    assert len(figure.axes) == 3


def test_what_does_not_fit_is_refused():
    found = explained()
    for options, sentence in [
        ({"names": ["C3"]}, "names has 1 entries for 4 channels"),
        ({"positions": PLACES[:3]}, r"4 finite pairs, got shape \(3, 2\)"),
        ({"positions": PLACES * np.nan}, "4 finite pairs"),
        ({"n_components": -1}, "n_components"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            plot_explanation(found, **options)


def test_texts_of_neighbours_do_not_overlap():
    X, y = spd_classes(n=4)
    found = explain(RiemannianLVQ(max_epochs=0).fit(X, np.where(y == 0, "left hand", "right hand")), X)[0]
    axes = plot_explanation(found, positions=PLACES, names=NAMES)
    figure = axes[0].figure
    figure.canvas.draw()
    boxes = [panel.title.get_window_extent() for panel in axes]
    boxes += [label.get_window_extent() for label in axes[0].get_yticklabels()]
    for number, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
