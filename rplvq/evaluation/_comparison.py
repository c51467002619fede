"""The result of a comparison: the scores of every fold, their summary, and tests of the differences."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from os import PathLike
from typing import Any

import attrs
import numpy as np

from rplvq.evaluation._questions import Question, answer
from rplvq.evaluation._report import Table, as_csv, as_latex, as_markdown, as_text, make_report
from rplvq.evaluation._significance import Row, TestName, check_test, difference_rows
from rplvq.io import replace_file
from rplvq.protocols import Array, ArrayLike


def _sizes(values: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(n_train), int(n_test)) for n_train, n_test in values)


def _read_only(values: ArrayLike) -> Array:
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def _in_shape(instance: "Comparison", attribute: "attrs.Attribute[Array]", value: Array) -> None:
    n_metrics = (len(instance.metrics),) if attribute.name == "scores" else ()
    wanted = (len(instance.names), *n_metrics, len(instance.folds))
    if value.shape != wanted:
        raise ValueError(f"{attribute.name} must have shape {wanted}, got {value.shape}")


@attrs.frozen(eq=False, repr=False)
class Comparison:
    """Scores of several estimators in the same folds, as :func:`rplvq.evaluation.compare` returns them.

    Parameters
    ----------
    names, metrics : sequence of str
        Names of the E estimators, and of the M metrics, of which larger is better.
    folds, scores : sequence of (int, int), and ndarray of shape (E, M, F)
        Numbers of training and test samples of the F folds, and each estimator's score by each metric in each fold.
    fit_seconds, predict_seconds : ndarray of shape (E, F)
        Wall time of ``fit`` on the training part and of ``predict`` on the test part.
    sigma2, trained : ndarray of shape (E, F), optional
        The ``sigma2_`` of each fitted estimator; and whether ``fit`` chose to train, 1 or 0. NaN by default.
    settings : sequence of str, optional
        Each estimator with its parameters, as text.
    questions : sequence of Question, optional
        What :meth:`conclusions` answers, and so the pairs of estimators that are tested; by default every pair.
    about : mapping of str to str, optional
        Facts about the run, such as data, chance level, folds, seed, versions and command, for every output.
    test : {"corrected_t", "wilcoxon"}, default="corrected_t"
        The test that all outputs use, see :meth:`p_values`.

    Notes
    -----
    The methods raise ValueError if a metric was not scored, a test is unknown, or a test has only one fold. They take a
    ``metric`` (by default the first), a ``test`` (by default the attribute), ``all_pairs`` (False), whether to test
    every pair of estimators, as one family, and not only those of ``questions``, and ``folds`` (False), whether to use
    ``fold_rows``, which are all scores, in place of ``rows``, which are the summary.

    Examples
    --------
    >>> scores = [[[0.9, 0.8, 1.0]], [[0.7, 0.7, 0.85]]]
    >>> seconds = np.full((2, 3), 0.5)
    >>> result = Comparison(["a", "b"], ["accuracy"], [(20, 10)] * 3, scores, seconds, seconds)
    >>> result.rows[0]["accuracy_mean"], result.p_values(test="wilcoxon")
    (0.9, {('a', 'b'): 0.25})
    >>> print(result.conclusions()[0].partition(",")[0])  # print(result) shows all
    The best mean is not significantly above any other: accuracy 0.9000 of a against 0.7500 of b
    """

    names: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    metrics: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    folds: tuple[tuple[int, int], ...] = attrs.field(converter=_sizes)
    scores: Array = attrs.field(converter=_read_only, validator=_in_shape)
    fit_seconds: Array = attrs.field(converter=_read_only, validator=_in_shape)
    predict_seconds: Array = attrs.field(converter=_read_only, validator=_in_shape)
    sigma2: Array = attrs.field(converter=_read_only, validator=_in_shape, kw_only=True)
    trained: Array = attrs.field(converter=_read_only, validator=_in_shape, kw_only=True)
    settings: tuple[str, ...] = attrs.field(converter=tuple[str, ...], default=(), kw_only=True)
    questions: tuple[Question, ...] = attrs.field(converter=tuple[Question, ...], default=(), kw_only=True)
    about: dict[str, str] = attrs.field(factory=dict, kw_only=True)
    test: TestName = attrs.field(converter=check_test, default="corrected_t", kw_only=True)

    @sigma2.default
    @trained.default
    def _unknown(self) -> Array:
        return np.full((len(self.names), len(self.folds)), np.nan)

    @settings.validator
    def _one_per_name(self, _: object, settings: tuple[str, ...]) -> None:
        if settings and len(settings) != len(self.names):
            raise ValueError(f"settings must have one entry per estimator, {len(self.names)}, got {len(settings)}")

    @questions.validator
    def _about_names(self, _: object, questions: tuple[Question, ...]) -> None:
        for name in (name for question in questions for pair in question.pairs for name in pair):
            if name not in self.names:
                raise ValueError(f"questions name {name!r}, which is not one of {list(self.names)}")

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)} by {', '.join(self.metrics)} in {len(self.folds)} folds>"

    def __str__(self) -> str:
        return as_text(make_report(self, self.metrics[:1]))

    def of(self, metric: str) -> Array:
        """Return the scores (E, F) by one metric, with one row per estimator and one column per fold."""
        if metric not in self.metrics:
            raise ValueError(f"metric={metric!r} was not scored; choose from {list(self.metrics)}")
        return np.asarray(self.scores[:, self.metrics.index(metric)])

    @property
    def rows(self) -> list[Row]:
        """One dict per estimator: estimator, ``<metric>_mean``, ``<metric>_std``, sigma2, trained, and the seconds.

        The standard deviation over folds has ddof=1, and is NaN for one fold. sigma2 is the mean over folds, and
        trained the number of folds in which ``fit`` trained, NaN if unknown. The seconds are medians, because the first
        fit of a process compiles code. The settings of the estimator come last, if given.
        """
        means = self.scores.mean(axis=2)
        deviations = self.scores.std(axis=2, ddof=1) if len(self.folds) > 1 else np.full(means.shape, np.nan)
        rows: list[Row] = [{"estimator": name} for name in self.names]
        for e, row in enumerate(rows):
            for m, metric in enumerate(self.metrics):
                row |= {f"{metric}_mean": float(means[e, m]), f"{metric}_std": float(deviations[e, m])}
            row["sigma2"] = float(self.sigma2[e].mean())
            row["trained"] = float(self.trained[e].sum())
            row["fit_seconds"] = float(np.median(self.fit_seconds[e]))
            row["predict_seconds"] = float(np.median(self.predict_seconds[e]))
            row |= {"settings": self.settings[e]} if self.settings else {}
        return rows

    @property
    def fold_rows(self) -> list[Row]:
        """One dict per estimator and fold: estimator, fold, n_train, n_test, the metrics, sigma2, trained, seconds."""
        seconds = {"fit_seconds": self.fit_seconds, "predict_seconds": self.predict_seconds}
        columns = {"sigma2": self.sigma2, "trained": self.trained} | seconds
        return [
            {"estimator": name, "fold": f, "n_train": n_train, "n_test": n_test}
            | {metric: float(self.scores[e, m, f]) for m, metric in enumerate(self.metrics)}
            | {column: float(values[e, f]) for column, values in columns.items()}
            for e, name in enumerate(self.names)
            for f, (n_train, n_test) in enumerate(self.folds)
        ]

    def _families(self, all_pairs: bool) -> tuple[Question, ...]:
        """Return the families of pairs that are corrected together: the questions, or every pair if there are none."""
        every = Question("every pair", tuple(combinations(self.names, 2)))
        return (every,) if all_pairs or not self.questions else self.questions

    def p_values(
        self, metric: str | None = None, *, test: TestName | None = None, correct: bool = True, all_pairs: bool = False
    ) -> dict[tuple[str, str], float]:
        """Test the pairs of estimators for a difference; return the p-value of each pair of names.

        The corrected t-test (:func:`rplvq.evaluation.corrected_t_p_value`) accounts for folds that share training data.
        Wilcoxon's (:func:`rplvq.evaluation.wilcoxon_p_value`) does not, so its p-values are too small. Neither says
        anything about other data sets. Unless ``correct`` is False, :func:`rplvq.evaluation.holm` is applied to the
        pairs of each question. A pair of several questions has the p-value of the first of them.
        """
        p_values: dict[tuple[str, str], float] = {}
        for row in self._tested(metric, test, self._families(all_pairs), correct=correct):
            p_values.setdefault((row["first"], row["second"]), row["p"])
        return p_values

    def _tested(
        self, metric: str | None, test: TestName | None, families: Sequence[Question], *, correct: bool = True
    ) -> list[Row]:
        """Return the rows of :meth:`differences` for families of pairs, each corrected for itself."""
        metric = self.metrics[0] if metric is None else metric
        test = check_test(self.test if test is None else test)
        scores = dict(zip(self.names, self.of(metric), strict=True))
        ratio = float(np.mean([n_test / n_train for n_train, n_test in self.folds]))
        return [
            {"question": topic, "metric": metric} | row
            for topic, pairs in families
            for row in difference_rows(pairs, scores, ratio, test, correct=correct)
        ]

    def differences(
        self, metric: str | None = None, *, test: TestName | None = None, all_pairs: bool = False
    ) -> list[Row]:
        """One dict per question and pair: the difference of their mean scores, its interval and its p-value.

        The keys are question, metric, first, second, first_mean, second_mean; difference, the first mean minus the
        second; ci_low and ci_high, its 95% confidence interval by the corrected t-test, for this pair alone; better, as
        "first", "second" or "neither"; p, the p-value after Holm's correction for the pairs of the question.
        """
        return self._tested(metric, test, self._families(all_pairs))

    def conclusions(self, metric: str | None = None, *, test: TestName | None = None) -> list[str]:
        """Answer each of ``questions`` in one sentence, with differences, confidence intervals and p-values.

        Without questions, one sentence compares the best mean with all others. Without a second estimator or a second
        fold there is no answer, and the list is empty.
        """
        if min(len(self.names), len(self.folds)) < 2:
            return []
        if self.questions:
            return [self._answer(question, metric, test) for question in self.questions]
        means = self.of(self.metrics[0] if metric is None else metric).mean(axis=1)
        best = self.names[means.argmax()]
        # Every pair is tested, because the best is known from the same scores. The best comes first in its pairs.
        pairs = [pair[::-1] if pair[1] == best else pair for pair in combinations(self.names, 2)]
        rows = self._tested(metric, test, [Question("best", tuple(pairs))])
        return [answer("best", [row for row in rows if row["first"] == best])]

    def _answer(self, question: Question, metric: str | None, test: TestName | None) -> str:
        """Return the answer to a question. Where some fits kept prototypes without training, it names the choice."""
        first = [self.names.index(name) for name, _ in question.pairs]
        chose = bool((self.trained[first] == 0).any())
        return answer(question.topic, self._tested(metric, test, [question]), what="choice" if chose else "training")

    def to_frame(self, *, folds: bool = False) -> Any:
        """Return the rows as a pandas DataFrame; raise ImportError if pandas is missing."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas; .rows is the same as a list") from error
        return pandas.DataFrame(self.fold_rows if folds else self.rows)

    def to_csv(self, path: str | PathLike[str], *, folds: bool = False) -> None:
        """Write the rows to a CSV file ``path`` in UTF-8 with a header; each row ends with the facts of ``about``."""
        replace_file(path, as_csv(self.fold_rows if folds else self.rows, self.about))

    def differences_to_csv(self, path: str | PathLike[str]) -> None:
        """Write the :meth:`differences` of all metrics to ``path``, as :meth:`to_csv`; none for a single fold."""
        testable = len(self.folds) > 1
        rows = [row | {"test": self.test} for metric in self.metrics if testable for row in self.differences(metric)]
        replace_file(path, as_csv(rows, self.about))

    def to_markdown(self) -> str:
        """Return facts, rows, the differences by every metric, and the conclusions by the first one, as Markdown."""
        return as_markdown(make_report(self, self.metrics))

    def to_latex(self, *, table: bool = False) -> str:
        """Return the same as LaTeX, with tables that need no package; with ``table`` the table of the rows alone."""
        blocks = make_report(self, self.metrics)
        return as_latex([block for block in blocks if isinstance(block, Table)][:1] if table else blocks)
