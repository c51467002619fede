"""The result of a comparison: summary, tests, tables and files, on scores made by hand."""

from __future__ import annotations

import csv
import pickle
import re
import sys

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from rplvq.evaluation import Comparison, Question, corrected_t_p_value, holm
from rplvq.evaluation._questions import answer
from rplvq.evaluation._report import as_latex, as_text

NAMES = ["good", "same", "a|b, bad"]


ABOUT = {"samples": "100", "command": "compare --out a_b & <c> #1 50% x"}


def make(n_folds=10, names=NAMES, metrics=("accuracy", "kappa"), seed=0, **more):
    """Scores of three estimators: the second equals the first, the third is always worse."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0.8, 0.9, (len(metrics), n_folds))
    worse = first - rng.uniform(0.05, 0.1, first.shape)
    scores = np.stack([first, first, worse])[: len(names)]
    seconds = rng.uniform(0.1, 2.0, (2, len(names), n_folds))
    sigma2 = rng.uniform(0.1, 0.2, seconds[0].shape)
    facts = {"settings": [f"Model({name!r})" for name in names], "about": ABOUT, "sigma2": sigma2}
    return Comparison(names, metrics, [(90, 10)] * n_folds, scores, *seconds, **facts | more)


def test_rows_are_means_and_sample_deviations():
    result = make()
    row = result.rows[2]
    assert row["estimator"] == "a|b, bad"
    assert_allclose(row["kappa_mean"], np.mean(result.scores[2, 1]))
    assert_allclose(row["kappa_std"], np.sqrt(np.sum((result.scores[2, 1] - row["kappa_mean"]) ** 2) / 9))
    assert_allclose(row["sigma2"], result.sigma2[2].mean())
    assert_allclose(row["fit_seconds"], np.median(result.fit_seconds[2]))
    assert_allclose(row["predict_seconds"], np.median(result.predict_seconds[2]))
    assert list(row) == [
        "estimator", "accuracy_mean", "accuracy_std", "kappa_mean", "kappa_std", "sigma2", "trained",
        "fit_seconds", "predict_seconds", "settings",
    ]  # fmt: skip


def test_a_comparison_says_in_how_many_folds_each_fit_trained():
    trained = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [np.nan] * 4])
    questions = [Question("training", (("good", "same"),))]
    result = make(n_folds=4, trained=trained, questions=questions)
    rows = [line.split() for line in str(result).splitlines()]
    assert [row["trained"] for row in result.rows][:2] == [3, 0]
    assert np.isnan(result.rows[2]["trained"])
    assert [row["trained"] for row in result.fold_rows[:4]] == [1, 0, 1, 1]
    assert any(row[:2] == ["1", "good"] and "".join(row).count("3of4") for row in rows)
    assert result.conclusions()[0].startswith("Whether the choice on held-out samples, which did not always train, ")
    always = make(n_folds=4, trained=np.ones((3, 4)), questions=questions)
    assert always.conclusions()[0].startswith("Whether training helped ")


def test_scores_of_a_metric():
    result = make()
    assert_array_equal(result.of("kappa"), result.scores[:, 1])
    with pytest.raises(ValueError, match=r"metric='f1' was not scored; choose from \['accuracy', 'kappa'\]"):
        result.of("f1")


def test_p_values_by_wilcoxons_test_have_holms_correction():
    result = make()
    p = result.p_values("accuracy", test="wilcoxon")
    assert list(p) == [("good", "same"), ("good", "a|b, bad"), ("same", "a|b, bad")]
    raw = stats.wilcoxon(result.scores[0, 0], result.scores[2, 0]).pvalue
    assert raw == 2 / 2**10
    # The pair of equals has p = 1; Holm gives the two smallest 3 p and 2 p, made monotone.
    assert_allclose(list(p.values()), [1.0, 3 * raw, 3 * raw])
    assert_allclose(list(result.p_values(test="wilcoxon", correct=False).values()), [1.0, raw, raw])
    assert make(test="wilcoxon").p_values() == p


def test_p_values_are_those_of_the_corrected_t_test_with_the_sizes_of_the_folds():
    result = make()
    raw = [corrected_t_p_value(result.scores[i, 1], result.scores[j, 1], 10 / 90) for i, j in [(0, 1), (0, 2), (1, 2)]]
    assert_allclose(list(result.p_values("kappa").values()), holm(raw))


def test_p_values_refuse_an_unknown_test_and_a_single_fold():
    with pytest.raises(ValueError, match="test must be 'corrected_t' or 'wilcoxon', got 'sign'"):
        make().p_values(test="sign")
    with pytest.raises(ValueError, match="test must be"):
        make(test="sign")
    with pytest.raises(ValueError, match="at least 2 folds, got 1"):
        make(n_folds=1).p_values()


def test_differences_hold_sign_interval_and_p_in_entries_of_their_own():
    result = make()
    same, first, _ = result.differences("kappa")
    assert (same["difference"], same["better"], same["p"]) == (0.0, "neither", 1.0)
    assert (first["first"], first["second"], first["better"]) == ("good", "a|b, bad", "first")
    d = result.of("kappa")[0] - result.of("kappa")[2]
    assert_allclose(first["difference"], first["first_mean"] - first["second_mean"])
    half = stats.t(9).ppf(0.975) * np.sqrt((1 / 10 + 10 / 90) * d.var(ddof=1))
    assert_allclose([first["ci_low"], first["ci_high"]], [d.mean() - half, d.mean() + half])
    assert first["p"] == result.p_values("kappa")["good", "a|b, bad"]


def test_conclusions_answer_the_questions_in_the_order_of_their_pairs():
    questions = [
        Question("training", (("good", "a|b, bad"),)),
        Question("training", (("a|b, bad", "good"),)),
        Question("training", (("good", "a|b, bad"), ("good", "same"))),
        Question("metric", (("good", "same"),)),
        Question("metric", (("a|b, bad", "same"),)),
        Question("other", (("a|b, bad", "same"),)),
    ]
    result = make(questions=questions)
    helped, harmed, mixed, equal, differ, worse = result.conclusions()
    assert helped.startswith("Training helped over the class means (MDM): accuracy ")
    assert harmed.startswith("Training harmed compared with the class means (MDM): ")
    assert "helped over the class means (MDM) in 1 of 2 cases, harmed in 0" in mixed
    assert equal.startswith("No difference between the metrics was found: ")
    assert "difference +0.0000 (95% confidence interval +0.0000 to +0.0000, p = 1.000)" in equal
    assert differ.startswith("The metrics differ: ")
    assert worse.startswith("The trained prototypes are worse than the other classifiers: ")
    row = result.differences()[0]
    assert f"difference {-row['difference']:+.4f}" in harmed
    assert f"{-row['ci_high']:+.4f} to {-row['ci_low']:+.4f}" in harmed
    assert str(result).endswith(as_text([worse]))


def test_only_pairs_of_questions_are_tested_and_each_question_is_corrected_alone():
    bad, both = ("good", "a|b, bad"), (("good", "a|b, bad"), ("same", "a|b, bad"))
    result = make(questions=[Question("training", (bad,)), Question("other", both)])
    raw = result.p_values(correct=False, all_pairs=True)
    assert [(row["question"], row["p"]) for row in result.differences()] == [
        ("training", raw[bad]),
        ("other", 2 * raw[bad]),
        ("other", 2 * raw[bad]),  # "same" has the scores of "good"
    ]
    assert result.p_values() == {bad: raw[bad], ("same", "a|b, bad"): 2 * raw[bad]}
    assert {row["question"] for row in result.differences(all_pairs=True)} == {"every pair"}
    assert list(result.p_values(all_pairs=True).values()) == [1.0, 3 * raw[bad], 3 * raw[bad]]
    assert "correction for the pairs of each question" in " ".join(str(result).split())
    with pytest.raises(ValueError, match=r"questions name 'bad', which is not one of \['good'"):
        make(questions=[Question("training", (("good", "bad"),))])


def test_of_many_differences_a_conclusion_names_the_largest():
    rows = make().differences()
    many = [row | {"first": f"x{n}", "difference": -n / 100} for n, row in enumerate(rows * 2)]
    sentence = answer("other", many)
    assert "better in 0 of 6 pairs, worse in 4, and the others are not significant" in sentence
    assert ". The largest of the 6 differences: accuracy " in sentence
    assert "of x5 against" in sentence
    assert "of x4 against" not in sentence


def test_without_questions_the_best_is_compared_with_all_others():
    (sentence,) = make(seed=3).conclusions("kappa")
    assert sentence.startswith("The best mean is significantly above 1 of 2 others: kappa ")
    assert sentence.count("confidence interval") == 2


def test_text_holds_the_table_and_the_differences():
    text = str(make())
    lines = text.splitlines()
    header = next(line for line in lines if "estimator" in line and "accuracy" in line)
    rows = lines[lines.index(header) + 1 :][:3]
    assert [row.split("  ")[1] for row in rows] == NAMES
    assert len({len(line) for line in [header, *rows]}) == 1  # aligned
    assert "0.8" in rows[0]
    assert "+-" in rows[0]
    assert "Nadeau and Bengio" in " ".join(lines)
    assert "correction for 3 pairs" in " ".join(lines)
    assert "Wilcoxon" not in text
    head = next(i for i, line in enumerate(lines) if line.startswith("question"))
    assert lines[head].split()[-2:] == ["better", "p"]
    assert [line.split()[-2:] for line in lines[head + 1 : head + 4]] == [
        ["neither", "1.000"],
        ["first", "<0.001"],
        ["first", "<0.001"],
    ]


def test_wilcoxon_is_named_and_says_when_folds_are_too_few_to_find_anything():
    text = " ".join(str(make(n_folds=4, test="wilcoxon")).split())
    assert "Wilcoxon's signed-rank test, which takes folds that share training data for independent" in text
    assert "can be below 0.375" in text
    assert "can be below" not in str(make(n_folds=10, test="wilcoxon"))
    assert "can be below" not in str(make(n_folds=4))


@pytest.mark.parametrize(("n_folds", "names"), [(1, NAMES), (5, ["alone"])])
def test_without_pairs_or_folds_there_is_no_test(n_folds, names):
    result = make(n_folds=n_folds, names=names)
    for text in (str(result), result.to_markdown(), result.to_latex()):
        assert "difference" not in text
    assert result.conclusions() == []
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
    assert len(tables) == 3  # summary, and differences by each metric
    assert all(len({len(row) for row in table}) == 1 for table in tables)
    assert [row[1] for row in tables[0][2:]] == NAMES
    for cells, row in zip(tables[0][2:], result.rows, strict=True):
        mean, deviation = map(float, cells[3].split("±"))
        assert_allclose([mean, deviation], [row["kappa_mean"], row["kappa_std"]], atol=5.1e-5)
    for cells, row in zip(tables[2][2:], result.differences("kappa"), strict=True):
        assert cells[:3] == [row["question"], row["first"], row["second"]]
        assert_allclose(float(cells[3]), row["difference"], atol=5.1e-5)
        assert cells[5] == row["better"]
    assert "\n- samples: 100\n" in "\n" + result.to_markdown()


def test_every_output_holds_facts_settings_and_sigma2(tmp_path):
    result = make()
    sigma2 = f"{result.rows[2]['sigma2']:.3g}"
    result.to_csv(tmp_path / "rows.csv")
    outputs = [str(result), result.to_markdown(), result.to_latex()]
    for text in [*outputs, (tmp_path / "rows.csv").read_text()]:
        plain = text.replace("\\", "")
        assert all(f"Model('{name}')" in plain for name in ("good", "same"))
        assert "compare" in plain
    assert all(sigma2 in text for text in outputs)


def test_latex_escapes_what_has_a_meaning():
    specials = "&%$#_{}~^\\<>"
    text = make(names=[f"x{char}y" for char in specials][:3]).to_latex()
    for char in specials[:3]:
        assert f"x\\{char}y" in text
    command = next(line for line in text.splitlines() if line.startswith("command"))
    assert r"-{}-out a\_b \& \textless{}c\textgreater{} \#1 50\% x" in command
    table = text[text.index("\\begin{tabular}") : text.index("\\end{tabular}")]
    bare = [re.sub(r"\\[&]", "", line).count("&") for line in table.splitlines() if line.endswith("\\\\")]
    assert bare == [7] * 4  # eight columns in the header and three rows
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 3


@pytest.mark.parametrize("char", list("&%$#_{}~^\\<>|"))
def test_latex_leaves_no_special_character_bare(char):
    text = as_latex([f"a{char}b"])
    escaped = {"~": "textasciitilde", "^": "textasciicircum", "\\": "textbackslash"}
    escaped |= {"<": "textless", ">": "textgreater", "|": "textbar"}
    assert text.strip() == (f"a\\{escaped[char]}{{}}b" if char in escaped else f"a\\{char}b")


def test_csv_of_differences_reads_back(tmp_path):
    result = make()
    result.differences_to_csv(tmp_path / "differences.csv")
    with open(tmp_path / "differences.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wanted = [row for metric in result.metrics for row in result.differences(metric)]
    assert len(rows) == 6
    for row, known in zip(rows, wanted, strict=True):
        assert {key: type(value)(row[key]) for key, value in known.items()} == known
        assert (row["test"], row["command"]) == ("corrected_t", ABOUT["command"])
    make(n_folds=1).differences_to_csv(tmp_path / "none.csv")
    assert len((tmp_path / "none.csv").read_text().splitlines()) == 1


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


@pytest.mark.parametrize("field", ["scores", "fit_seconds", "predict_seconds", "sigma2"])
def test_shapes_are_checked(field):
    result = make()
    with pytest.raises(ValueError, match=f"{field} must have shape"):
        attrs.evolve(result, **{field: np.zeros((3, 4))})


def test_settings_are_checked():
    with pytest.raises(ValueError, match="one entry per estimator, 3, got 1"):
        make(settings=["Model()"])


def test_tiny_p_values_are_not_shown_as_zero():
    assert "<0.001" in str(make(n_folds=14))
