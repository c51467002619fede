"""Pictures: what is drawn is what was measured, on the axes that were given."""

from __future__ import annotations

import html
import re
import sys

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from rplvq import Annealed, EarlyStopping, RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.evaluation import Comparison
from rplvq.plotting import plot_comparison, plot_history, save_comparison
from rplvq.training import EpochScore

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def comparison(n_folds=10, names=("middle", "best", "worst")):
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.7, 0.75, (3, 2, n_folds)) + np.array([0.05, 0.1, -0.1])[:, None, None]
    seconds = np.ones((len(names), n_folds))
    return Comparison(names, ["accuracy", "kappa"], [(90, 10)] * n_folds, scores[: len(names)], seconds, seconds)


@pytest.fixture(scope="module")
def fitted():
    X, y = make_syn1(n_per_class=12, n=4, random_state=0)
    settings = {"early_stopping": EarlyStopping(fraction=0.25), "callbacks": [EpochScore()], "sigma2": Annealed(2.0)}
    return RiemannianLVQ(max_epochs=4, random_state=0, **settings).fit(X, y)


def right_labels(ax):
    (child,) = ax.child_axes
    return [label.get_text() for label in child.get_yticklabels()]


def test_rows_are_sorted_with_the_best_at_the_top():
    _, ax = plt.subplots()
    assert plot_comparison(comparison(), ax=ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == ["best", "middle", "worst"]
    assert ax.yaxis_inverted()


def test_dots_are_the_folds_and_diamonds_the_means():
    result = comparison()
    ax = plot_comparison(result, "kappa")
    for row, name in enumerate(["best", "middle", "worst"]):
        scores = result.of("kappa")[result.names.index(name)]
        dots = np.asarray(ax.collections[2 * row].get_offsets())  # dots, then the bar of each row
        assert_array_equal(dots[:, 0], scores)
        assert np.all(np.abs(dots[:, 1] - row) < 0.5)
        (segment,) = ax.collections[2 * row + 1].get_segments()
        assert_allclose(segment[:, 0], scores.mean() + np.array([-1, 1]) * scores.std(ddof=1))
        diamond = ax.lines[row]
        assert_allclose([diamond.get_xdata()[0], diamond.get_ydata()[0]], [scores.mean(), row])
    heights = [np.asarray(ax.collections[2 * row].get_offsets())[:, 1] - row for row in range(3)]
    assert_allclose(heights[0], heights[1])  # a fold keeps its height from row to row


def test_numbers_stand_at_the_right():
    result = comparison(n_folds=3)  # so few that p can be read
    ax = plot_comparison(result)
    best, middle, worst = right_labels(ax)
    assert best.endswith("best")
    assert best.startswith(f"{result.rows[1]['accuracy_mean']:.3f} ± {result.rows[1]['accuracy_std']:.3f}")
    assert middle.endswith(f"p = {result.p_values()['middle', 'best']:.3f}")
    assert worst.endswith(f"p = {result.p_values()['best', 'worst']:.3f}")
    assert "corrected resampled t-test against the best, Holm-corrected" in ax.get_title()
    assert "Wilcoxon" in plot_comparison(attrs.evolve(result, test="wilcoxon")).get_title()


def test_tiny_p_values_are_not_drawn_as_zero():
    assert right_labels(plot_comparison(comparison(n_folds=14)))[1].endswith("p < 0.001")


@pytest.mark.parametrize("result", [comparison(n_folds=1), comparison(names=["alone"])])
def test_nothing_is_tested_without_folds_or_rivals(result):
    ax = plot_comparison(result)
    assert "test" not in ax.get_title()
    means = sorted((f"{row['accuracy_mean']:.3f}" for row in result.rows), reverse=True)
    for label, mean in zip(right_labels(ax), means, strict=True):
        assert label.split()[0] == mean
        assert ("±" in label) == (len(result.folds) > 1)
        assert "p =" not in label


@pytest.mark.parametrize(
    ("metric", "label"),
    [("accuracy", "accuracy (share of test samples)"), ("kappa", "Cohen's kappa (0 chance, 1 perfect)")],
)
def test_axes_name_their_units(metric, label):
    assert plot_comparison(comparison(), metric).get_xlabel() == label


def test_the_first_metric_is_drawn_unless_another_one_is_named():
    _, ax = plt.subplots()
    result = comparison()
    assert plot_comparison(result, "kappa", ax) is ax
    assert plot_comparison(result).get_xlabel().startswith("accuracy")
    with pytest.raises(ValueError, match="metric='f1' was not scored"):
        plot_comparison(result, "f1")


def test_saved_pictures_are_as_large_as_promised_and_not_empty(tmp_path):
    figures = plt.get_fignums()
    save_comparison(comparison(), tmp_path / "picture.png")
    pixels = plt.imread(tmp_path / "picture.png")
    assert pixels.shape[1] == 1200  # 8 inches at 150 dots
    ink = pixels[..., :3].min(axis=2) < 0.9
    assert 0.005 < ink.mean() < 0.5
    assert plt.get_fignums() == figures  # no window is left behind


def test_saved_pictures_say_what_was_run(tmp_path):
    about = {"classes": "2 (<a>: 40, b: 60)", "command": "compare $x$ " + "--option " * 30}
    result = attrs.evolve(comparison(), about=about, settings=["M()", "N()", "O(k=1)"], sigma2=np.full((3, 10), 0.25))
    with plt.rc_context({"svg.fonttype": "none"}):
        save_comparison(result, tmp_path / "picture.svg")
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", (tmp_path / "picture.svg").read_text())).split())
    for fact in (
        "classes: 2 (<a>: 40, b: 60)",
        "command: compare $x$ --option",
        "worst: O(k=1), mean sigma2 0.25",
        "The best mean is",
    ):
        assert fact in text
    save_comparison(result, tmp_path / "picture.pdf")
    assert (tmp_path / "picture.pdf").read_bytes().startswith(b"%PDF")


def test_text_stays_inside_the_saved_picture():
    names = ["a very long name of an estimator", "b", "c"]
    ax = plot_comparison(comparison(names=names))
    figure = ax.figure
    figure.canvas.draw()
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.x1 <= figure.get_figwidth()


def test_history_panels_show_the_columns(fitted):
    axes = plot_history(fitted)
    expected = [["cost", "validation_cost"], ["training_error", "validation_error"], ["sigma2", "step_size"]]
    for ax, columns in zip(axes, expected, strict=True):
        assert len(ax.lines) == len(columns)
        for line, column in zip(ax.lines, columns, strict=True):
            assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
            assert_array_equal(line.get_ydata(), fitted.history_[column])
    assert axes[2].get_yscale() == "log"
    assert axes[2].get_xlabel() == "epoch"
    assert [ax.get_ylabel() for ax in axes] == ["cost (sum over samples)", "error (share of samples)", "schedule"]


def test_history_without_validation_and_of_one_epoch():
    X, y = make_syn1(n_per_class=5, n=4, random_state=0)
    axes = plot_history(RiemannianLVQ(max_epochs=1, random_state=0).fit(X, y).history_)
    assert [len(ax.lines) for ax in axes] == [1, 1, 2]
    assert axes[0].lines[0].get_marker() == "o"  # a line of one point would not be seen


def test_history_takes_three_axes_or_divides_one(fitted):
    figure, three = plt.subplots(1, 3)
    assert list(plot_history(fitted, three)) == list(three)
    figure, (left, right) = plt.subplots(1, 2)
    axes = plot_history(fitted, left)
    assert len(figure.axes) == 5
    assert not left.axison
    figure.canvas.draw()
    whole = left.get_position()
    for ax in axes:
        box = ax.get_position()
        assert whole.x0 - 0.01 <= box.x0 < box.x1 <= whole.x1 + 0.01
        assert box.y0 >= whole.y0 - 0.01
    assert not right.lines


def test_the_history_without_training_is_one_point():
    X, y = make_syn1(n_per_class=5, n=4, random_state=0)
    model = RiemannianLVQ(max_epochs=0).fit(X, y)
    line = np.atleast_1d(plot_history(model))[0].lines[0]
    assert line.get_xdata().tolist() == [0]
    assert line.get_ydata().tolist() == model.history_["cost"].tolist()


def test_the_history_of_a_choice_without_training_shows_what_was_compared():
    X, y = make_syn1(n_per_class=20, random_state=0)
    model = RiemannianLVQ(random_state=0).fit(X, y)
    assert not model.choice_.trains  # the class means of these data are hard to beat
    axes = plot_history(model)
    drawn = [[bar.get_height() for bar in ax.patches] for ax in axes]
    assert drawn == [[one.loss for one in model.choice_.tried], [one.error for one in model.choice_.tried], []]
    assert [text.get_text() for text in axes[1].get_xticklabels()] == [one.name for one in model.choice_.tried]
    assert axes[2].texts[0].get_text() == f"no epoch was trained: chose {model.choice_.chosen!r}"


def test_history_refuses_what_it_can_not_draw(fitted):
    with pytest.raises(NotFittedError):
        plot_history(RiemannianLVQ())
    with pytest.raises(ValueError, match="no epoch was trained"):
        plot_history({})
    with pytest.raises(ValueError, match="lacks the column 'cost'"):
        plot_history({"epoch": [1, 2], "training_error": [0.1, 0.2]})
    with pytest.raises(ValueError, match="one Axes or three, got 2"):
        plot_history(fitted, plt.subplots(1, 2)[1])
    with pytest.raises(ValueError, match="grid of subplots"):
        plot_history(fitted, plt.figure().add_axes((0, 0, 1, 1)))


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch, tmp_path, fitted):
    for module in ("matplotlib", "matplotlib.pyplot", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    result = comparison()
    for draw in (
        lambda: plot_comparison(result),
        lambda: plot_history(fitted),
        lambda: save_comparison(result, tmp_path / "a.png"),
    ):
        with pytest.raises(ImportError, match=r'pip install "\.\[plot\]"'):
            draw()
