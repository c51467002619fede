"""The result of a comparison: summary, tests, tables and files, on scores made by hand."""

from __future__ import annotations

import csv
import pickle
import sys

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from rplvq.evaluation import Comparison, corrected_t_p_value, holm

NAMES = ["good", "same", "a|b, bad"]


def make(n_folds=10, names=NAMES, metrics=("accuracy", "kappa"), seed=0):
    """Scores of three estimators: the second equals the first, the third is always worse."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0.8, 0.9, (len(metrics), n_folds))
    worse = first - rng.uniform(0.05, 0.1, first.shape)
    scores = np.stack([first, first, worse])[: len(names)]
    seconds = rng.uniform(0.1, 2.0, (2, len(names), n_folds))
    return Comparison(names, metrics, [(90, 10)] * n_folds, scores, *seconds)


def test_rows_are_means_and_sample_deviations():
    result = make()
    row = result.rows[2]
    assert row["estimator"] == "a|b, bad"
    assert_allclose(row["kappa_mean"], np.mean(result.scores[2, 1]))
    assert_allclose(row["kappa_std"], np.sqrt(np.sum((result.scores[2, 1] - row["kappa_mean"]) ** 2) / 9))
    assert_allclose(row["fit_seconds"], result.fit_seconds[2].mean())
    assert_allclose(row["predict_seconds"], result.predict_seconds[2].mean())
    assert list(row) == [
        "estimator", "accuracy_mean", "accuracy_std", "kappa_mean", "kappa_std", "fit_seconds", "predict_seconds",
    ]  # fmt: skip


def test_scores_of_a_metric():
    result = make()
    assert_array_equal(result.of("kappa"), result.scores[:, 1])
    with pytest.raises(ValueError, match=r"metric='f1' was not scored; choose from \['accuracy', 'kappa'\]"):
        result.of("f1")


def test_p_values_are_wilcoxons_with_holms_correction():
    result = make()
    p = result.p_values("accuracy")
    assert list(p) == [("good", "same"), ("good", "a|b, bad"), ("same", "a|b, bad")]
    raw = stats.wilcoxon(result.scores[0, 0], result.scores[2, 0]).pvalue
    assert raw == 2 / 2**10
    # The pair of equals has p = 1; Holm gives the two smallest 3 p and 2 p, made monotone.
    assert_allclose(list(p.values()), [1.0, 3 * raw, 3 * raw])
    assert_allclose(list(result.p_values(correct=False).values()), [1.0, raw, raw])


def test_p_values_of_the_corrected_t_test_know_the_sizes_of_the_folds():
    result = make()
    raw = [corrected_t_p_value(result.scores[i, 1], result.scores[j, 1], 10 / 90) for i, j in [(0, 1), (0, 2), (1, 2)]]
    assert_allclose(list(result.p_values("kappa", test="corrected_t").values()), holm(raw))


def test_p_values_refuse_an_unknown_test_and_a_single_fold():
    with pytest.raises(ValueError, match="test must be 'wilcoxon' or 'corrected_t', got 'sign'"):
        make().p_values(test="sign")
    with pytest.raises(ValueError, match="at least 2 folds, got 1"):
        make(n_folds=1).p_values()


def test_text_holds_the_table_and_the_p_values():
    lines = str(make()).splitlines()
    header = next(line for line in lines if "estimator" in line and "accuracy" in line)
    rows = lines[lines.index(header) + 1 :][:3]
    assert [row.split("  ")[1] for row in rows] == NAMES
    assert len({len(line) for line in [header, *rows]}) == 1  # aligned
    assert "0.8" in rows[0]
    assert "+-" in rows[0]
    assert any("Wilcoxon" in line and "3 pairs" in line for line in lines)
    assert [line.split() for line in lines[-3:-1]] == [["2", "1.000"], ["3", "0.006", "0.006"]]
    assert "optimistic" in lines[-1]


def test_text_says_when_folds_are_too_few_to_find_anything():
    assert "none of them can be below 0.375" in str(make(n_folds=4))
    assert "none of them" not in str(make(n_folds=10))


@pytest.mark.parametrize(("n_folds", "names"), [(1, NAMES), (5, ["alone"])])
def test_without_pairs_or_folds_there_is_no_test(n_folds, names):
    result = make(n_folds=n_folds, names=names)
    assert "p-value" not in str(result)
    assert "p-value" not in result.to_markdown()
    assert np.isnan(result.rows[0]["accuracy_std"]) == (n_folds == 1)


def test_csv_reads_back_exactly(tmp_path):
    result = make()
    result.to_csv(tmp_path / "summary.csv")
    result.to_csv(tmp_path / "folds.csv", folds=True)
    with open(tmp_path / "summary.csv", newline="", encoding="utf-8") as file:
        summary = list(csv.DictReader(file))
    assert [row["estimator"] for row in summary] == NAMES
    assert [float(row["kappa_std"]) for row in summary] == [row["kappa_std"] for row in result.rows]
    with open(tmp_path / "folds.csv", newline="", encoding="utf-8") as file:
        folds = list(csv.DictReader(file))
    assert len(folds) == 30
    assert_array_equal(np.array([float(row["kappa"]) for row in folds]).reshape(3, 10), result.of("kappa"))
    assert_array_equal([float(row["fit_seconds"]) for row in folds], result.fit_seconds.ravel())
    assert {(row["n_train"], row["n_test"]) for row in folds} == {("90", "10")}


def parse_markdown(text):
    """Tables of a Markdown text as lists of rows of cells."""
    tables = []
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if lines and all(line.startswith("|") for line in lines):
            cells = [line.replace("\\|", "\0")[1:-1].split("|") for line in lines]
            tables.append([[cell.strip().replace("\0", "|") for cell in row] for row in cells])
    return tables


def test_markdown_reads_back():
    result = make()
    tables = parse_markdown(result.to_markdown())
    assert len(tables) == 3  # summary, and p-values of each metric
    assert all(len({len(row) for row in table}) == 1 for table in tables)
    assert [row[1] for row in tables[0][2:]] == NAMES
    for cells, row in zip(tables[0][2:], result.rows, strict=True):
        mean, deviation = map(float, cells[3].split("±"))
        assert_allclose([mean, deviation], [row["kappa_mean"], row["kappa_std"]], atol=5.1e-5)
    assert tables[2][3][1] == "a|b, bad"
    assert_allclose(float(tables[2][3][2]), result.p_values("kappa")["good", "a|b, bad"], atol=5.1e-4)


def test_frame_holds_the_rows():
    pandas = pytest.importorskip("pandas")
    result = make()
    pandas.testing.assert_frame_equal(result.to_frame(), pandas.DataFrame(result.rows))
    folds = result.to_frame(folds=True)
    assert_array_equal(folds.pivot(index="estimator", columns="fold", values="kappa").loc["good"], result.scores[0, 1])


def test_frame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        make().to_frame()


def test_results_can_not_be_changed_by_accident():
    result = make()
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        result.names = ("other",)
    with pytest.raises(ValueError, match="read-only"):
        result.scores[0, 0, 0] = 1.0


def test_results_pickle_and_describe_themselves():
    result = make()
    copy = pickle.loads(pickle.dumps(result))
    assert_array_equal(copy.scores, result.scores)
    assert repr(copy) == "<Comparison of good, same, a|b, bad by accuracy, kappa in 10 folds>"


@pytest.mark.parametrize("field", ["scores", "fit_seconds", "predict_seconds"])
def test_shapes_are_checked(field):
    result = make()
    with pytest.raises(ValueError, match=f"{field} must have shape"):
        attrs.evolve(result, **{field: np.zeros((3, 4))})


def test_tiny_p_values_are_not_shown_as_zero():
    assert "<0.001" in str(make(n_folds=14))
